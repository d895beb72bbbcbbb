"""What must be true after any kill: nothing acknowledged is lost, nothing is there twice, order holds."""

import collections
import re
import struct
from pathlib import Path

from trackway.recording.settings import open_store
from trackway.schema.events import AssistantText, AssistantToolCall, User
from trackway.store.live import LiveStore

_MARK = re.compile(r"(\d+):(\d+)")


def acknowledged(home: Path, slots: int = 64) -> dict[int, int]:
    """How many events each process was promised."""
    raw = (home.parent / "acked").read_bytes()
    return {i: count for i, count in enumerate(struct.unpack(f"<{slots}Q", raw)) if count}


def recorded(store: LiveStore) -> dict[int, list[int]]:
    """The numbers of all events found, by process, in the order of their episodes."""
    found: dict[int, list[int]] = collections.defaultdict(list)
    for summary in sorted(store.episodes(), key=lambda each: each.id):
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


def check(home: Path) -> int:
    """Every promise kept, or an AssertionError that says which was not; returns how many events were promised."""
    promised = acknowledged(home)
    found = recorded(open_store(home=home))
    for process, count in promised.items():
        numbers = sorted(found.get(process, []))
        assert len(numbers) == len(set(numbers)), f"process {process}: an event is there twice"
        missing = set(range(count)) - set(numbers)
        assert not missing, (
            f"process {process}: {len(missing)} of {count} acknowledged events are lost, e.g. {min(missing)}"
        )
        assert len(numbers) <= count + 1, f"process {process}: {len(numbers)} events, {count} promised"
    return sum(promised.values())
