"""A lock that a forked child gets fresh: the thread that held it in the parent does not exist there."""

from __future__ import annotations

import os
import threading
import weakref


class ForkSafeLock:
    """A re-entrant lock, free again in a forked child. What it protects must be rebuilt there by whoever uses it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()


def _renew_all() -> None:
    for each in list(_locks):
        each._renew()  # noqa: SLF001  the hook is the lock's own


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
