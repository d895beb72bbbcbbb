"""The receipts of prunes: ``receipts.jsonl`` in the home, a line for each thing done, never a word of what was in it.

``begun`` says what was asked for and what was planned; ``dropping`` names the episodes of a batch before they go,
``dropped`` counts them after; ``done`` gives the whole, or ``stopped`` the reason, and ``finished`` names prunes that
were killed and whose work a later one has finished. A line is on the disk before what
it announces happens, so a prune that was killed has said what it was about to do.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
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
        system.append_line(self._home.receipts, line, durable=True)

    def unfinished(self) -> list[str]:
        """The prunes of this store that took episodes and did not come to their end."""
        begun: dict[str, None] = {}
        for each in self._lines():
            name, says = each.get("prune"), each.get("says")
            if says == "dropping" and isinstance(name, str):
                begun[name] = None
            elif says == "done":
                begun.pop(str(name), None)
            elif says == "finished" and isinstance(each.get("of"), list):
                for other in each["of"]:
                    begun.pop(str(other), None)
        return list(begun)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What was written before; a line that a crash left unfinished says nothing."""
        try:
            text = self._home.receipts.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        for line in text.splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                found = json.loads(line)
                if isinstance(found, dict) and found.get("store") == self._store:
                    yield found
