"""Codex's other lines → entries: events for people, and the client's own records.

They add what items lack: how a command ended, which files a patch changed, tokens, turns, rewinds. A paginated rollout
tells the same as a legacy one, as completed items: both are read into the same entries. A kind that nobody knows is a
note that keeps all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trackway.ingest.formats._codex_results import ended_of
from trackway.ingest.formats._codex_thread import Thread
from trackway.ingest.formats._codex_twins import AGENT, MODEL, THINKING, USER, Held
from trackway.ingest.making import rest_of, text_in
from trackway.ingest.source import Entry
from trackway.ingest.values import listing, mapping, text, whole
from trackway.schema.events import Context, Event, Note

Told = Callable[[Thread, dict[str, Any]], list[Entry]]
_OLD_NAMES: Final = {"turn_started": "task_started", "turn_complete": "task_complete"}
_SAME: Final = {
    "context_compacted": "context_compaction", "web_search_end": "web_search", "view_image_tool_call": "image_view",
    "image_generation_end": "image_generation", "collab_agent_spawn_end": "collab_agent_tool_call",
    "collab_agent_interaction_end": "collab_agent_tool_call", "collab_waiting_end": "collab_agent_tool_call",
    "collab_close_end": "collab_agent_tool_call", "collab_resume_end": "collab_agent_tool_call",
}  # fmt: skip
"""What a legacy rollout has as an event, and a paginated one as a completed item."""
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
_ITEM_IDS: Final = ("thread_id", "turn_id", "item", "started_at_ms", "completed_at_ms", "type")


def event(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """An event, by its type."""
    kind = payload.get("type")
    if not isinstance(kind, str):
        return [thread.note("event", payload)]
    told = _EVENTS.get(kind)
    return told(thread, payload) if told is not None else [_noted(thread, payload, _SAME.get(kind, kind))]


def _noted(thread: Thread, fields: dict[str, Any], topic: str) -> Entry:
    """What is worth a note, under one name for both shapes of rollouts; ids that one of them makes up do not count."""
    return thread.note(topic, fields, *(["id"] if topic == "context_compaction" else []), text=_words(fields))


def _words(fields: dict[str, Any]) -> str | None:
    """What a person would read of it."""
    return next(
        (fields[name] for name in ("message", "text", "thread_name") if isinstance(fields.get(name), str)), None
    )


# --- texts that items say, too --------------------------------------------------------------------------------------


def _twin(thread: Thread, kind: str, said: str, left: dict[str, Any]) -> list[Entry]:
    entries = thread.settle(MODEL if kind == USER else {USER}) if thread.twins.held else []
    left = {name: each for name, each in left.items() if each not in _EMPTY}
    if kind == USER:
        thread.about.prompt(said)  # it names the session wherever its item comes
    else:
        thread.has_answers = True
    if not thread.twins.is_said(kind, said):
        thread.twins.hold(Held(kind, said, thread.when, thread.at, thread.place, left or None))
    elif left:
        entries.append(thread.note(f"{kind}_message", left))
    return entries


def _user_message(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    # Whether it was typed or pasted, and by which client, is nothing a reader asks for; images stand in the item.
    left = rest_of(payload, "type", "message", "kind", "client_id", "images", "image_details") or {}
    return _twin(thread, USER, text(payload.get("message")), left)


def _agent_message(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    return _twin(thread, AGENT, text(payload.get("message")), rest_of(payload, "type", "message", "phase") or {})


def _agent_reasoning(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    return _twin(thread, THINKING, text(payload.get("text")), {})


def _user_item(thread: Thread, item: dict[str, Any]) -> list[Entry]:
    said = "".join(text(mapping(each).get("text")) for each in listing(item.get("content")))
    marks = [each for part in listing(item.get("content")) for each in listing(mapping(part).get("text_elements"))]
    return _twin(thread, USER, said, {"text_elements": marks})


def _agent_item(thread: Thread, item: dict[str, Any]) -> list[Entry]:
    said = "".join(text(mapping(each).get("text")) for each in listing(item.get("content")))
    return _twin(thread, AGENT, said, rest_of(item, "type", "id", "content", "phase") or {})


def _thinking_item(thread: Thread, item: dict[str, Any]) -> list[Entry]:
    entries: list[Entry] = []
    for each in (*listing(item.get("summary_text")), *listing(item.get("raw_content"))):
        if text(each):
            entries += _twin(thread, THINKING, each, {})
    return entries


# --- what came of calls ---------------------------------------------------------------------------------------------


def _ended(thread: Thread, fields: dict[str, Any], name: str) -> list[Entry]:
    """The end of a call: part of its result, where that is still to come; else a note."""
    call_id = text(fields.get("call_id")) or text(fields.get("id"))
    ended = ended_of(fields)
    return thread.hold_end(call_id, name, ended) if call_id in thread.open else [thread.end_note(name, ended)]


def _command(thread: Thread, fields: dict[str, Any]) -> list[Entry]:
    return _ended(thread, fields, "command_end")


def _tool(thread: Thread, fields: dict[str, Any]) -> list[Entry]:
    return _ended(thread, fields, "tool_end")


def _patch(thread: Thread, fields: dict[str, Any]) -> list[Entry]:
    call_id = text(fields.get("call_id")) or text(fields.get("id"))
    failed = fields.get("success") is False or fields.get("status") in ("failed", "declined")
    thread.patched.add(call_id)
    events, contents = ([], []) if failed else thread.edits.applied(fields.get("changes"), call_id, thread.at)
    if not events:
        return [thread.note("patch_end", fields, "call_id", detail={"call_id": call_id, "success": not failed})]
    native = rest_of(fields, "type", "call_id", "id", "changes") or {}
    native["changes"] = {path: _without_content(each) for path, each in mapping(fields.get("changes")).items()}
    return [thread.entry("patch_end", call_id, events, native=native, contents=contents)]


def _without_content(change: Any) -> Any:  # noqa: ANN401  whatever stands there
    """A change without what is kept as the file's content."""
    return rest_of(change, "content") if isinstance(change, dict) and "content" in change else change


# --- tokens ---------------------------------------------------------------------------------------------------------


def _token_count(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    told = mapping(payload.get("info"))
    limits = payload.get("rate_limits")
    total, last = told.get("total_token_usage"), told.get("last_token_usage")
    entries = thread.settle() if thread.twins.held and thread.calls.is_news(total) else []
    events = thread.calls.counted(total, last, thread.model, (thread.when, thread.at))
    if events:
        thread.limits = limits if limits is not None else thread.limits
        return [*entries, thread.entry("token_count", "", events, native=rest_of(payload, "type"))]
    if events is None:
        return [*entries, thread.note("token_count", payload)]
    # A sum again. What it says of limits is said once for as long as it does not change.
    if limits not in (None, thread.limits) and not _is_blank(mapping(limits)):
        thread.limits = limits
        entries.append(thread.note("rate_limits", payload))
    return entries


def usage_record(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """The tokens of one response, beside the thread's sum."""
    entries = thread.settle()
    events = thread.calls.recorded(
        payload.get("thread_token_usage"), payload.get("usage"), thread.model, (thread.when, thread.at)
    )
    if not events:
        return [*entries, thread.note("token_usage_record", payload)]
    return [*entries, thread.entry("token_usage_record", "", events, native=rest_of(payload, "type", "usage"))]


def _is_blank(limits: dict[str, Any]) -> bool:
    return not any(each for name, each in limits.items() if name not in {"limit_id", "limit_name", "plan_type"})


# --- turns ----------------------------------------------------------------------------------------------------------


def _task_started(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    thread.calls.close()
    return [*thread.finish_calls(), thread.note("task_started", payload)]


def _task_over(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    entries = [*thread.settle(), *thread.finish_calls()]
    thread.calls.close()
    kind = text(payload.get("type"))
    known = ["duration_ms"]
    if payload.get("last_agent_message") in (None, thread.last_text):
        known.append("last_agent_message")
    took = whole(payload.get("duration_ms"))
    entries.append(
        thread.note(
            _OLD_NAMES.get(kind, kind), payload, *known, text=text(payload.get("reason")) or None, duration_ms=took
        )
    )
    return entries


def _rolled_back(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    entries = [*thread.settle(), *thread.finish_calls()]
    thread.calls.close()
    rewind = Context(op="rewind", detail=rest_of(payload, "type"), at=thread.at)
    entries.append(thread.entry("thread_rolled_back", thread.named(payload), [rewind]))
    return entries


def _item_completed(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    item = payload.get("item")
    if not isinstance(item, dict):
        return [thread.note("item_completed", payload)]
    kind = text(item.get("type"))
    told = _ITEMS.get(kind)
    if told is not None:
        return told(thread, item)
    native = {**item, **{name: payload[name] for name in payload if name not in _ITEM_IDS}}
    topic = "".join(f"_{each.lower()}" if each.isupper() else each for each in kind).strip("_") or "item_completed"
    return [_noted(thread, native, topic)]


_EVENTS: Final[dict[str, Told]] = {
    "user_message": _user_message, "agent_message": _agent_message, "agent_reasoning": _agent_reasoning,
    "agent_reasoning_raw_content": _agent_reasoning, "exec_command_end": _command, "mcp_tool_call_end": _tool,
    "dynamic_tool_call_response": _tool, "patch_apply_end": _patch, "token_count": _token_count,
    "task_started": _task_started, "turn_started": _task_started, "task_complete": _task_over,
    "turn_complete": _task_over, "turn_aborted": _task_over, "thread_rolled_back": _rolled_back,
    "item_completed": _item_completed,
}  # fmt: skip
_ITEMS: Final[dict[str, Told]] = {
    "UserMessage": _user_item, "AgentMessage": _agent_item, "Reasoning": _thinking_item, "CommandExecution": _command,
    "McpToolCall": _tool, "DynamicToolCall": _tool, "FileChange": _patch,
}  # fmt: skip


# --- the client's own records ---------------------------------------------------------------------------------------


def turn_context(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """What a turn goes by: the model above all."""
    model = text(payload.get("model")) or None
    thread.model = model or thread.model
    thread.about.model = thread.about.model or model
    thread.about.note(cwd=text(payload.get("cwd")))
    detail = {name: payload[name] for name in ("model", "effort", "approval_policy") if payload.get(name) is not None}
    return [thread.note("turn_context", payload, *detail, detail=detail or None)]


def compacted(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """What the model sees from here on instead of all that was before."""
    entries = [*thread.settle(), *thread.finish_calls()]
    thread.calls.close()
    history = payload.get("replacement_history")
    detail = None if history is None else {"replacement_history": history}
    event = Context(op="compact", text=text(payload.get("message")) or None, detail=detail, at=thread.at)
    native = rest_of(payload, "type", "message", "replacement_history")
    entries.append(thread.entry("compacted", thread.named(payload), [event], native=native))
    return entries


def from_agent(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """What another agent told this one."""
    event = Context(op="inject", text=text_in(payload.get("content")), detail=rest_of(payload, "content"), at=thread.at)
    return [thread.entry("inter_agent_communication", "", [event])]


def set_up(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """A session's own words: the system prompt and the tools where it has them, the instructions of its user."""
    base = payload.get("base_instructions")
    prompt = text(base) or text(mapping(base).get("text"))
    tools = payload.get("dynamic_tools")
    given = text(payload.get("instructions"))
    events: list[Event] = []
    if prompt or tools:
        events.append(Context(op="set", system_prompt=prompt or None, tools=tools or None, at=thread.at))
    if given:
        events.append(Context(op="inject", text=given, detail={"role": None, "field": "instructions"}, at=thread.at))
    native = rest_of(payload, "base_instructions", "dynamic_tools", "instructions") or {}
    if isinstance(base, dict) and (more := rest_of(base, "text")):
        native["base_instructions"] = more
    named = text(payload.get("id"))
    return [thread.entry("session_meta", named, events or [Note(topic="session_meta", at=thread.at)], native=native)]
