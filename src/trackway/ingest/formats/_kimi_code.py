"""A line of Kimi Code's journal (``agents/<agent>/wire.jsonl``) → events.

The journal is the record of a program's state: a prompt stands there as what was typed (``turn.prompt``) and as what
was added to the context, which is what the model saw and what is taken here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trackway.ingest.formats._kimi_steps import Steps
from trackway.ingest.making import rest_of, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, Event, Note

Said = tuple[list[Event], dict[str, Any] | None]


def said(steps: Steps, line: dict[str, Any], at: int) -> Said:
    """What a line says, and what of it has no home in an event."""
    kind = text(line.get("type"))
    read = _LINES.get(kind)
    if read is None:
        return steps.note(kind, at), rest_of(line, "type", "time")
    return read(steps, line, at)


def _metadata(steps: Steps, line: dict[str, Any], at: int) -> Said:
    steps.about.note(version=line.get("protocol_version"))
    return steps.note("metadata", at), line


def _config(steps: Steps, line: dict[str, Any], at: int) -> Said:
    steps.model = text(line.get("modelAlias")) or steps.model
    if steps.agent is None:
        steps.about.model = steps.about.model or steps.model
        steps.about.note(cwd=line.get("cwd"))
    prompt = text(line.get("systemPrompt"))
    rest = rest_of(line, "type", "time", "systemPrompt")
    if prompt:
        return [Context(op="set", system_prompt=prompt, at=at, agent=steps.agent)], rest
    return steps.note("config.update", at), rest


def _tools(steps: Steps, line: dict[str, Any], at: int) -> Said:
    return [Context(op="set", tools=line.get("tools"), at=at, agent=steps.agent)], rest_of(
        line, "type", "time", "tools"
    )


def _request(steps: Steps, line: dict[str, Any], at: int) -> Said:
    steps.model = text(line.get("model")) or steps.model
    return steps.note("llm.request", at), rest_of(line, "type", "time")


def _prompt(steps: Steps, line: dict[str, Any], at: int) -> Said:
    if steps.agent is None:
        steps.about.prompt(text_in(line.get("input")))
    return steps.note(text(line.get("type")), at), rest_of(line, "type", "time", "input")


def _message(steps: Steps, line: dict[str, Any], at: int) -> Said:
    message = mapping(line.get("message"))
    role, content = message.get("role"), message.get("content")
    origin = text(mapping(message.get("origin")).get("kind"))
    kept = rest_of(message, "role")
    if role == "user":
        events = steps.inject(content, at) if origin == "injection" else steps.user(
            content, at, is_person=origin in ("user", ""))  # fmt: skip
    elif role == "assistant":
        events = steps.begin("", at)
        parts = [content] if isinstance(content, dict) else listing(content)
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else parts:
            events += steps.part(mapping(part), at)
        for each in listing(message.get("toolCalls")):
            call = mapping(each)
            events += steps.call(text(call.get("id")), text(call.get("name")), call.get("arguments"), at)
    elif role == "tool":
        events = steps.result(text(message.get("toolCallId")), content, at)
    else:
        events = steps.note(f"message {text(role)}".rstrip(), at)
    return events, {"message": kept} if kept else None


def _compaction(steps: Steps, line: dict[str, Any], at: int) -> Said:
    summary = text(line.get("contextSummary")) or text(line.get("summary"))
    detail = rest_of(line, "type", "time", "summary", "contextSummary")
    return [Context(op="compact", text=summary, detail=detail, at=at, agent=steps.agent)], rest_of(
        line, "contextSummary"
    )


def _rewind(steps: Steps, line: dict[str, Any], at: int) -> Said:
    return [Context(op="rewind", detail=rest_of(line, "type", "time"), at=at, agent=steps.agent)], line


def _usage(steps: Steps, line: dict[str, Any], at: int) -> Said:
    """A turn's usage is that of its step, said again; a session's is that of something else."""
    model = text(line.get("model")) or None
    if line.get("usageScope") == "session":
        events = steps.spent(f"usage {at}", line.get("usage"), model, at)
    else:
        events = steps.end(line.get("usage"), at)
    note: list[Event] = [Note(topic="usage.record", at=at, agent=steps.agent)]
    return events or note, rest_of(line, "type", "time")


def _loop(steps: Steps, line: dict[str, Any], at: int) -> Said:
    event = mapping(line.get("event"))
    kind = text(event.get("type"))
    rest = rest_of(event, "type", "part", "args", "result", "usage", "finishReason")
    if kind == "step.begin":
        events = steps.begin(text(event.get("uuid")), at)
    elif kind == "content.part":
        part = mapping(event.get("part"))
        events = steps.part(part, at)
        rest = {**(rest or {}), "part": part} if isinstance(events[0], Note) else rest
    elif kind == "tool.call":
        events = steps.call(text(event.get("toolCallId")), text(event.get("name")), event.get("args"), at)
    elif kind == "tool.result":
        events = steps.result(text(event.get("toolCallId")), event.get("result"), at)
    elif kind == "step.end":
        finish = text(event.get("finishReason")) or None
        events = steps.end(event.get("usage"), at, finish, text(event.get("uuid"))) or steps.note("step.end", at)
    else:
        return steps.note(f"loop {kind}".rstrip(), at), line
    return events, rest


_LINES: Final[dict[str, Callable[[Steps, dict[str, Any], int], Said]]] = {
    "metadata": _metadata, "config.update": _config, "llm.tools_snapshot": _tools, "llm.request": _request,
    "turn.prompt": _prompt, "turn.steer": _prompt, "context.append_message": _message, "usage.record": _usage,
    "context.append_loop_event": _loop, "context.apply_compaction": _compaction, "context.undo": _rewind,
    "context.clear": _rewind,
}  # fmt: skip
