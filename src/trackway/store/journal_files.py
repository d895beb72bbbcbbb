"""The files of one process's journal: claimed, made ahead of need, taken into use, synced, unlinked once sealed.

One lock guards the state, another the syncing, which must not hold up an append. A segment stays open until it is
sealed: whoever removes it, it can be put back (``store/restore.py``).

Invariants: a writer's name is never used twice; the lock file is locked from before the folder has its name until the
process dies or lets go; the order of activations is the order of writing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from trackway.store import forks, record, system
from trackway.store.claim import Claim, claim, remove_folder
from trackway.store.home import Home, JournalFolder
from trackway.store.record import RECORD_HEADER, Position
from trackway.store.segment import LARGEST, SMALLEST, AppendedSegment, MappedSegment, Segment

_MAPPED: Final = 2
_HELD: Final = 16  # of those that are on the disk and wait to be sealed: usually there are two or three


class Finished(NamedTuple):
    """A segment no longer written to."""

    activation: int
    path: Path
    end: int
    joined: bool | None = None
    """Whether a payload goes on in the next one; None where nobody remembers."""


class JournalFiles:
    """What a journal has on the disk, and where it is written."""

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
        self._in_payload = False
        self._segment: Segment | None = None
        self._prepared: Segment | None = None
        self._retired: list[Segment] = []
        self._held: list[Segment] = []
        self._finished: list[Finished] = []
        self._numbers = itertools.count(1)
        self._activations = 0
        self._claim: Claim | None = None

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

    # --- on the disk, and gone ----------------------------------------------------------------------------------

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
            with contextlib.suppress(FileNotFoundError):  # removed: it says whose this is, and holds up nothing
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

    def _files(self) -> list[Segment]:
        return [*self._held, *self._retired, *filter(None, (self._segment, self._prepared))]

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
