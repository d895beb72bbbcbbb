"""The writing half of the SQLite store: one batch inside one transaction the caller has opened.

Events are grouped by episode; each group gets its sequence numbers and its summary, and goes into frames or, while
there is little of it, into tail rows that a later batch merges.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from trackway.errors import StoreDamaged, StoreTrouble
from trackway.schema import ids
from trackway.schema.brief import Brief, briefs_of
from trackway.schema.canonical import digest_of
from trackway.schema.codec import BLOBS, Encoded, decode, decode_array
from trackway.schema.episode import EpisodeSummary, Fold
from trackway.schema.events import Event, FileChange, Unknown
from trackway.schema.version import SCHEMA
from trackway.store import record, sqlite_blobs, sqlite_originals
from trackway.store.base import Batch
from trackway.store.frames import (
    BOUND,
    FULL_BYTES,
    FULL_EVENTS,
    PLAIN_MARK,
    Frame,
    Packer,
    array_of,
    believed,
    check_at,
    damaged,
    mark_of,
)
from trackway.store.payloads import APART, left_out, references, take_apart
from trackway.store.record import EPISODE, PLAIN_EVENT, Position, RawRecord, Record
from trackway.store.sqlite_drop import check_not_dropped
from trackway.store.summaries import columns_of, decode_summary, encode_summary, text_of
from trackway.store.sums import Reached, reached, sum_of

_AT_ONCE: Final = 10_000
"""Imported events that are held before they are written, all in the one transaction."""

_WRITER = "SELECT * FROM writers WHERE writer = ?"
_SET_POSITION = """
    INSERT INTO writers (writer, about, segment, "offset", events, missing, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (writer) DO UPDATE SET segment = excluded.segment, "offset" = excluded."offset",
        events = excluded.events, missing = excluded.missing, checksum = excluded.checksum"""
_EPISODE = "SELECT id, next_seq, tail_bytes, tail_events, summary FROM episodes WHERE uuid = ?"
_NEW_EPISODE = """
    INSERT INTO episodes (uuid, next_seq, tail_bytes, tail_events, n_events, n_steps, summary)
    VALUES (?, 0, 0, 0, 0, 0, x'')"""
SET_EPISODE = """
    UPDATE episodes SET next_seq = ?, tail_bytes = ?, tail_events = ?, started_at = ?, ended_at = ?, task = ?,
        variant = ?, agent = ?, model = ?, outcome = ?, score = ?, n_events = ?, n_steps = ?, summary = ?
    WHERE id = ?"""
_TAIL = 'SELECT body, flags, "schema", checksum, seq FROM tail WHERE episode = ? ORDER BY seq'
_ADD_TAIL = 'INSERT INTO tail (episode, seq, flags, "schema", checksum, body) VALUES (?, ?, ?, ?, ?, ?)'
_DROP_TAIL = "DELETE FROM tail WHERE episode = ?"
_ADD_FRAME = """
    INSERT INTO frames (episode, first_seq, n, flags, "schema", checksum, body) VALUES (?, ?, ?, ?, ?, ?, ?)"""
_WORD = "SELECT id FROM words WHERE word = ?"
_ADD_WORD = "INSERT INTO words (word) VALUES (?)"
ADD_TOOL = "INSERT OR IGNORE INTO episode_tools (tool, episode) VALUES (?, ?)"
ADD_TAG = "INSERT OR IGNORE INTO episode_tags (tag, episode) VALUES (?, ?)"


class Row(NamedTuple):
    """What is stored of an episode before a batch comes."""

    id: int
    next_seq: int
    tail_bytes: int
    tail_events: int
    summary: EpisodeSummary


class Tail(NamedTuple):
    """How much of an episode is not in frames yet."""

    bytes: int
    events: int


class _Group:
    """The events of one episode in a batch: their bytes, how those must be read that are not plain, their blobs."""

    __slots__ = ("bodies", "digests", "marks", "special")

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.marks: dict[int, int] = {}
        self.digests: set[bytes] = set()
        self.special: dict[int, Event] = {}

    def events(self) -> Sequence[Event | Brief]:
        """The events; the plain ones in one call and in brief, of the others what is small."""
        if not self.special:
            array = array_of(self.bodies)
            return briefs_of(array) or decode_array(array, flags=0, schema=SCHEMA)
        return [self.special.get(i) or decode(Encoded(body)) for i, body in enumerate(self.bodies)]


class Sealing:
    """One batch on its way in."""

    def __init__(self, connection: sqlite3.Connection, packer: Packer, words: dict[str, int]) -> None:
        self._connection = connection
        self._packer = packer
        self._words = words
        self._writer = ""
        self._is_whole = False
        self._reached = Reached(record.START)
        self._numbers: list[int] = []
        self._growing: dict[int, sqlite_blobs.Growing] = {}
        self._local: dict[int, bytes] = {}
        self._parts: dict[int, list[int]] = defaultdict(list)

    def take(self, batch: Batch) -> int:
        """Store every record and the position behind them; returns how many events there were."""
        if batch.writer:
            self._check_start(batch)
            self._writer = batch.writer
            count = self._take(batch.records)
        else:  # imported, and of any length: a sealer's batch is a segment's worth
            self._is_whole = batch.is_whole
            records = iter(batch.records)
            count = sum(self._take(itertools.chain((first,), itertools.islice(records, _AT_ONCE))) for first in records)
            for each in batch.originals:
                sqlite_originals.add(self._connection, each)
        self._drop_unfinished()
        if batch.writer and batch.position is not None:
            self._set_position(batch, batch.position, count)
        return count

    def _take(self, records: Iterable[RawRecord]) -> int:
        """Group events by episode and write them; blobs are stored as their parts come by."""
        groups: dict[bytes, _Group] = {}
        for meta, whole, _, _ in records:
            episode = whole[:EPISODE]
            group = groups.get(episode)
            if group is None:
                group = groups[episode] = _Group()
            if meta == PLAIN_EVENT and len(whole) < APART:
                group.bodies.append(whole[EPISODE:])
            elif meta & 0xFF == record.BLOB_PART:
                self._blob_part(whole[EPISODE:], meta >> 8 & 0xFF)
            else:
                self._special(group, Record(meta, whole).encoded)
        for episode, group in groups.items():
            if group.bodies:
                self._write(episode, group)
        return sum(len(group.bodies) for group in groups.values())

    def _set_position(self, batch: Batch, position: Position, count: int) -> None:
        """With it goes how many events came, and how many did not: a writer numbers them without a gap."""
        events, missing = self._reached.events, self._reached.missing
        if events is None:  # nobody counted before
            events = min(self._numbers, default=0)
        if self._numbers:
            missing += max(0, max(self._numbers) + 1 - events - count)
            events = max(self._numbers) + 1
        known = (events, missing, sum_of(batch.writer, position, events, missing))
        self._connection.execute(_SET_POSITION, (batch.writer, json.dumps(batch.about or {}), *position, *known))

    def _check_start(self, batch: Batch) -> None:
        """A batch goes on exactly where the last one ended, whoever brings it: that is the whole of exactly-once."""
        row = self._connection.execute(_WRITER, (batch.writer,)).fetchone()
        self._reached = reached(batch.writer, row) if row else Reached(record.START, 0)
        stored = self._reached.position
        if stored != batch.start:
            raise StoreTrouble(f"writer {batch.writer} is sealed up to {stored}, the batch starts at {batch.start}")

    def _blob_part(self, body: bytes, place: int) -> None:
        number, last, part = record.unpack_blob_part(body)
        growing = self._growing.setdefault(number, sqlite_blobs.Growing(self._connection, self._packer))
        self._parts[number].append(place)
        growing.take(part)
        # Where one is missing, the blob is none, and whoever refers to it is refused.
        if last and all(each in (0, record.part_number(i)) for i, each in enumerate(self._parts.pop(number))):
            self._local[number] = self._growing.pop(number).finish()

    def _drop_unfinished(self) -> None:
        """Parts whose writer died, or found no room, before the event itself."""
        for each in self._growing.values():
            each.drop()

    def _special(self, group: _Group, encoded: Encoded) -> None:
        """An event that is large, exact, of another schema, or refers to blobs."""
        given = encoded
        if encoded.flags & BLOBS or len(encoded.body) >= APART:
            encoded = take_apart(encoded, self._keep, self._local)
            group.digests |= references(encoded.body)
        group.special[len(group.bodies)] = decode(given, left_out)  # last: of a million values one tree is enough
        group.marks[len(group.bodies)] = mark_of(encoded.flags, encoded.schema)
        group.bodies.append(encoded.body)

    def _keep(self, body: bytes) -> bytes:
        return sqlite_blobs.keep(self._connection, self._packer, body)

    def _write(self, uuid: bytes, group: _Group) -> None:
        events = group.events()
        self._note_numbers(events)
        row = self._row(uuid, events)
        counting = Fold(row.summary)
        summary = counting.take(events)
        for change in counting.changes:
            group.digests |= file_digests(change)
        marks = [PLAIN_MARK] * len(group.bodies)
        for i, mark in group.marks.items():
            marks[i] = mark
        tail = self._pack(row, group.bodies, marks, ended=self._is_whole or summary.ended_at is not None)
        values = (row.next_seq + len(events), *tail, *columns_of(summary), encode_summary(summary), row.id)
        self._connection.execute(SET_EPISODE, values)
        for tool in set(summary.tools) - set(row.summary.tools):
            self._connection.execute(ADD_TOOL, (self._word(tool), row.id))
        for tag in set(summary.tags) - set(row.summary.tags):
            self._connection.execute(ADD_TAG, (self._word(tag), row.id))
        for digest in group.digests:
            sqlite_blobs.refer(self._connection, digest, row.id)

    def _note_numbers(self, events: Sequence[Event | Brief]) -> None:
        """The writer's own numbers, lowest and highest; those of its events that are in the store do not come again."""
        mine = [each.n for each in (events[0], events[-1]) if each.writer == self._writer and type(each) is not Unknown]
        if mine and self._reached.events is not None and mine[0] < self._reached.events:
            raise damaged(f"events of writer {self._writer} from {mine[0]} on are stored already", writer=self._writer)
        self._numbers += mine

    def _row(self, uuid: bytes, events: Sequence[Event | Brief]) -> Row:
        found = self._connection.execute(_EPISODE, (uuid,)).fetchone()
        if found is not None:
            number, next_seq, tail_bytes, tail_events, body = found
            row = Row(number, next_seq, tail_bytes, tail_events, decode_summary(body))
            if row.summary.id != ids.from_bytes(uuid) or row.next_seq != row.summary.n_events:
                raise damaged(f"the row of episode {ids.from_bytes(uuid)} is not what was stored")
            return row
        check_not_dropped(self._connection, uuid, events)
        added = self._connection.execute(_NEW_EPISODE, (uuid,)).lastrowid or 0
        return Row(added, 0, 0, 0, EpisodeSummary(id=ids.from_bytes(uuid)))

    def _pack(self, row: Row, bodies: list[bytes], marks: list[int], *, ended: bool) -> Tail:
        """Frames of what is enough for one; returns what stays in the tail."""
        size = row.tail_bytes + sum(map(len, bodies))
        is_full = ended or size >= FULL_BYTES or row.tail_events + len(bodies) >= FULL_EVENTS
        waiting = self._waiting(row) if is_full and row.tail_events else []
        if waiting is None or not is_full:
            self._add_tail(row.id, row.next_seq, bodies, marks)
            return Tail(size, row.tail_events + len(bodies))
        if waiting:
            bodies = [*(each.body for each in waiting), *bodies]
            marks = [*(mark_of(each.flags, each.schema) for each in waiting), *marks]
            self._connection.execute(_DROP_TAIL, (row.id,))
        first, start = row.next_seq - row.tail_events, 0
        for stop in _full(bodies, size, ended=ended):
            frame = self._packer.pack(bodies[start:stop], marks[start:stop]).bound(row.id, first + start)
            self._connection.execute(
                _ADD_FRAME, (row.id, first + start, frame.n, frame.flags, frame.schema, frame.checksum, frame.body)
            )
            start = stop
        self._add_tail(row.id, first + start, bodies[start:], marks[start:])
        return Tail(sum(map(len, bodies[start:])), len(bodies) - start)

    def _waiting(self, row: Row) -> list[Frame] | None:
        """The tail; None where it is damaged: it stays as it is then, and is not given a checksum that holds."""
        found = self._connection.execute(_TAIL, (row.id,)).fetchall()
        try:
            waiting = [
                believed(Frame(body, 1, flags, schema, checksum), row.id, seq)
                for body, flags, schema, checksum, seq in found
            ]
        except StoreDamaged:
            return None
        expected = range(row.next_seq - row.tail_events, row.next_seq)
        return waiting if [each[4] for each in found] == list(expected) else None

    def _add_tail(self, episode: int, seq: int, bodies: list[bytes], marks: list[int]) -> None:
        rows = enumerate(zip(bodies, marks, strict=True), start=seq)
        self._connection.executemany(
            _ADD_TAIL,
            (
                (episode, at, mark >> 16 | BOUND, mark & 0xFFFF, check_at(body, episode, seq=at, mark=mark), body)
                for at, (body, mark) in rows
            ),
        )

    def _word(self, word: str) -> int:
        number = self._words.get(word)
        if number is None:
            number = self._words[word] = word_id(self._connection, word)
        return number


def _full(bodies: list[bytes], size: int, *, ended: bool) -> Iterable[int]:
    """Where to cut into frames of the full size; at the end too where no more is to come."""
    if ended and size < FULL_BYTES and len(bodies) < FULL_EVENTS:  # most episodes: one frame, without counting
        yield len(bodies)
        return
    start = size = 0
    for i, body in enumerate(bodies, start=1):
        size += len(body)
        if size >= FULL_BYTES or i - start >= FULL_EVENTS:
            yield i
            start, size = i, 0
    if ended and start < len(bodies):
        yield len(bodies)


def file_digests(change: FileChange | Brief) -> set[bytes]:
    """The blobs a file change names."""
    return {digest_of(each.hash) for each in (change.before, change.after) if each is not None}


def word_id(connection: sqlite3.Connection, word: str) -> int:
    """The number of a word; a new one is added."""
    row = connection.execute(_WORD, (text_of(word),)).fetchone()
    return int(row[0]) if row else connection.execute(_ADD_WORD, (text_of(word),)).lastrowid or 0
