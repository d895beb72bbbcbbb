"""The receipts of prunes: ``receipts.jsonl`` in the home, a line for each thing done, never a word of what was in it.

``begun`` says what was asked for and what was planned; ``dropping`` names the episodes of a batch before they go,
``dropped`` counts them after; ``done`` gives the whole, or ``stopped`` the reason. A line is on the disk before what
it announces happens, so a prune that was killed has said what it was about to do.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from trackway.store import system
from trackway.store.home import Home


class Receipts:
    """The lines of one prune."""

    def __init__(self, home: Home, store: str, at: int) -> None:
        self._home = home
        self._store = store
        there = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at // 1000)
        self.name = f"{there:%Y-%m-%dT%H:%M:%S.%f}Z"

    def write(self, says: str, **more: Any) -> None:  # noqa: ANN401  whatever JSON has a word for
        """One more line, on the disk when this returns; one that a crash left unfinished is not gone on with."""
        line = json.dumps({"prune": self.name, "says": says, "store": self._store, **more}).encode()
        system.make_folder(self._home.path)
        flags = os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC
        descriptor = os.open(self._home.receipts, flags, system.FILE_MODE)
        try:
            end = os.fstat(descriptor).st_size
            torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
            os.write(descriptor, b"\n" * torn + line + b"\n")
            system.sync(descriptor)
        finally:
            os.close(descriptor)
