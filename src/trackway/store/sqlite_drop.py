"""The deleting half of the SQLite store: whole episodes, inside one transaction the caller has opened.

What goes with an episode: its frames, its tail, its rows of tools, tags and references, the files it came from, then
the blobs and words that nobody else needs. What stays: its id, in ``dropped``, and the positions of its writers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from trackway.schema import ids
from trackway.schema.brief import Brief
from trackway.schema.events import EpisodeStart, Event
from trackway.store import sqlite_originals
from trackway.store.base import Dropped, late

_EPISODE: Final = "SELECT id, next_seq, length(summary) FROM episodes WHERE uuid = ?"
_FRAMES: Final = "SELECT coalesce(sum(length(body)), 0) FROM frames WHERE episode = ?"
_TAIL: Final = "SELECT coalesce(sum(length(body)), 0) FROM tail WHERE episode = ?"
_BLOBS: Final = "SELECT blob FROM blob_refs WHERE episode = ?"
_WORDS: Final = """
    SELECT tool FROM episode_tools WHERE episode = ?1 UNION SELECT tag FROM episode_tags WHERE episode = ?1"""
_DELETE_OF: Final = tuple(
    f"DELETE FROM {table} WHERE episode = ?"  # noqa: S608  names from this line
    for table in ("frames", "tail", "blob_refs", "episode_tools", "episode_tags")
)
_DELETE: Final = "DELETE FROM episodes WHERE id = ?"
_REMEMBER: Final = "INSERT OR IGNORE INTO dropped (uuid) VALUES (?)"
_FORGET: Final = "DELETE FROM dropped WHERE uuid = ?"
_WAS_DROPPED: Final = "SELECT 1 FROM dropped WHERE uuid = ?"

BLOB_BYTES: Final = """
    SELECT coalesce(length(body), (SELECT sum(length(body)) FROM chunks WHERE blob = ?1), 0) FROM blobs WHERE id = ?1"""
"""What a blob takes as it is stored; null where there is none of that number."""

_IS_NEEDED: Final = "SELECT 1 FROM blob_refs WHERE blob = ? LIMIT 1"
_DELETE_CHUNKS: Final = "DELETE FROM chunks WHERE blob = ?"
_DELETE_BLOB: Final = "DELETE FROM blobs WHERE id = ?"
_DELETE_WORD: Final = """
    DELETE FROM words WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM episode_tools WHERE tool = ?1)
        AND NOT EXISTS (SELECT 1 FROM episode_tags WHERE tag = ?1)"""


class _Gone(NamedTuple):
    id: str
    events: int
    bytes: int


class Dropping:
    """Episodes on their way out."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._blobs: set[int] = set()
        self._words: set[int] = set()

    def take(self, episode_ids: Iterable[str]) -> Dropped:
        """Delete them all, then what they alone needed."""
        gone = [each for each in map(self._episode, dict.fromkeys(episode_ids)) if each is not None]
        blobs = [size for size in map(self._blob, sorted(self._blobs)) if size is not None]
        self._connection.executemany(_DELETE_WORD, ((each,) for each in self._words))
        size = sum(each.bytes for each in gone) + sum(blobs)
        return Dropped(tuple(each.id for each in gone), sum(each.events for each in gone), len(blobs), size)

    def _episode(self, episode_id: str) -> _Gone | None:
        run, uuid = self._connection.execute, ids.to_bytes(episode_id)
        row = run(_EPISODE, (uuid,)).fetchone()
        if row is None:
            return None
        number, events, size = row
        for sql in (_FRAMES, _TAIL):
            size += run(sql, (number,)).fetchone()[0]
        size += sqlite_originals.drop(self._connection, number)
        self._blobs.update(blob for (blob,) in run(_BLOBS, (number,)))
        self._words.update(word for (word,) in run(_WORDS, (number,)))
        for sql in (*_DELETE_OF, _DELETE):
            run(sql, (number,))
        run(_REMEMBER, (uuid,))
        return _Gone(episode_id, events, size)

    def _blob(self, number: int) -> int | None:
        """The bytes of a blob that went; None where somebody needs it still."""
        run = self._connection.execute
        if run(_IS_NEEDED, (number,)).fetchone() is not None:
            return None
        row = run(BLOB_BYTES, (number,)).fetchone()
        run(_DELETE_CHUNKS, (number,))
        run(_DELETE_BLOB, (number,))
        return row[0] if row is not None else None


def check_not_dropped(connection: sqlite3.Connection, uuid: bytes, events: Iterable[Event | Brief]) -> None:
    """An episode that was dropped begins anew with its start, or not at all: what comes late is no episode."""
    if connection.execute(_WAS_DROPPED, (uuid,)).fetchone() is None:
        return
    if not any(type(each) in (EpisodeStart, Brief) and each.kind == EpisodeStart.kind for each in events):
        raise late(ids.from_bytes(uuid))
    connection.execute(_FORGET, (uuid,))
