"""Calls and what came of them: the one rule by which results find their calls."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from trackway.schema.events import AssistantToolCall, Event, ToolResult


class Pair(NamedTuple):
    """A call and its result; None where nothing came back."""

    call: AssistantToolCall
    result: ToolResult | None

    @property
    def failed(self) -> bool:
        """Whether it went wrong: an error, a denial, a timeout, an interruption, or nothing that came back."""
        return self.result is None or self.result.failed


class Waiting:
    """The calls that wait for their results, by agent and call id; where an id repeats, the oldest is meant."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str], deque[int]] = defaultdict(deque)
        self._count = 0

    def call(self, event: AssistantToolCall) -> int:
        """Take in a call; gives its place among the calls."""
        self._waiting[event.agent, event.call_id].append(self._count)
        self._count += 1
        return self._count - 1

    def result(self, event: ToolResult) -> int | None:
        """The place of the call this result answers; None where no open call does."""
        waiting = self._waiting.get((event.agent, event.call_id))
        if not waiting:
            return None
        place = waiting.popleft()
        if not waiting:  # answered: nothing of it is held, however many there are
            del self._waiting[event.agent, event.call_id]
        return place


class Open(Waiting):
    """The same, with all calls by their place."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[AssistantToolCall] = []

    def call(self, event: AssistantToolCall) -> int:
        """Take in a call; gives its place among the calls."""
        self.calls.append(event)
        return super().call(event)


def pairs(events: Iterable[Event]) -> list[Pair]:
    """Every call with its result, in the order of the calls. The events are in reading order already."""
    open_calls = Open()
    results: dict[int, ToolResult] = {}
    for event in events:
        if isinstance(event, AssistantToolCall):
            open_calls.call(event)
        elif isinstance(event, ToolResult):
            place = open_calls.result(event)
            if place is not None:
                results[place] = event
    return [Pair(call, results.get(place)) for place, call in enumerate(open_calls.calls)]
