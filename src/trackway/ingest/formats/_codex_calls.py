"""A Codex trace's requests, answers and calls of tools → entries.

A request that begins with the messages of the one before it is kept as a difference to it, and so is one that was
sent as a difference in the first place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from msgspec.structs import replace

from trackway.ingest.formats._agents import elapsed
from trackway.ingest.formats._codex_bundle import Bundle, Request
from trackway.ingest.formats._codex_results import ended_of, outcome_of, result_of
from trackway.ingest.making import args_of, rest_of, text_in
from trackway.ingest.source import Entry
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Event,
    ModelCall,
    ModelResult,
    Note,
)

_STATUS: Final = {"failed": "error", "cancelled": "interrupted", "aborted": "interrupted"}


# --- requests -------------------------------------------------------------------------------------------------------


def request(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """A request to a model, with all it held."""
    call = text(payload.get("inference_call_id")) or text(payload.get("compaction_request_id"))
    asked = bundle.payload(payload.get("request_payload"))
    fields, model = mapping(asked), text(payload.get("model")) or None
    bundle.about.model = bundle.about.model or model
    given = fields.get("input")
    messages = given if isinstance(given, list) else []
    base, start, added = _difference(bundle, mapping(payload.get("request_input_mode")), messages)
    made = bundle.request(call, (base.messages[:start] if base else []) + added)
    event = ModelCall(
        id=call, model=model, parameters=rest_of(fields, "model", "input", "tools", "instructions"),
        system=fields.get("instructions"), tools=fields.get("tools"), base=base.call if base else None,
        reuse=((0, 0, start),) if base else (), messages=tuple(added) if asked is not None else None,
        agent=bundle.agent, at=bundle.at,
    )  # fmt: skip
    prompts = bundle.prompts(added if base else made.messages)
    native = rest_of(payload, "type", "inference_call_id", "thread_id", "model", "request_payload", "codex_turn_id")
    return [bundle.entry([*prompts, event], native)]


def _difference(bundle: Bundle, mode: dict[str, Any], messages: list[Any]) -> tuple[Request | None, int, list[Any]]:
    """The request this one is told by, how many of its messages stand here too, and those that are added."""
    previous = text(mode.get("previous_response_id"))
    if previous:
        base = bundle.before(previous)
        if base is not None:
            return base, len(base.messages), [*base.answer, *messages]
        before = mapping(bundle.payload(mode.get("prefix_payload")))
        return None, 0, [*listing(before.get("input")), *messages]
    latest = bundle.requests.get(bundle.agent)
    if latest:
        same = _shared(latest[-1].messages, messages)
        if same:
            return latest[-1], same, messages[same:]
    return None, 0, messages


def _shared(before: list[Any], now: list[Any]) -> int:
    return next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))


def response(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """What came of a request: what the model said, or how far it came."""
    call = text(payload.get("inference_call_id")) or text(payload.get("compaction_request_id"))
    ref = payload.get("response_payload") or payload.get("partial_response_payload")
    answer = mapping(bundle.payload(ref))
    items = listing(answer.get("output_items"))
    named = text(payload.get("response_id")) or text(answer.get("response_id"))
    made = bundle.answered(call, named, items)
    events = [event for each in items for event in _said(bundle, mapping(each), call)]
    usage = answer.get("token_usage")
    events.append(
        ModelResult(
            id=call, usage=usage if isinstance(usage, dict) else None,
            latency_ms=elapsed(made.at, bundle.at) if made else None,
            finish_reason="cancelled" if payload.get("type") == "inference_cancelled" else None,
            error=text(payload.get("error")) or text(payload.get("reason")) or None,
            response=rest_of(answer, "token_usage"), agent=bundle.agent, at=bundle.at,
        )
    )  # fmt: skip
    known = (
        "type",
        "inference_call_id",
        "response_payload",
        "partial_response_payload",
        "response_id",
        "error",
        "reason",
    )
    return [bundle.entry(events, rest_of(payload, *known))]


def _said(bundle: Bundle, item: dict[str, Any], call: str) -> Iterator[Event]:
    """What the model said with one item of a response."""
    kind, at, agent = text(item.get("type")), bundle.at, bundle.agent
    if kind == "message":
        yield AssistantText(content=text_in(item.get("content")), call=call, agent=agent, at=at)
    elif kind == "reasoning":
        said = text_in([*listing(item.get("summary")), *listing(item.get("content"))])
        yield AssistantThinking(content=said, state=rest_of(item, "type"), call=call, agent=agent, at=at)
    elif kind.endswith("_call"):
        call_id = text(item.get("call_id")) or text(item.get("id"))
        if call_id not in bundle.called:
            bundle.called.add(call_id)
            given = next((item[each] for each in ("arguments", "input", "action") if item.get(each) is not None), None)
            name = text(item.get("name")) or kind.removesuffix("_call")
            batch = crc32(call.encode("utf-8", "surrogatepass"))
            yield AssistantToolCall(
                name=name, args=args_of(given), call_id=call_id, call=call, batch=batch, agent=agent, at=at
            )
    else:
        yield Note(topic=kind or "item", detail=item, call=call, agent=agent, at=at)


# --- tools ----------------------------------------------------------------------------------------------------------


def tool_started(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """A call under way: said before by the model's answer, but where code called it, or the answer is not over."""
    named = _visible(payload)
    asked = mapping(bundle.payload(payload.get("invocation_payload")))
    bundle.started[text(payload.get("tool_call_id"))] = bundle.at
    native = (rest_of(payload, "type", "invocation_payload", "summary") or {}) | {"invocation": asked}
    event: Event = Note(topic="tool_call_started", agent=bundle.agent, at=bundle.at)
    if named not in bundle.called:
        bundle.called.add(named)
        given = mapping(asked.get("payload"))
        args = next(
            (given[each] for each in ("arguments", "input") if given.get(each) is not None), rest_of(given, "type")
        )
        name = text(asked.get("tool_name")) or text(mapping(payload.get("kind")).get("type")) or "tool"
        event = AssistantToolCall(name=name, args=args_of(args), call_id=named, agent=bundle.agent, at=bundle.at)
    bundle.runtime[text(payload.get("tool_call_id"))] = {"call_id": named}
    return [bundle.entry([event], native)]


def _visible(payload: dict[str, Any]) -> str:
    return text(payload.get("model_visible_call_id")) or text(payload.get("tool_call_id"))


def runtime_ended(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """How a tool ended where it was carried out: its exit code, the files of a patch."""
    tool = text(payload.get("tool_call_id"))
    fields = mapping(bundle.payload(payload.get("runtime_payload")))
    held = bundle.runtime.setdefault(tool, {"call_id": tool})
    held["fields"] = fields
    changes, contents = bundle.edits.applied(fields.get("changes"), held["call_id"], bundle.at)
    if fields.get("success") is False:
        changes, contents = [], []
    if bundle.agent is not None:
        changes = [replace(each, agent=bundle.agent) for each in changes]
    events: list[Event] = changes or [Note(topic="tool_call_runtime_ended", agent=bundle.agent, at=bundle.at)]
    native = (rest_of(payload, "type", "runtime_payload") or {}) | {"runtime": fields}
    return [bundle.entry(events, native, contents)]


def tool_ended(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """What the model was given back."""
    tool = text(payload.get("tool_call_id"))
    held = bundle.runtime.pop(tool, {"call_id": tool})
    gave = mapping(bundle.payload(payload.get("result_payload")))
    item = mapping(gave.get("response_item")) or gave
    output = item.get("output", item.get("result", item.get("tools", gave.get("value", gave or None))))
    ended = ended_of(held["fields"]) if "fields" in held else None
    result, _ = result_of(outcome_of(output), ended, held["call_id"], bundle.at)
    status = _STATUS.get(text(payload.get("status")), "ok") if result.status == "ok" else result.status
    took = elapsed(bundle.started.pop(tool, 0), bundle.at)
    event = replace(result, status=status, is_error=status == "error", duration_ms=took, agent=bundle.agent)
    native = (rest_of(payload, "type", "tool_call_id", "result_payload") or {}) | {
        "result": rest_of(gave, "response_item")
    }
    return [bundle.entry([event], native)]
