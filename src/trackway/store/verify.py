"""Every hash and checksum of a store, made again; every derived row compared with what it is derived from.

Reads piece by piece, an episode or a blob as of one moment each, beside whoever records. Derived rows that differ are
told, and with ``fix`` made again, each episode in a transaction that looks once more before it writes. Damaged truth
is named and left as it is: nothing here deletes or rewrites a frame, a tail row or a blob.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trackway.errors import StoreDamaged
from trackway.schema.episode import EpisodeSummary, fold
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.positions import find_again
from trackway.store.progress import Progress, silent
from trackway.store.sqlite import SqliteStore
from trackway.store.sqlite_seal import ADD_TAG, ADD_TOOL, SET_EPISODE, word_id
from trackway.store.summaries import encode_summary
from trackway.store.sums import reached
from trackway.store.verify_blobs import look_at_blobs
from trackway.store.verify_episode import Damage, Derived, Examination, Examined
from trackway.store.verify_originals import look_at_originals

_PAGE: Final = 200
_EPISODES: Final = """
    SELECT id FROM episodes WHERE id > ?1 UNION SELECT episode FROM frames WHERE episode > ?1
    UNION SELECT episode FROM tail WHERE episode > ?1 ORDER BY 1 LIMIT ?2"""
_WRITERS: Final = "SELECT * FROM writers"
_COUNT: Final = "SELECT count(*) FROM episodes"
_STRAY: Final = tuple(
    f"FROM {table} WHERE episode NOT IN (SELECT id FROM episodes)"  # noqa: S608  names from the line below
    for table in ("blob_refs", "episode_tools", "episode_tags")
)
_ORPHANS: Final = """
    SELECT count(*),
        coalesce(sum(coalesce(length(body), (SELECT sum(length(body)) FROM chunks WHERE blob = blobs.id))), 0)
    FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = blobs.id)"""
_ADD_ROW: Final = """
    INSERT INTO episodes (id, uuid, next_seq, tail_bytes, tail_events, n_events, n_steps, summary)
    VALUES (?, ?, 0, 0, 0, 0, 0, x'')"""
_ADD_REF: Final = "INSERT INTO blob_refs (blob, episode) VALUES (?, ?)"
_OF_EPISODE: Final = tuple(
    f"DELETE FROM {table} WHERE episode = ?"  # noqa: S608  names from this line
    for table in ("episode_tools", "episode_tags", "blob_refs")
)


class Difference(NamedTuple):
    """Derived rows of an episode that do not say what its events say."""

    where: str
    rows: tuple[str, ...]


class Readable(NamedTuple):
    """Of a damaged episode: how many events can be read, of how many."""

    where: str
    events: int
    stored: int


class Verified(NamedTuple):
    """What was looked at, what is damaged, and what differed; ``fixed`` says that what differed was made again."""

    episodes: int = 0
    events: int = 0
    blobs: int = 0
    damage: tuple[Damage, ...] = ()
    readable: tuple[Readable, ...] = ()

    differences: tuple[Difference, ...] = ()
    fixed: bool = False
    orphans: int = 0
    orphan_bytes: int = 0
    quarantined: int = 0

    @property
    def is_sound(self) -> bool:
        """Whether all truth is whole and, by now, every derived row right."""
        return not self.damage and (self.fixed or not self.differences)


def verify(store: Store, home: Home, *, fix: bool = False, progress: Progress = silent) -> Verified:
    """Look at everything; with ``fix``, make derived rows again where they differ."""
    if isinstance(store, SqliteStore):
        found = _Verifying(store, home, progress).look(fix=fix)
    else:
        found = _by_reading(store, progress)
    return found._replace(quarantined=sum(1 for _ in home.quarantine.glob("*.json")))


class _Verifying:
    """One SQLite store being looked at."""

    def __init__(self, store: SqliteStore, home: Home, progress: Progress) -> None:
        self._store = store
        self._home = home
        self._rows = store._rows  # noqa: SLF001  one subsystem
        self._progress = progress
        self._damage: list[Damage] = []
        self._readable: list[Readable] = []
        self._differences: list[Difference] = []

    def look(self, *, fix: bool) -> Verified:
        if not self._rows("PRAGMA user_version", ()):
            return Verified()
        self._progress("checking the file", 0, 1)
        self._damage += [Damage("file", said) for (said,) in self._rows("PRAGMA integrity_check", ()) if said != "ok"]
        fix = fix and not self._damage  # nothing is written into a file that SQLite itself finds damaged
        blobs = look_at_blobs(self._store, self._progress)
        self._damage += blobs.damage
        self._damage += look_at_originals(self._store, self._progress)
        episodes = events = 0
        for found in self._examined(blobs.bad, fix=fix):
            episodes, events = episodes + 1, events + found.events
        self._strays(fix=fix)
        self._positions(fix=fix)
        return Verified(
            episodes, events, blobs.looked_at, tuple(self._damage), tuple(self._readable), tuple(self._differences),
            fix, *self._orphans(fix=fix),
        )  # fmt: skip

    def _orphans(self, *, fix: bool) -> tuple[int, int]:
        """Blobs that nobody needs, and their bytes; not to be told while references are missing."""
        if not fix and any("blob_refs" in each.rows for each in self._differences):
            return 0, 0
        ((number, size),) = self._rows(_ORPHANS, ())
        return number, size

    def _examined(self, bad: set[bytes], *, fix: bool) -> Iterator[Examined]:
        total, done, last = self._rows(_COUNT, ())[0][0], 0, -1
        while found := self._rows(_EPISODES, (last, _PAGE)):
            for (number,) in found:
                self._progress("checking episodes", done, total)
                if type(number) is not int or number <= last:  # a damaged tree leads in circles
                    self._damage.append(Damage("file", "the list of episodes is out of order"))
                    return
                last, done = number, done + 1
                try:
                    examined = self._examine(number, bad, fix=fix)
                except StoreDamaged as error:  # not even SQLite can read it
                    self._damage.append(Damage(f"number {number}", error.message))
                    continue
                except (sqlite3.Error, LookupError, TypeError, ValueError, AttributeError) as error:
                    said = f"cannot be made sense of: {type(error).__name__}: {error}"
                    self._damage.append(Damage(f"number {number}", said))
                    continue
                if examined is not None:
                    yield examined

    def _examine(self, number: int, bad: set[bytes], *, fix: bool) -> Examined | None:
        with self._store.reading():
            found = Examination(self._store, number, bad).look()
        if found.is_gone:
            return None
        if found.damage:
            self._damage += found.damage
            self._readable.append(Readable(found.id, found.events, found.stored))
        if found.differs:
            self._differences.append(Difference(found.id, tuple(found.differs)))
            if fix:
                self._fix(number, bad)
        return found

    def _fix(self, number: int, bad: set[bytes]) -> None:
        """Look again where nobody else can write, and make the rows of this episode anew."""
        with self._store.changing() as connection:
            found = Examination(self._store, number, bad).look()
            if found.true is not None and found.differs:
                _rebuild(connection, number, found.true, is_new="row" in found.differs)

    def _positions(self, *, fix: bool) -> None:
        """How far each journal is sealed: what does not hold is not believed, and found again with ``fix``."""
        for row in self._rows(_WRITERS, ()):
            try:
                reached(str(row[1]), row)
            except StoreDamaged:
                self._differences.append(Difference(f"writer {row[1]}", ("position",)))
                if fix:
                    find_again(self._home, self._store, str(row[1]))

    def _strays(self, *, fix: bool) -> None:
        """Rows of tools, tags and references whose episode is gone."""
        found = [(sql, self._rows(f"SELECT count(*) {sql}", ())[0][0]) for sql in _STRAY]
        strays = [(sql, times) for sql, times in found if times]
        for sql, times in strays:
            self._differences.append(Difference("no episode", (f"{times:,} {sql.split()[1]}",)))
        if strays and fix:
            with self._store.changing() as connection:
                for sql, _ in strays:
                    connection.execute(f"DELETE {sql}")


def _rebuild(connection: sqlite3.Connection, number: int, true: Derived, *, is_new: bool) -> None:
    """The derived rows of one episode, all of them, in the caller's transaction."""
    if is_new:
        connection.execute(_ADD_ROW, (number, true.uuid))
    for sql in _OF_EPISODE:
        connection.execute(sql, (number,))
    values: tuple[Any, ...] = (*true[1:4], *true.columns, encode_summary(true.summary), number)
    connection.execute(SET_EPISODE, values)
    for word in set(true.summary.tools):
        connection.execute(ADD_TOOL, (word_id(connection, word), number))
    for word in set(true.summary.tags):
        connection.execute(ADD_TAG, (word_id(connection, word), number))
    connection.executemany(_ADD_REF, ((blob, number) for blob in sorted(true.blobs)))


def _by_reading(store: Store, progress: Progress) -> Verified:
    """Any other store: every event is read, and the summary must be the fold of them."""
    episodes = events = 0
    differences = []
    for summary in store.episodes():
        progress("checking episodes", episodes, 0)
        again = fold(EpisodeSummary(id=summary.id), store.events(summary.id))
        episodes, events = episodes + 1, events + again.n_events
        if again != summary:
            differences.append(Difference(summary.id, ("summary",)))
    return Verified(episodes, events, differences=tuple(differences))
