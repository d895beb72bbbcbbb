"""Items as OpenAI's Responses interface has them → events: messages, reasoning, calls and their outputs.

What tools of the provider's own did (web search, code interpreter, MCP) is one item that holds the call and what came
of it. An item nobody knows is a note.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.formats._message_parts import text_shown
from trackway.ingest.formats._messages import ROLES, Chat, Said
from trackway.ingest.formats._tags import Asked
from trackway.ingest.making import args_of, is_only_text, rest_of, text_in
from trackway.schema.events import AssistantThinking, Context, Event, Note
from trackway.schema.plain import text_of

CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action",
                "shell_call": "action", "computer_call": "action", "apply_patch_call": "operation"}  # fmt: skip
OUTPUTS: Final = frozenset((
    "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
    "computer_call_output", "apply_patch_call_output",
))  # fmt: skip
_OWN: Final = frozenset((
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "tool_search_call",
))  # fmt: skip
KINDS: Final = frozenset(("message", "reasoning", "compaction", *CALLS, *OUTPUTS, *_OWN))


class Items:
    """One list of items on its way."""

    def __init__(self) -> None:
        self._chat = Chat(tags=False)

    def item(self, item: Any, *, at: int = 0, call: str | None = None) -> Said:  # noqa: ANN401  whatever stands there
        """One item; ``call`` is the model call that gave it, where one is known."""
        if not isinstance(item, dict):
            return Said([Note(topic="item", detail=item, at=at)], None)
        kind = item.get("type")
        if kind in (None, "message") and isinstance(item.get("role"), str) and item["role"] in ROLES:
            said = self._chat.message(item, at=at, call=call)
            return Said(said.events, _left(said.rest, "type", "status", "annotations"))
        if kind == "reasoning":
            return Said(
                [_thought(item, at, call)], _left(item, "type", "id", "summary", "content", "encrypted_content")
            )
        if isinstance(kind, str) and kind in CALLS:
            return self._call(item, kind, at, call)
        if isinstance(kind, str) and kind in OUTPUTS:
            return self._output(item, at)
        if isinstance(kind, str) and kind in _OWN:
            return Said(self._own(item, kind, at, call), _left(item, "type", "name", "arguments"))
        if kind == "compaction":
            return Said([Context(op="compact", text=text_shown(item.get("summary")), at=at)], item)
        return Said([Note(topic=kind if isinstance(kind, str) and kind else "item", at=at)], item)

    def _call(self, item: dict[str, Any], kind: str, at: int, call: str | None) -> Said:
        field = CALLS[kind]
        name = text_of(item.get("name")) or kind.removesuffix("_call")
        call_id = item.get("call_id") or item.get("id")
        asked = Asked(name, args_of(item.get(field)), None if call_id is None else text_of(call_id), None)
        return Said([self._chat.ask(asked, at=at, call=call)], _left(item, "type", "name", "call_id", field))

    def _output(self, item: dict[str, Any], at: int) -> Said:
        output = item.get("output")
        failed = item.get("status") in ("failed", "incomplete") and not output
        result = self._chat.result(
            text_shown(output) if isinstance(output, (str, list)) else text_of(output),
            item.get("call_id"), is_error=failed, at=at,
        )  # fmt: skip
        told = ("type", "call_id", *(("output",) if isinstance(output, str) or is_only_text(output) else ()))
        return Said([result], _left(item, *told))

    def _own(self, item: dict[str, Any], kind: str, at: int, call: str | None) -> list[Event]:
        """The call of a tool on the provider's side, and what came of it where the item says."""
        given = next((item[key] for key in ("arguments", "action", "code", "queries") if item.get(key)), None)
        name = text_of(item.get("name")) or kind.removesuffix("_call")
        asked = Asked(name, args_of(given), text_of(item.get("id")) or None, None)
        found: list[Event] = [self._chat.ask(asked, at=at, call=call)]
        error = item.get("error")
        came = next((item[key] for key in ("output", "outputs", "results", "result") if item.get(key)), error)
        if came is not None or item.get("status") in ("completed", "failed"):
            failed = error is not None or item.get("status") == "failed"
            found.append(self._chat.result(text_of(came), asked.call_id, is_error=failed, at=at))
        return found


def _left(item: dict[str, Any] | None, *told: str) -> dict[str, Any] | None:
    """What no event says; nulls say nothing."""
    found = {key: each for key, each in (rest_of(item, *told) or {}).items() if each is not None} if item else None
    return found or None


def _thought(item: dict[str, Any], at: int, call: str | None) -> AssistantThinking:
    """Reasoning: its text where there is one, else its summary; what is encrypted, as it stands."""
    text = text_in(item.get("content")) or text_in(item.get("summary"))
    state = {key: item[key] for key in ("id", "encrypted_content") if item.get(key) is not None}
    return AssistantThinking(content=text, state=state or None, at=at, call=call)
