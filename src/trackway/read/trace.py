"""trace(events): all of a turn in seed 001's form: failed, timed-out and unanswered calls, text beside calls, all.

A sub-agent has a conversation of its own, so it has traces of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from trackway.read.order import ordered
from trackway.schema import trace as wire
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeStart,
    Event,
    Header,
    ModelCall,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of
from trackway.schema.trace import FullTrace, TraceStep


class _Known:
    """What is known of the context so far: it holds until something changes it."""

    def __init__(self) -> None:
        self.header = Header(task="")
        self.model: str | None = None
        self.system_prompt = ""
        self.tools: object = []

    def note(self, event: Event) -> None:
        if isinstance(event, EpisodeStart):
            self.header, self.model = event.header, event.header.model
        elif isinstance(event, ModelCall):
            self.model = event.model or self.model
            self._context(event.system, event.tools)
        elif isinstance(event, Context):
            self._context(event.system_prompt, event.tools)

    def _context(self, system: object, tools: object) -> None:
        if system is not None:
            self.system_prompt = text_of(system)
        if tools is not None:
            self.tools = tools

    def apply(self, trace: FullTrace) -> None:
        trace.model = self.model or ""
        trace.system_prompt = self.system_prompt
        trace.tools_schema = self.tools


def trace(events: Iterable[Event]) -> list[FullTrace]:
    """One ``FullTrace`` per turn and agent, in the order in which they began."""
    known = _Known()
    found: dict[tuple[str | None, int], FullTrace] = {}
    for event in ordered(events):
        known.note(event)
        step = _step(event)
        key = event.agent, event.turn
        if key not in found:
            if step is None:
                continue
            found[key] = FullTrace(trace_id=_name(known.header.id, *key), timestamp=event.at // 1_000_000_000)
            known.apply(found[key])
        if isinstance(event, (ModelCall, Context)):
            known.apply(found[key])
        if step is not None:
            found[key].steps.append(step)
    return list(found.values())


def _name(episode: str, agent: str | None, turn: int) -> str:
    return f"{episode}/{turn}" if agent is None else f"{episode}/{turn}/{agent}"


def _step(event: Event) -> TraceStep | None:
    match event:
        case User(content=content):
            return wire.UserStep(content)
        case AssistantThinking(content=content):
            return wire.ThinkingStep(content)
        case AssistantToolCall(name=name, args=args, call_id=call_id):
            return wire.tool_call_step(name, args, call_id)
        case ToolResult(call_id=call_id, content=content, is_error=is_error):
            return wire.ToolResultStep(call_id, content, is_error)
        case AssistantText(content=content):
            return wire.TextStep(content)
        case _:
            return None
