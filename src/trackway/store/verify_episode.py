"""One episode, looked at whole: its bytes are what was stored, and the rows derived from them say the same.

Truth is frames, tail and blobs; it is read, never touched. Everything else of an episode is derived from it and can be
made again, but only from truth that is whole: where a single event cannot be read, no row is made from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import TrackwayError
from trackway.schema import codec, ids
from trackway.schema.canonical import name_of
from trackway.schema.codec import BLOBS, EXACT, Encoded, Ext, decode, decode_array, tree_of
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.events import EpisodeStart, Event, FileChange
from trackway.store.frames import Frame, believed
from trackway.store.payloads import left_out, put_together, references
from trackway.store.sqlite import SqliteStore
from trackway.store.sqlite_seal import file_digests
from trackway.store.summaries import columns_of, decode_summary, encode_summary, text_of

_ROW: Final = """
    SELECT uuid, next_seq, tail_bytes, tail_events, started_at, ended_at, task, variant, agent, model, outcome, score,
        n_events, n_steps, summary FROM episodes WHERE id = ?"""
_FRAMES: Final = "SELECT id, first_seq, n FROM frames WHERE episode = ? ORDER BY first_seq"
_FRAME: Final = 'SELECT body, n, flags, "schema", checksum FROM frames WHERE id = ?'
_TAIL: Final = 'SELECT seq, body, flags, "schema", checksum FROM tail WHERE episode = ? ORDER BY seq'
_BLOB: Final = "SELECT id FROM blobs WHERE hash = ?"
_REFS: Final = "SELECT blob FROM blob_refs WHERE episode = ?"
_TOOLS: Final = "SELECT word FROM episode_tools JOIN words ON words.id = tool WHERE episode = ?"
_TAGS: Final = "SELECT word FROM episode_tags JOIN words ON words.id = tag WHERE episode = ?"
_COUNT_WORDS: Final = """
    SELECT (SELECT count(*) FROM episode_tools WHERE episode = ?1),
        (SELECT count(*) FROM episode_tags WHERE episode = ?1)"""

# What a summary is made of; in all other places a large value may stay in its blob.
_FOLDED: Final = (
    "writer", "agent", "header", "outcome", "reason", "error", "tag", "relation", "to", "name", "model",
)  # fmt: skip
_EXACTLY: Final = (codec.SURROGATES, codec.BIG_INTEGER, codec.PAIRS)
_split = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Damage(NamedTuple):
    """Something stored that cannot be read; ``first`` to ``last`` are the events it takes with it."""

    where: str
    what: str
    first: int | None = None
    last: int | None = None


class Derived(NamedTuple):
    """The rows of an episode as its events say they must be."""

    uuid: bytes
    next_seq: int
    tail_bytes: int
    tail_events: int
    summary: EpisodeSummary
    blobs: frozenset[int]

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns to search and sort by; SQL has no word for "not a number"."""
        return tuple(
            None if isinstance(each, float) and math.isnan(each) else each for each in columns_of(self.summary)
        )


class Examined(NamedTuple):
    """What was found; ``true`` is None where truth is not whole."""

    id: str
    events: int
    stored: int
    damage: list[Damage]
    differs: list[str]
    true: Derived | None

    @property
    def is_gone(self) -> bool:
        """Whether a prune took it away in the moment before it was looked at."""
        return not self.stored and self.differs == ["row"]


class Examination:
    """One episode; ask inside ``store.reading()`` or ``store.changing()``, so that everything is of one moment."""

    def __init__(self, store: SqliteStore, number: int, bad: frozenset[bytes] | set[bytes]) -> None:
        self._rows = store._rows  # noqa: SLF001  one subsystem
        self._packer = store._packer  # noqa: SLF001
        self._hook = put_together(store._fetch)  # noqa: SLF001
        self._number = number
        self._bad = bad
        found = self._rows(_ROW, (number,))
        self._row = found[0] if found else None
        self._uuid = bytes(self._row[0]) if self._row else b""
        self._name = ids.from_bytes(self._uuid) if len(self._uuid) == 16 else f"number {number}"
        self._summary = EpisodeSummary(id=self._name)
        self._blobs: set[int] = set()
        self._damage: list[Damage] = []
        self._seq = self._unreadable = self._tail_bytes = self._tail_events = 0

    def look(self) -> Examined:
        """Read everything and compare."""
        for number, first, n in self._rows(_FRAMES, (self._number,)):
            if self._goes_on(first, first + n - 1):
                self._frame(number, first, n)
        for seq, *rest in self._rows(_TAIL, (self._number,)):
            if self._goes_on(seq, seq):
                self._tail_row(seq, *rest)
        self._check_end()
        stored = self._seq
        if not self._uuid and stored and not self._damage:
            self._hurt("their episode's row is gone, and none of them says its id", 0, stored - 1)
        if self._damage:
            return Examined(self._name, max(0, stored - self._unreadable), stored, self._damage, [], None)
        true = Derived(
            self._uuid, self._seq, self._tail_bytes, self._tail_events, self._summary, frozenset(self._blobs)
        )
        return Examined(self._name, stored, stored, [], list(self._differences(true)), true)

    # --- truth ------------------------------------------------------------------------------------------------------

    def _hurt(self, what: str, first: int, last: int) -> None:
        self._damage.append(Damage(self._name, what, first, last))
        self._unreadable += last - first + 1

    def _goes_on(self, first: int, last: int) -> bool:
        """Whether this piece comes where it should; what is missing before it is said."""
        if first < self._seq:
            self._damage.append(Damage(self._name, "there twice", first, min(last, self._seq - 1)))
            self._seq = max(self._seq, last + 1)
            return False
        if first > self._seq:
            self._hurt("missing", self._seq, first - 1)
        self._seq = last + 1
        return True

    def _check_end(self) -> None:
        """More was stored than is there: by the row, unless its own summary knows of no more either."""
        if self._row is None or self._row[1] <= self._seq:
            return
        try:
            counted = decode_summary(self._row[-1]).n_events
        except (TrackwayError, msgspec.MsgspecError, TypeError):
            counted = self._row[1]
        if counted > self._seq:
            missing, self._seq = self._seq, min(counted, self._row[1])
            self._hurt("missing", missing, self._seq - 1)

    def _frame(self, number: int, first: int, n: int) -> None:
        try:
            frame = believed(Frame(*self._rows(_FRAME, (number,))[0]), self._number, first, where="the frame")
            body = self._packer.expand(frame.body, "the frame")
            raws = _split(body)
        except (TrackwayError, msgspec.MsgspecError, TypeError) as error:
            self._hurt(_said(error), first, first + n - 1)
            return
        if len(raws) != n:
            self._hurt(f"their frame holds {len(raws)} events", first, first + n - 1)
            return
        self._fold(self._plain(body, frame) or [
            self._event(Encoded(bytes(raw), frame.flags, frame.schema), first + i) for i, raw in enumerate(raws)
        ])  # fmt: skip

    def _plain(self, body: bytes, frame: Frame) -> Sequence[Event]:
        """The events of a frame without blobs, in one go; none where there is anything to look at one by one."""
        try:
            flags = _flags_of(body)
            if flags & (BLOBS | ~frame.flags):
                return []
            events = decode_array(body, flags=frame.flags, schema=frame.schema)
        except (TrackwayError, msgspec.MsgspecError):
            return []
        for each in events:
            if type(each) is FileChange:
                self._note_files(each)
        return events

    def _tail_row(self, seq: int, body: bytes, flags: int, schema: int, checksum: int) -> None:
        self._tail_events += 1
        try:
            row = believed(Frame(body, 1, flags, schema, checksum), self._number, seq)
        except TrackwayError:
            self._hurt("the checksum does not hold", seq, seq)
            return
        self._tail_bytes += len(body)
        self._fold([self._event(Encoded(body, row.flags, schema), seq)])

    def _event(self, encoded: Encoded, seq: int) -> Event | None:
        """The event, large values left where they are; None where it cannot be read, or not to the end."""
        body, stored, schema = encoded
        try:
            flags = _flags_of(body)
            needed = references(body) if flags & BLOBS else set()
            # A frame has the flags of its most demanding event; by its own, a plain one is read faster.
            event = decode(Encoded(body, flags, schema), self._hook if needed and _is_folded(body) else left_out)
        except (TrackwayError, msgspec.MsgspecError, ValueError) as error:
            self._hurt(_said(error), seq, seq)
            return None
        if flags & ~stored:
            self._hurt(f"its flags are {stored}, its bytes need {flags}", seq, seq)
            return None
        if type(event) is FileChange:
            self._note_files(event)
        return event if self._note_blobs(needed, seq) else None

    def _note_blobs(self, digests: set[bytes], seq: int) -> bool:
        for digest in sorted(digests):
            row = self._rows(_BLOB, (digest,))
            if not row or digest in self._bad:
                self._hurt(f"needs {name_of(digest)}, which is {'damaged' if row else 'missing'}", seq, seq)
                return False
            self._blobs.add(row[0][0])
        return True

    def _note_files(self, change: FileChange) -> None:
        """A file change names contents by hash, whether or not they were kept."""
        for digest in file_digests(change):
            self._blobs.update(number for (number,) in self._rows(_BLOB, (digest,)))

    def _fold(self, events: Sequence[Event | None]) -> None:
        read = [each for each in events if each is not None]
        self._summary = fold(self._summary, read)
        started = next((each.header.id for each in read if isinstance(each, EpisodeStart)), "")
        if not ids.is_id(started):
            return
        if not self._uuid:
            self._uuid, self._name = ids.to_bytes(started), started
            self._summary = msgspec.structs.replace(self._summary, id=started)
        elif ids.to_bytes(started) != self._uuid:
            self._damage.append(Damage(self._name, f"its first event says that it is episode {started}"))

    # --- what is derived ----------------------------------------------------------------------------------------------

    def _differences(self, true: Derived) -> Iterator[str]:
        if self._row is None:
            yield "row"
            return
        _, next_seq, tail_bytes, tail_events, *columns, summary = self._row
        if _spelt(summary) != encode_summary(true.summary):
            yield "summary"
        if tuple(columns) != true.columns:
            yield "columns"
        if (next_seq, tail_bytes, tail_events) != true[1:4]:
            yield "counts"
        n_tools, n_tags = self._rows(_COUNT_WORDS, (self._number,))[0]
        if self._words(_TOOLS, n_tools) != {text_of(each) for each in true.summary.tools}:
            yield "tools"
        if self._words(_TAGS, n_tags) != {text_of(each) for each in true.summary.tags}:
            yield "tags"
        if {blob for (blob,) in self._rows(_REFS, (self._number,))} != true.blobs:
            yield "blob_refs"

    def _words(self, sql: str, expected: int) -> set[str] | None:
        """The words of its rows; None where a row has a number without a word."""
        found = {word for (word,) in self._rows(sql, (self._number,))}
        return found if len(found) == expected else None


def _flags_of(body: bytes) -> int:
    """The flags without which these bytes cannot be read as they were meant."""
    flags = 0

    def note(code: int, raw: memoryview) -> None:
        nonlocal flags
        flags |= EXACT if code in _EXACTLY else BLOBS
        if code == codec.PAIRS:
            msgspec.msgpack.decode(raw, ext_hook=note)

    msgspec.msgpack.decode(body, ext_hook=note)
    return flags


def _spelt(summary: bytes) -> bytes | None:
    """A stored summary as this version writes it, so that only what it says is compared."""
    try:
        return encode_summary(decode_summary(summary))
    except (TrackwayError, msgspec.MsgspecError, TypeError, ValueError):
        return None


def _is_folded(body: bytes) -> bool:
    """Whether a value that the summary is made of is in a blob."""
    tree = tree_of(body)
    return any(_refers(tree[name]) for name in _FOLDED if name in tree)


def _refers(value: Any) -> bool:  # noqa: ANN401  any value of an event
    if isinstance(value, Ext):
        return value.code in (codec.BLOB_TEXT, codec.BLOB_BYTES, codec.BLOB_VALUE)
    if isinstance(value, dict):
        return any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


def _said(error: Exception) -> str:
    return error.message if isinstance(error, TrackwayError) else str(error)
