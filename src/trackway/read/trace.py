"""trace(events): all of a turn in seed 001's form: failed, timed-out and unanswered calls, text beside calls, all.

A sub-agent has a conversation of its own, so it has traces of its own. The form has no field for calls that were made
at once; they stand together, before their results, which is also how the model came by them. So a result that was
recorded between two calls of its batch is placed behind the last of them; nothing else is moved.

An episode that was added as a trace (its source is ``full_trace``) comes back as that trace, field for field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trackway.read.context import Standing
from trackway.read.order import ordered
from trackway.read.pairs import Open
from trackway.schema import trace as wire
from trackway.schema.events import (
    FULL_TRACE,
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


def trace(events: Iterable[Event]) -> list[FullTrace]:
    """One ``FullTrace`` per turn and agent, in the order in which they began."""
    found = ordered(events)
    header = next((each.header for each in found if isinstance(each, EpisodeStart)), Header(task=""))
    return [_added(header, found)] if header.source == FULL_TRACE else _turns(header, found)


def _turns(header: Header, events: list[Event]) -> list[FullTrace]:
    standing = Standing()
    found: dict[tuple[str | None, int], FullTrace] = {}
    for event in _batches_together(events):
        _note(standing, event)
        step = _step(event)
        key = event.agent, event.turn
        if key not in found:
            if step is None:
                continue
            found[key] = FullTrace(trace_id=_name(header.id, *key), timestamp=event.at // 1_000_000_000)
            _apply(standing, event.agent, found[key])
        elif isinstance(event, (ModelCall, Context)):
            _apply(standing, event.agent, found[key])
        if step is not None:
            found[key].steps.append(step)
    return list(found.values())


def _added(header: Header, events: list[Event]) -> FullTrace:
    standing = Standing()
    for event in events:
        _note(standing, event)
    said = header.metadata or {}
    whole = FullTrace(trace_id=text_of(said.get("trace_id", header.id)), timestamp=said.get("timestamp", 0))
    _apply(standing, None, whole)
    if "tools_schema" in said:  # null, which a context cannot say: there it means that nothing changed
        whole.tools_schema = said["tools_schema"]
    whole.steps = [step for step in map(_step, events) if step is not None]
    return whole


def _note(standing: Standing, event: Event) -> None:
    """What a call was given holds for what follows, too, until something else is said."""
    standing.note(event)
    if isinstance(event, ModelCall):
        standing.give(event.agent, model=event.model, system=event.system, tools=event.tools)


def _apply(standing: Standing, agent: str | None, whole: FullTrace) -> None:
    tools = standing.of(agent, "tools")
    whole.model = standing.of(agent, "model") or ""
    whole.system_prompt = text_of(standing.of(agent, "system"))
    whole.tools_schema = [] if tools is None else tools


def _batches_together(events: list[Event]) -> Iterator[Event]:
    """The events, but a result waits until the last call of its batch, in the same turn, has been made."""
    last = {_batch(each): at for at, each in enumerate(events) if isinstance(each, AssistantToolCall)}
    open_calls = Open()
    waiting: dict[object, list[Event]] = {}
    for at, event in enumerate(events):
        if isinstance(event, ToolResult):
            place = open_calls.result(event)
            batch = None if place is None else _batch(open_calls.calls[place])
            if batch is not None and last[batch] > at and event.turn == batch[1]:
                waiting.setdefault(batch, []).append(event)
                continue
        yield event
        if isinstance(event, AssistantToolCall):
            open_calls.call(event)
            if last[_batch(event)] == at:
                yield from waiting.pop(_batch(event), ())


def _batch(call: AssistantToolCall) -> tuple[str | None, int, int] | None:
    return None if call.batch is None else (call.agent, call.turn, call.batch)


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
