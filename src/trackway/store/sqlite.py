"""The default store: one SQLite file in WAL mode.

Commits are synchronous=FULL: what was sealed may leave the journal. Reading holds no transaction open between pieces;
events are followed by their sequence number, which never changes, so a sealer at work beside it disturbs nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from trackway.errors import EpisodeNotFound, EventRefused, StoreDamaged
from trackway.schema import ids
from trackway.schema.canonical import digest_of
from trackway.schema.codec import BLOBS, Encoded, decode, numbered
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import Event
from trackway.schema.outside import is_thrown_in
from trackway.store import record, sqlite_blobs, sqlite_originals
from trackway.store.base import ALL, Batch, Dropped, Query
from trackway.store.frames import Frame, Packer, believed, damaged
from trackway.store.originals import OriginalFile
from trackway.store.payloads import Measured, put_together
from trackway.store.record import Position
from trackway.store.sqlite_drop import Dropping
from trackway.store.sqlite_file import SqliteFile
from trackway.store.sqlite_query import as_asked, select_among_newest, select_summaries
from trackway.store.sqlite_seal import Sealing
from trackway.store.summaries import decode_summary
from trackway.store.sums import reached

_WRITER = "SELECT * FROM writers WHERE writer = ?"
_SUMMARY = "SELECT summary FROM episodes WHERE uuid = ?"
_NUMBER = "SELECT id, summary FROM episodes WHERE uuid = ?"
_NEXT_SEQ = "SELECT id, next_seq FROM episodes WHERE uuid = ?"
_NEWEST = "SELECT uuid FROM episodes ORDER BY started_at DESC, uuid DESC LIMIT 1"
_BETWEEN = "SELECT uuid FROM episodes WHERE uuid BETWEEN ? AND ? LIMIT 10"
_ENDING = "SELECT uuid FROM episodes WHERE substr({0}, ?1) = ?2 OR substr({0}, ?3, ?4) = ?2 LIMIT 10"
_FRAME = """
    SELECT body, n, flags, "schema", checksum, first_seq FROM frames
    WHERE episode = ? AND first_seq <= ? ORDER BY first_seq DESC LIMIT 1"""
_CAN_DROP = "SELECT 1 FROM sqlite_master WHERE name = 'dropped'"
_WAS_DROPPED = "SELECT 1 FROM dropped WHERE uuid = ?"
_TAIL = 'SELECT body, flags, "schema", checksum, seq FROM tail WHERE episode = ? AND seq >= ? ORDER BY seq'


class SqliteStore(SqliteFile):
    """Episodes in one SQLite file; safe to share between threads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.key = f"sqlite:{self.path}"
        self._packer = Packer()
        self._words: dict[str, int] = {}
        self._version = 0

    # --- writing ------------------------------------------------------------------------------------------------

    def seal(self, batch: Batch) -> int:
        """Store the batch and its position in one transaction, on the disk when this returns."""
        with self._lock:
            with self.changing() as connection:
                words = self._known_words(connection)
                count = Sealing(connection, self._packer, words).take(batch)
            self._words = words
            return count

    def drop(self, episode_ids: Iterable[str]) -> Dropped:
        """Delete episodes and the blobs nobody else needs, their bytes overwritten, in one transaction."""
        with self.changing() as connection:
            return Dropping(connection).take(episode_ids)

    def _known_words(self, connection: sqlite3.Connection) -> dict[str, int]:
        """The words met so far, to be added to; none once another process has written: it may have dropped some."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # forgotten at once: a batch that is refused must not leave them to the next one
            self._words, self._version = {}, version
        return dict(self._words)

    def checkpoint(self) -> None:
        """Give back the pages that tails have left, and move the write-ahead log into the file, as readers allow."""
        with self._lock:
            if self._connection is not None and self._writable:
                with contextlib.suppress(sqlite3.OperationalError):  # somebody else writes: they may give them back
                    self._connection.executescript("PRAGMA incremental_vacuum")  # execute() frees one page only
                with contextlib.suppress(sqlite3.OperationalError):  # no room: the log is as safe, and is read as well
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._lock:
            super().close()
            self._words = {}

    def dropped(self, among: Collection[bytes] | None = None) -> set[bytes]:
        """The ids of the episodes that were dropped, as 16 bytes each: all of them, or those among these."""
        if not self._rows(_CAN_DROP, ()):  # no file yet, or a layout that is older than dropping
            return set()
        if among is None:
            return {each for (each,) in self._rows("SELECT uuid FROM dropped", ())}
        return {each for each in among if self._rows(_WAS_DROPPED, (each,))}

    # --- reading ------------------------------------------------------------------------------------------------

    def position(self, writer: str) -> Position:
        """How far this writer's journal is sealed."""
        rows = self._rows(_WRITER, (writer,))
        return reached(writer, rows[0]).position if rows else record.START

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries that match, in the order asked for; one that cannot be read is told behind all others."""
        newest = select_among_newest(query)
        rows = [] if newest is None else self._ask(*newest)
        if newest is None or len(rows) < (query.limit or 0):
            rows = self._ask(*select_summaries(query))
        unreadable: list[StoreDamaged] = []
        yield from as_asked(query, _readable(rows, unreadable))
        if unreadable:
            said = f"{len(unreadable):,} of the episodes cannot be listed: {unreadable[0].message}"
            raise StoreDamaged(said, hint="trackway verify --fix makes summaries again from their events")

    def find(self, ref: str) -> list[str]:
        """The ids that a whole id, prefix, suffix or ``last`` names; at most ten of each."""
        if ref == ids.LAST:
            return [ids.from_bytes(each) for (each,) in self._ask(_NEWEST, ())]
        wanted = ref.replace("-", "").lower()
        if len(wanted) > 32 or not all(each in "0123456789abcdef" for each in wanted):
            return []
        low, high = bytes.fromhex(wanted.ljust(32, "0")), bytes.fromhex(wanted.ljust(32, "f"))
        rows = self._ask(_BETWEEN, (low, high))
        if not rows:
            rows = self._rows(*_ending(wanted))
        return [each for each in (ids.from_bytes(raw) for (raw,) in rows) if ids.matches(ref, each)]

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary; raises ``EpisodeNotFound``."""
        rows = self._ask(_SUMMARY, (ids.to_bytes(episode_id),))
        if not rows:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        return _of(episode_id, decode_summary(rows[0][0]))

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events with a ``seq`` beyond ``after``, in that order, a frame at a time."""
        rows = self._ask(_NUMBER, (ids.to_bytes(episode_id),))
        if not rows:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        number, wanted = rows[0][0], after + 1
        summary: EpisodeSummary | None = None
        with contextlib.suppress(StoreDamaged):  # its events may be whole, whatever became of its summary
            summary = decode_summary(rows[0][1])
        if summary is not None:
            _of(episode_id, summary)
        while summary is None or wanted < summary.n_events:
            piece = self._frame_with(number, wanted) or self._after_frames(episode_id, number, wanted)
            if not piece:
                if summary is None:
                    return
                raise damaged(f"event {wanted} of episode {episode_id} is missing", episode=episode_id)
            yield from piece
            wanted = (piece[-1].seq or 0) + 1
            del piece  # before the next one is made: both may be large
        self._next_seq(episode_id, number)  # one that was deleted meanwhile does not just end

    def _frame_with(self, number: int, wanted: int) -> list[Event]:
        rows = self._rows(_FRAME, (number, wanted))
        if not rows:
            return []
        first = rows[0][5]
        with self._lock, _made_sense_of(f"frame {number}/{first}") as where:
            if first + rows[0][1] <= wanted:
                return []
            frame = believed(Frame(*rows[0][:5]), number, first, where=where)
            if frame.flags & BLOBS:
                return numbered(self._with_values(frame, wanted - first, where), wanted)
            events = self._packer.unpack(frame, where=where, hook=put_together(self._fetch))
        return numbered(events, first)[wanted - first :]

    def _with_values(self, frame: Frame, skip: int, where: str) -> list[Event]:
        """The next events of a frame, with what was kept apart: one at least, and no more than is little to hold."""
        fetch, events = Measured(self._fetch), []
        for event in self._packer.unpack_singly(frame, skip, where=where, hook=put_together(fetch)):
            events.append(event)
            if fetch.is_enough:
                break
        return events

    def _after_frames(self, episode_id: str, number: int, wanted: int) -> list[Event]:
        """What is in the tail; none at the end. An end that comes too soon is never taken for one."""
        if self._next_seq(episode_id, number) <= wanted:
            return []
        # Between the two questions a sealer may have moved the tail into a frame.
        piece = self._tail_from(number, wanted) or self._frame_with(number, wanted)
        if not piece:
            self._next_seq(episode_id, number)
            where = f"event {wanted} of episode {episode_id}"
            raise damaged(f"{where} is missing", where=where)
        return piece

    def _next_seq(self, episode_id: str, number: int) -> int:
        rows = self._rows(_NEXT_SEQ, (ids.to_bytes(episode_id),))
        if not rows or rows[0][0] != number:
            raise EpisodeNotFound(f"episode {episode_id} was deleted while it was read", ref=episode_id)
        if type(rows[0][1]) is not int:
            raise damaged(f"the row of episode {episode_id} is not what was stored", episode=episode_id)
        return int(rows[0][1])

    def _tail_from(self, number: int, wanted: int) -> list[Event]:
        events: list[Event] = []
        fetch = Measured(self._fetch)
        rows = self._rows(_TAIL, (number, wanted))
        if rows and rows[0][4] != wanted:  # a sealer has put what we want into a frame since we asked for one
            return []
        for body, flags, schema, checksum, seq in rows:
            if seq != wanted + len(events) or fetch.is_enough:
                break  # one is missing: said when it is asked for; or the rest is for the next time
            with _made_sense_of(f"event {number}/{seq}") as where:
                kept = believed(Frame(body, 1, flags, schema, checksum), number, seq, where=where)
                events.append(decode(Encoded(kept.body, kept.flags, schema), put_together(fetch)))
        return numbered(events, wanted)

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob's bytes, chunk by chunk; raises ``BlobNotFound``."""
        yield from self._fetch(digest_of(name))

    def originals(self, episode_id: str) -> list[OriginalFile]:
        """The files that an episode came from, the largest first."""
        return sqlite_originals.of_episode(self._rows, episode_id)

    def has_original(self, name: str) -> bool:
        """Whether a file is kept, by its hash."""
        return sqlite_originals.has(self._rows, name)

    def episodes_from(self, name: str) -> list[str]:
        """The episodes that came from a file, by its hash."""
        return sqlite_originals.episodes_from(self._rows, name)

    def original(self, name: str) -> Iterator[bytes]:
        """A file's bytes, by its hash, part by part."""
        return sqlite_originals.bytes_of(self._rows, self._packer, name)

    def _fetch(self, digest: bytes) -> Iterator[bytes]:
        return sqlite_blobs.fetch(self._rows, self._packer, digest)


def _readable(rows: Iterable[tuple[bytes]], unreadable: list[StoreDamaged]) -> Iterator[EpisodeSummary]:
    for (body,) in rows:
        try:
            summary = decode_summary(body)
        except StoreDamaged as error:
            unreadable.append(error)
        else:
            yield summary


def _of(episode_id: str, summary: EpisodeSummary) -> EpisodeSummary:
    if summary.id != episode_id:
        raise damaged(f"the row of episode {episode_id} is another's", episode=episode_id)
    return summary


@contextlib.contextmanager
def _made_sense_of(where: str) -> Iterator[str]:
    """What is stored is read inside: whatever cannot be made sense of is damage, and says where."""
    try:
        yield where
    except (ArithmeticError, LookupError, TypeError, ValueError, EventRefused) as error:
        if is_thrown_in(error):
            raise
        raise damaged(f"{where} cannot be made sense of: {type(error).__name__}: {error}", where=where) from error


def _ending(wanted: str) -> tuple[str, tuple[Any, ...]]:
    """The ids that end with these digits, or whose short form begins with them; as bytes where they are whole ones."""
    size = len(wanted)
    if size % 2:
        return _ENDING.format("hex(uuid)"), (-size, wanted.upper(), 33 - ids.SHORT, size)
    return _ENDING.format("uuid"), (-(size // 2), bytes.fromhex(wanted), 17 - ids.SHORT // 2, size // 2)
