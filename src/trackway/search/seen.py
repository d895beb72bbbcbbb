"""Whether there is anything new, told by a look at two files: what the store looked like when all of it was indexed.

A note beside the index, droppable on its own: without it the store is asked, which takes a few milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import os

from trackway.search.index import Place
from trackway.store import system
from trackway.store.base import Store
from trackway.store.listing import Mark, mark


def file_of(store: Store) -> int:
    """The number of the store's file, whatever else is going on; 0 where it has none."""
    path = getattr(store, "path", None)
    try:
        return int(path.stat().st_ino) if path is not None else 0
    except OSError:
        return 0


def remember(place: Place, seen: Mark | None) -> None:
    """The index has all of a store that looks like this: whoever finds both unchanged need not ask it."""
    if seen is None:
        return
    body = json.dumps({"store": [seen.file, *seen.seen], "index": _commit_of(place)})
    with contextlib.suppress(OSError):  # it is asked then, which takes a few milliseconds
        spare = place.seen.with_suffix(f".{os.getpid()}")
        spare.touch(system.FILE_MODE)
        spare.write_text(body, encoding="ascii")
        spare.replace(place.seen)


def has_all(place: Place, store: Store) -> bool:
    """Whether nothing was stored since the index had everything."""
    try:
        said = json.loads(place.seen.read_bytes())
        now = mark(store)
        return now is not None and said == {"store": [now.file, *now.seen], "index": _commit_of(place)}
    except (OSError, ValueError, RecursionError):
        return False


def _commit_of(place: Place) -> list[int]:
    """The engine's last commit, as seen from outside."""
    try:
        found = (place.engine / "meta.json").stat()
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]
