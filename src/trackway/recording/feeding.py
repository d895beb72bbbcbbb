"""Whoever wants to know that something was sealed is told, beside the agent: the plug-in point ``trackway.feeds``.

A feed is called with the home, the store and a function that says when it is enough. In a thread of its own, so that
the keeper goes on; only once a good deal was sealed, only now and then, and only where the home has an index at all: a
recorder that nobody searches loads nothing. One that fails is not called again. No fork happens while one is at work.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from trackway.store import forks
from trackway.store.base import Store
from trackway.store.home import Home

EVERY: Final = 1_000
"""Events; fewer are sooner indexed by whoever asks."""

PAUSE: Final = 5.0
_LONGEST: Final = 2.0
_PATIENCE: Final = 0.1
_RANK: Final = 0  # before what a sealer takes: a feed reads the store, it never seals


class Feeding:
    """Calls the feeds of one recorder."""

    def __init__(self, home: Home, store: Store) -> None:
        self._home = home
        self._store = store
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._count = 0
        self._next = self._until = 0.0
        self._given_up = False
        forks.watch(self, _RANK)

    def sealed(self, events: int) -> None:
        """So many more are in the store. Called by the keeper; never raises, never waits."""
        self._count += events
        now = time.monotonic()
        if self._count < EVERY or now < self._next or self._given_up or self._is_at_work():
            return
        self._count, self._next = 0, now + PAUSE
        if self._home.search.is_dir():
            thread = threading.Thread(target=self._feed, name="trackway-feed", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread to be had, or the interpreter is ending
                self._given_up = True
            else:
                self._thread = thread

    def stop(self) -> None:
        """No more; what is under way ends soon, and is not waited for."""
        self._given_up = True
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _feed(self) -> None:
        from trackway import plugins

        with self._lock:
            self._until = time.monotonic() + _LONGEST
            try:
                for each in plugins.names("feeds"):
                    plugins.load("feeds", each)(self._home, self._store, self._is_enough)
            except Exception:  # noqa: BLE001  what is fed is derived, and catches up by itself: nobody has to know
                self._given_up = True

    def _is_enough(self) -> bool:
        return self._given_up or forks.is_wanted() or time.monotonic() > self._until

    # --- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """None is at work: it would leave its locks to the child."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on."""
        self._lock.release()

    def in_child(self) -> None:
        """The thread is the parent's."""
        self._lock = threading.Lock()
        self._thread = None
        self._count = 0
