"""What a fork does to recorders: the parent holds everything still for the moment of it, the child starts anew.

A child must not inherit a journal in the middle of a roll, a lock file that would keep its parent alive, a held
``seal.lock``, nor an open database: POSIX locks are not inherited, and SQLite in the child would believe it has them.
So before a fork each watched object is held, in the order of its rank, and let go of after.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol

SEALER, STORE, JOURNAL = 1, 2, 3
"""Ranks: the order in which a thread that seals takes these locks, so that a forking one does not wait for it."""


class Forkable(Protocol):
    """Something that is held over a fork."""

    def before_fork(self) -> None:
        """Take the lock, and close what a child must not have."""
        ...

    def after_fork(self) -> None:
        """In the parent: let go of the lock."""
        ...

    def in_child(self) -> None:
        """In the child: let go of what was inherited, with a lock of its own."""
        ...


_watched: dict[int, tuple[int, weakref.ref[Any]]] = {}
_renewed: dict[tuple[int, str], weakref.ref[Any]] = {}
_held: dict[int, list[Any]] = {}
_registered = False


def is_wanted() -> bool:
    """Whether a thread waits to fork: whoever holds a lock for long lets go of it at the next good place."""
    return bool(_held)


def watch(each: Forkable, rank: int) -> None:
    """Have it held still and told, from now on."""
    key = id(each)
    _watched[key] = rank, weakref.ref(each, lambda _: _watched.pop(key, None))
    _register()


def lock_of(owner: object, name: str) -> threading.RLock:
    """A re-entrant lock for ``owner.name`` that is a fresh one in a forked child: who held it does not exist there."""
    key = id(owner), name
    _renewed[key] = weakref.ref(owner, lambda _: _renewed.pop(key, None))
    _register()
    return threading.RLock()


def _register() -> None:
    global _registered  # noqa: PLW0603  the interpreter keeps hooks for ever: once per process
    if not _registered and hasattr(os, "register_at_fork"):
        _registered = True
        os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def _before() -> None:
    # The list is made in one go, whatever other threads add meanwhile; by thread, since several may fork at once.
    found = [(rank, id(each), each) for rank, ref in list(_watched.values()) if (each := ref()) is not None]
    held = _held[threading.get_ident()] = []
    for _, _, each in sorted(found, key=lambda one: one[:2]):
        each.before_fork()
        held.append(each)


def _after_in_parent() -> None:
    for each in reversed(_held.pop(threading.get_ident(), [])):
        each.after_fork()


def _after_in_child() -> None:
    held = _held.pop(threading.get_ident(), [])
    _held.clear()
    for (_, name), ref in list(_renewed.items()):
        owner = ref()
        if owner is not None:
            setattr(owner, name, threading.RLock())
    for each in held:
        each.in_child()
