"""From journals into the store, exactly once, whatever dies in between.

    hold seal.lock → read from the sealed position → one transaction: events + new position → unlink what lies before it

A crash before the commit leaves everything in the journal; after it, the position says what to skip. The batch starts
where the stored position stands or the store refuses it, so even two sealers at once could not double an event.
Journals of the dead are adopted by whoever holds the lock. A record that cannot be sealed is put aside and counted, and
never stops the rest.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from trackway.errors import StoreTrouble, StoreUnavailable
from trackway.schema.outside import is_thrown_in
from trackway.store import forks, record, system, tail
from trackway.store.base import Batch, Store
from trackway.store.claim import remove_folder
from trackway.store.holding import PATIENCE, held, in_the_way
from trackway.store.home import Home
from trackway.store.journal import Journal, Written
from trackway.store.journal_files import Finished
from trackway.store.record import EPISODE, EVENT, SEGMENT_HEADER, Damage, Position, RawRecord, Record
from trackway.store.tail import Piece, WriterFolder

_NOBODY: Final = bytes(EPISODE)
_SHORT: Final = 0.1
FAILPOINTS: Final = (
    "seal:locked", "seal:before_store", "seal:stored", "seal:unlinked", "quarantine:written",
    "adopt:found", "adopt:before_store", "adopt:stored", "adopt:removed",
)  # fmt: skip
"""Where a test may kill the process; each name is passed to ``failpoint`` when that point is reached."""


class Sealed(NamedTuple):
    """What one pass did."""

    events: int = 0
    quarantined: int = 0
    adopted: int = 0
    torn: int = 0

    def plus(self, other: Sealed) -> Sealed:
        """Both together."""
        return Sealed(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class _Unit(NamedTuple):
    """An event, and where the parts of its payloads are: they may be more than is good to hold."""

    piece: Piece
    parts: list[Piece]
    event: RawRecord
    end: Position

    def payload(self) -> Iterator[RawRecord]:
        """The parts, each read when it is wanted."""
        for each in self.parts:
            yield from record.scan(tail.read(each), each.start).records

    def records(self) -> Iterator[RawRecord]:
        """All of it."""
        yield from self.payload()
        yield self.event


class Sealer:
    """Seals one process's journal and adopts those of dead ones."""

    def __init__(self, home: Home, store: Store, failpoint: Callable[[str], None] = lambda _name: None) -> None:
        self._home = home
        self._store = store
        self._positions: dict[str, Position] = {}
        self._lock = threading.RLock()
        self._busy = False
        self._in_the_way = False  # the lock was waited for in vain: who waited once does not wait as long again
        self.failpoint = failpoint
        forks.watch(self, forks.SEALER)

    @contextlib.contextmanager
    def _holding(self, patience: float | None) -> Iterator[bool]:
        """The sealers' lock; False where it is not to be had within a given patience. Without one, that is raised."""
        self._busy = True  # before the wait: a signal handler may come while we wait
        wait = min(PATIENCE if patience is None else patience, _SHORT if self._in_the_way else PATIENCE)
        try:
            with held(self._home.seal_lock, wait) as got:
                if got:
                    self._in_the_way = False
                    self.failpoint("seal:locked")
                elif patience is None and not forks.is_wanted():
                    self._in_the_way = True
                    raise self.in_the_way()
                yield got
        finally:
            self._busy = False

    def in_the_way(self) -> StoreUnavailable:
        """Who holds the sealers' lock, as an error that says what to do."""
        return in_the_way(self._home.seal_lock)

    def position(self, writer: str) -> Position:
        """How far this sealer has sealed a writer's journal."""
        return self._positions.get(writer, record.START)

    def before_fork(self) -> None:
        """No seal is under way at the moment of a fork."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on."""
        self._lock.release()

    def in_child(self) -> None:
        """A lock of its own; positions are another writer's from now on."""
        self._lock = threading.RLock()

    def seal_all(self, journal: Journal) -> Sealed:
        """Everything this process has appended so far, into the store; in more than one go where a fork is waiting."""
        target, _, writer, _ = journal.written()
        done = self.seal(journal)
        while self.position(writer) < target and journal.writer == writer and not self._busy:
            threading.Event().wait(0.001)
            done = done.plus(self.seal(journal))
        return done

    def seal(self, journal: Journal, patience: float | None = None) -> Sealed:
        """What this process has appended so far, into the store, or as much of it as there is time for."""
        with self._lock:
            # Busy under our own lock: a signal handler inside a seal. The outer one goes on when it is done.
            if self._busy or self._is_sealed(journal.written()):
                return Sealed()
            with self._holding(patience) as got:
                return self._seal_own(journal) if got else Sealed()

    def _seal_own(self, journal: Journal) -> Sealed:
        written = journal.written()
        if not written.segments or written.folder is None or self._is_sealed(written):
            return Sealed()
        about = tail.read_about(written.folder)
        writer = WriterFolder(written.writer, written.folder, about, alive=True)
        done = self._seal_segments(writer, written.segments, "seal")
        for _ in journal.discard(writer.writer, self.position(writer.writer)):
            self.failpoint("seal:unlinked")
        return done

    def _is_sealed(self, written: Written) -> bool:
        return written.position == self.position(written.writer)

    def adopt(self, own: str = "", patience: float | None = None) -> Sealed:
        """The journals of dead processes that recorded for this store; never this process's ``own``."""
        with self._lock:
            for unnamed in self._home.all_unnamed():
                if not system.is_locked(unnamed.lock):
                    remove_folder(unnamed)
            if self._busy or not self._dead(own):
                return Sealed()
            with self._holding(patience) as got:
                return self._adopt_all(own) if got else Sealed()

    def _dead(self, own: str) -> list[WriterFolder]:
        found = [each for each in tail.writers(self._home) if not each.alive and each.writer != own]
        return [each for each in found if tail.newer_version(each.folder) is None]

    def _adopt_all(self, own: str) -> Sealed:
        done = Sealed()
        for each in self._dead(own):
            if each.about["store"] == self._store.key:
                done = done.plus(self._adopt(each))
            elif each.about["store"].startswith("memory:"):
                remove_folder(each.folder)  # its store died with its process
        return done

    def _adopt(self, dead: WriterFolder) -> Sealed:
        self.failpoint("adopt:found")
        done = self._seal_segments(dead, tail.segments(dead.folder), "adopt")
        if system.is_locked(dead.folder.lock):  # it lives: its lock was removed, and it has put it back
            return done
        remove_folder(dead.folder)
        self.failpoint("adopt:removed")
        return done.plus(Sealed(adopted=1))

    def _seal_segments(self, writer: WriterFolder, segments: list[Finished], step: str) -> Sealed:
        done = Sealed()
        start = self._store.position(writer.writer)
        for pieces, end in _batches(segments, start):
            self.failpoint(f"{step}:before_store")
            done = done.plus(self._seal_batch(writer, pieces, start, end))
            self.failpoint(f"{step}:stored")
            start = end
            if step == "seal" and forks.is_wanted():
                break
        self._positions[writer.writer] = start
        return done

    def _seal_batch(self, writer: WriterFolder, pieces: list[Piece], start: Position, end: Position) -> Sealed:
        aside = _Aside(self, writer)
        records = _records(pieces, aside.take)
        if start == end:  # behind the last event of an adopted journal: an event that is there by now is not ours
            collections.deque(records, maxlen=0)
            return aside.count
        try:
            events = self._store.seal(Batch(records, writer.writer, writer.about, start, end))
        except (StoreTrouble, OSError):  # the place is in trouble, not the records: all of it stays in the journal
            raise
        except Exception as error:  # one record the store refuses must not stop the others
            if is_thrown_in(error) or self._store.position(writer.writer) != start:
                raise
            return self._around(writer, pieces, start, end)
        return aside.count.plus(Sealed(events=events))

    def _around(self, writer: WriterFolder, pieces: list[Piece], start: Position, end: Position) -> Sealed:
        """The way around a record that is refused: a piece at a time, halved until it stands alone."""
        aside = _Aside(self, writer)
        done = Sealed()
        waiting: list[Piece] = []
        for piece in pieces:
            units: list[_Unit] = []
            for raw in _records([piece], aside.take):
                if raw[0] & 0xFF == EVENT:
                    units.append(_Unit(piece, waiting, raw, Position(piece.activation, raw[3])))
                    waiting = []
                else:
                    waiting.append(piece._replace(start=raw[2], end=min(raw[3], piece.end)))
            if units:
                done = done.plus(self._halved(writer, units, start))
                start = units[-1].end
        if start < end:
            self._store.seal(Batch((), writer.writer, writer.about, start, end))
        return done.plus(aside.count)

    def _halved(self, writer: WriterFolder, units: list[_Unit], start: Position) -> Sealed:
        """All of them together; where that is refused, the first half and then the second."""
        records = itertools.chain.from_iterable(each.records() for each in units)
        try:
            return Sealed(events=self._store.seal(Batch(records, writer.writer, writer.about, start, units[-1].end)))
        except (StoreTrouble, OSError):
            raise
        except Exception as error:
            if is_thrown_in(error):
                raise
            if len(units) == 1:  # this is the one
                return self._refused(writer, units[0], start, f"{type(error).__name__}: {error}")
        middle = len(units) // 2
        first = self._halved(writer, units[:middle], start)
        return first.plus(self._halved(writer, units[middle:], units[middle - 1].end))

    def _refused(self, writer: WriterFolder, unit: _Unit, start: Position, reason: str) -> Sealed:
        done = self.quarantine(writer, unit.piece, Record(*unit.event), reason, unit.payload())
        self._store.seal(Batch((), writer.writer, writer.about, start, unit.end))
        return done

    def quarantine(
        self, writer: WriterFolder, piece: Piece, what: Record | Damage, reason: str, parts: Iterable[RawRecord] = ()
    ) -> Sealed:
        """Put bytes aside, with the reason and its payloads, on the disk before the position moves beyond them."""
        system.make_folder(self._home.quarantine)
        name = f"{writer.writer}-{piece.activation:06d}-{what.start:08d}"
        about: dict[str, Any] = {
            "writer": writer.about,
            "segment": piece.activation,
            "offset": what.start,
            "reason": reason,
        }
        if isinstance(what, Record):
            about.update(episode=what.episode.hex(), flags=what.flags, schema=what.schema)
        payloads: set[int] = set()
        for each in itertools.starmap(Record, parts):
            number, _, part = record.unpack_blob_part(each.body)
            system.write_file(self._home.quarantine / f"{name}.{number}.blob", part, more=number in payloads)
            payloads.add(number)
        about["payloads"] = sorted(payloads)
        system.write_file(self._home.quarantine / f"{name}.bin", what.body)
        system.write_file(self._home.quarantine / f"{name}.json", json.dumps(about, indent=1).encode())
        system.sync_folder(self._home.quarantine)
        self.failpoint("quarantine:written")
        return Sealed(quarantined=1)


class _Aside:
    """Damage met while a batch is read: put aside at once, before the batch is committed; torn ends only counted."""

    def __init__(self, sealer: Sealer, writer: WriterFolder) -> None:
        self._sealer = sealer
        self._writer = writer
        self.count = Sealed()

    def take(self, piece: Piece, damage: Damage) -> None:
        if damage.torn:
            self.count = self.count.plus(Sealed(torn=1))
        elif damage.body:
            reason = "the bytes are not what was written"
            self.count = self.count.plus(self._sealer.quarantine(self._writer, piece, damage, reason))


def _records(pieces: Iterable[Piece], on_damage: Callable[[Piece, Damage], None]) -> Iterator[RawRecord]:
    """The records of the pieces, read one file at a time; what is no record is handed to ``on_damage``."""

    def scanned() -> Iterator[list[RawRecord]]:
        for piece in pieces:
            stretch = tail.read(piece)
            found = record.scan(stretch, piece.start)
            for each in found.damage:
                on_damage(piece, each)
            # What a prune has overwritten is a record of nothing: a backup may meet it, by the links it holds.
            erased = _NOBODY in stretch
            yield [each for each in found.records if each[1][:EPISODE] != _NOBODY] if erased else found.records

    return itertools.chain.from_iterable(scanned())


def _batches(segments: list[Finished], start: Position) -> Iterator[tuple[list[Piece], Position]]:
    """Stretches that end behind an event, a segment's worth each: blob parts stay with the event they are for.

    What lies behind the last event of an adopted journal is looked at for damage, and not passed over: zeros, half a
    record or half a payload may be where a writer goes on that only seemed dead, since somebody removed its lock.
    """
    waiting: list[Piece] = []
    end = behind = start
    for segment in segments:
        activation, path, size, joined = segment
        low = start.offset if activation == start.activation else SEGMENT_HEADER
        if activation < start.activation or low >= size:
            continue
        end = start = Position(activation, size)  # never back: a segment listed twice is read once
        cut = _cut(segment, low)
        if cut is None:
            waiting.append(Piece(activation, path, low, size))
        else:
            cut = min(cut, size)  # a dying writer may not have come to the padding of its last record
            behind = Position(activation, cut)
            yield [*waiting, Piece(activation, path, low, cut)], behind
            waiting = [Piece(activation, path, cut, size)] if cut < size else []
        if joined is None:
            end = behind
    if any(tail.read(each).strip(b"\0") for each in waiting):
        yield waiting, end


def _cut(segment: Finished, low: int) -> int | None:
    """Where a segment can be cut without parting a payload from its event; None where nowhere."""
    if segment.joined is False:  # our own journal, and it knows
        return segment.end
    return _behind_last_event(tail.read(Piece(segment.activation, segment.path, low, segment.end)), low)


def _behind_last_event(stretch: bytes, start: int) -> int | None:
    walked = record.walk(stretch, start)
    if walked is None:  # not one unbroken chain of records: look at every byte
        walked = [(meta & 0xFF, end) for meta, _, _, end in record.scan(stretch, start).records]
    return max((end for kind, end in walked if kind == EVENT), default=None)
