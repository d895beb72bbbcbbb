"""What must be true after any kill, counted: nothing acknowledged is lost, nothing is there twice, order holds."""

import collections
import itertools
import re
import struct
from pathlib import Path
from typing import NamedTuple

from trackway.recording.settings import open_store
from trackway.schema.events import AssistantText, AssistantToolCall, User
from trackway.store.live import LiveStore

_MARK = re.compile(r"(\d+):(\d+)")


def acknowledged(home: Path, slots: int = 64) -> dict[int, int]:
    """How many events each process was promised."""
    raw = (home.parent / "acked").read_bytes()
    return {i: count for i, count in enumerate(struct.unpack(f"={slots}Q", raw)) if count}


def recorded(store: LiveStore) -> dict[int, list[int]]:
    """The numbers of all events found, by process, in the order of their episodes."""
    found: dict[int, list[int]] = collections.defaultdict(list)
    for summary in sorted(store.episodes(), key=lambda each: each.started_at or 0):
        for event in store.events(summary.id):
            if isinstance(event, (User, AssistantText)):
                text = event.content
            elif isinstance(event, AssistantToolCall):
                text = event.args.decode()
            else:
                continue
            process, k = _MARK.search(text).groups()
            found[int(process)].append(int(k))
    return found


class Counted(NamedTuple):
    """What was promised, and how much is not there, there twice, there though nobody asked for it, or out of order."""

    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    beyond: int = 0
    misordered: int = 0

    def plus(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(*map(sum, zip(self, other, strict=True)))

    @property
    def is_kept(self) -> bool:
        """Whether every promise was."""
        return not any(self[1:])


def check(home: Path) -> Counted:
    """What can be read, counted against what was promised; of each process one event more may be there."""
    promised = acknowledged(home)
    found = recorded(open_store(home=home))
    lost = doubled = beyond = misordered = 0
    for process in promised.keys() | found.keys():
        count, numbers = promised.get(process, 0), found.get(process, [])
        lost += len(set(range(count)).difference(numbers))
        doubled += len(numbers) - len(set(numbers))
        beyond += sum(each > count for each in numbers)
        misordered += sum(one > next_one for one, next_one in itertools.pairwise(numbers))
    return Counted(sum(promised.values()), lost, doubled, beyond, misordered)
