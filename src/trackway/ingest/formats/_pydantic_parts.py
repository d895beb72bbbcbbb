"""The parts of Pydantic AI's messages → events."""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.making import args_of, at_of, text_in
from trackway.ingest.values import text_at
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of

_OUTCOMES: Final = {
    "failed": "error", "retried": "error", "error": "error", "denied": "denied", "interrupted": "interrupted",
}  # fmt: skip
_STATE: Final = ("signature", "id", "provider_name", "provider_details")
_TOLD: Final = frozenset(("part_kind", "timestamp", "content", "tool_name", "args", "tool_call_id"))
_CALLS: Final = ("tool-call", "builtin-tool-call", "native-tool-call")
_RETURNS: Final = ("tool-return", "builtin-tool-return", "native-tool-return")


class Parts:
    """The parts of one conversation, message by message; ``rest`` is what the last message's parts left over."""

    def __init__(self) -> None:
        self.rest: list[Any] = []
        self._instructions: str | None = None
        self._batch = 0

    def of(self, message: dict[str, Any], at: int, key: str) -> list[Event]:
        """The events of a message."""
        parts = message.get("parts")
        parts = parts if isinstance(parts, list) else []
        self.rest = [left for each in parts if (left := _rest(each))]
        if message.get("kind") == "response":
            return self._response(message, parts, at, key)
        found = self._told(text_at(message, "instructions"), at)
        for each in parts:
            found += [self._prompted(one) for one in _requested(each, at)]
        return found

    def _prompted(self, event: Event) -> Event:
        """A system prompt beside another one is put in: it does not replace it."""
        if not isinstance(event, Context) or event.op != "set":
            return event
        if self._instructions is None:
            self._instructions = ""
            return event
        return Context(op="inject", text=event.system_prompt, detail={"role": "system"}, at=event.at)

    def _told(self, instructions: str | None, at: int) -> list[Event]:
        if instructions is None or instructions == self._instructions:
            return []
        self._instructions = instructions
        return [Context(op="set", system_prompt=instructions, at=at)]

    def _response(self, message: dict[str, Any], parts: list[Any], at: int, key: str) -> list[Event]:
        call = text_at(message, "provider_response_id") or key
        asked = sum(1 for each in parts if isinstance(each, dict) and each.get("part_kind") in _CALLS)
        self._batch += asked > 1
        found: list[Event] = [ModelCall(id=call, model=text_at(message, "model_name"), at=at)]
        for each in parts:
            found += _responded(each, at, call, self._batch if asked > 1 else None)
        usage = message.get("usage")
        found.append(
            ModelResult(
                id=call, usage=usage if isinstance(usage, dict) else None, at=at,
                finish_reason=text_at(message, "finish_reason"), model=text_at(message, "model_name"),
            )
        )  # fmt: skip
        return found


def _rest(part: Any) -> Any:  # noqa: ANN401  what of a part no event says
    if not isinstance(part, dict):
        return part
    left = {name: each for name, each in part.items() if name not in _TOLD and each is not None}
    content = part.get("content")
    if content is not None and not isinstance(content, str):
        left["content"] = content
    return {"part_kind": part.get("part_kind"), **left} if left else None


def _requested(part: Any, at: int) -> list[Event]:  # noqa: ANN401
    """A part of a request: what a model is given."""
    kind = part.get("part_kind") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        return [Note(topic="part", detail=part, at=at)]
    at = at_of(part.get("timestamp")) or at
    if kind == "system-prompt":
        return [Context(op="set", system_prompt=text_of(part.get("content")), at=at)]
    if kind == "user-prompt":
        return [User(content=_text(part.get("content")), at=at)]
    if kind in _RETURNS:
        return [_returned(part, at)]
    if kind == "retry-prompt":
        if part.get("tool_name") is None:
            return [User(content=_text(part.get("content")), actor="harness", at=at)]
        return [_returned({**part, "outcome": "failed"}, at)]
    if kind == "compaction":
        return [Context(op="compact", text=_text(part.get("content")), at=at)]
    return [Note(topic=kind, text=text_at(part, "content"), at=at)]


def _responded(part: Any, at: int, call: str, batch: int | None) -> list[Event]:  # noqa: ANN401
    """A part of a response: what a model gave, and what tools on its provider's side did meanwhile."""
    kind = part.get("part_kind") if isinstance(part, dict) else None
    if kind == "text":
        return [AssistantText(content=_text(part.get("content")), at=at, call=call)]
    if kind == "thinking":
        state = {name: part[name] for name in _STATE if part.get(name) is not None}
        return [AssistantThinking(content=_text(part.get("content")), state=state or None, at=at, call=call)]
    if kind in _CALLS:
        return [
            AssistantToolCall(
                name=text_of(part.get("tool_name")), args=args_of(part.get("args")),
                call_id=text_of(part.get("tool_call_id")), at=at, call=call, batch=batch,
            )
        ]  # fmt: skip
    return _requested(part, at)


def _returned(part: dict[str, Any], at: int) -> ToolResult:
    status = _OUTCOMES.get(text_of(part.get("outcome")), "ok")
    return ToolResult(
        call_id=text_of(part.get("tool_call_id")), content=_text(part.get("content")), is_error=status == "error",
        status=status, at=at,
    )  # fmt: skip


def _text(content: Any) -> str:  # noqa: ANN401
    """What a model sees of a content: texts of a list one below the other, any other value as JSON."""
    if isinstance(content, list) and any(isinstance(each, str) for each in content):
        return text_in(content)
    return text_of(content)
