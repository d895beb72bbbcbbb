"""ending(events): how far an episode came, in one sentence. After a kill it names the step it died in.

One pass, nothing kept but what is unanswered: an episode of any length will do.
"""

from __future__ import annotations

from collections.abc import Iterable

from trackway.schema.events import AssistantToolCall, EpisodeEnd, Event, Label, ModelCall, ModelResult, ToolResult

_CLIP = 80


def ending(events: Iterable[Event]) -> str:
    """Where the episode stands or stopped: its end, the step or model call it was inside, or its last event."""
    stand = _Stand()
    for event in events:
        if not isinstance(event, Label):  # said of it, not done in it
            stand.take(event)
    return stand.sentence()


class _Stand:
    """What is open so far."""

    def __init__(self) -> None:
        self.count = self.steps = 0
        self.last: Event | None = None
        self.end: EpisodeEnd | None = None
        self.calls: dict[tuple[str | None, str], list[tuple[int, AssistantToolCall]]] = {}
        self.requests: dict[str, ModelCall] = {}

    def take(self, event: Event) -> None:
        self.count += 1
        if self.last is None or event.at >= self.last.at or event.writer == self.last.writer:
            self.last = event
        match event:
            case AssistantToolCall():
                self.steps += 1
                self.calls.setdefault((event.agent, event.call_id), []).append((self.steps, event))
            case ToolResult():
                waiting = self.calls.get((event.agent, event.call_id), [])
                if len(waiting) > 1:
                    waiting.pop(0)
                else:
                    self.calls.pop((event.agent, event.call_id), None)
            case ModelCall():
                self.requests[event.id] = event
            case ModelResult():
                self.requests.pop(event.id, None)
            case EpisodeEnd():
                self.end = event
            case _:
                pass

    def sentence(self) -> str:
        if self.last is None:
            return "nothing was recorded"
        if self.end is not None:
            said = f"ended {self.end.outcome or 'without an outcome'}"
            return f"{said}: {self.end.reason}" if self.end.reason else said
        if self.calls:
            inside = sorted((each for waiting in self.calls.values() for each in waiting), key=lambda each: each[0])
            return "; ".join(_inside(number, call) for number, call in inside)
        if isinstance(self.last, ModelCall) and self.last.id in self.requests:
            return f"inside a call to model {self.last.model or '(unnamed)'}"
        return f"after event {self.count}, {self.last.kind}"


def _inside(number: int, call: AssistantToolCall) -> str:
    args = call.args.decode("utf-8", "backslashreplace")
    shown = args if len(args) <= _CLIP else f"{args[:_CLIP]}…"
    return f"inside step {number}, {call.name}, args {shown}"
