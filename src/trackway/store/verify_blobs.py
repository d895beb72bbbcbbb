"""Every blob, its content hashed again: it is what its name says, and whole.

A blob is read as of one moment, chunk by chunk; one that a prune takes away meanwhile is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from blake3 import blake3

from trackway.errors import TrackwayError
from trackway.schema import ids
from trackway.schema.canonical import name_of
from trackway.store.progress import Progress
from trackway.store.sqlite import SqliteStore
from trackway.store.verify_episode import Damage

_PAGE: Final = 200
_NEXT: Final = "SELECT id FROM blobs WHERE id > ? ORDER BY id LIMIT ?"
_META: Final = "SELECT hash, size, checksum, body IS NOT NULL FROM blobs WHERE id = ?"
_BODY: Final = "SELECT body FROM blobs WHERE id = ?"
_CHUNKS: Final = "SELECT i FROM chunks WHERE blob = ? ORDER BY i"
_CHUNK: Final = "SELECT checksum, body FROM chunks WHERE blob = ? AND i = ?"
_NEEDED_BY: Final = "SELECT uuid FROM episodes WHERE id IN (SELECT episode FROM blob_refs WHERE blob = ?) LIMIT 3"
_COUNT: Final = "SELECT count(*) FROM blobs"
_LOOSE: Final = "SELECT count(DISTINCT blob) FROM chunks WHERE blob NOT IN (SELECT id FROM blobs)"


class Blobs(NamedTuple):
    """How many were looked at, and those that are not what their name says."""

    looked_at: int
    damage: list[Damage]
    bad: set[bytes]


class _Row(NamedTuple):
    hash: bytes
    size: int
    checksum: int
    is_inline: int


def look_at_blobs(store: SqliteStore, progress: Progress) -> Blobs:
    """Hash every blob again."""
    damage: list[Damage] = []
    bad: set[bytes] = set()
    done = 0
    total = _one(store, _COUNT)
    for number in _numbers(store):
        if done % _PAGE == 0:
            progress("checking blobs", done, total)
        with store.reading():
            found = store._rows(_META, (number,))  # noqa: SLF001  one subsystem, as below
            if not found:
                continue
            done += 1
            if [type(each) for each in found[0][:2]] != [bytes, int]:  # a damaged page
                damage.append(Damage(f"blob {number}", "its row cannot be made sense of"))
                continue
            row = _Row(*found[0])
            why = _trouble(store, number, row)
            if why is not None:
                bad.add(row.hash)
                damage.append(_damage(store, number, name_of(row.hash), why))
    loose = _one(store, _LOOSE)
    if loose:
        damage.append(Damage("blobs", f"{loose} lost their rows: chunks of them are there"))
    return Blobs(done, damage, bad)


def _numbers(store: SqliteStore) -> Iterator[int]:
    last = -1
    while found := store._rows(_NEXT, (last, _PAGE)):  # noqa: SLF001
        for (number,) in found:
            if type(number) is not int or number <= last:  # a damaged tree leads in circles; the file's check tells
                return
            yield number
            last = number


def _trouble(store: SqliteStore, number: int, row: _Row) -> str | None:
    """Why a blob is not what its name says; None where it is."""
    hashed, length = blake3(), 0
    try:
        for piece in _pieces(store, number, row):
            hashed.update(piece)
            length += len(piece)
    except (TrackwayError, TypeError) as error:
        return error.message if isinstance(error, TrackwayError) else str(error)
    if length != row.size:
        return f"{length:,} of {row.size:,} bytes are there"
    return None if hashed.digest() == row.hash else "the content is not what its name says"


def _pieces(store: SqliteStore, number: int, row: _Row) -> Iterator[bytes]:
    inflate, rows = store._packer.inflate, store._rows  # noqa: SLF001
    if row.is_inline:
        yield inflate(rows(_BODY, (number,))[0][0], row.checksum, "it")
        return
    for i, (found,) in enumerate(rows(_CHUNKS, (number,))):
        if i != found:  # one is missing: the length will say so
            return
        checksum, body = rows(_CHUNK, (number, i))[0]
        yield inflate(body, checksum, f"chunk {i}")


def _damage(store: SqliteStore, number: int, name: str, why: str) -> Damage:
    users = [ids.from_bytes(uuid) for (uuid,) in store._rows(_NEEDED_BY, (number,))]  # noqa: SLF001
    return Damage(name, f"{why}; needed by {', '.join(users)}" if users else why)


def _one(store: SqliteStore, sql: str) -> int:
    rows = store._rows(sql, ())  # noqa: SLF001
    return int(rows[0][0]) if rows else 0
