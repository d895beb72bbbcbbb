"""Codex's response items → entries: what the model was told and what it said, as it went over the wire.

By rule, not by list: an item whose type ends in ``_call`` is an action, one that ends in ``_output`` is what came of
it, whatever tools a newer client brings. Texts that the client put in, as developer messages or between the user's
own, are context and not a person's words.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.decoding import value_of
from trackway.ingest.formats._codex_edits import patch_in
from trackway.ingest.formats._codex_results import outcome_of, result_of
from trackway.ingest.formats._codex_thread import Thread
from trackway.ingest.formats._codex_twins import AGENT, MODEL, THINKING, USER
from trackway.ingest.making import args_of, is_only_text, rest_of, text_in
from trackway.ingest.source import Entry
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import AssistantText, AssistantThinking, AssistantToolCall, Context, Event, Note, ToolResult
from trackway.schema.plain import json_text

_TAGS: Final = frozenset({
    "environment_context", "user_instructions", "turn_aborted", "user_shell_command", "skill", "skills_instructions",
    "plugins_instructions", "permissions instructions", "permissions", "collaboration_mode", "subagent_notification",
    "hook_prompt", "personality_spec", "model_switch", "realtime_conversation", "internal_model_context",
    "apps_instructions", "user_action", "codex_internal_context",
})  # fmt: skip
_STARTS: Final = (
    "# agents.md instructions", "warning: the maximum number of unified exec",
    "warning: apply_patch was requested via", "warning: your account was flagged",
)  # fmt: skip
_THOUGHT: Final = frozenset({"type", "summary", "content", "internal_chat_message_metadata_passthrough"})
_PLAIN: Final = {"type", "text"}
_CALL: Final = frozenset({"type", "name", "arguments", "input", "call_id"})
_META: Final = "internal_chat_message_metadata_passthrough"


def item(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    """A response item, by its type."""
    thread.has_items = True
    kind = payload.get("type")
    if kind == "message":
        return _message(thread, payload)
    if kind == "reasoning":
        return _reasoning(thread, payload)
    if not isinstance(kind, str):
        return [thread.note("item", payload)]
    if kind.endswith("_call"):
        return _call(thread, payload, kind)
    if kind.endswith("_output") or kind in {"tool_result", "function_result"}:
        return _output(thread, payload, kind)
    return _other(thread, payload, kind)


# --- messages -------------------------------------------------------------------------------------------------------


def _message(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    role, content = payload.get("role"), payload.get("content")
    if content is None and isinstance(payload.get("message"), str):
        content = payload["message"]
    blocks = content if isinstance(content, list) else [content]
    if role == "assistant":
        return _answer(thread, payload, blocks)
    entries = thread.settle(MODEL)
    thread.calls.close()
    events, texts = _told(thread, text(role), blocks, mapping(payload.get(_META)))
    if texts is not None:
        thread.twins.item(USER, texts)
    native = rest_of(payload, "type", "role", "content", "message")
    if not is_only_text(content) or len(events) != len(blocks):
        native = {**(native or {}), "content": content}
    said = "".join(_text(each) for each in blocks) if not thread.when else ""
    entries.append(thread.entry(f"message:{role}", thread.named(said), events, native=native))
    return entries


def _told(
    thread: Thread, role: str, blocks: list[Any], meta: dict[str, Any],
) -> tuple[list[Event], tuple[str, ...] | None]:  # fmt: skip
    """The events of a message to the model, and the texts of a person in it; None where it is the client's own."""
    whose = [_is_users(role, each, meta, i) for i, each in enumerate(blocks)]
    events: list[Event] = []
    for each, users in zip(blocks, whose, strict=True):
        if not users:
            events.append(Context(op="inject", text=_text(each), detail={"role": role or None}, at=thread.at))
    if role != "user" or (blocks and not any(whose)):
        return events, None
    texts = tuple(_text(each) for each, users in zip(blocks, whose, strict=True) if users and _has_text(each))
    texts = tuple(each for each in texts if not each.startswith(("<image", "</image>")))  # put around an image
    events.append(thread.by_user("\n".join(texts)))
    return events, texts


def _is_users(role: str, block: Any, meta: dict[str, Any], i: int) -> bool:  # noqa: ANN401  a block of any kind
    """Whether a person wrote it: as the client says, else by the marks that clients put around their own."""
    if role != "user":
        return False
    said = listing(meta.get("content_item_metadata"))
    whose = mapping(mapping(said[i]).get("provenance")).get("type") if i < len(said) else None
    return whose == "user" if isinstance(whose, str) else not is_harness(_text(block))


def is_harness(said: str) -> bool:
    """Whether a user message is one that the client made.

    >>> is_harness("<environment_context> <cwd>/</cwd> </environment_context>"), is_harness("<b>hi</b>")
    (True, False)
    """
    start = said[:80].lstrip().lower()
    if not start.startswith("<"):
        return start.startswith(_STARTS)
    name = start[1:].partition(">")[0]
    name = name if name in _TAGS else name.partition(" ")[0]
    return name in _TAGS and f"</{name}>" in said[-80:].lower()


def _answer(thread: Thread, payload: dict[str, Any], blocks: list[Any]) -> list[Entry]:
    only = blocks[0] if len(blocks) == 1 else None
    is_plain = isinstance(only, dict) and only.keys() == _PLAIN and isinstance(only["text"], str)
    texts = (only["text"],) if is_plain and only else tuple(_text(each) for each in blocks if _has_text(each))
    is_again = thread.twins.was_told(AGENT, texts)
    if is_again:
        named = thread.named("".join(texts))
        return [thread.entry("message:assistant", named, [Note(topic="message", at=thread.at)], native=payload)]
    thread.twins.item(AGENT, texts)
    entries = thread.settle()
    events = thread.model_says()
    events += [AssistantText(content=each, call=thread.calls.id, at=thread.at) for each in texts]
    if not texts:
        events.append(Note(topic="message", at=thread.at))
    else:
        thread.last_text = texts[-1]
    native = rest_of(payload, "type", "role", "content", "message")
    if not is_plain and not is_only_text(blocks):
        native = {**(native or {}), "content": payload.get("content")}
    entries.append(thread.entry("message:assistant", thread.named("".join(texts)), events, native=native))
    return entries


def _has_text(block: object) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and isinstance(block.get("text"), str))


def _text(block: object) -> str:
    return block if isinstance(block, str) else text(mapping(block).get("text"))


def _reasoning(thread: Thread, payload: dict[str, Any]) -> list[Entry]:
    parts = [*listing(payload.get("summary")), *listing(payload.get("content"))]
    texts = tuple(_text(each) for each in parts if _has_text(each))
    thread.twins.item(THINKING, texts)
    entries = thread.settle()
    events = thread.model_says()
    state = {name: each for name, each in payload.items() if each is not None and name not in _THOUGHT}
    if len(texts) != 1 or payload.get("content"):
        state |= {name: payload[name] for name in ("summary", "content") if payload.get(name)}
    thinking = AssistantThinking(content="\n\n".join(texts), state=state or None, call=thread.calls.id, at=thread.at)
    events.append(thinking)
    native = {_META: payload[_META]} if _META in payload else None
    named = thread.named(thinking.content + text(payload.get("encrypted_content")))
    entries.append(thread.entry("reasoning", named, events, native=native))
    return entries


# --- actions --------------------------------------------------------------------------------------------------------


def _call(thread: Thread, payload: dict[str, Any], kind: str) -> list[Entry]:
    entries = thread.settle() if thread.twins.held else []
    events = thread.model_says()
    call_id = text(payload.get("call_id")) or text(payload.get("id"))
    if not call_id:
        call_id = f"call-{thread.number()}"
        thread.unnamed.append(call_id)
    thread.open.add(call_id)
    name = payload.get("name") or mapping(payload.get("function")).get("name")
    given = payload.get("arguments")
    if given is None:
        given = payload.get("input") if payload.get("input") is not None else payload.get("action")
    args = args_of(given)
    if b"*** Begin Patch" in args:
        patch = patch_in(given if name == "apply_patch" else _parsed(args))
        if patch is not None:
            thread.patches[call_id] = patch
    events.append(
        AssistantToolCall(
            name=name if isinstance(name, str) else kind.removesuffix("_call"), args=args, call_id=call_id,
            call=thread.calls.id, batch=thread.calls.batch, at=thread.at,
        )
    )  # fmt: skip
    native = rest_of(payload, *_CALL, "action") if len(payload) > 4 or "action" in payload else None
    if payload.get("result") is not None:  # done by the provider: what came of it stands with it
        content = text(payload["result"]) if kind != "image_generation_call" else ""
        events.append(ToolResult(call_id=call_id, content=content, returned=payload["result"], at=thread.at))
        native = rest_of(native or {}, "result")
    entries.append(thread.entry(kind, call_id, events, native=native))
    return entries


def _parsed(args: bytes) -> Any:  # noqa: ANN401  arguments are any JSON value, or none
    try:
        return value_of(args)
    except (ValueError, RecursionError):
        return args.decode("utf-8", "replace")


def _output(thread: Thread, payload: dict[str, Any], kind: str) -> list[Entry]:
    entries = thread.settle() if thread.twins.held else []
    thread.calls.close()
    call_id = text(payload.get("call_id")) or text(payload.get("id"))
    if not call_id and thread.unnamed:
        call_id = thread.unnamed.pop(0)
    thread.open.discard(call_id)
    output, known = payload.get("output"), ["type", "call_id", "output"]
    if output is None:
        name = next((each for each in ("result", "tools") if each in payload), "output")
        output, known = payload.get(name), [*known, name]
    if isinstance(output, list) and kind == "tool_search_output":
        output = json_text(output).decode()
    held = thread.ended.pop(call_id, None)
    found, left = result_of(outcome_of(output), held and held[0], call_id, thread.at)
    events: list[Event] = [found]
    contents: list[bytes] = []
    patch = thread.patches.pop(call_id, None)
    if call_id in thread.patched:
        thread.patched.discard(call_id)
    elif patch is not None and not found.failed:
        changes, contents = thread.edits.inferred(patch, call_id, thread.at)
        events += changes
    native = rest_of(payload, *known) if len(payload) > 3 else None
    if left:
        native = {**(native or {}), "ended": left}
    entries.append(thread.entry(kind, call_id, events, native=native, contents=contents))
    return entries


# --- the rest -------------------------------------------------------------------------------------------------------


def _other(thread: Thread, payload: dict[str, Any], kind: str) -> list[Entry]:
    entries = thread.settle()
    native = rest_of(payload, "type")
    events: list[Event]
    if kind == "agent_message":
        thread.calls.close()
        detail = {"author": payload.get("author"), "recipient": payload.get("recipient")}
        events = [Context(op="inject", text=text_in(payload.get("content")), detail=detail, at=thread.at)]
        native = rest_of(
            payload, "type", "author", "recipient", *(["content"] if is_only_text(payload.get("content")) else [])
        )
    elif kind in {"compaction", "compaction_summary", "context_compaction"}:
        events = [Context(op="compact", detail=rest_of(payload, "type"), at=thread.at)]
        native = None
    elif kind == "additional_tools":
        events = [Context(op="inject", tools=payload.get("tools"), at=thread.at)]
        native = rest_of(payload, "type", "tools")
    else:
        events = [Note(topic=kind, at=thread.at)]
    named = text(payload.get("id")) or thread.named(payload)
    entries.append(thread.entry(kind, named, events, native=native))
    return entries
