"""What a folder is good for: asked of the file system by doing there, once and small, what recording does.

One file is made, filled, mapped, locked, synced and removed again. Everything is a fact here; what to make of it is
the doctor's to say.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.store import system

NAME: Final = ".doctor"
_SIZE: Final = 4096


class Place(NamedTuple):
    """A folder's disk. ``refused`` is why nothing can be written; the three below it are None where nobody knows."""

    kind: str
    free: int
    files: int | None
    read_only: bool
    refused: OSError | None = None
    maps: bool | None = None
    locks: bool | None = None
    sync_seconds: float | None = None


def look_at(folder: Path) -> Place:
    """Everything there is to know of a folder that exists."""
    disk = os.statvfs(folder)
    place = Place(
        kind=kind_of(folder), free=disk.f_bavail * disk.f_frsize, files=disk.f_favail if disk.f_files else None,
        read_only=bool(disk.f_flag & os.ST_RDONLY),
    )  # fmt: skip
    if place.read_only:
        return place
    try:
        with _file(folder / NAME) as descriptor:
            return _try_out(place, descriptor)
    except OSError as error:
        return place._replace(refused=error)


@contextlib.contextmanager
def _file(path: Path) -> Iterator[int]:
    path.unlink(missing_ok=True)  # left by one that was killed
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, system.FILE_MODE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def _try_out(place: Place, descriptor: int) -> Place:
    os.pwrite(descriptor, b"\1" * _SIZE, 0)
    locks = system.try_lock(descriptor, exclusive=True, wait=False) is not None
    begun = time.monotonic()
    system.sync(descriptor)
    took = time.monotonic() - begun
    return place._replace(maps=_maps(descriptor), locks=locks, sync_seconds=took)


def _maps(descriptor: int) -> bool | None:
    if not system.can_map():
        return None
    try:
        os.posix_fallocate(descriptor, 0, _SIZE)
        system.map_file(descriptor, _SIZE).close()
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) not in system.NO_MAPPING:
            raise
        return False
    return True


def kind_of(folder: Path) -> str:
    """The file system's name, ``ext4`` or ``nfs4``; empty where this system does not say."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real, best, kind = os.path.realpath(folder), "", ""
    for line in mounts:  # "36 35 98:0 /root /mount/point rw,noatime shared:1 - ext3 /dev/root rw"
        before, _, after = line.partition(" - ")
        point = _unescaped(before.split()[4])
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, after.split()[0]
    return kind


def _unescaped(point: str) -> str:
    for code in ("\\040", "\\011", "\\012", "\\134"):
        point = point.replace(code, chr(int(code[1:], 8)))
    return point
