"""The order in which events are read: causes before effects, then time, and each writer's own order always kept.

A store numbers events as they arrive, and processes arrive when they like. Clocks go backwards; a writer's numbers do
not: an event is never placed before an earlier one of its own writer, nor before its parent.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from trackway.errors import BadSetting
from trackway.schema.events import EpisodeStart, Event
from trackway.schema.ids import is_imported


def ordered(events: Iterable[Event]) -> list[Event]:
    """The events in reading order.

    >>> from trackway.schema.events import User
    >>> late, early = User(content="b", writer="w2", at=9), User(content="a", writer="w1", at=5)
    >>> [each.content for each in ordered([late, early])]
    ['a', 'b']
    """
    found = list(given(events))
    if len({each.writer for each in found}) > 1 or any(a.n > b.n for a, b in pairwise(found)):
        found = _by_time(found)
    return _after_parents(found) if any(each.parent is not None for each in found) else found


def in_order(events: Iterable[Event], writers: Iterable[str]) -> Iterable[Event]:
    """``ordered``, for events of these writers: those of one process were recorded in order, and need not be held."""
    names = set(writers)
    return given(events) if len(names) == 1 and "" not in names else ordered(events)


def given(events: Iterable[Event]) -> Iterable[Event]:
    """The events, if that is what they are: an id in their place is a mistake that would read as nothing."""
    if isinstance(events, (str, bytes)):
        raise BadSetting(f"{events!r:.60} is an id, not events", hint="store.events(id), or episode.events()")
    return events


def _by_time(events: list[Event]) -> list[Event]:
    keyed: list[tuple[bool, int, str, int, Event]] = []
    latest: dict[str, int] = {}
    for each in sorted(events, key=lambda event: (event.writer, event.n)):
        at = latest[each.writer] = max(each.at, latest.get(each.writer, each.at))
        # An imported session starts with its first prompt; a client's own agents may have been at work before it.
        is_start = type(each) is EpisodeStart and is_imported(each.writer)
        keyed.append((not is_start, at, each.writer, each.n, each))
    keyed.sort(key=lambda key: key[:4])
    return [key[4] for key in keyed]


def name_of(event: Event) -> str:
    """How another event's ``parent`` names this one."""
    return f"{event.writer}:{event.n}"


def _after_parents(events: list[Event]) -> list[Event]:
    """Move what stands before its parent behind it; what names no event here stays where it is."""
    names = {name_of(each) for each in events}
    waiting: dict[str, list[Event]] = {}
    placed: set[str] = set()
    result: list[Event] = []
    for each in events:
        if each.parent in names and each.parent not in placed and each.parent != name_of(each):
            waiting.setdefault(str(each.parent), []).append(each)
            continue
        ready = [each]
        while ready:
            here = ready.pop()
            result.append(here)
            placed.add(name_of(here))
            ready.extend(reversed(waiting.pop(name_of(here), [])))
    # A ring of parents has no first: such events keep their order at the end rather than vanish.
    return result + [each for group in waiting.values() for each in group]
