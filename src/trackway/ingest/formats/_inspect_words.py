"""What Inspect's messages say: attachments put back in their place, and messages as the shared reader takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trackway.ingest.formats._message_parts import text_shown
from trackway.ingest.values import part_of, text_at
from trackway.schema.events import ToolResult
from trackway.schema.plain import text_of

_REFS: Final = ("attachment://", "tc://")
_DEEPEST: Final = 60
_STATUS: Final = {"timeout": "timeout", "approval": "denied", "permission": "error", "cancelled": "interrupted"}


class Attachments:
    """The long texts of a sample, which stand once in it and are named elsewhere."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def text(self, value: str) -> str:
        """A text, or the one it names."""
        if not value.startswith(_REFS):
            return value
        found = self._found.get(value.split("://", 1)[1])
        return found if isinstance(found, str) else value

    def whole(self, value: Any, depth: int = 0) -> Any:  # noqa: ANN401  a JSON value is anything
        """A value with everything in it that names an attachment put back; itself where nothing does."""
        if not self._found or depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            made = [self.whole(each, depth + 1) for each in value]
            return value if all(a is b for a, b in zip(made, value, strict=True)) else made
        if isinstance(value, dict):
            changed = {key: new for key, each in value.items() if (new := self.whole(each, depth + 1)) is not each}
            return {**value, **changed} if changed else value
        return value


def signature(message: Any) -> tuple[str, ...]:  # noqa: ANN401
    """What tells a message from another where it has no id: its role, its text, the calls it makes or answers."""
    if not isinstance(message, dict):
        return ("", text_of(message))
    role, said = text_of(message.get("role")), text_shown(message.get("content"))
    if role == "tool":
        return (role, text_of(message.get("tool_call_id")), said)
    calls = message.get("tool_calls")
    ids = [text_of(each.get("id")) for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    return (role, said, *ids)


def result_of(call_id: str, result: Any, error: Any, **more: Any) -> ToolResult:  # noqa: ANN401
    """What came of a call: the model sees the error where there is one, what the tool gave stands beside it."""
    said = text_shown(result) if isinstance(result, (str, list)) or result is None else text_of(result)
    if not isinstance(error, dict):
        return ToolResult(call_id=call_id, content=said, **more)
    told = text_at(error, "message") or said
    status = _STATUS.get(text_of(error.get("type")), "error")
    return ToolResult(
        call_id=call_id, content=told, is_error=True, status=status,
        returned=result if said and said != told else None, **more,
    )  # fmt: skip


def actor_of(message: dict[str, Any]) -> str:
    """Who speaks as the user: a person at the keyboard only where the log says so."""
    return "human" if message.get("source") == "operator" else "harness"


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    """An assistant's message as the shared reader takes it: tools that ran on the provider's side apart from text."""
    content = message.get("content")
    if isinstance(content, list):
        content = [each for each in content if not is_server_tool(each)]
    return {**message, "content": content, "role": "assistant"}


def is_server_tool(block: Any) -> bool:  # noqa: ANN401
    """Whether a block is a call with its result: made and answered by the provider."""
    return isinstance(block, dict) and block.get("type") == "tool_use" and "tool_type" in block


def usage_of(output: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """What a call used. Inspect counts what came from a cache beside the input, under names of its own."""
    return {key: each for key, each in part_of(output, "usage").items() if each is not None} or None
