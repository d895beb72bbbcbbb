"""The locks that processes share, waited for, but not for ever; whoever is in the way is named.

A process may be stopped while it holds one (SIGSTOP, a debugger, a frozen container). Nobody can take the lock from it,
so those who wait give up after a while and say who it is: what they meant to seal stays in their journals meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.errors import StoreUnavailable
from trackway.store import forks, system

PATIENCE: Final = 60.0
"""Seconds; the longest that anybody holds one on purpose is far less."""

_PATIENCE_WITH_THE_STOPPED: Final = 2.0
_LOOK_EVERY: Final = 0.5
_SHORTEST: Final = 0.0005
_LONGEST: Final = 0.02


class Holder(NamedTuple):
    """The process that holds a lock, and since when (UTC nanoseconds)."""

    pid: int
    since: int
    stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid}" + (", which is stopped" if self.stopped else "")


@contextlib.contextmanager
def held(path: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """The lock of this file, ours inside; False where another has it for longer than we wait, or a fork is waiting."""
    descriptor = system.open_lock(path)
    try:
        got = _take(descriptor, path, patience)
        if got:
            with contextlib.suppress(OSError):
                os.utime(descriptor)  # when it was taken, for whoever finds it held
        yield got
    finally:
        # One call into C, nothing to interrupt: a lock that leaks here locks us out for ever.
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience: float) -> bool:
    begun = looked = time.monotonic()
    pause = _SHORTEST
    while not system.lock(descriptor, exclusive=True, wait=False):
        now = time.monotonic()
        if now - begun >= patience or forks.is_wanted():
            return False
        if now - looked >= _LOOK_EVERY:
            looked, holder = now, holder_of(path)
            if holder is not None and holder.stopped and now - begun >= _PATIENCE_WITH_THE_STOPPED:
                return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
    return True


def in_the_way(path: Path) -> StoreUnavailable:
    """Why a lock was not to be had, and what to do."""
    holder = holder_of(path)
    if holder is None:
        return StoreUnavailable(f"{path} is held by another process", hint="see `trackway doctor`", path=path)
    hint = f"kill -CONT {holder.pid} lets it go on" if holder.stopped else "wait for it, or end it"
    return StoreUnavailable(f"{path} is held by {holder}", hint=hint, path=path, pid=holder.pid)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock of a file, as far as this system tells; for display, numbers are reused."""
    try:
        there = path.stat()
        listed = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    place = f"{os.major(there.st_dev):02x}:{os.minor(there.st_dev):02x}:{there.st_ino}"
    for line in listed.splitlines():  # "7: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; "->" marks one that waits
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == place and words[4].isdigit() and words[4] != "0":
            return Holder(int(words[4]), there.st_mtime_ns, is_stopped(int(words[4])))
    return None


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped or being traced; False where nobody can tell."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return said.rpartition(")")[2].split()[:1] in (["T"], ["t"])
