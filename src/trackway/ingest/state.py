"""What was imported before: files by path, and the entries of each episode by their keys. Derived, and droppable.

It only saves work. Where it is missing, or does not fit the store (an episode has other events than it says), the keys
are read from the episode's own events again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from blake3 import blake3

from trackway.errors import EpisodeNotFound, StoreUnavailable
from trackway.ingest.parse import KEY, key_of
from trackway.schema import ids
from trackway.store import system
from trackway.store.holding import held, in_the_way
from trackway.store.live import LiveStore

VERSION: Final = 3
_TABLES: Final = f"""
CREATE TABLE files (
    path TEXT PRIMARY KEY, size INTEGER, modified INTEGER, hash TEXT, source TEXT, unnamed BLOB,
    beside TEXT, surroundings TEXT, gone TEXT
) WITHOUT ROWID;
CREATE TABLE episodes (uuid BLOB PRIMARY KEY, events INTEGER) WITHOUT ROWID;
CREATE TABLE entries (uuid BLOB, key INTEGER, PRIMARY KEY (uuid, key)) WITHOUT ROWID;
PRAGMA user_version={VERSION};
"""

_COLUMNS: Final = "SELECT size, modified, hash, source, unnamed, beside, surroundings, gone FROM files"
_FILE: Final = f"{_COLUMNS} WHERE path = ?"
_INSIDE: Final = f"{_COLUMNS} WHERE path > ? AND path < ?"


class KnownFile(NamedTuple):
    """A file as it was when it was last imported; ``unnamed`` is the episode of one whose session has no name.

    ``beside`` are the paths that were looked at besides, ``surroundings`` says what was there. ``gone`` are its
    episodes where nothing was stored because they were pruned.
    """

    size: int
    modified: int
    hash: str
    source: str
    unnamed: str | None = None
    beside: tuple[str, ...] = ()
    surroundings: str = ""
    gone: tuple[str, ...] = ()

    def is_as_it_was(self, size: int, modified: int) -> bool:
        """Whether neither the file nor what lies beside it has changed."""
        return (size, modified) == (self.size, self.modified) and surroundings(self.beside) == self.surroundings


def surroundings(paths: Iterable[str]) -> str:
    """What is at these paths, in a word that changes with any of it; of a folder, what is in it."""
    said = blake3()
    for path in paths:
        said.update(path.encode("utf-8", "surrogateescape"))
        for name, size, modified in sorted(_there(Path(path))):
            said.update(f"\0{name}\0{size}\0{modified}".encode("utf-8", "surrogateescape"))
    return said.hexdigest(8) if paths else ""


def _there(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        if path.is_dir():
            with os.scandir(path) as found:
                for each in found:
                    stat = each.stat(follow_symlinks=False)
                    yield each.name, stat.st_size, stat.st_mtime_ns
        else:
            stat = path.stat()
            yield "", stat.st_size, stat.st_mtime_ns
    except OSError:  # nothing is there: that is an answer, too
        return


class State:
    """The notes of earlier imports into one store."""

    def __init__(self, folder: Path, store_key: str) -> None:
        system.make_folder(folder)
        self._path = folder / f"{blake3(store_key.encode()).hexdigest(8)}.db"
        with held(folder / "lock") as got:  # two at once must not both make it
            if not got:
                raise in_the_way(folder / "lock")
            self._connection = self._opened()

    def _opened(self) -> sqlite3.Connection:
        """The notes; what is damaged or of another version is thrown away: they can be made again."""
        try:
            connection = self._connected()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == VERSION and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
                return connection
            connection.close()
        except sqlite3.OperationalError as error:  # the disk's trouble, not the notes'
            raise self._unavailable(error) from error
        except sqlite3.DatabaseError:
            pass
        for each in (self._path, *self._path.parent.glob(f"{self._path.name}-*")):
            each.unlink(missing_ok=True)
        try:
            connection = self._connected()
            connection.executescript(f"PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;{_TABLES}")
        except sqlite3.Error as error:
            raise self._unavailable(error) from error
        return connection

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        self._path.chmod(0o600)
        return connection

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        hint = "make room on its disk" if "full" in str(error) else "see `trackway doctor`"
        return StoreUnavailable(f"{self._path}: {error}", hint=hint, path=self._path)

    def _rows(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unavailable(error) from error

    def file(self, path: str) -> KnownFile | None:
        """What is known of a file."""
        rows = self._rows(_FILE, path)
        return _known_file(rows[0]) if rows else None

    def inside(self, archive: str) -> Iterator[KnownFile]:
        """What is known of the files in an archive."""
        return map(_known_file, self._rows(_INSIDE, f"{archive}!/", f"{archive}!0"))

    def known(self, live: LiveStore, episode: str) -> set[int] | None:
        """The keys of the entries an episode has; None where there is no such episode."""
        try:
            count = live.store.episode(episode).n_events
        except EpisodeNotFound:
            return None
        uuid = ids.to_bytes(episode)
        if self._rows("SELECT events FROM episodes WHERE uuid = ?", uuid) == [(count,)]:
            return self.noted(episode)
        keys = set(_keys_of(live, episode))
        with self._changing():
            self._connection.execute("DELETE FROM entries WHERE uuid = ?", (uuid,))
            self._add(episode, keys, count)
        return keys

    def noted(self, episode: str) -> set[int]:
        """The keys that were noted of an episode, whatever the store has."""
        return {key for (key,) in self._rows("SELECT key FROM entries WHERE uuid = ?", ids.to_bytes(episode))}

    def note(self, path: str, file: KnownFile, added: dict[str, tuple[set[int], int]]) -> None:
        """A file is in the store: remember it, and the keys that each episode has more, with its events by now."""
        unnamed = None if file.unnamed is None else ids.to_bytes(file.unnamed)
        with self._changing():
            self._connection.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (path, *file[:4], unnamed, json.dumps(file.beside), file.surroundings, json.dumps(file.gone)),
            )
            for episode, (keys, count) in added.items():
                self._add(episode, keys, count)

    def _add(self, episode: str, keys: Iterable[int], count: int) -> None:
        uuid = ids.to_bytes(episode)
        rows = ((uuid, key) for key in keys)
        self._connection.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", rows)
        self._connection.execute("INSERT OR REPLACE INTO episodes VALUES (?, ?)", (uuid, count))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One transaction; where it cannot be written, the next import does more work, and that is all."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()


def _known_file(row: tuple[Any, ...]) -> KnownFile:
    size, modified, name, source, unnamed, beside, around, gone = row
    episode = None if unnamed is None else ids.from_bytes(unnamed)
    paths = tuple(json.loads(beside))
    return KnownFile(size, modified, name, source, episode, paths, around, tuple(json.loads(gone)))


def _keys_of(live: LiveStore, episode: str) -> Iterator[int]:
    for event in live.store.events(episode):
        if event.native is not None and event.native.fields is not None and KEY in event.native.fields:
            yield key_of(str(event.native.fields[KEY]))
