"""From what a person named to the files that are looked at: folders walked, archives opened, each file once.

A folder is walked by name, so that the same folder gives the same order. Links to folders are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

_PACKED: Final = (b"PK", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_TAR, _USTAR = 257, b"ustar"
_PASSED_BY: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


class Candidate(NamedTuple):
    """A file to be looked at; ``is_named`` says that somebody asked for it by name, so that silence will not do."""

    path: Path
    name: str
    size: int
    modified: int
    is_named: bool = False


class Unreadable(NamedTuple):
    """A path that could not be looked at, and why."""

    name: str
    reason: str


def shown(path: Path | str) -> str:
    """A path as text; bytes in it that are none are spelled out."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def named(path: Path) -> str:
    """What a file is known by: its whole path, as a person would name it."""
    return shown(os.path.abspath(path))  # noqa: PTH100  keeps links


def gathered(paths: Iterable[Path]) -> Iterator[Candidate | Unreadable]:
    """Every file below the paths, each once."""
    met: set[tuple[int, int]] = set()
    for path in paths:
        for found in _below(path):
            if isinstance(found, Candidate):
                try:
                    stat = found.path.stat()
                except OSError as error:
                    yield Unreadable(found.name, error.strerror or str(error))
                    continue
                if (stat.st_dev, stat.st_ino) in met:
                    continue
                met.add((stat.st_dev, stat.st_ino))
            yield found


def _below(path: Path) -> Iterator[Candidate | Unreadable]:
    try:
        stat = path.stat()
    except OSError as error:
        yield Unreadable(shown(path), error.strerror or str(error))
        return
    if path.is_dir():
        yield from _walked(path)
    elif path.is_file():
        yield Candidate(path, named(path), stat.st_size, stat.st_mtime_ns, is_named=True)
    else:
        yield Unreadable(shown(path), "neither a file nor a folder")


def _walked(folder: Path) -> Iterator[Candidate | Unreadable]:
    failed: list[OSError] = []
    for where, folders, names in os.walk(folder, onerror=failed.append):
        folders[:] = sorted(each for each in folders if each not in _PASSED_BY)
        for name in sorted(names):
            path = Path(where, name)
            try:
                stat = path.lstat()
            except OSError as error:
                failed.append(error)
                continue
            if path.is_file() and not path.is_symlink() and stat.st_size:
                yield Candidate(path, named(path), stat.st_size, stat.st_mtime_ns)
    for each in failed:
        yield Unreadable(shown(each.filename or folder), each.strerror or str(each))


def may_be_archive(path: Path) -> bool:
    """Whether its first bytes leave that open: most files are told apart without reading more of them."""
    try:
        with path.open("rb") as file:
            start = file.read(_TAR + len(_USTAR))
    except OSError:  # whoever reads it says so
        return False
    return start.startswith(_PACKED) or start[_TAR:] == _USTAR
