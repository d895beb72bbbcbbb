"""Files read side by side, each into a spool of its own, in a folder that goes with the process that made it.

What a killed process left is swept up by the next one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import Final

from trackway.ingest.spool import ReadFile
from trackway.ingest.worker import Job, read_file
from trackway.store import parts, system

_ALONE: Final = 4 << 20
"""Bytes below which starting other processes costs more than they save."""
_AHEAD: Final = 3

Begun = Callable[[], ReadFile]
"""Gives what was read, once it was."""


class SpoolFolder:
    """A folder for what is on its way, locked for as long as somebody needs it."""

    def __init__(self, inside: Path) -> None:
        system.make_folder(inside)
        parts.sweep(inside)
        self.path = Path(tempfile.mkdtemp(prefix=".", suffix=parts.SUFFIX, dir=inside))
        self._lock = system.open_lock(self.path / parts.LOCK)
        system.lock(self._lock, exclusive=True, wait=False)
        self._numbers = count(1)

    def name(self) -> Path:
        """A path that nothing is at."""
        return self.path / f"{next(self._numbers)}.spool"

    def close(self) -> None:
        """Nobody needs it any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


class Readers:
    """Processes that read files; none of them while there is little to read."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor: ProcessPoolExecutor | None = None
        self._bytes = 0
        self.ahead = workers * _AHEAD

    def begin(self, job: Job, size: int) -> Begun:
        """Read it in another process, or here when it is asked for."""
        self._bytes += size
        if self._workers < 2 or self._bytes < _ALONE:
            return lambda: read_file(job)
        if self._executor is None:
            from multiprocessing import get_context

            # Not by fork: this process has the store open, and threads of its own.
            self._executor = ProcessPoolExecutor(self._workers, mp_context=get_context("forkserver"))
        return self._executor.submit(read_file, job).result

    def close(self) -> None:
        """What has not begun never does."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
