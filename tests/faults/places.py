"""Places where things go wrong for real: a disk of a few megabytes, a read-only mount, system calls that fail.

A test names a function of its own module, a *scene*; it is called in a process of its own, in that place, and what it
returns comes back. The kernel makes the trouble, never a patch: a scene holds trackway as users have it.
"""

import contextlib
import errno
import fcntl
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trackway.store.verify import verify

ROOT = Path(__file__).resolve().parents[2]
_PLAY = """
import importlib, json, sys
from pathlib import Path
module, name, folder, given = sys.argv[1:]
print(json.dumps(getattr(importlib.import_module(module), name)(Path(folder), **json.loads(given))))
"""


class Played(NamedTuple):
    """How a scene ended: what it returned (None where it died), what was said on stderr, the exit code."""

    value: Any
    said: str
    code: int

    def lines(self) -> list[str]:
        """What trackway said, line by line."""
        return [each for each in self.said.splitlines() if each.startswith("trackway: ")]


def play(
    scene: Callable[..., Any], folder: Path, *, mount: str = "", inject: tuple[str, ...] = (), **given: Any
) -> Played:
    """Call a scene in a process of its own: ``mount`` prepares the place, ``inject`` makes system calls fail."""
    command = [sys.executable, "-c", _PLAY, scene.__module__, scene.__name__, str(folder), json.dumps(given)]
    if inject:
        needs_strace()
        command = ["strace", "-f", "-qq", "-o", os.devnull, *inject, *command]
    if mount:
        needs_mounts()
        command = ["unshare", "-rm", "sh", "-c", f"{mount} && exec {shlex.join(command)}"]
    environ = os.environ | {"TRACKWAY_HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False)
    value = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    return Played(value, done.stderr, done.returncode)


def small_disk(folder: Path, size: str) -> str:
    """A mount: a disk of that size, in memory, for one scene."""
    return f"mount -t tmpfs -o size={size} small {shlex.quote(str(folder))}"


def calls(names: str, fault: str, *, when: str = "", path: Path | None = None) -> tuple[str, ...]:
    """An injection: these calls fail or wait, from the ``when``th on, on one path or everywhere."""
    behind = f":when={when}" if when else ""
    on = ("-P", str(path)) if path is not None else ("--seccomp-bpf",)
    return (*on, "-e", f"trace={names}", "-e", f"inject={names}:{fault}{behind}")


# --- what this machine must have ------------------------------------------------------------------------------------


@functools.cache
def _works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0


def needs_mounts() -> None:
    """Skip where nobody may mount, not even for himself."""
    if not _works("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"):
        pytest.skip("no private mounts here (unshare -rm)")


def needs_strace() -> None:
    """Skip where no process may be traced."""
    if not _works("strace", "-f", "--seccomp-bpf", "-o", os.devnull, "true"):
        pytest.skip("strace is missing or not allowed")


# --- inside a scene -------------------------------------------------------------------------------------------------


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Fill the disk to the last byte, but for ``leave``; returns the file that does it, to be removed."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
        if leave:
            file.truncate(max(0, file.tell() - leave))
    return ballast


@contextlib.contextmanager
def full(folder: Path, *, leave: int = 0) -> Iterator[None]:
    """A disk that is full for a while."""
    ballast = fill(folder, leave=leave)
    try:
        yield
    finally:
        ballast.unlink()


def handles() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextlib.contextmanager
def nobody_seals(home: Path) -> Iterator[None]:
    """What is recorded meanwhile stays in the journal: somebody else holds the sealers' lock."""
    home.mkdir(exist_ok=True)
    descriptor = os.open(home / "seal.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def is_full(error: OSError) -> bool:
    """Whether that is what it says."""
    return error.errno == errno.ENOSPC


def said_in(store: Any, episode: str) -> list[str]:
    """What the user said in an episode, in order: scenes number it, so that a gap or a double is seen."""
    return [each.content for each in store.events(episode) if each.kind == "user"]


def is_sound(store: Any) -> bool:
    """Whether every hash of a store holds."""
    return verify(store.store, store.home).is_sound


def compared(kept: list[int], heard: list[int]) -> dict[str, int]:
    """What was acknowledged beside what is read back, counted."""
    return {"acknowledged": len(kept), "missing": len(set(kept) - set(heard)), "doubled": len(heard) - len(set(heard))}
