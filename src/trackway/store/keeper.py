"""The thread beside the agent: makes segments ahead of need, syncs ten times a second, seals about once a second.

It only ever does what the agent's thread need not wait for. When it dies with the process, nothing is lost: the
journal has it all. It starts with the first append and holds no lock while it waits.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from trackway.store.journal import Journal
from trackway.store.restore import Restored, restore
from trackway.store.sealer import Sealed, Sealer

SYNC_EVERY: Final = 0.1
SEAL_EVERY: Final = 1.0
ADOPT_EVERY: Final = 5.0
SAY_AFTER: Final = 10.0
_BACKLOG: Final = 16_000
_LINGER: Final = 10
"""How often it looks in vain before it sleeps until it is woken."""
_GO: Final = True
_STOP: Final = False


class Keeper:
    """Looks after one journal."""

    def __init__(
        self,
        journal: Journal,
        sealer: Sealer,
        *,
        on_trouble: Callable[[Exception], None],
        on_sealed: Callable[[Sealed], None],
        on_restored: Callable[[Restored], None] = lambda _found: None,
    ) -> None:
        self._journal = journal
        self._sealer = sealer
        self._on_restored = on_restored
        self._on_trouble = on_trouble
        self._on_sealed = on_sealed
        # Unlike a threading.Event, SimpleQueue.put may be re-entered: append calls it, and so may a signal handler.
        self._wakes: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._missed = False
        self._asleep = True
        self._sealed_n = 0
        self._last_sync = self._last_seal = self._last_adopt = 0.0
        self._waiting_since: float | None = None

    def wake(self) -> None:
        """There is something to do; may be called from anywhere.

        To wake a thread is a system call, on the agent's time. While this one looks ten times a second it is left to,
        but for the next segment, which is wanted soon.
        """
        if self._asleep or self._journal.unprepared:
            self._wakes.put(_GO)

    def start(self) -> None:
        """Begin, once."""
        if self._thread is None:
            thread = threading.Thread(target=self._loop, name="trackway-keeper", daemon=True)
            thread.start()
            self._thread = thread

    def stop(self) -> None:
        """Finish what is being done and end."""
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            self._wakes.put(_STOP)
            thread.join()

    def _loop(self) -> None:
        journal = self._journal
        waiting: float | None = None
        in_vain = 0
        while self._woken(waiting):
            self._asleep = False
            try:
                self._tick(journal)
                self._missed = False
                in_vain = 0 if journal.dirty or journal.count > self._sealed_n else in_vain + 1
                self._asleep = in_vain > _LINGER
                # Dirty since we looked, and nobody woke us as we were awake: said first, looked at second.
                waiting = None if self._asleep and not journal.dirty else SYNC_EVERY
            except Exception as error:  # noqa: BLE001  reported and tried again; the journal keeps everything meanwhile
                waiting = self._after_trouble(error)

    def _after_trouble(self, error: Exception) -> float:
        """Say it, and how long to wait; a file that is gone is said if the next look does not put it back."""
        missed_before, self._missed = self._missed, isinstance(error, (FileNotFoundError, NotADirectoryError))
        if self._missed and not missed_before:
            return SYNC_EVERY
        self._on_trouble(error)
        return SEAL_EVERY

    def _woken(self, timeout: float | None) -> bool:
        """Wait; then take all wakes at once. False is the word to stop."""
        try:
            go_on = self._wakes.get(timeout=timeout)
            while go_on:
                go_on = self._wakes.get_nowait()
        except queue.Empty:
            return True
        return False

    def _tick(self, journal: Journal) -> None:
        found = restore(journal)
        if found is not None:
            self._on_restored(found)
        # Without room the agent's thread tries for a smaller one when it must; what makes room comes next.
        with contextlib.suppress(OSError):
            journal.prepare()
        now = time.monotonic()
        if journal.dirty and now - self._last_sync >= SYNC_EVERY:
            journal.sync()
            self._last_sync = now
        backlog = journal.count - self._sealed_n
        if backlog >= _BACKLOG or (backlog and now - self._last_seal >= SEAL_EVERY):
            count, (target, _, writer, _) = journal.count, journal.written()
            # Not long: the next sync must not wait for whoever holds the lock.
            done = self._sealer.seal(journal, patience=SYNC_EVERY)
            if self._sealer.position(writer) >= target:
                self._sealed_n = count
            elif done == Sealed():
                self._wait_longer(time.monotonic())
                return
            self._last_seal, self._waiting_since = time.monotonic(), None
            if now - self._last_adopt >= ADOPT_EVERY:
                self._last_adopt = now
                done = done.plus(self._sealer.adopt(journal.writer, patience=SYNC_EVERY))
            self._on_sealed(done)

    def _wait_longer(self, now: float) -> None:
        """Somebody else holds the lock: tried again at the next look, and said once it takes long."""
        if self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since >= SAY_AFTER:
            self._waiting_since = now
            self._on_trouble(self._sealer.in_the_way())
