"""ending(events): how far an episode came, in one sentence. After a kill it names the step it died in."""

from __future__ import annotations

from collections.abc import Iterable

from trackway.read.order import ordered
from trackway.read.steps import Step, steps
from trackway.schema.events import EpisodeEnd, Event, ModelCall, ModelResult

_CLIP = 80


def ending(events: Iterable[Event]) -> str:
    """Where the episode stands or stopped: its end, the step or model call it was inside, or its last event."""
    found = ordered(events)
    if not found:
        return "nothing was recorded"
    for event in reversed(found):
        if isinstance(event, EpisodeEnd):
            return f"ended {event.outcome or 'without an outcome'}" + (f": {event.reason}" if event.reason else "")
    open_steps = [each for each in steps(found) if each.status == "missing"]
    if open_steps:
        return "; ".join(_inside(each) for each in open_steps)
    answered = {event.id for event in found if isinstance(event, ModelResult)}
    last = found[-1]
    waiting = [event for event in found if isinstance(event, ModelCall) and event.id not in answered]
    if waiting and waiting[-1] is last:
        return f"inside a call to model {waiting[-1].model or '(unnamed)'}"
    return f"after event {len(found)}, {last.kind}"


def _inside(step: Step) -> str:
    args = step.args.decode("utf-8", "backslashreplace")
    shown = args if len(args) <= _CLIP else f"{args[:_CLIP]}…"
    return f"inside step {step.index + 1}, {step.tool}, args {shown}"
