"""What a fork does to journals: the parent holds them still for the moment of it, the child lets go of them.

A child must not inherit a journal in the middle of a roll, nor keep its parent's lock file open: an inherited lock
outlives the process that took it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something with a lock that is held over a fork, and that is told when it wakes up in the child."""

    lock: threading.RLock

    def in_child(self) -> None:
        """Let go of what was inherited."""
        ...


_known: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: dict[int, list[Forkable]] = {}
_registered = False


def watch(each: Forkable) -> None:
    """Have it held still and told, from now on."""
    global _registered  # noqa: PLW0603  the interpreter keeps hooks for ever: once per process
    _known.add(each)
    if not _registered and hasattr(os, "register_at_fork"):
        _registered = True
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _before() -> None:
    # By thread, since several may fork at once; in one order, or two of them wait for each other for ever.
    held = _held[threading.get_ident()] = sorted(_known, key=id)
    for each in held:
        each.lock.acquire()


def _after_in_parent() -> None:
    for each in _held.pop(threading.get_ident(), ()):
        each.lock.release()


def _after_in_child() -> None:
    held = _held.pop(threading.get_ident(), ())
    _held.clear()
    for each in held:
        each.in_child()
