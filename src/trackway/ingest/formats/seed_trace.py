"""Seed 001's own traces, one turn a line: {trace_id, timestamp, model, system_prompt, tools_schema, steps}.

A trace is known by its id and the second it was opened in. Arguments are the bytes of the line, not a spelling of
their value. A kind of step nobody knows is a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trackway.ingest.formats._rows import header, start
from trackway.ingest.formats._seeds import opening, traces
from trackway.ingest.head import Head
from trackway.ingest.making import args_of, at_of, rest_of, task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import part_of, text_at
from trackway.schema.events import AssistantText, AssistantThinking, AssistantToolCall, Event, Note, ToolResult, User
from trackway.schema.plain import text_of

_NAME: Final = "seed_trace"
_FIELDS: Final = frozenset(("trace_id", "steps"))


class _RawStep(msgspec.Struct):
    args: msgspec.Raw = msgspec.Raw()


class _RawLine(msgspec.Struct):
    steps: list[_RawStep]


_raw: Final = msgspec.json.Decoder(_RawLine).decode


def detect(head: Head) -> Sign | None:
    """Lines with trace_id and steps that bear their kind."""
    found = [each for each in (head.objects or [head.document]) if each.keys() >= _FIELDS]
    steps = found[0]["steps"] if found else None
    if not isinstance(steps, list) or (steps and not isinstance(part_of({"s": steps[0]}, "s").get("kind"), str)):
        return None
    sure = 0.95 if found[0].keys() & {"tools_schema", "system_prompt", "timestamp"} else 0.7
    return Sign(sure, "lines with trace_id, tools_schema and steps that have a kind")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each line as an episode of one turn."""
    for each in traces(original, "steps"):
        if isinstance(each, Trouble):
            yield each
        else:
            yield from _episode(*each)


def _episode(item: Item, session: str) -> Iterator[Entry]:
    value, place = item.value, item.place
    at = at_of(value.get("timestamp"))
    steps = value["steps"]
    prompt = next((text_of(each.get("content")) for each in steps if _kind(each) == "user"), "")
    head = header(
        _NAME, task_of(prompt) or text_of(value.get("trace_id")), model=text_at(value, "model"),
        metadata={"trace_id": value.get("trace_id")},
    )  # fmt: skip
    told = ("steps", "timestamp", "model", "system_prompt", "tools_schema")
    more = opening(value.get("system_prompt"), value.get("tools_schema"), at)
    yield start(session, head, *more, at=at, place=place, native=rest_of(value, *told))
    raw = _raw_args(item.raw, len(steps))
    for i, step in enumerate(steps):
        yield Entry(session, str(i), [_event(step, raw[i], at)], place, None, _rest(step))


def _raw_args(line: bytes, count: int) -> list[bytes | None]:
    """The bytes of each step's arguments, where the line can be read so."""
    try:
        found = [bytes(each.args) or None for each in _raw(line).steps]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = []
    return found if len(found) == count else [None] * count


def _kind(step: Any) -> str:  # noqa: ANN401  whatever stands in a list of steps
    found = step.get("kind") if isinstance(step, dict) else None
    return found if isinstance(found, str) else ""


def _event(step: Any, raw: bytes | None, at: int) -> Event:  # noqa: ANN401
    kind = _kind(step)
    if kind == "user":
        return User(content=text_of(step.get("content")), at=at)
    if kind == "assistant_thinking":
        return AssistantThinking(content=text_of(step.get("content")), at=at)
    if kind == "assistant_text":
        return AssistantText(content=text_of(step.get("content")), at=at)
    if kind == "assistant_tool_call":
        args = (
            args_of(step["args_text"]) if isinstance(step.get("args_text"), str) else raw or args_of(step.get("args"))
        )
        return AssistantToolCall(
            name=text_of(step.get("name")), args=args, call_id=text_of(step.get("call_id")), at=at
        )  # fmt: skip
    if kind == "tool_result":
        failed = step.get("is_error") is True
        return ToolResult(
            call_id=text_of(step.get("call_id")), content=text_of(step.get("content")), is_error=failed,
            status="error" if failed else "ok", at=at,
        )  # fmt: skip
    return Note(topic=kind or "step", detail=None if isinstance(step, dict) else step, at=at)


_TOLD: Final = {
    "user": ("content",), "assistant_thinking": ("content",), "assistant_text": ("content",),
    "assistant_tool_call": ("name", "args", "args_text", "call_id"), "tool_result": ("call_id", "content", "is_error"),
}  # fmt: skip


def _rest(step: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if not isinstance(step, dict):
        return None
    told = _TOLD.get(_kind(step))
    return step if told is None else rest_of(step, "kind", *told)


SOURCE: Final = Source(
    name=_NAME,
    title="full traces (seed 001)",
    detect=detect,
    read=read,
    looked_for="lines with trace_id, tools_schema and steps that have a kind",
)
