"""Every operating-system call that durability rests on, in one place.

Nothing else in trackway allocates, maps, locks or syncs a file, so what a platform lacks is answered here: where
``mmap`` or ``posix_fallocate`` is missing the journal appends with a plain write (``can_map`` says so).
Files are made for their owner only.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trackway.schema.outside import is_thrown_in

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
NO_MAPPING: Final = frozenset({errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""What a file system answers that cannot preallocate or map; anything else is trouble, and said."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a disk, a quota or a limit on file sizes answers that has nothing left."""

NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a file system answers that has no locks."""

try:
    import fcntl
except ImportError:  # pragma: no cover  Windows has no flock; the whole journal directory is one process's own there
    fcntl = None  # type: ignore[assignment]

_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def can_map() -> bool:
    """Whether this platform has what the mapped journal needs; a file system may still refuse."""
    return hasattr(os, "posix_fallocate") and sys.platform.startswith("linux")


def make_folder(path: Path) -> None:
    """The folder, for the owner only; parents that are missing are made as usual."""
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def create_file(path: Path, size: int = 0) -> int:
    """A new file, never an existing one, with ``size`` bytes really allocated: a full disk says so here, not later."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
        if size:
            try:
                os.posix_fallocate(descriptor, 0, size)
            except BaseException:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        error.filename = None
        name_place(error, path.parent)  # a file that was not made is nowhere; and one reason is said once
        raise
    return descriptor


def name_place(error: BaseException, path: Path) -> None:
    """What a descriptor was refused is said without a name: an error that people read gets it here."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


def write_file(path: Path, body: bytes, *, more: bool = False) -> None:
    """The file, for the owner only, on the disk when this returns; one of that name is replaced, or goes on."""
    how = os.O_APPEND if more else os.O_TRUNC
    descriptor = os.open(path, os.O_CREAT | how | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(body)
        os.fsync(descriptor)
    except OSError as error:
        name_place(error, path)
        raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, body: bytes) -> None:
    """All of it, or an error: a disk may take a part and be full."""
    while body:
        body = body[os.write(descriptor, body) :]


def append_line(path: Path, line: bytes, *, durable: bool = False) -> None:
    """One more line at the end of a file; one that was left unfinished there is not gone on with."""
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
    try:
        end = os.fstat(descriptor).st_size
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        write_all(descriptor, b"\n" * torn + line + b"\n")
        if durable:
            sync(descriptor)
    except OSError as error:
        name_place(error, path)
        raise
    finally:
        os.close(descriptor)


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """The file as writable shared memory."""
    return mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def sync(descriptor: int, place: Path | None = None) -> None:
    """Return when the file's bytes are on the disk; ``place`` is what an error names."""
    try:
        _sync(descriptor)
    except OSError as error:
        if place is not None:
            name_place(error, place)
        raise


def sync_file(path: Path) -> None:
    """``sync``, by name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems cannot sync a folder, and need not
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """A descriptor to lock on; the file is made if need be."""
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)


def lock(descriptor: int, *, exclusive: bool, wait: bool) -> bool:
    """Take an advisory lock that dies with its last holder; False where another has it and we may not wait.

    Where there are no locks nobody else has it: recording goes on, and ``is_locked`` takes everybody for alive.
    """
    return try_lock(descriptor, exclusive=exclusive, wait=wait) is not False


def try_lock(descriptor: int, *, exclusive: bool, wait: bool) -> bool | None:
    """``lock``, but None where this file system, or this platform, has no locks."""
    if fcntl is None:
        return None
    mode = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, mode)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock of this file. A missing file is held by nobody."""
    if fcntl is None:  # nobody can tell here: taken for alive, so that nothing living is ever adopted
        return path.exists()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:  # no descriptor to be had, no right to look: whoever may live is not taken for dead
        if is_thrown_in(error):
            raise
        return True
    try:
        return try_lock(descriptor, exclusive=False, wait=False) is not True
    finally:
        os.close(descriptor)


def is_named(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one of that name; True where nobody can tell."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def is_there(path: Path) -> bool:
    """Whether there is a file of that name; True where nobody can tell."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def has_a_name(descriptor: int) -> bool:
    """Whether an open file is in some folder still, under whatever name; a removed one is in none."""
    return os.fstat(descriptor).st_nlink > 0


def writer_that_keeps_the_gil() -> Callable[[int, bytes], int]:
    """``write(2)`` that keeps the GIL: a released one costs a switch interval to win back beside a busy thread."""
    try:
        library = ctypes.PyDLL(None, use_errno=True)
        raw = library.write
    except (AttributeError, OSError, TypeError) as error:  # no C library to be had by name
        if is_thrown_in(error):
            raise
        return os.write
    raw.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    raw.restype = ctypes.c_ssize_t

    def write(descriptor: int, body: bytes) -> int:
        while (done := raw(descriptor, body, len(body))) < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
        return int(done)

    return write


def host_name() -> str:
    """This machine's name, for display."""
    return socket.gethostname()


def is_alive(pid: int) -> bool:
    """Whether a process of that number exists; for display only, numbers are reused."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
