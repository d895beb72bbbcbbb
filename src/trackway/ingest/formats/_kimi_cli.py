"""A line of Kimi CLI's two files → events: ``wire.jsonl``, what it said to its screen, and ``context.jsonl``.

The wire has times, usage and what sub-agents did; the context has the messages as the model got them, and is read
where there is no wire.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.formats._kimi_steps import Steps
from trackway.ingest.making import is_only_text, rest_of
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, Event

Said = tuple[list[Event], dict[str, Any] | None]
_ASKED: Final = ("TurnBegin", "SteerInput")


def wired(steps: Steps, message: dict[str, Any], at: int) -> Said:
    """What a message of the wire says."""
    kind, payload = text(message.get("type")), mapping(message.get("payload"))
    if kind in _ASKED:
        given = payload.get("user_input")
        return steps.user(given, at), None if is_only_text(given) else payload
    if kind == "StepBegin":
        return steps.begin("", at), payload
    if kind == "ContentPart":
        return steps.part(payload, at), None if {"text", "think"} & payload.keys() else payload
    if kind == "ToolCall":
        function = mapping(payload.get("function"))
        args = function.get("arguments")
        events = steps.call(text(payload.get("id")), text(function.get("name")), "" if args is None else args, at)
        return events, rest_of(payload, "id", "type", "function")
    if kind == "ToolResult":
        return steps.result(text(payload.get("tool_call_id")), payload.get("return_value"), at), None
    if kind == "StatusUpdate":
        events = steps.end(payload.get("token_usage"), at)
        return events or steps.note(kind, at), payload
    return steps.note(kind, at), payload or message


def messaged(steps: Steps, line: dict[str, Any], at: int) -> Said:
    """What a message of the context says."""
    role, content = text(line.get("role")), line.get("content")
    rest = rest_of(line, "role", "content" if is_only_text(content) else "")
    if role == "_system_prompt":
        return [Context(op="set", system_prompt=text(content), at=at, agent=steps.agent)], rest
    if role == "user":
        return steps.user(content, at), rest
    if role == "tool":
        return steps.result(text(line.get("tool_call_id")), content, at), rest
    if role != "assistant":
        return steps.note(role, at), line
    events = steps.begin("", at)
    parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else listing(content)
    for part in parts:
        events += steps.part(mapping(part), at)
    for each in listing(line.get("tool_calls")):
        function = mapping(mapping(each).get("function"))
        args = function.get("arguments")
        call_id = text(mapping(each).get("id"))
        events += steps.call(call_id, text(function.get("name")), "" if args is None else args, at)
    return events, rest_of(line, "role", "content", "tool_calls")
