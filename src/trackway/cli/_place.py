"""What the doctor says of a place: the disk under the home and the store, and this process's own limits.

Each finding is ``(level, what, where, do)``. A problem is what keeps events from being recorded or sealed; a note is
what will surprise somebody one day.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trackway.cli._size import size
from trackway.store import place as places
from trackway.store.home import Home
from trackway.store.place import Place
from trackway.store.segment import SMALLEST

Said = tuple[str, str, str, str]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What a system says where there is no room."""

_LITTLE_SPACE: Final = 200 * 1000 * 1000
_FEW_FILES: Final = 1000
_SLOW_SECONDS: Final = 0.1
_FEW_HANDLES: Final = 64
_SMALL_FILES: Final = 1 << 30
_LONGEST_STORE: Final = 500
"""Bytes of a path: SQLite's own buffer holds 512, and it adds ``-journal``."""

_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_NETWORKS: Final = (
    "nfs", "cifs", "smb", "9p", "afs", "ceph", "fuse.ceph", "glusterfs", "fuse.gluster", "fuse.sshfs", "lustre",
    "beegfs", "gpfs", "ocfs2", "fuse.s3fs", "fuse.rclone", "davfs", "ncpfs", "coda", "orangefs", "pvfs2", "virtiofs",
)  # fmt: skip
_ELSEWHERE: Final = "or name another place: TRACKWAY_HOME"


def home_place(home: Home, found: Place) -> Iterator[Said]:
    """The home's disk, and what this process may do."""
    where = str(home.path)
    real = os.path.realpath(home.path)
    if home.path.is_symlink():
        yield "note", f"the home is a link and leads to {real}", where, "a recorder stays where it led when it began"
    yield from _room(found, "home", where)
    yield from _writing(found, where)
    yield from _kind(found, "home", where)
    yield from _limits()


def store_place(path: Path, home: Home) -> Iterator[Said]:
    """The store's disk, where it is another than the home's; and whether SQLite can say its name."""
    length = len(os.fsencode(path))
    if length > _LONGEST_STORE:
        said = f"the store's path has {length} bytes, SQLite takes no more than {_LONGEST_STORE}"
        yield "problem", said, str(path), f"what is recorded waits in journals; use a shorter one, {_ELSEWHERE}"
    folder = path.parent
    try:
        if not folder.is_dir() or (home.path.is_dir() and folder.stat().st_dev == home.path.stat().st_dev):
            return
    except OSError:  # said where the store is opened
        return
    found = places.look_at(folder)
    yield from _room(found, "store", str(folder))
    yield from _kind(found, "store", str(folder))
    if found.read_only:
        yield "problem", "the store is on a read-only file system", str(folder), "what is recorded waits in journals"


def _room(found: Place, whose: str, where: str) -> Iterator[Said]:
    if found.free < _LITTLE_SPACE:
        said = f"only {size(found.free)} left on the disk of the {whose}"
        yield "problem", said, where, "make room: what finds none is lost, and counted"
    if found.files is not None and found.files < _FEW_FILES:
        said = f"only {found.files:,} more files can be made on the disk of the {whose} (inodes)"
        yield "problem", said, where, "remove some: what finds no room is lost, and counted"


def _writing(found: Place, where: str) -> Iterator[Said]:
    if found.read_only:
        yield "problem", "the home is on a read-only file system", where, f"mount it to write, {_ELSEWHERE}"
        return
    if found.refused is not None:
        said = f"nothing can be written into the home: {found.refused.strerror}"
        do = "make room" if found.refused.errno in FULL else "see its owner, mode and disk"
        yield "problem", said, where, f"{do}, {_ELSEWHERE}"
        return
    if found.locks is False:
        said = "there are no locks here: which process lives cannot be told, what dead ones left is not adopted"
        yield "problem", said, where, f"use a local disk, {_ELSEWHERE}"
    if found.maps is False:
        yield "note", "files cannot be mapped here: journals are appended to, which is slower", where, ""
    if found.sync_seconds is not None and found.sync_seconds > _SLOW_SECONDS:
        said = f"the disk is slow: one sync took {found.sync_seconds * 1000:,.0f} ms"
        yield "note", said, where, "agents do not wait for it, but for ack='disk', ack='store', flush and close"


def _kind(found: Place, whose: str, where: str) -> Iterator[Said]:
    if found.kind in _IN_MEMORY:
        said = f"the {whose} is in memory ({found.kind}): it is gone when the machine restarts"
        yield "note", said, where, f"keep what matters: trackway backup, {_ELSEWHERE}"
    elif found.kind.startswith(_NETWORKS):
        said = f"the {whose} is on a network file system ({found.kind}): locks and SQLite may not hold there"
        yield "note", said, where, f"one machine only; better a local disk, {_ELSEWHERE}"


def _limits() -> Iterator[Said]:
    try:
        import resource
    except ImportError:  # pragma: no cover  Windows has no such limits
        return
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= handles < _FEW_HANDLES:
        said = f"a process may have only {handles} files open here; recording needs about ten beside the agent's"
        yield "problem", said, "", "ulimit -n 1024"
    largest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if 0 <= largest < _SMALL_FILES:
        level = "problem" if largest < SMALLEST else "note"
        yield level, f"no file may be larger than {size(largest)}: sealing stops there", "", "ulimit -f unlimited"
