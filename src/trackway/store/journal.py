"""The append path: one journal per recording process, safe under threads, signal handlers, fork and kill -9.

When ``append`` returns, the event is in the page cache of a file only this process writes: killing the process cannot
lose it. The lock is re-entrant; an append that arrives while its own thread is inside one (a signal handler, a garbage
collection) is queued and written by the outer one, in order. No call on this path releases the GIL.

Invariants: ``n`` is dense per writer; a record is whole or absent; a writer's name is never used twice; the lock file
is locked from before the folder has its name until the process dies or ``remove`` is called.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from trackway.schema.codec import BLOBS, LOCAL_BYTES, LOCAL_TEXT, Encoded, Ext, encode_fast, encode_slowly
from trackway.schema.events import Event
from trackway.schema.outside import is_thrown_in
from trackway.schema.version import SCHEMA
from trackway.store import forks, record, system
from trackway.store.claim import Claim, claim, remove_folder
from trackway.store.home import Home, JournalFolder
from trackway.store.large import BIG, Part, Payload, large_of, parts_of, without_large
from trackway.store.record import BLOB_PART, EVENT, PLAIN_EVENT, RECORD_HEADER, Position
from trackway.store.segment import LARGEST, SMALLEST, AppendedSegment, MappedSegment, Segment

_MAPPED: Final = 2
_HELD: Final = 16  # of those that are on the disk and wait to be sealed: usually there are two or three


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


class Finished(NamedTuple):
    """A segment no longer written to."""

    activation: int
    path: Path
    end: int
    joined: bool | None = None
    """Whether a payload goes on in the next one; None where nobody remembers."""


class Journal:
    """One process's journal. Opens on the first append; a forked child opens its own."""

    def __init__(
        self,
        home: Home,
        *,
        store_key: str,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        mapped: bool = True,
        wake: Callable[[], None] = lambda: None,
        on_loss: Callable[[Exception, bytes], None] = lambda _error, _episode: None,
    ) -> None:
        self._home = home
        self._store_key = store_key
        self._clock = clock
        self._entropy = entropy
        self._mapped = mapped
        self._wake = wake
        self._on_loss = on_loss
        self._forget()
        forks.watch(self, forks.JOURNAL)

    def _forget(self) -> None:
        """The state of a journal that is not open: at first, and again in a forked child."""
        self.lock = threading.RLock()
        self.writer = ""
        self.dirty = False
        self.unprepared = False
        self.folder: JournalFolder | None = None
        self._sync_lock = threading.RLock()
        self._synced = record.START
        self._names_synced = True
        self._busy = False
        self._in_payload = False
        self._nested: deque[Pending] = deque()
        self._in_flight: dict[str, Any] | None = None
        self._in_flight_n = 0
        self._segment: Segment | None = None
        self._prepared: Segment | None = None
        self._retired: list[Segment] = []
        self._held: list[Segment] = []
        self._finished: list[Finished] = []
        self._numbers = itertools.count(1)
        self._activations = 0
        self._blobs = 0
        self._claim: Claim | None = None

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
            self.dirty = True
            self._wake()

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

    # --- files --------------------------------------------------------------------------------------------------

    def _open(self) -> Segment:
        held = claim(self._home, self.about(), self._entropy)
        self._claim, self.writer, self.folder = held, held.writer, held.folder
        try:
            return self._roll(0)
        except BaseException:  # no room for a segment: the folder is given back, the next event tries anew
            self._claim, self.writer, self.folder = None, "", None
            remove_folder(held.folder)
            held.release()
            raise

    def about(self) -> dict[str, Any]:
        """Who writes here, and for which store; the home's own is found wherever the home is moved to."""
        return {
            "pid": os.getpid(), "host": system.host_name(), "started_at": self._clock(), "store": self._store_key,
            "own": self._store_key == self._home.store_key, "journal": "mmap" if self._mapped else "append",
        }  # fmt: skip

    def _new_segment(self, size: int) -> Segment:
        assert self.folder is not None
        path = self.folder.segment(next(self._numbers))
        if self._mapped:
            try:
                return MappedSegment(path, size)
            except (OSError, ValueError) as error:
                if getattr(error, "errno", None) not in system.NO_MAPPING:
                    raise
                self._mapped = False
                path = self.folder.segment(next(self._numbers))
        return AppendedSegment(path, size)

    def _roll(self, body: int) -> Segment:
        """Take the next segment into use; the prepared one if the record fits into it."""
        need = record.SEGMENT_HEADER + RECORD_HEADER + body + 8
        old, new = self._segment, self._prepared
        if new is None or new.size < need:
            new = self._larger_or_smaller(need)
        else:
            self._prepared = None
        new.n = old.n if old is not None else 0
        try:
            new.activate(self.writer, self._activations + 1, self._clock())
        except BaseException:  # no room for the stamp: one file that nobody will use is enough, and it goes
            new.close()
            new.path.unlink(missing_ok=True)
            raise
        self._activations += 1
        retired, finished = self._retired, self._finished
        if old is not None:
            retired = [*retired, old]
            finished = [*finished, Finished(old.activation, old.path, old.offset, self._in_payload)]
        # Published together, without a call between: an exception thrown in leaves the old state or the new one.
        self._retired, self._finished, self._names_synced, self._segment = retired, finished, False, new
        if len(retired) > _MAPPED:  # a payload of gigabytes: what is mapped counts as this process's memory
            retired[-_MAPPED - 1].rest()
        self.unprepared = True
        self._wake()
        return new

    def _larger_or_smaller(self, need: int) -> Segment:
        """A new segment, of the size that is due; on a disk that has no room for it, one that just does."""
        try:
            return self._new_segment(max(self._next_size(), need))
        except OSError as error:
            if error.errno not in system.NO_ROOM:
                raise
            return self._new_segment(max(SMALLEST, need))

    def _next_size(self) -> int:
        return min(LARGEST, self._segment.size * 2) if self._segment is not None else SMALLEST

    def prepare(self) -> None:
        """Make the next segment ahead of need, away from the agent's thread.

        Not before the first one is half full: a hundred nearly idle children should cost little.
        """
        with self.lock:
            self.unprepared = False
            segment = self._segment
            if segment is None or self._prepared is not None:
                return
            if self._activations == 1 and segment.offset < segment.size // 2:
                return
            size = self._next_size()
        made = self._new_segment(size)
        with self.lock:
            if self._segment is not None and self._prepared is None:
                self._prepared = made
                return
        made.close()
        made.path.unlink(missing_ok=True)

    # --- durability and sealing ---------------------------------------------------------------------------------

    def sync(self) -> None:
        """Return when everything appended so far is on the disk. One call serves all threads that wait for it."""
        with self.lock:
            target = self._position()
        with self._sync_lock:
            if self._synced >= target:
                return
            with self.lock:
                self.dirty = False
                segment, retired, target = self._segment, list(self._retired), self._position()
                names_synced, self._names_synced = self._names_synced, True
            try:
                self._sync_files(retired, segment, names=not names_synced)
            except BaseException:
                self.dirty, self._names_synced = True, False
                raise
            self._synced = target

    def _sync_files(self, retired: list[Segment], segment: Segment | None, *, names: bool) -> None:
        for each in retired:
            each.sync()
            each.rest()
            with self.lock:
                self._retired = [one for one in self._retired if one is not each]
                self._held.append(each)  # open until it is sealed: whoever removes it, it can be put back
                let_go = self._held.pop(0) if len(self._held) > _HELD else None
            if let_go is not None:
                let_go.close()
        if segment is not None:
            segment.sync()
        if names and self.folder is not None:
            system.sync_file(self.folder.about)
            for path in (self.folder.path, self._home.journals, self._home.path):
                system.sync_folder(path)

    @property
    def count(self) -> int:
        """How many events were appended since this journal was opened."""
        segment = self._segment
        return segment.n if segment is not None else 0

    def _position(self) -> Position:
        segment = self._segment
        return Position(segment.activation, segment.offset) if segment is not None else record.START

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
            return Written(self._position(), [*self._finished, here], self.writer, self.folder)

    def discard(self, writer: str, sealed: Position) -> Iterator[Path]:
        """Unlink the finished segments that lie wholly before a sealed position; yields each one's path after."""
        with self.lock:
            if writer != self.writer:  # let go meanwhile: whoever adopts that one unlinks its files
                return
            done = [each for each in self._finished if each.activation < sealed.activation]
            self._finished = [each for each in self._finished if each.activation >= sealed.activation]
            let_go = [each for each in self._held if each.activation < sealed.activation]
            self._held = [each for each in self._held if each.activation >= sealed.activation]
        for held in let_go:
            held.close()
        for each in done:
            each.path.unlink(missing_ok=True)
            yield each.path

    def remove(self, sealed: Position | None = None) -> bool:
        """The journal goes, folder and all, if everything is sealed up to here; False where something came after."""
        return self._let_go(remove_folder, sealed)

    def release(self) -> None:
        """Leave the journal as it is for another process to adopt. A later append opens a new one."""
        self._let_go(lambda _folder: None, None)

    def _let_go(self, then: Callable[[JournalFolder], None], sealed: Position | None) -> bool:
        with self._sync_lock, self.lock:
            if sealed is not None and (sealed != self._position() or self._nested or self._busy):
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

    def _files(self) -> list[Segment]:
        return [*self._held, *self._retired, *filter(None, (self._segment, self._prepared))]

    def is_inside(self) -> bool:
        """Whether this very thread is inside an append: a handler that is must not wait, others wait for it."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            return self._busy
        finally:
            self.lock.release()

    def before_fork(self) -> None:
        """No append is under way at the moment of a fork."""
        self.lock.acquire()

    def after_fork(self) -> None:
        """Go on."""
        self.lock.release()

    def in_child(self) -> None:
        """A forked child: close what was inherited, unlock nothing (the lock is the parent's), start anew."""
        held, segments = self._claim, self._files()
        self._forget()
        for each in segments:
            with contextlib.suppress(OSError, ValueError):
                each.close()
        if held is not None:
            held.release()


def _encoded_slowly(error: Exception, kind: type[Event], fields: dict[str, Any], *, references: bool) -> Encoded:
    if is_thrown_in(error):
        raise error
    event = kind(**{name: each for name, each in fields.items() if name != "kind"})
    return encode_slowly(event, references=references)
