"""What one process read of a file, on its way to the one that stores it: on the disk, so that it may be any length.

    head → entry, entry, … → for each file kept: about it, part, part, …

A spool is read once, from its start, by whoever the head was handed to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from trackway.schema.codec import Encoded
from trackway.store.originals import OriginalFile, Part

_LENGTH: Final = struct.Struct("<I")


class SpooledEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry: the number of its session, its key, its events, the bytes that they name."""

    session: int
    key: int
    events: list[tuple[bytes, int, int]]
    contents: list[bytes]

    def encoded(self) -> Iterator[Encoded]:
        """The events as a store takes them."""
        return (Encoded(*each) for each in self.events)


class SpooledPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a file."""

    digest: bytes
    size: int
    packed: bytes


class Mentioned(msgspec.Struct, frozen=True, kw_only=True):
    """A session that a file is about: its own name, the bytes of the file, its entries and events.

    In an empty one nobody has said or done anything yet. A session without a name is known by its ``beginning``: all up
    to the first thing that followed the prompt. Before that it is empty.
    """

    session: str
    start: int
    stop: int
    entries: int
    events: int
    is_empty: bool = False
    beginning: str = ""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Trouble in a file, as it is reported: the line where there are lines, else the offset."""

    line: int
    offset: int | None
    reason: str


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a file, without its entries: those are in the spool, where there is one.

    ``refused`` says why nothing was; ``part_of`` names the source whose files it is read with; ``beside`` are the
    paths that were looked at besides, whether or not something was there. Paths are bytes: not all of them are text.
    """

    name: str
    size: int = 0
    modified: int = 0
    source: str = ""
    sessions: list[Mentioned] = []
    troubles: list[Told] = []
    n_troubles: int = 0
    files: list[OriginalFile] = []
    instead: str | None = None
    spool: bytes = b""
    refused: str = ""
    hint: str = ""
    part_of: str = ""
    beside: list[bytes] = []


class Spooling:
    """A spool while it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("xb", buffering=1 << 20)
        self._encode = msgspec.msgpack.Encoder().encode

    def entry(self, entry: SpooledEntry) -> None:
        """Add an entry."""
        self._put(self._encode(entry))

    def end(self) -> None:
        """No more entries, or no more parts of this file."""
        self._put(b"")

    def part(self, part: Part) -> None:
        """Add a part of a file."""
        self._put(self._encode(SpooledPart(*part)))

    def _put(self, body: bytes) -> None:
        self._file.write(_LENGTH.pack(len(body)))
        self._file.write(body)

    def close(self) -> None:
        """It is all there."""
        self._file.close()


class Spooled:
    """A spool that is read: entries first, then the parts of each file, each list to its end."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("rb", buffering=1 << 20)

    def entries(self) -> Iterator[SpooledEntry]:
        """Every entry."""
        decode = msgspec.msgpack.Decoder(SpooledEntry).decode
        while body := self._next():
            yield decode(body)

    def parts(self) -> Iterator[Part]:
        """Every part of the next file."""
        decode = msgspec.msgpack.Decoder(SpooledPart).decode
        while body := self._next():
            found = decode(body)
            yield Part(found.digest, found.size, found.packed)

    def _next(self) -> bytes:
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        return self._file.read(length)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()
