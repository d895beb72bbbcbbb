"""The lines seed 001 exports: {trace_id, timestamp, model, tools, conversations: [{from, value, …}]}, one turn a line.

They are ShareGPT with more in it: a call's value is an object with its id, a result says of which call it is and
whether it failed, and a thought is a turn of its own between <think> tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trackway.ingest.decoding import text_of_bytes
from trackway.ingest.formats._rows import header, start
from trackway.ingest.formats._seeds import opening, traces
from trackway.ingest.formats._tags import asked
from trackway.ingest.formats.sharegpt import TURNS, Talk
from trackway.ingest.head import Head
from trackway.ingest.making import args_of, at_of, rest_of, task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import text_at
from trackway.schema.events import AssistantToolCall, Event, ToolResult
from trackway.schema.plain import text_of

_NAME: Final = "seed_sharegpt"


class _RawTurn(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw()


class _RawLine(msgspec.Struct):
    conversations: list[_RawTurn]


_raw: Final = msgspec.json.Decoder(_RawLine).decode


def detect(head: Head) -> Sign | None:
    """ShareGPT lines that bear a trace_id."""
    found = [each for each in (head.objects or [head.document]) if "trace_id" in each]
    turns = found[0].get("conversations") if found else None
    if not isinstance(turns, list) or (turns and not (isinstance(turns[0], dict) and "from" in turns[0])):
        return None
    return Sign(0.95, "lines with trace_id, timestamp and conversations of turns that have from and value")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each line as an episode of one turn."""
    for each in traces(original, "conversations"):
        if isinstance(each, Trouble):
            yield each
        else:
            yield from _episode(*each)


def _episode(item: Item, session: str) -> Iterator[Entry]:
    value, place = item.value, item.place
    turns = value["conversations"]
    at = at_of(value.get("timestamp"))
    prompt = next((text_of(each.get("value")) for each in turns if _speaker(each) == "user"), "")
    head = header(
        _NAME, task_of(prompt) or text_of(value.get("trace_id")), model=text_at(value, "model"),
        metadata={"trace_id": value.get("trace_id")},
    )  # fmt: skip
    told = ("conversations", "timestamp", "model", "tools")
    yield start(
        session, head, *opening(None, value.get("tools"), at), at=at, place=place, native=rest_of(value, *told)
    )  # fmt: skip
    talk = Talk()
    raw = _raw_values(item.raw, len(turns))
    for i, turn in enumerate(turns):
        events = _seeds_own(turn, raw[i]) or talk.turn(turn)
        yield Entry(session, str(i), events, place, None, _rest(turn))


def _raw_values(line: bytes, count: int) -> list[bytes]:
    try:
        found = [bytes(each.value) for each in _raw(line).conversations]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = []
    return found if len(found) == count else [b""] * count


def _speaker(turn: Any) -> str | None:  # noqa: ANN401  whatever stands in a list of turns
    found = turn.get("from") if isinstance(turn, dict) else None
    return TURNS.get(found) if isinstance(found, str) else None


def _seeds_own(turn: Any, raw: bytes) -> list[Event]:  # noqa: ANN401
    """Calls that are objects, and results that name their call; nothing where a turn is plain ShareGPT."""
    kind = _speaker(turn)
    if kind == "call" and isinstance(turn.get("value"), dict):
        value = turn["value"]
        exact = asked(text_of_bytes(raw)) if raw[:1] == b"{" else None
        args = exact[0].args if exact else args_of(value.get("arguments"))
        return [AssistantToolCall(name=text_of(value.get("name")), args=args, call_id=text_of(value.get("id")))]
    if kind == "result" and "tool_call_id" in turn:
        failed = turn.get("is_error") is True
        return [
            ToolResult(
                call_id=text_of(turn["tool_call_id"]), content=text_of(turn.get("value")), is_error=failed,
                status="error" if failed else "ok",
            )
        ]  # fmt: skip
    return []


def _rest(turn: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if not isinstance(turn, dict):
        return None
    if _speaker(turn) is None:
        return turn
    left = rest_of(turn, "from", "value", "tool_call_id", "is_error") or {}
    value = turn.get("value")
    if isinstance(value, dict) and (more := rest_of(value, "name", "arguments", "id")):
        left["value"] = more
    return left or None


SOURCE: Final = Source(
    name=_NAME,
    title="ShareGPT traces (seed 001)",
    detect=detect,
    read=read,
    looked_for="lines with trace_id and conversations of turns that have from and value",
)
