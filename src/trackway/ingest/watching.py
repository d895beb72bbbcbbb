"""Files that grow, followed: looked at again and again, and imported again where they changed.

A file that changed is read from its start: what it says may hang on what it said before, and a document is written anew
as a whole. So that a long file which grows all the time does not cost more than it is worth, it is left alone for a
while after each time, the longer the longer reading it took: watching takes a tenth of one core at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.ingest.gathering import Candidate, gathered
from trackway.ingest.importing import DEFAULT, Importing, Options
from trackway.ingest.storing import Imported
from trackway.store.live import LiveStore

EVERY: Final = 0.5
_REST: Final = 10


class Clock(NamedTuple):
    """What time it is, in seconds from anywhere, and a wait that tells whether to go on."""

    now: Callable[[], float]
    wait: Callable[[float], bool]


class _Seen(NamedTuple):
    size: int
    modified: int
    not_before: float


def watch(live: LiveStore, where: Iterable[Path], clock: Clock, options: Options = DEFAULT) -> Iterator[Imported]:
    """Import what is there, then what changes, until the clock says that it is enough."""
    folders = list(where)
    seen: dict[str, _Seen] = {}
    with Importing(live, options) as importing:
        while True:
            began = clock.now()
            for each in gathered(folders):
                if isinstance(each, Candidate) and _is_new(seen.get(each.name), each, began):
                    start = clock.now()
                    yield from importing.take([each])
                    end = clock.now()
                    seen[each.name] = _Seen(each.size, each.modified, end + (end - start) * _REST)
            took = clock.now() - began
            if not clock.wait(max(EVERY, took)):
                return


def _is_new(seen: _Seen | None, each: Candidate, now: float) -> bool:
    return seen is None or ((seen.size, seen.modified) != (each.size, each.modified) and now >= seen.not_before)
