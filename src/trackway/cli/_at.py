"""A place in an episode: the event of a number, as ``search`` prints it, and what stands around it in reading order.

What comes before is counted, not shown, and what comes after is not read: a place in a long episode opens at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from trackway.errors import NotFound
from trackway.schema.events import Event

if TYPE_CHECKING:
    from trackway.schema.episode import EpisodeSummary
    from trackway.store.live import LiveStore

_AROUND: Final = 5


class Place(NamedTuple):
    """All events in reading order, as they come, and which of them is meant, counted from 0."""

    events: Iterable[Event]
    nth: int
    at: int

    def is_before(self, number: int) -> bool:
        """Whether an event stands too far before the place to be shown."""
        return number < self.nth - _AROUND

    def shown(self) -> Iterator[Event]:
        """The event that is meant, and those around it."""
        return (event for number, event in self.until_its_end() if not self.is_before(number))

    def until_its_end(self) -> Iterator[tuple[int, Event]]:
        """All events up to the last that is shown, counted."""
        for number, event in enumerate(self.events):
            if number > self.nth + _AROUND:
                return
            yield number, event

    def more(self, total: int) -> tuple[int, int]:
        """How many events are not shown before it, and after it."""
        return max(0, self.nth - _AROUND), max(0, total - self.nth - _AROUND - 1)


def place_at(live: LiveStore, summary: EpisodeSummary, at: int) -> Place:
    """Where the event with this number stands; raises ``NotFound``."""
    from trackway.read import order

    if not 0 <= at < summary.n_events:
        hint = f"its events are numbered from 0 to {summary.n_events - 1}" if summary.n_events else "it has none"
        raise NotFound(f"episode {summary.id} has no event {at}", hint=hint, episode=summary.id)
    events = order.in_order(_numbered(live.events(summary.id)), summary.writers)
    if not isinstance(events, list):  # of one process, and so in the order of their numbers
        return Place(events, at, at)
    return Place(events, next(i for i, event in enumerate(events) if event.seq == at), at)


def _numbered(events: Iterable[Event]) -> Iterator[Event]:
    """With the numbers they have, or will have once they are sealed."""
    for number, event in enumerate(events):
        yield event if event.seq is not None else msgspec.structs.replace(event, seq=number)
