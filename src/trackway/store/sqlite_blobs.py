"""Blobs in SQLite: once by hash, compressed, over 1 MiB as a list of chunks that is streamed in and out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

from blake3 import blake3

from trackway.errors import BlobNotFound
from trackway.schema.canonical import name_of
from trackway.store.frames import Packer, check, damaged

CHUNK: Final = 1 << 20

Rows = Callable[[str, tuple[Any, ...]], list[Any]]
"""Asks the store a question and returns all rows of the answer."""

_FIND = "SELECT id FROM blobs WHERE hash = ?"
_ADD = "INSERT INTO blobs (hash, size, checksum, body) VALUES (?, ?, ?, ?)"
_ADD_CHUNK = "INSERT INTO chunks (blob, i, checksum, body) VALUES (?, ?, ?, ?)"
_NEXT = "SELECT max(coalesce((SELECT max(id) FROM blobs), 0), coalesce((SELECT max(blob) FROM chunks), 0)) + 1"
_ADD_LISTED = "INSERT INTO blobs (id, hash, size) VALUES (?, ?, ?)"
_DROP_CHUNKS = "DELETE FROM chunks WHERE blob = ?"
_GET = "SELECT id, size, checksum, body FROM blobs WHERE hash = ?"
_GET_CHUNK = "SELECT checksum, body FROM chunks WHERE blob = ? AND i = ?"
_REFER = "INSERT OR IGNORE INTO blob_refs (blob, episode) VALUES (?, ?)"


class Growing:
    """A blob whose parts are still arriving; parts beyond the first chunk are in the store already."""

    def __init__(self, connection: sqlite3.Connection, packer: Packer) -> None:
        self._connection = connection
        self._packer = packer
        self._hash = blake3()
        self._rest = b""
        self._size = 0
        self._chunks = 0
        self._id = 0

    def take(self, part: bytes) -> None:
        """Add a part."""
        self._hash.update(part)
        self._size += len(part)
        waiting = self._rest + part if self._rest else part
        start = 0
        while len(waiting) - start > CHUNK:
            self._chunk(waiting[start : start + CHUNK])
            start += CHUNK
        self._rest = waiting[start:]

    def _chunk(self, body: bytes) -> None:
        if not self._id:
            (self._id,) = self._connection.execute(_NEXT).fetchone()
        packed = self._packer.deflate(body)
        self._connection.execute(_ADD_CHUNK, (self._id, self._chunks, check(packed), packed))
        self._chunks += 1

    def drop(self) -> None:
        """Nobody needs it: its chunks go."""
        if self._id:
            self._connection.execute(_DROP_CHUNKS, (self._id,))

    def finish(self) -> bytes:
        """The last part has come: the blob is stored, or its chunks dropped where it was there before."""
        digest = self._hash.digest()
        known = self._connection.execute(_FIND, (digest,)).fetchone()
        if known is not None:
            self.drop()
        elif self._id:
            self._chunk(self._rest)
            self._connection.execute(_ADD_LISTED, (self._id, digest, self._size))
        else:
            packed = self._packer.deflate(self._rest)
            self._connection.execute(_ADD, (digest, self._size, check(packed), packed))
        return digest


def keep(connection: sqlite3.Connection, packer: Packer, body: bytes) -> bytes:
    """Store bytes once; returns their digest."""
    growing = Growing(connection, packer)
    growing.take(body)
    return growing.finish()


def refer(connection: sqlite3.Connection, digest: bytes, episode: int) -> None:
    """Note that an episode needs a blob."""
    row = connection.execute(_FIND, (digest,)).fetchone()
    if row is not None:
        connection.execute(_REFER, (row[0], episode))


def fetch(rows: Rows, packer: Packer, digest: bytes) -> Iterator[bytes]:
    """A blob's bytes, chunk by chunk."""
    found = rows(_GET, (digest,))
    name = name_of(digest)
    if not found:
        raise BlobNotFound(f"no blob {name}", hint="trackway doctor", name=name)
    number, size, checksum, body = found[0]
    if body is not None:
        whole = packer.inflate(body, checksum, f"blob {name}")
        _check_name(name, blake3(whole))
        yield whole
        return
    hashed = blake3()
    done = i = 0
    while done < size:
        chunks = rows(_GET_CHUNK, (number, i))
        if not chunks:
            raise BlobNotFound(f"blob {name} lacks chunk {i}", hint="trackway doctor", name=name)
        checksum, body = chunks[0]
        piece = packer.inflate(body, checksum, f"chunk {i} of blob {name}")
        hashed.update(piece)
        done += len(piece)
        i += 1
        if done >= size:
            _check_name(name, hashed)
        yield piece


def _check_name(name: str, hashed: blake3) -> None:
    """The checksum says that these are stored bytes; the name, that they are those which were asked for."""
    if name_of(hashed.digest()) != name:
        raise damaged(f"blob {name} is another", where=name)
