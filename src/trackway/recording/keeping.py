"""The recorder's other half: from the journal into the store, beside the agent while it works and once it is done.

Nothing here raises into an agent. What cannot be sealed now stays in the journal, and the next recorder adopts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from trackway.errors import JournalRemoved, RecorderClosed, TrackwayError
from trackway.recording.feeding import Feeding
from trackway.recording.losses import Losses
from trackway.schema import ids
from trackway.schema.outside import is_thrown_in
from trackway.store.base import Store
from trackway.store.journal import Journal
from trackway.store.keeper import Keeper
from trackway.store.restore import Restored, restore, unsealed
from trackway.store.sealer import Sealed, Sealer

_TRIES: Final = 5


class Keeping:
    """Wakes the keeper, seals, and winds down; the recorder makes what these are about."""

    store: Store
    clock: Callable[[], int]
    _closed: bool
    _feeding: Feeding
    _journal: Journal
    _losses: Losses
    _sealer: Sealer
    _starting: AbstractContextManager[Any]
    _keeper: Keeper | None = None
    _keeper_pid = 0

    def _wake(self) -> None:
        """Called by the journal when there is something to do; the first time in a process, this starts the keeper."""
        keeper = self._keeper
        if keeper is None or self._keeper_pid != os.getpid():
            with self._starting:
                if self._keeper is None or self._keeper_pid != os.getpid():
                    self._keeper_pid = os.getpid()
                    self._keeper = keeper = Keeper(
                        self._journal, self._sealer, on_trouble=self._on_trouble, on_sealed=self._on_kept,
                        on_restored=self._on_restored,
                    )  # fmt: skip
                    self._start(keeper)
        if keeper is not None:
            keeper.wake()

    def _start(self, keeper: Keeper) -> None:
        try:
            keeper.start()
        except RuntimeError as error:  # no thread to be had, or the interpreter is ending: flush and close still seal
            self._on_trouble(error)

    def _on_trouble(self, error: Exception) -> None:
        waits = (
            "" if isinstance(error, JournalRemoved) else "sealing waits, everything is kept in the journal meanwhile: "
        )
        self._losses.trouble(f"{waits}{said(error)}")

    def _on_restored(self, found: Restored) -> None:
        self._losses.trouble(str(found))

    def _put_back(self) -> None:
        """The journal's files, where somebody removed them: only what has a name outlives this process."""
        found = restore(self._journal)
        if found is not None:
            self._on_restored(found)

    def _on_kept(self, done: Sealed) -> None:
        """The keeper has sealed: beside the agent, so whoever feeds on it may be told."""
        self._on_sealed(done)
        if done.events:
            self._feeding.sealed(done.events)

    def _on_sealed(self, done: Sealed) -> None:
        if getattr(self.store, "replaced", False):
            where = self.store.key.removeprefix("sqlite:")
            lost = "what was in it went with it, the rest is sealed into the new one"
            self._losses.trouble(f"{where} was removed or replaced while recording: {lost}")
        if done.quarantined:
            self._losses.trouble(
                f"{done.quarantined} record(s) could not be sealed and were put aside: trackway doctor"
            )

    # --- ending -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return when everything recorded so far is in the store.

        From a signal handler that interrupted a recording call this does nothing: that call must finish first.
        """
        self._check_open()
        if self._journal.is_inside():
            return
        self._put_back()
        self._journal.sync()
        self._on_sealed(self._seal_all())

    def _seal_all(self) -> Sealed:
        """The dead first: what they recorded came before."""
        done = self._sealer.adopt(self._journal.writer)
        for _ in range(_TRIES - 1):
            try:
                return done.plus(self._sealer.seal_all(self._journal))
            except FileNotFoundError as error:  # removed since we looked, by one that sealed it and took us for dead
                if is_thrown_in(error):
                    raise
                self._put_back()
        return done.plus(self._sealer.seal_all(self._journal))

    def close(self) -> None:
        """Seal everything, remove the journal, let go of the store. Events after this are misuse."""
        if not self._closed:
            self._closed = True
            self._wind_down()

    def _wind_down(self) -> None:
        """Seal and let go; what cannot be sealed now stays in the journal and is adopted by the next recorder."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None and self._keeper_pid == os.getpid():
            keeper.stop()
        self._feeding.stop()
        if self._journal.folder is not None:
            self._let_go()
        self._losses.tell_all(self.clock())
        self.store.close()

    def _let_go(self) -> None:
        try:
            self._put_back()
            self._seal_and_remove()
            checkpoint = getattr(self.store, "checkpoint", None)
            if checkpoint is not None:
                checkpoint()
        except Exception as error:  # noqa: BLE001  at the end of a program there is nobody left to catch it
            self._on_trouble(error)
            if isinstance(error, JournalRemoved):
                for episode in unsealed(self._journal, self._sealer.position(self._journal.writer)):
                    self._losses.add(ids.from_bytes(episode), error)
            self._journal.release()

    def _seal_and_remove(self) -> None:
        """Another thread may still record: the journal goes only when nothing came after what was sealed."""
        for _ in range(_TRIES):
            self._on_sealed(self._seal_all())
            if self._journal.remove(self._sealer.position(self._journal.writer)):
                return
        self._journal.release()  # somebody records without pause: the next recorder adopts the rest

    def _check_open(self) -> None:
        if self._closed:
            raise RecorderClosed("this recorder is closed", hint="make a new Recorder, or close it later")


def said(error: Exception) -> str:
    """An error in one line: ours as it is, others with their name."""
    return str(error) if isinstance(error, TrackwayError) else f"{type(error).__name__}: {error}"
