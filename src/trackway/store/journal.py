"""The append path: one journal per recording process, safe under threads, signal handlers, fork and kill -9.

When ``append`` returns, the event is in the page cache of a file only this process writes: killing the process cannot
lose it. The lock is re-entrant; an append that arrives while its own thread is inside one (a signal handler, a garbage
collection) is queued and written by the outer one, in order. No call on this path releases the GIL.

Invariants: ``n`` is dense per writer; a record is whole or absent. Its files are ``store/journal_files.py``.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from trackway.schema.codec import BLOBS, LOCAL_BYTES, LOCAL_TEXT, Encoded, Ext, encode_fast, encode_slowly
from trackway.schema.events import Event
from trackway.schema.outside import is_thrown_in
from trackway.schema.version import SCHEMA
from trackway.store import record
from trackway.store.claim import remove_folder
from trackway.store.home import JournalFolder
from trackway.store.journal_files import Finished, JournalFiles
from trackway.store.large import BIG, Part, Payload, large_of, parts_of, without_large
from trackway.store.record import BLOB_PART, EVENT, PLAIN_EVENT, RECORD_HEADER, SEGMENT_HEADER, Position


class Written(NamedTuple):
    """How far a journal is written, all of one moment: another thread may let go of it and a new one begin."""

    position: Position
    segments: list[Finished]
    writer: str
    folder: JournalFolder | None


class Pending(NamedTuple):
    """One event that waits for its outer call: everything but the writer and its number."""

    episode: bytes
    kind: type[Event]
    fields: dict[str, Any]
    payloads: tuple[Payload, ...] = ()


class _Begun(NamedTuple):
    """Where the payloads of an event began, in whose journal, behind how many events."""

    writer: str
    activation: int
    offset: int
    n: int


class Journal(JournalFiles):
    """One process's journal. Opens on the first append; a forked child opens its own."""

    def _forget(self) -> None:
        super()._forget()
        self._busy = False
        self._nested: deque[Pending] = deque()
        self._in_flight: dict[str, Any] | None = None
        self._in_flight_n = 0
        self._blobs = 0
        self._begun = _Begun("", 0, 0, 0)

    # --- the hot path -------------------------------------------------------------------------------------------

    def append(
        self, episode: bytes, kind: type[Event], fields: dict[str, Any], payloads: tuple[Payload, ...] = ()
    ) -> None:
        """Record one event. On return it survives the death of this process."""
        with self.lock:
            if self._busy:  # this very thread is inside append: its outer call writes this one
                self._nested.append(Pending(episode, kind, fields, payloads))
                return
            self._busy = True
            try:
                if self._nested:  # left behind by a call that was interrupted: first come, first written
                    self._write_nested()
                try:
                    self._write(episode, kind, fields, payloads)
                finally:
                    if self._in_payload:
                        self._give_back()
                    if self._nested:
                        self._write_nested()
            finally:
                self._busy = False
            if self._nested:
                self._drain()

    def _write(self, episode: bytes, kind: type[Event], fields: dict[str, Any], payloads: tuple[Payload, ...]) -> None:
        segment = self._segment
        if segment is None:
            segment = self._open()
        if segment.unsettled:
            segment.settle()
        given, meta = fields, PLAIN_EVENT
        if payloads:
            self._begun = _Begun(self.writer, segment.activation, segment.offset, segment.n)
            self._in_payload = True
            fields, meta = self._put_payloads(episode, fields, payloads), PLAIN_EVENT | BLOBS << 8
            segment = self._segment or segment
        # The mapping is encoded as it is: it spells the same map as the struct would, without making one.
        fields["kind"], fields["writer"], fields["n"] = kind.kind, self.writer, segment.n
        try:
            body = episode + encode_fast(fields)
        except Exception as error:  # noqa: BLE001  raised again where it is none of ours
            encoded = _encoded_slowly(error, kind, fields, references=bool(payloads))
            meta |= record.meta_of(EVENT, encoded.flags, encoded.schema)
            body = episode + encoded.body
        if segment.offset + RECORD_HEADER + len(body) + 8 > segment.size:
            if len(body) >= BIG and not payloads and (large := large_of(given)):
                del body
                self._write(episode, kind, given, large)
                return
            segment = self._roll(len(body))
        self._in_flight, self._in_flight_n = given, segment.n
        segment.put(meta, body)
        self._in_payload = False
        if not self.dirty:
            self._say_dirty()

    def _say_dirty(self) -> None:
        self.dirty = True
        try:
            self._wake()
        except BaseException:  # thrown in by a handler: whoever comes next wakes the keeper
            self.dirty = False
            raise

    def _drain(self) -> None:
        """Write what was queued between the last look at the queue and the end of being busy."""
        while self._nested:
            self._busy = True
            try:
                self._write_nested()
            finally:
                self._busy = False

    def _write_nested(self) -> None:
        """Write the queue, oldest first. An exception may strike anywhere: what was written is not written again."""
        while self._nested:
            pending = self._nested[0]
            if not self._is_written(pending):
                try:
                    self._write(*pending)
                except Exception as error:  # its caller has long returned: counted, not raised
                    if is_thrown_in(error):
                        raise
                    self._on_loss(error, pending.episode)
                finally:
                    if self._in_payload:
                        self._give_back()
            self._nested.popleft()

    def _is_written(self, pending: Pending) -> bool:
        segment = self._segment
        if segment is None or self._in_flight is not pending.fields:
            return False
        if segment.unsettled:
            segment.settle()
        return segment.n > self._in_flight_n

    # --- large payloads -----------------------------------------------------------------------------------------

    def _put_payloads(self, episode: bytes, fields: dict[str, Any], payloads: tuple[Payload, ...]) -> dict[str, Any]:
        fields = dict(fields)
        for content, field in payloads:
            if isinstance(content, (str, bytes)):
                value = self._put_value(episode, content)
            elif isinstance(content, (dict, list, tuple)):
                value = without_large(content, lambda each: self._put_value(episode, each))
            else:
                self._put_parts(episode, content.parts())
                value = content.stands_for()
            if field is not None:
                fields[field] = value
        return fields

    def _put_value(self, episode: bytes, content: str | bytes) -> Ext:
        number = self._put_parts(episode, parts_of(content))
        return Ext(LOCAL_TEXT if isinstance(content, str) else LOCAL_BYTES, number.to_bytes(4, "little"))

    def _put_parts(self, episode: bytes, parts: Iterator[Part]) -> int:
        self._blobs += 1
        for i, (part, last) in enumerate(parts):
            body = episode + record.pack_blob_part(self._blobs, part, last=last)
            segment = self._segment or self._open()
            if segment.offset + RECORD_HEADER + len(body) + 8 > segment.size:
                segment = self._roll(len(body))
            segment.put(record.meta_of(BLOB_PART, record.part_number(i), SCHEMA), body)
        return self._blobs

    def _give_back(self) -> None:
        """The event did not come, as a rule for want of room: the parts of its payloads go, so that the rest has some.

        Nothing is written where they were, since readers have read on: the next event begins a segment.
        """
        self._in_payload = False
        segment, begun = self._segment, self._begun
        if segment is None or self.writer != begun.writer:  # let go meanwhile
            return
        if segment.unsettled:
            segment.settle()
        if segment.n > begun.n:  # it did come: the exception struck behind it
            return
        if (segment.activation, segment.offset) == (begun.activation, begun.offset):  # a file that cannot be read
            return
        for each in [each for each in self._files() if each.activation == begun.activation]:
            each.cut(begun.offset)
        if segment.activation != begun.activation:
            segment.cut(SEGMENT_HEADER)
            self._drop_between(begun, segment.activation)

    def _drop_between(self, begun: _Begun, last: int) -> None:
        """Unlink the segments behind the one where a payload began and before the last one: they hold nothing else."""
        between = range(begun.activation + 1, last)
        files = [each for each in self._files() if each.activation in between]
        paths = [each.path for each in self._finished if each.activation in between]
        retired = [each for each in self._retired if each.activation not in between]
        held = [each for each in self._held if each.activation not in between]
        finished = [
            each._replace(end=begun.offset, joined=False) if each.activation == begun.activation else each
            for each in self._finished
            if each.activation not in between
        ]
        self._retired, self._held, self._finished = retired, held, finished
        for each in files:
            each.close()
        for path in paths:
            with contextlib.suppress(OSError):  # then it goes with the folder
                path.unlink(missing_ok=True)

    # --- durability and sealing ---------------------------------------------------------------------------------

    def written(self) -> Written:
        """Where writing stands and in whose journal, with every segment file up to there, in order of writing."""
        with self.lock:
            if self._nested and not self._busy:
                self._drain()
            segment = self._segment
            # A handler that seals while its own thread is inside an append must not see half a payload as the end.
            if segment is None or self._busy:
                return Written(record.START, [], self.writer, self.folder)
            here = Finished(segment.activation, segment.path, segment.offset, joined=False)
            return Written(self._end(), [*self._finished, here], self.writer, self.folder)

    def _end(self) -> Position:
        """Behind the last record; nobody can seal up to the start of a segment whose first record found no room."""
        segment = self._segment
        if segment is None or segment.offset > SEGMENT_HEADER:
            return self._position()
        last = self._finished[-1] if self._finished else None
        return Position(last.activation, last.end) if last is not None else record.START

    def remove(self, sealed: Position | None = None) -> bool:
        """The journal goes, folder and all, if everything is sealed up to here; False where something came after."""
        return self._let_go(remove_folder, sealed)

    def release(self) -> None:
        """Leave the journal as it is for another process to adopt. A later append opens a new one."""
        self._let_go(lambda _folder: None, None)

    def _let_go(self, then: Callable[[JournalFolder], None], sealed: Position | None) -> bool:
        with self._sync_lock, self.lock:
            if sealed is not None and (sealed != self._end() or self._nested or self._busy):
                return False
            held, segments = self._claim, self._files()
            self.folder, self._claim, self.writer = None, None, ""
            self._segment = self._prepared = None
            self._retired, self._held, self._finished, self._numbers = [], [], [], itertools.count(1)
            self._activations, self._blobs, self._synced, self.dirty = 0, 0, record.START, False
        for each in segments:
            each.close()
        if held is not None:
            then(held.folder)
            held.release()
        return True

    def is_inside(self) -> bool:
        """Whether this very thread is inside an append: a handler that is must not wait, others wait for it."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            return self._busy
        finally:
            self.lock.release()


def _encoded_slowly(error: Exception, kind: type[Event], fields: dict[str, Any], *, references: bool) -> Encoded:
    if is_thrown_in(error):
        raise error
    event = kind(**{name: each for name, each in fields.items() if name != "kind"})
    return encode_slowly(event, references=references)
