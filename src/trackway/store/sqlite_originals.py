"""Imported files in SQLite: a row a file, a row a part, and which episodes each file is about.

A part goes with the last file that needs it, a file with the last episode it is about. Where an episode is dropped and
its file is about others too, the parts that hold any of it go: the file has a hole then, and says so when it is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trackway.errors import BlobNotFound
from trackway.schema import ids
from trackway.schema.canonical import digest_of
from trackway.store.frames import Packer, check, damaged
from trackway.store.originals import Incoming, OriginalFile
from trackway.store.sqlite_blobs import Rows
from trackway.store.sums import with_sum, without_sum

PRUNED: Final = 0
"""Stands for a part that went with an episode; no row has this number."""

_FIND: Final = "SELECT id FROM originals WHERE hash = ?"
_ADD: Final = "INSERT INTO originals (hash, about) VALUES (?, ?)"
_FIND_PART: Final = "SELECT id FROM parts WHERE hash = ?"
_ADD_PART: Final = "INSERT INTO parts (hash, size, checksum, body) VALUES (?, ?, ?, ?)"
_PLACE: Final = "INSERT OR REPLACE INTO original_parts (original, start, part) VALUES (?, ?, ?)"
_ABOUT: Final = """
    INSERT INTO original_episodes (original, episode, start, stop)
    SELECT ?, id, ?, ? FROM episodes WHERE uuid = ?
    ON CONFLICT DO UPDATE SET start = min(start, excluded.start), stop = max(stop, excluded.stop)"""
_MOVE: Final = """
    INSERT OR IGNORE INTO original_episodes (original, episode, start, stop)
    SELECT ?, episode, start, stop FROM original_episodes WHERE original = ?"""
_OF_EPISODE: Final = """
    SELECT about FROM originals JOIN original_episodes ON original = originals.id
    WHERE episode = (SELECT id FROM episodes WHERE uuid = ?)"""
_EPISODES_FROM: Final = """
    SELECT uuid FROM originals JOIN original_episodes ON original = originals.id JOIN episodes ON episodes.id = episode
    WHERE hash = ?"""
_GET: Final = "SELECT id, about FROM originals WHERE hash = ?"
_GET_PART: Final = """
    SELECT part, size, checksum, body FROM original_parts LEFT JOIN parts ON parts.id = part
    WHERE original = ? AND start = ?"""

_ABOUT_EPISODE: Final = "SELECT original, start, stop FROM original_episodes WHERE episode = ?"
_FORGET: Final = "DELETE FROM original_episodes WHERE episode = ?"
_IS_ABOUT_OTHERS: Final = "SELECT 1 FROM original_episodes WHERE original = ? LIMIT 1"
_INSIDE: Final = """
    SELECT start, part FROM original_parts JOIN parts ON parts.id = part
    WHERE original = ?1 AND start < ?3 AND start + parts.size > ?2"""
_PUNCH: Final = "UPDATE original_parts SET part = 0 WHERE original = ? AND start = ?"
_ITS_PARTS: Final = "SELECT part FROM original_parts WHERE original = ?"
_DELETE_PLACES: Final = "DELETE FROM original_parts WHERE original = ?"
_DELETE_EPISODES: Final = "DELETE FROM original_episodes WHERE original = ?"
_DELETE: Final = "DELETE FROM originals WHERE id = ?"
_DELETE_PART: Final = """
    DELETE FROM parts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM original_parts WHERE part = ?1)
    RETURNING length(body)"""
_HAS: Final = "SELECT 1 FROM sqlite_master WHERE name = 'originals'"

_decode: Final = msgspec.msgpack.Decoder(OriginalFile).decode


def add(connection: sqlite3.Connection, incoming: Incoming) -> None:
    """Keep a file, in the caller's transaction; one that is kept already is only linked to its episodes."""
    run, digest = connection.execute, digest_of(incoming.file.hash)
    found = run(_FIND, (digest,)).fetchone()
    if found is None:
        number = run(_ADD, (digest, with_sum(msgspec.msgpack.encode(incoming.file)))).lastrowid or 0
    else:
        (number,) = found
    start = 0
    for part in incoming.parts:  # of a file that is there too: it may have holes, which are filled again
        row = run(_FIND_PART, (part.digest,)).fetchone()
        if row is None:
            values = (part.digest, part.size, check(part.packed), part.packed)
            row = (run(_ADD_PART, values).lastrowid,)
        run(_PLACE, (number, start, row[0]))
        start += part.size
    for episode, (first, stop) in incoming.episodes.items():
        run(_ABOUT, (number, first, stop, ids.to_bytes(episode)))
    if incoming.instead is not None:
        _replace(connection, incoming.instead, number)


def _replace(connection: sqlite3.Connection, name: str, by: int) -> None:
    """What a file has grown from goes; what that was about, the longer one is about."""
    row = connection.execute(_FIND, (digest_of(name),)).fetchone()
    if row is not None and row[0] != by:
        connection.execute(_MOVE, (by, row[0]))
        _delete(connection, row[0])


def drop(connection: sqlite3.Connection, episode: int) -> int:
    """What is kept of the files of an episode that goes, in the caller's transaction; returns the bytes."""
    if connection.execute(_HAS).fetchone() is None:
        return 0
    about = connection.execute(_ABOUT_EPISODE, (episode,)).fetchall()
    connection.execute(_FORGET, (episode,))
    return sum(_without(connection, *each) for each in about)


def _without(connection: sqlite3.Connection, number: int, first: int, stop: int) -> int:
    run = connection.execute
    if run(_IS_ABOUT_OTHERS, (number,)).fetchone() is None:
        return _delete(connection, number)
    gone = run(_INSIDE, (number, first, stop)).fetchall()
    for start, _ in gone:
        run(_PUNCH, (number, start))
    return _delete_parts(connection, {part for _, part in gone})


def _delete(connection: sqlite3.Connection, number: int) -> int:
    parts = {part for (part,) in connection.execute(_ITS_PARTS, (number,))}
    for sql in (_DELETE_PLACES, _DELETE_EPISODES, _DELETE):
        connection.execute(sql, (number,))
    return _delete_parts(connection, parts)


def _delete_parts(connection: sqlite3.Connection, parts: set[int]) -> int:
    return sum(size for each in parts for (size,) in connection.execute(_DELETE_PART, (each,)).fetchall())


def of_episode(rows: Rows, episode_id: str) -> list[OriginalFile]:
    """The files an episode came from, the largest first, what lies beside another behind it."""
    if not rows(_HAS, ()):
        return []
    found = [_file(about) for (about,) in rows(_OF_EPISODE, (ids.to_bytes(episode_id),))]
    return sorted(found, key=lambda each: (each.beside is not None, -each.size, each.name))


def has(rows: Rows, name: str) -> bool:
    """Whether a file is kept."""
    return bool(rows(_HAS, ()) and rows(_FIND, (digest_of(name),)))


def episodes_from(rows: Rows, name: str) -> list[str]:
    """The episodes that came from a file."""
    found = rows(_EPISODES_FROM, (digest_of(name),)) if rows(_HAS, ()) else []
    return [ids.from_bytes(uuid) for (uuid,) in found]


def bytes_of(rows: Rows, packer: Packer, name: str) -> Iterator[bytes]:
    """A file's bytes, part by part."""
    found = rows(_GET, (digest_of(name),)) if rows(_HAS, ()) else []
    if not found:
        raise BlobNotFound(f"no imported file {name}", hint="trackway export raw --list ID", name=name)
    number, file = found[0][0], _file(found[0][1])
    done = 0
    while done < file.size:
        piece = _piece(rows(_GET_PART, (number, done)), packer, file, done)
        done += len(piece)
        yield piece


def _piece(found: list[Any], packer: Packer, file: OriginalFile, start: int) -> bytes:
    """The part that starts here; one that is not there went with an episode, or is damage."""
    if found and found[0][0] == PRUNED:
        said = f"{file.name}: what stood from byte {start:,} on went with an episode that was pruned"
        raise BlobNotFound(said, hint="its other episodes are there; import the file again to have it whole")
    if not found or found[0][1] is None:
        raise damaged(f"{file.name}: the part from byte {start:,} on is missing")
    _, size, checksum, body = found[0]
    piece = packer.inflate(body, checksum, f"a part of {file.name}")
    if len(piece) != size:
        raise damaged(f"a part of {file.name} has {len(piece)} bytes, not {size}")
    return piece


def _file(about: bytes) -> OriginalFile:
    try:
        return _decode(without_sum(about))
    except msgspec.MsgspecError as error:
        raise damaged(f"what is known of an imported file cannot be read: {error}") from error
