"""A pack under a name: whole or not there, for its owner only, compressed where the name ends in ``.zst``.

It is written beside its place and gets its name when it is on the disk. A file that has the name already stays as it
is, unless it is to be replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

from trackway.errors import BadSetting
from trackway.store import parts, system
from trackway.store.live import LiveStore
from trackway.store.pack import Done, Packed, nobody, pack

_LEVEL: Final = 9
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
"""What a file system answers that has no hard links."""


def pack_to(live: LiveStore, episode_id: str, path: Path, *, replace: bool = False, done: Done = nobody) -> Packed:
    """Write an episode to the file ``path``; ``done`` counts its events. Raises ``BadSetting`` where one is there."""
    if path.exists() and not path.is_file():  # a pipe or a device: nothing to replace, and nowhere beside it
        with path.open("wb") as file, _compressed(file, path) as out:
            return pack(live, episode_id, out, done=done)
    if not replace and os.path.lexists(path):
        raise _taken(path)
    parts.sweep(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{parts.SUFFIX}")
    try:
        with os.fdopen(system.create_file(part), "wb") as file:
            system.lock(file.fileno(), exclusive=True, wait=False)
            with _compressed(file, path) as out:
                packed = pack(live, episode_id, out, done=done)
            file.flush()
            os.fsync(file.fileno())
        _give_name(part, path, replace=replace)
    except OSError as error:
        system.name_place(error, path)
        raise
    finally:
        part.unlink(missing_ok=True)
    system.sync_folder(path.parent)
    return packed


@contextlib.contextmanager
def _compressed(file: BinaryIO, path: Path) -> Iterator[BinaryIO]:
    if path.suffix != ".zst":
        yield file
        return
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with compressor.stream_writer(file, closefd=False) as out:
        yield cast("BinaryIO", out)


def _give_name(part: Path, path: Path, *, replace: bool) -> None:
    if not replace:
        try:
            os.link(part, path)  # unlike a rename, it never takes the place of another
            return
        except FileExistsError:
            raise _taken(path) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
    part.replace(path)


def _taken(path: Path) -> BadSetting:
    return BadSetting(f"{path} is there already", hint="--force replaces it, -o FILE names another", path=path)
