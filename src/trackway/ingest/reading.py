"""Files read side by side, each into a spool of its own, in a folder that goes with the process that made it.

What a killed process left is swept up by the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from trackway.ingest.spool import ReadFile
from trackway.ingest.worker import Job, read_file, receive, send
from trackway.store import parts, system
from trackway.store.holding import held, in_the_way

_ALONE: Final = 4 << 20
"""Bytes below which starting other processes costs more than they save."""
_AHEAD: Final = 3

Begun = Callable[[], ReadFile]
"""Gives what was read, once it was."""


class SpoolFolder:
    """A folder for what is on its way, locked for as long as somebody needs it."""

    def __init__(self, inside: Path) -> None:
        system.make_folder(inside)
        with held(inside / parts.LOCK) as got:  # one that is made and not locked yet looks like a dead one's
            if not got:
                raise in_the_way(inside / parts.LOCK)
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
    """Processes that read files; none of them while there is little to read.

    They are programs of their own and no forks: this process has the store open, and threads.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads: ThreadPoolExecutor | None = None
        self._mine = threading.local()
        self._all: list[_Reader] = []
        self._bytes = 0
        self.ahead = workers * _AHEAD

    def begin(self, job: Job, size: int) -> Begun:
        """Read it in another process, or here when it is asked for."""
        self._bytes += size
        if self._workers < 2 or self._bytes < _ALONE:
            return lambda: read_file(job)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="trackway-import")
        return self._threads.submit(self._read, job).result

    def _read(self, job: Job) -> ReadFile:
        """In a thread that waits for a process of its own."""
        reader: _Reader | None = getattr(self._mine, "reader", None)
        if reader is None or not reader.is_alive:
            reader = self._mine.reader = _Reader()
            self._all.append(reader)
        return reader.read(job)

    def close(self) -> None:
        """What has not begun never does."""
        for each in self._all:
            each.close()
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)


class _Reader:
    """One process that reads what it is told to."""

    def __init__(self) -> None:
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-c", "from trackway.ingest.worker import serve; serve()"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def read(self, job: Job) -> ReadFile:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            send(stdin, msgspec.msgpack.encode(job))
            return msgspec.msgpack.decode(receive(stdout), type=ReadFile)
        except (OSError, EOFError, ValueError):
            how = self._process.wait()
            said = f"{job.name}: the process that read it ended ({how})"
            return ReadFile(name=job.name, refused=said, hint="is there memory enough?")

    def close(self) -> None:
        """It ends when it is done with what it reads."""
        self._process.kill()
        for each in (self._process.stdin, self._process.stdout):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.close()
        self._process.wait()
