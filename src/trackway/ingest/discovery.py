"""What this user has: the folders in which each source knows files to be, how many, and how large. Nothing is read.

Folders are listed, their files are looked at by name alone. Links are not followed, so a loop cannot be entered; a
folder that may not be looked into is counted, and its name told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from trackway.ingest.source import Source
from trackway.ingest.sources import all_sources

_KINDS: Final = (
    ".jsonl", ".json", ".ndjson", ".jsonl.zst", ".json.zst", ".jsonl.gz", ".json.gz", ".traj", ".eval",
)  # fmt: skip
"""How the names of files end that may hold episodes; what they are is told by their content, later."""
_PASSED_BY: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


class Discovered(NamedTuple):
    """What there is of one source; ``unreadable`` are the folders that could not be looked into."""

    source: Source
    folders: list[Path]
    files: int
    bytes: int
    unreadable: tuple[str, ...] = ()


def discover(home: Path, environ: Mapping[str, str], sources: Iterable[Source] | None = None) -> list[Discovered]:
    """What this user has, in the order of the sources; sources of which there is nothing are left out."""
    found = []
    for source in all_sources() if sources is None else sources:
        folders = _folders(source, home, environ)
        if folders:
            found.append(_counted(source, folders))
    return found


def _folders(source: Source, home: Path, environ: Mapping[str, str]) -> list[Path]:
    if source.homes is None:
        return []
    try:
        return list(source.homes(home, environ))
    except OSError:  # a folder above them may not be looked into: then nothing in it is this user's
        return []


def _counted(source: Source, folders: list[Path]) -> Discovered:
    """The files below the folders, each folder once, however often it is named."""
    files = size = 0
    unreadable: list[str] = []
    met: set[tuple[int, int]] = set()
    waiting = [str(each) for each in reversed(folders)]
    while waiting:
        folder = waiting.pop()
        try:
            stat = os.stat(folder)  # noqa: PTH116  by text: as many as there are folders
            if (stat.st_dev, stat.st_ino) in met:
                continue
            met.add((stat.st_dev, stat.st_ino))
            count, length = _listed(folder, waiting)
        except OSError:
            unreadable.append(folder)
            continue
        files += count
        size += length
    return Discovered(source, folders, files, size, tuple(unreadable))


def _listed(folder: str, waiting: list[str]) -> tuple[int, int]:
    """How many files a folder holds, and their bytes; the folders in it are added to those that wait."""
    files = size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _PASSED_BY:
                    waiting.append(entry.path)
            elif entry.name.endswith(_KINDS) and entry.is_file(follow_symlinks=False):
                files += 1
                size += _size(entry)
    return files, size


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # gone since
        return 0
