"""The parts of chat messages, one by one: content as text, thoughts, calls; and what of a message no event says."""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.formats._tags import Asked
from trackway.ingest.making import args_of, is_only_text, text_in
from trackway.schema.events import AssistantThinking
from trackway.schema.plain import text_of

_SAME: Final = frozenset(("system", "user", "assistant", "tool"))
_ALWAYS: Final = frozenset(("role",))
_MODEL: Final = frozenset(("tool_calls", "function_call", "refusal", "reasoning", "reasoning_content"))
_PLAIN_CALL: Final = frozenset(("id", "type", "function"))
_PLAIN_FUNCTION: Final = frozenset(("name", "arguments"))
_STATE: Final = ("signature", "data", "id", "encrypted_content", "redacted", "summary")


def text_shown(content: Any) -> str:  # noqa: ANN401
    """A content as text: its own text where it has one, else its JSON."""
    if isinstance(content, str):
        return content
    text = text_in(content)
    return text if text or isinstance(content, list) or not content else text_of(content)


def thought_of(block: dict[str, Any], at: int, call: str | None, agent: str | None) -> AssistantThinking:
    """A block of thinking, with what a provider wants back beside it."""
    text = next((block[key] for key in ("thinking", "reasoning", "text") if isinstance(block.get(key), str)), "")
    state = {key: block[key] for key in _STATE if block.get(key) not in (None, False)}
    return AssistantThinking(content=text, state=state or None, at=at, call=call, agent=agent)


def asked_of(call: dict[str, Any]) -> Asked:
    """A call as OpenAI has it (``function``, ``custom``), or with its name at the top."""
    function = call.get("function")
    if not isinstance(function, dict):
        custom = call.get("custom")
        name = function if isinstance(function, str) else call.get("name")
        function = custom if isinstance(custom, dict) else {**call, "name": name}
    args = next((function[key] for key in ("arguments", "input", "args") if key in function), None)
    return Asked(text_of(function.get("name")), args_of(args), id_of(call.get("id")), None)


def id_of(value: Any) -> str | None:  # noqa: ANN401
    """What stands where an id should, as text."""
    return value if isinstance(value, str) else None if value is None else text_of(value)


def rest_of_message(message: dict[str, Any], kind: str) -> dict[str, Any] | None:
    """What of a message is in no event made of it."""
    if len(message) == 2 and type(message.get("content")) is str and message["role"] in _SAME:
        return None
    left = {key: each for key, each in message.items() if key not in _ALWAYS and not _is_told(key, message, kind)}
    if message["role"] not in _SAME:
        left["role"] = message["role"]
    return left or None


def _is_told(key: str, message: dict[str, Any], kind: str) -> bool:
    """Whether an event says all that a field does."""
    value = message[key]
    if key == "content":
        return isinstance(value, str) or is_only_text(value)
    if kind == "tool":
        return key in ("tool_call_id", "is_error")
    if kind != "assistant" or value is None:
        return value is None and key in _MODEL
    if key == "tool_calls":
        return isinstance(value, list) and all(map(_is_plain_call, value))
    if key == "function_call":
        return isinstance(value, dict) and set(value) == _PLAIN_FUNCTION
    if key == "reasoning":
        return isinstance(value, str) and not message.get("reasoning_content")
    return key == "reasoning_content" and isinstance(value, str) and not message.get("thinking_blocks")


def _is_plain_call(call: Any) -> bool:  # noqa: ANN401
    if not isinstance(call, dict) or set(call) != _PLAIN_CALL:
        return False
    return isinstance(call["function"], dict) and set(call["function"]) == _PLAIN_FUNCTION
