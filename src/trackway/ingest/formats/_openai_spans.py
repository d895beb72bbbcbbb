"""The spans of one trace of the OpenAI Agents SDK → entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from trackway.ingest.formats._beginnings import Held, at_in
from trackway.ingest.formats._message_parts import text_shown
from trackway.ingest.formats._response_items import Items
from trackway.ingest.formats._rows import header, name_of, start
from trackway.ingest.making import Keys, args_of, at_of, rest_of
from trackway.ingest.source import Entry, Place
from trackway.ingest.values import part_of, text_at
from trackway.schema.canonical import hash_args
from trackway.schema.events import AssistantToolCall, Context, Event, ModelCall, ModelResult, Note, ToolResult
from trackway.schema.plain import text_of

_TALK: Final = ("generation", "response")


class Trace:
    """One trace on its way; entries are held until the first prompt is there."""

    def __init__(self, source: str, name: str) -> None:
        self._source = source
        self._session = name
        self._keys = Keys()
        self._items = Items()
        self._held = Held(self._start)
        self._fields: dict[str, Any] = {}
        self._seen: set[str] = set()
        self._waiting: list[AssistantToolCall] = []
        self._answered: set[str] = set()

    def take(self, value: dict[str, Any], place: Place) -> Iterator[Entry]:
        """A trace or a span."""
        if value["object"] == "trace":
            entry = self._trace(value, place)
        else:
            key = self._keys.of(value["id"])
            events, told = self._span(value, key)
            left = rest_of(value, "object", "id", "trace_id", "started_at", "ended_at", "span_data") or {}
            left = {name: each for name, each in left.items() if each is not None}
            kept = rest_of(part_of(value, "span_data"), *told)
            if kept:
                left["span_data"] = kept
            entry = Entry(self._session, key, events, place, None, left or None)
        yield from self._held.take(entry)

    def flush(self) -> Iterator[Entry]:
        """What is still held."""
        return self._held.flush()

    def _start(self, task: str, held: Sequence[Entry]) -> Entry:
        named = text_at(self._fields, "workflow_name")
        more = {name: each for name, each in self._fields.items() if name in ("workflow_name", "group_id") and each}
        head = header(self._source, task or named or "trace", metadata=more or None)
        return start(self._session, head, at=at_in(held))

    def _trace(self, value: dict[str, Any], place: Place) -> Entry:
        """A trace is handed over when it begins and again when it ends."""
        key = self._keys.of("trace")
        self._fields = {**value, **self._fields}
        note = Note(topic="trace", text=text_at(value, "workflow_name"))
        return Entry(self._session, key, [note], place, None, rest_of(value, "object", "workflow_name"))

    def _span(self, value: dict[str, Any], key: str) -> tuple[list[Event], tuple[str, ...]]:
        """The events of a span, and the fields of its own that they say."""
        own = part_of(value, "span_data")
        began, ended = at_of(value.get("started_at")), at_of(value.get("ended_at"))
        error = value.get("error")
        kind = own.get("type")
        if kind in _TALK:
            return list(self._talk(own, key, began, ended, error)), ("type", "input", "output", "usage", "model")
        if kind == "function":
            return list(self._function(own, key, began, ended, error)), ("type", "name", "input", "output")
        if kind == "handoff":
            said = f"{text_of(own.get('from_agent'))} → {text_of(own.get('to_agent'))}"
            return [Note(topic="handoff", text=said, at=ended)], ("type",)
        return [Note(topic=text_of(kind) or "span", text=text_at(own, "name"), at=ended)], ("type", "name")

    def _talk(self, own: dict[str, Any], key: str, began: int, ended: int, error: Any) -> Iterator[Event]:  # noqa: ANN401
        """A model call: what is new in its input, what it gave, what it cost."""
        given = own.get("input")
        for each in (
            given if isinstance(given, list) else [] if given in (None, "") else [{"role": "user", "content": given}]
        ):
            yield from self._new(each, began)
        instructions = text_at(part_of(own, "response"), "instructions")
        if instructions and self._is_new({"instructions": instructions}):
            yield Context(op="set", system_prompt=instructions, at=began)
        settings = own.get("model_config")
        yield ModelCall(
            id=key, model=text_at(own, "model"), at=began, parameters=settings if isinstance(settings, dict) else None
        )
        output = own.get("output")
        for each in output if isinstance(output, list) else []:
            self._is_new(each)
            yield from self._said(each, ended, key)
        usage = own.get("usage")
        yield ModelResult(
            id=key, usage=usage if isinstance(usage, dict) else None, at=ended,
            latency_ms=_between(began, ended), error=_error(error),
        )  # fmt: skip

    def _new(self, item: Any, at: int) -> list[Event]:  # noqa: ANN401
        """An item of an input: each call repeats what came before it."""
        if not self._is_new(item):
            return []
        answers = text_at(item, "tool_call_id") or text_at(item, "call_id")
        if answers and (text_at(item, "role") == "tool" or (text_at(item, "type") or "").endswith("_output")):
            if answers in self._answered:
                return []  # its span told it already
            self._answered.add(answers)
        return self._said(item, at, None)

    def _is_new(self, item: Any) -> bool:  # noqa: ANN401
        """Whether it was not met before; an item that comes back has lost what was null in it."""
        known = item if not isinstance(item, dict) else {key: each for key, each in item.items() if each is not None}
        name = name_of(known)
        if isinstance(item, dict) and isinstance(item.get("call_id"), str):
            name = f"{item.get('type')} {item['call_id']}"
        if name in self._seen:
            return False
        self._seen.add(name)
        return True

    def _said(self, item: Any, at: int, call: str | None) -> list[Event]:  # noqa: ANN401
        found = self._items.item(item, at=at, call=call).events
        self._waiting += [each for each in found if isinstance(each, AssistantToolCall)]
        return found

    def _function(self, own: dict[str, Any], key: str, began: int, ended: int, error: Any) -> Iterator[Event]:  # noqa: ANN401
        name, args = text_of(own.get("name")), args_of(own.get("input"))
        call = self._asked(name, args)
        if call is None:
            call = AssistantToolCall(name=name, args=args, call_id=key, at=began)
            yield call
        output = own.get("output")
        if call.call_id in self._answered:
            yield Note(topic="function", text=name, at=ended)  # the model was shown what came of it before
        elif output is not None or error is not None:
            self._answered.add(call.call_id)
            failed = error is not None
            yield ToolResult(
                call_id=call.call_id, content=text_shown(output) if output is not None else _error(error) or "",
                is_error=failed, status="error" if failed else "ok", at=ended, duration_ms=_between(began, ended),
            )  # fmt: skip

    def _asked(self, name: str, args: bytes) -> AssistantToolCall | None:
        """The oldest call that waits for this tool, and with these arguments where one does."""
        same = [each for each in self._waiting if each.name == name]
        wanted = hash_args(args)
        found = next((each for each in same if hash_args(each.args) == wanted), same[0] if len(same) == 1 else None)
        if found is not None:
            self._waiting.remove(found)
        return found


def _between(began: int, ended: int) -> float | None:
    return (ended - began) / 1e6 if began and ended >= began else None


def _error(error: Any) -> str | None:  # noqa: ANN401
    if error is None:
        return None
    return text_at(error, "message") or text_of(error)
