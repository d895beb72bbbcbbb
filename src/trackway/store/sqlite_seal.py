"""The writing half of the SQLite store: one batch inside one transaction the caller has opened.

Events are grouped by episode; each group gets its sequence numbers, its index rows, its summary, and goes into frames
or, while there is little of it, into tail rows that a later batch merges.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import StoreTrouble
from trackway.schema import ids
from trackway.schema.canonical import digest_of
from trackway.schema.codec import BLOBS, Encoded, decode, encode_fast, exact, exact_hook
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.events import KINDS, AssistantToolCall, Event, FileChange
from trackway.store import record, sqlite_blobs
from trackway.store.base import Batch
from trackway.store.frames import FULL_BYTES, FULL_EVENTS, Packer, check
from trackway.store.payloads import APART, left_out, references, take_apart
from trackway.store.record import Position

_KIND_NUMBER: Final = {each: number for number, each in enumerate(KINDS.values(), start=1)}
_decode_summary = msgspec.msgpack.Decoder(EpisodeSummary).decode

_POSITION = 'SELECT activation, "offset" FROM writers WHERE writer = ?'
_SET_POSITION = """
    INSERT INTO writers (writer, about, activation, "offset") VALUES (?, ?, ?, ?)
    ON CONFLICT (writer) DO UPDATE SET activation = excluded.activation, "offset" = excluded."offset" """
_EPISODE = "SELECT id, next_seq, tail_bytes, tail_events, summary FROM episodes WHERE uuid = ?"
_NEW_EPISODE = """
    INSERT INTO episodes (uuid, next_seq, tail_bytes, tail_events, n_events, n_steps, summary)
    VALUES (?, 0, 0, 0, 0, 0, x'')"""
_SET_EPISODE = """
    UPDATE episodes SET next_seq = ?, tail_bytes = ?, tail_events = ?, started_at = ?, ended_at = ?, task = ?,
        variant = ?, agent = ?, model = ?, outcome = ?, score = ?, n_events = ?, n_steps = ?, summary = ?
    WHERE id = ?"""
_INDEX = "INSERT INTO events (episode, seq, kind, after_us, tool) VALUES (?, ?, ?, ?, ?)"
_TAIL = 'SELECT body, flags, "schema" FROM tail WHERE episode = ? ORDER BY seq'
_ADD_TAIL = 'INSERT INTO tail (episode, seq, flags, "schema", checksum, body) VALUES (?, ?, ?, ?, ?, ?)'
_DROP_TAIL = "DELETE FROM tail WHERE episode = ?"
_ADD_FRAME = """
    INSERT INTO frames (episode, first_seq, n, flags, "schema", checksum, body) VALUES (?, ?, ?, ?, ?, ?, ?)"""
_WORD = "SELECT id FROM words WHERE word = ?"
_ADD_WORD = "INSERT INTO words (word) VALUES (?)"
_ADD_TOOL = "INSERT OR IGNORE INTO episode_tools (tool, episode) VALUES (?, ?)"
_ADD_TAG = "INSERT OR IGNORE INTO episode_tags (tag, episode) VALUES (?, ?)"


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
    """The events of one episode in a batch, with their bytes and the blobs they need."""

    __slots__ = ("digests", "encoded", "events")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.encoded: list[Encoded] = []
        self.digests: set[bytes] = set()


class Sealing:
    """One batch on its way in."""

    def __init__(self, connection: sqlite3.Connection, packer: Packer, words: dict[str, int]) -> None:
        self._connection = connection
        self._packer = packer
        self._words = words
        self._growing: dict[int, sqlite_blobs.Growing] = {}
        self._local: dict[int, bytes] = {}

    def take(self, batch: Batch) -> int:
        """Store every record and the position behind them; returns how many events there were."""
        if batch.writer:
            self._check_start(batch)
        groups: dict[bytes, _Group] = {}
        for each in batch.records:
            if each.type == record.BLOB_PART:
                self._blob_part(each.body)
                continue
            group = groups.get(each.episode)
            if group is None:
                group = groups[each.episode] = _Group()
            self._event(group, Encoded(each.body, each.flags, each.schema))
        for episode, group in groups.items():
            self._write(episode, group)
        if batch.writer and batch.position is not None:
            about = json.dumps(batch.about or {})
            self._connection.execute(_SET_POSITION, (batch.writer, about, *batch.position))
        return sum(len(group.events) for group in groups.values())

    def _check_start(self, batch: Batch) -> None:
        """A batch goes on exactly where the last one ended, whoever brings it: that is the whole of exactly-once."""
        row = self._connection.execute(_POSITION, (batch.writer,)).fetchone()
        stored = Position(*row) if row else record.START
        if stored != batch.start:
            raise StoreTrouble(f"writer {batch.writer} is sealed up to {stored}, the batch starts at {batch.start}")

    def _blob_part(self, body: bytes) -> None:
        number, last, part = record.unpack_blob_part(body)
        growing = self._growing.setdefault(number, sqlite_blobs.Growing(self._connection, self._packer))
        growing.take(part)
        if last:
            self._local[number] = self._growing.pop(number).finish()

    def _event(self, group: _Group, encoded: Encoded) -> None:
        event = decode(encoded, left_out) if encoded.flags & BLOBS else decode(encoded)
        if encoded.flags & BLOBS or len(encoded.body) >= APART:
            encoded = take_apart(encoded, self._keep, self._local)
            group.digests |= references(encoded.body)
        if isinstance(event, FileChange):
            group.digests |= {digest_of(each.hash) for each in (event.before, event.after) if each is not None}
        group.events.append(event)
        group.encoded.append(encoded)

    def _keep(self, body: bytes) -> bytes:
        return sqlite_blobs.keep(self._connection, self._packer, body)

    def _write(self, uuid: bytes, group: _Group) -> None:
        row = self._row(uuid)
        summary = fold(row.summary, group.events)
        self._connection.executemany(_INDEX, self._index_rows(row, group.events, summary.started_at or 0))
        tail = self._pack(row, group.encoded, ended=summary.ended_at is not None)
        self._connection.execute(
            _SET_EPISODE,
            (
                row.next_seq + len(group.events), tail.bytes, tail.events, _int64(summary.started_at),
                _int64(summary.ended_at), _text(summary.task), _text(summary.variant), _text(summary.agent),
                _text(summary.model), _text(summary.outcome), summary.score, summary.n_events, summary.n_steps,
                encode_summary(summary), row.id,
            ),
        )  # fmt: skip
        for tool in set(summary.tools) - set(row.summary.tools):
            self._connection.execute(_ADD_TOOL, (self._word(tool), row.id))
        for tag in set(summary.tags) - set(row.summary.tags):
            self._connection.execute(_ADD_TAG, (self._word(tag), row.id))
        for digest in group.digests:
            sqlite_blobs.refer(self._connection, digest, row.id)

    def _row(self, uuid: bytes) -> Row:
        found = self._connection.execute(_EPISODE, (uuid,)).fetchone()
        if found is not None:
            number, next_seq, tail_bytes, tail_events, body = found
            return Row(number, next_seq, tail_bytes, tail_events, decode_summary(body))
        added = self._connection.execute(_NEW_EPISODE, (uuid,)).lastrowid or 0
        return Row(added, 0, 0, 0, EpisodeSummary(id=ids.from_bytes(uuid)))

    def _index_rows(self, row: Row, events: Iterable[Event], started_at: int) -> Iterable[tuple[Any, ...]]:
        episode, seq = row.id, row.next_seq
        for event in events:
            tool = self._word(event.name) if type(event) is AssistantToolCall else None
            after = _int64((event.at - started_at) // 1000)
            yield episode, seq, _KIND_NUMBER.get(type(event), 0), after, tool
            seq += 1

    def _pack(self, row: Row, new: list[Encoded], *, ended: bool) -> Tail:
        """Frames of what is enough for one; returns what stays in the tail."""
        size = row.tail_bytes + sum(len(each.body) for each in new)
        if not ended and size < FULL_BYTES and row.tail_events + len(new) < FULL_EVENTS:
            self._add_tail(row.id, row.next_seq, new)
            return Tail(size, row.tail_events + len(new))
        waiting = [*self._tail_of(row), *new]
        if row.tail_events:
            self._connection.execute(_DROP_TAIL, (row.id,))
        first = seq = row.next_seq - row.tail_events
        for events in _full(waiting, ended=ended):
            frame = self._packer.pack(events)
            self._connection.execute(
                _ADD_FRAME, (row.id, seq, frame.n, frame.flags, frame.schema, frame.checksum, frame.body)
            )
            seq += len(events)
        rest = waiting[seq - first :]
        self._add_tail(row.id, seq, rest)
        return Tail(sum(len(each.body) for each in rest), len(rest))

    def _tail_of(self, row: Row) -> list[Encoded]:
        return [Encoded(*each) for each in self._connection.execute(_TAIL, (row.id,))] if row.tail_events else []

    def _add_tail(self, episode: int, seq: int, events: list[Encoded]) -> None:
        self._connection.executemany(
            _ADD_TAIL,
            ((episode, seq + i, each.flags, each.schema, check(each.body), each.body) for i, each in enumerate(events)),
        )

    def _word(self, word: str) -> int:
        number = self._words.get(word)
        if number is None:
            text = _text(word)
            row = self._connection.execute(_WORD, (text,)).fetchone()
            number = int(row[0]) if row else self._connection.execute(_ADD_WORD, (text,)).lastrowid or 0
            self._words[word] = number
        return number


def _full(events: list[Encoded], *, ended: bool) -> Iterable[list[Encoded]]:
    """Cut into frames of the full size; the remainder too where no more is to come."""
    start = size = 0
    for i, each in enumerate(events):
        size += len(each.body)
        if size >= FULL_BYTES or i + 1 - start >= FULL_EVENTS:
            yield events[start : i + 1]
            start, size = i + 1, 0
    if ended and start < len(events):
        yield events[start:]


def _text(value: str | None) -> str | None:
    """Text as SQL can hold it: for searching only, the exact one is in the summary."""
    return None if value is None else value.encode("utf-8", "replace").decode()


def _int64(value: int | None) -> int | None:
    """A number as SQL can hold it: for sorting only, the exact one is in the summary."""
    return None if value is None else max(-(2**63), min(value, 2**63 - 1))


def encode_summary(summary: EpisodeSummary) -> bytes:
    """A summary's bytes, exact."""
    try:
        return encode_fast(summary)
    except (UnicodeEncodeError, OverflowError):
        return encode_fast(exact(msgspec.to_builtins(summary, builtin_types=(bytes,))))


def decode_summary(body: bytes) -> EpisodeSummary:
    """The summary back."""
    try:
        return _decode_summary(body)
    except msgspec.ValidationError:
        return msgspec.convert(msgspec.msgpack.decode(body, ext_hook=exact_hook), EpisodeSummary)
