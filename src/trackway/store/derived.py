"""derived.db: digests of episodes, kept in the home so that many are counted without reading their events again.

Everything in it is derived and may be removed at any time. A row is believed if its checksum holds and if it was made
of as many events as the episode has; any other is as good as none. Reading and keeping never fail: a file that is
busy, damaged, read-only or on a full disk is one that has nothing, or takes nothing. Purging does not fail either:
where rows cannot be deleted the whole file goes.

Rows are bytes here: what they say is the business of whoever made them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from xxhash import xxh3_64_digest

from trackway.schema import ids
from trackway.store import system
from trackway.store.home import Home

LAYOUT: Final = 1
"""The number of the tables below; a file of another one is made anew."""

_TABLES: Final = f"""
    CREATE TABLE IF NOT EXISTS digests (
        id INTEGER PRIMARY KEY,
        store TEXT NOT NULL,
        episode BLOB NOT NULL,
        n_events INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body BLOB NOT NULL,
        words BLOB,
        UNIQUE (store, episode)
    );
    PRAGMA user_version = {LAYOUT}"""
_KEEP: Final = """
    INSERT INTO digests (store, episode, n_events, version, body, words) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (store, episode) DO UPDATE SET n_events = excluded.n_events, version = excluded.version,
        body = excluded.body, words = coalesce(excluded.words, words)"""
_ALL: Final = "SELECT episode, n_events, body FROM digests WHERE store = ? AND version = ?"
_ONE: Final = f"{_ALL} AND episode = ?"
_WORDS: Final = "SELECT n_events, words FROM digests WHERE store = ? AND version = ? AND episode = ?"
_PURGE: Final = "DELETE FROM digests WHERE store = ? AND episode = ?"

_SUM: Final = 8
_FEW: Final = 200
_PATIENCE: Final = 0.5
_PATIENCE_TO_PURGE: Final = 5.0
_TROUBLE: Final = (sqlite3.Error, UnicodeDecodeError, OverflowError, OSError)
_BEYOND_REPAIR: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


Digested = tuple[str, int, int, bytes, bytes | None]
"""Episode, number of events, version, body and words."""

_Values = tuple[str, bytes, int, int, bytes, bytes | None]


class Kept(NamedTuple):
    """A digest as it was kept: of which episode, at how many of its events."""

    episode: str
    n_events: int
    body: bytes


def kept(home: Home, store: str, version: int, wanted: Collection[str] | None = None) -> Iterator[Kept]:
    """The digests of a store's episodes, all or those wanted, one after another; what cannot be believed is not there.

    More than are wanted may come.
    """
    try:
        connection = _opened(home.derived)
        if connection is None:
            return
        with contextlib.closing(connection):
            for episode, n_events, body in _rows(connection, store, version, wanted):
                found = _believed(episode, n_events, body)
                if found is not None:
                    yield Kept(ids.from_bytes(episode), n_events, found)
    except _TROUBLE:
        return


def words_of(home: Home, store: str, version: int, episode: str) -> bytes | None:
    """What was kept beside the digest of one episode; None where nothing is, or nothing that can be believed."""
    uuid = ids.to_bytes(episode)
    try:
        connection = _opened(home.derived)
        if connection is None:
            return None
        with contextlib.closing(connection):
            row = connection.execute(_WORDS, (store, version, uuid)).fetchone()
    except _TROUBLE:
        return None
    return None if row is None else _believed(uuid, *row)


def put_many(home: Home, store: str, rows: Iterable[Digested]) -> bool:
    """Keep digests; where a row has no words, those that are kept stay. False where it could not be done.

    Nothing is made where there is no home: whoever reads a store elsewhere leaves no folder behind.
    """
    values = [_values(store, row) for row in rows]
    if not values or not home.path.is_dir():
        return not values
    for _ in range(2):  # a file that is none is removed, and made anew the second time
        try:
            _put(home.derived, values)
        except _TROUBLE as error:
            if getattr(error, "sqlite_errorcode", None) not in _BEYOND_REPAIR or not _removed(home.derived):
                return False
        else:
            return True
    return False


def purge(home: Home, store: str, episodes: Collection[str]) -> int:
    """Forget episodes for good; returns how many were known. Where that cannot be done, all is forgotten.

    Raises ``OSError`` where not even the file can be removed.
    """
    if not episodes or not os.path.lexists(home.derived):
        return 0
    try:
        return _purged(home.derived, [(store, ids.to_bytes(each)) for each in episodes])
    except _TROUBLE:
        for each in _files(home.derived):
            each.unlink(missing_ok=True)
        return len(episodes)


# --- the file -------------------------------------------------------------------------------------------------------


def _opened(path: Path) -> sqlite3.Connection | None:
    """A connection to read with; None where there is nothing to be read."""
    if not path.is_file():
        return None
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
    try:
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
    except BaseException:
        connection.close()
        raise
    if layout == LAYOUT:
        return connection
    connection.close()
    return None


@contextlib.contextmanager
def _writing(path: Path, patience: float = _PATIENCE) -> Iterator[sqlite3.Connection]:
    """A transaction of the one who writes."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None
    )
    with contextlib.closing(connection):
        # What a power cut breaks is found by its checksums and made anew: no commit waits for the disk.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("BEGIN IMMEDIATE")
        try:
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            if layout != LAYOUT:
                connection.execute("DROP TABLE IF EXISTS digests")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _put(path: Path, values: list[_Values]) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, system.FILE_MODE))
    with _writing(path) as connection:
        connection.executemany(_KEEP, values)


def _purged(path: Path, wanted: list[tuple[str, bytes]]) -> int:
    with _writing(path, _PATIENCE_TO_PURGE) as connection:
        gone = connection.executemany(_PURGE, wanted).rowcount
    if gone:  # pages that were split or joined hold copies of what has moved away
        with contextlib.closing(sqlite3.connect(path, timeout=_PATIENCE_TO_PURGE, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("VACUUM")
    return gone


def _files(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(f"{path.name}-journal")


def _removed(path: Path) -> bool:
    try:
        for each in _files(path):
            each.unlink(missing_ok=True)
    except OSError:
        return False
    return True


# --- rows -----------------------------------------------------------------------------------------------------------


def _rows(
    connection: sqlite3.Connection, store: str, version: int, wanted: Collection[str] | None
) -> Iterator[tuple[bytes, int, bytes]]:
    if wanted is None or len(wanted) > _FEW:
        yield from connection.execute(_ALL, (store, version))
        return
    for each in wanted:
        yield from connection.execute(_ONE, (store, version, ids.to_bytes(each)))


def _values(store: str, row: Digested) -> _Values:
    episode, n_events, version, body, words = row
    uuid = ids.to_bytes(episode)
    kept_words = None if words is None else _summed(uuid, n_events, words)
    return store, uuid, n_events, version, _summed(uuid, n_events, body), kept_words


def _summed(uuid: bytes, n_events: int, body: bytes) -> bytes:
    """The bytes behind a checksum of them and of what they belong to."""
    return xxh3_64_digest(b"%b %d %b" % (uuid, n_events, body)) + body


def _believed(uuid: object, n_events: object, stored: object) -> bytes | None:
    """The bytes, if they are what was kept."""
    if type(uuid) is not bytes or len(uuid) != 16 or type(n_events) is not int or type(stored) is not bytes:
        return None
    body = stored[_SUM:]
    return body if _summed(uuid, n_events, body) == stored else None
