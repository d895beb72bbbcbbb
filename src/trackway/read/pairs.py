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


class Open:
    """The calls that wait for their results, by agent and call id; where an id repeats, the oldest is meant."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str | None, str], deque[int]] = defaultdict(deque)
        self.calls: list[AssistantToolCall] = []

    def call(self, event: AssistantToolCall) -> int:
        """Take in a call; gives its place among the calls."""
        self._waiting[event.agent, event.call_id].append(len(self.calls))
        self.calls.append(event)
        return len(self.calls) - 1

    def result(self, event: ToolResult) -> int | None:
        """The place of the call this result answers; None where no open call does."""
        waiting = self._waiting.get((event.agent, event.call_id))
        return waiting.popleft() if waiting else None


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
