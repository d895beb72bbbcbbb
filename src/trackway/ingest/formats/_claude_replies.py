"""The model's side of a Claude Code session: responses, block by block, and what they cost.

A response is written in several entries, one a block, that share ``message.id``: they are one call, whose tokens are
told once, and again only when a later entry knows them better. Entries that a fork copied were paid for in the session
they come from: they are no calls here. A text the client put in the model's place is none of the model's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from trackway.ingest.formats._claude_asked import Asked
from trackway.ingest.formats._claude_results import Made
from trackway.ingest.making import Calls, args_of, text_in
from trackway.ingest.numbers import Numbers
from trackway.ingest.values import mapping, text
from trackway.schema.events import AssistantText, AssistantThinking, AssistantToolCall, Event, Note, ToolResult

_OF_MESSAGE: Final = frozenset({"id", "model", "content", "role", "type", "usage", "stop_reason"})
_COUNTED: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_OF_CALL: Final = frozenset({"type", "id", "name", "input"})
_OF_RESULT: Final = frozenset({"tool_use_id", "content"})
_PLACEHOLDER: Final = 32
"""A stream begins with a count of output tokens that means nothing: 1 to 31 were seen. Most calls before 2.1.42 end
with it, and without a reason to stop."""


class Replies:
    """What has to be known of a session's responses to read the next one."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._nameless: dict[str, deque[str]] = {}
        self._asked_as = Numbers()
        self._told = Numbers()
        self.asked = Asked()
        self.since = 0

    def read(self, value: dict[str, Any], native: dict[str, Any], *, at: int, agent: str | None) -> Made:
        """The events of an assistant's entry; what has no event goes into ``native``."""
        message, content = value["message"], value["message"].get("content")
        if is_the_clients(value):
            topic = "api_error" if value.get("isApiErrorMessage") is True else "synthetic"
            native["message"] = message
            return Made([Note(topic=topic, text=text_in(content), at=at, agent=agent)], [])
        left = {name: each for name, each in message.items() if name not in _OF_MESSAGE and each is not None}
        call = self.name_of(value)
        model = message.get("model")
        is_copy = self.is_copy(value, at)
        made = Made([], [])
        if not is_copy:
            made.events.extend(self._calls.begin(call, model if isinstance(model, str) else None, at, agent))
        self._content(value, content, made, left, {"at": at, "agent": agent, "call": call})
        if is_copy:
            left |= {name: message[name] for name in ("model", "usage", "stop_reason") if name in message}
        else:
            made.events.extend(self.told(call, message, at, agent))
        if left:
            native["message"] = left
        return made

    def is_copy(self, value: dict[str, Any], at: int) -> bool:
        """Whether a fork copied it: it says so, or is older than the prompt that the file was begun for."""
        return "forkedFrom" in value or 0 < at < self.since

    def name_of(self, value: dict[str, Any]) -> str:
        """The call a response is of: its id. An id that comes again of another request is another call."""
        request = text(value.get("requestRef")) or text(value.get("requestId"))
        call = text(value["message"].get("id")) or request or text(value.get("uuid"))
        if request and self._asked_as.setdefault(hash(call), hash(request)) != hash(request):
            return f"{call}:{request}"
        return call

    def told(self, call: str, message: dict[str, Any], at: int, agent: str | None) -> Iterator[Event]:
        """What a response cost, where that was not known yet."""
        usage, finish = message.get("usage"), message.get("stop_reason")
        finish = finish if isinstance(finish, str) else None
        if hash(call) in self._told and not any(mapping(usage).get(name) for name in _COUNTED):
            return iter(())  # a copy that the client made after it compacted, with all counts taken out
        self._told[hash(call)] = 1
        count = mapping(usage).get("output_tokens")
        is_begun = finish is None and isinstance(count, int) and count <= _PLACEHOLDER
        known = "placeholder" if is_begun else "provider"
        return self._calls.result(call, usage, finish, at, agent, usage_from=known)

    def unanswered(self, value: dict[str, Any], number: int) -> str:
        """The call without an id that a result without one answers: the oldest of the entry that it names."""
        for name in ("sourceToolAssistantUUID", "parentUuid"):
            waiting = self._nameless.get(text(value.get(name)))
            if waiting:
                return waiting.popleft()
        return f"{text(value.get('uuid'))}:{number}"

    def _content(
        self,
        value: dict[str, Any],
        content: object,
        made: Made,
        left: dict[str, Any],
        envelope: dict[str, Any],
    ) -> None:
        if isinstance(content, str):
            made.events.append(AssistantText(content=content, **envelope))
        elif not isinstance(content, list):
            left["content"] = content
        else:
            for number, block in enumerate(content):
                rest = self._block(value, number, block, made, envelope)
                if rest:
                    left.setdefault("blocks", {})[str(number)] = rest

    def _block(
        self,
        value: dict[str, Any],
        number: int,
        block: object,
        made: Made,
        envelope: dict[str, Any],
    ) -> dict[str, Any] | None:
        """The event of a block; what it holds besides."""
        fields = mapping(block)
        kind = text(fields.get("type"))
        if kind == "text" and isinstance(fields.get("text"), str):
            made.events.append(AssistantText(content=fields["text"], **envelope))
            return _rest(fields, "text") if len(fields) > 2 else None
        if kind == "thinking" and isinstance(fields.get("thinking"), str):
            state = {"signature": fields["signature"]} if "signature" in fields else None
            made.events.append(AssistantThinking(content=fields["thinking"], state=state, **envelope))
            return _rest(fields, "thinking", "signature")
        if kind == "redacted_thinking":
            made.events.append(AssistantThinking(content="", state=fields, **envelope))
            return None
        if kind.endswith("tool_use"):
            return self._call(value, number, fields, made, envelope)
        if kind.endswith("tool_result") and text(fields.get("tool_use_id")):
            made.events.append(_result(fields, envelope))
            return {name: each for name, each in fields.items() if name not in _OF_RESULT}
        made.events.append(Note(topic=f"block.{kind}", detail=block, **envelope))
        return None

    def _call(
        self, value: dict[str, Any], number: int, fields: dict[str, Any], made: Made, envelope: dict[str, Any]
    ) -> dict[str, Any]:
        call_id = text(fields.get("id"))
        if not call_id:
            uuid = text(value.get("uuid"))
            call_id = f"{uuid}:{number}"
            self._nameless.setdefault(uuid, deque()).append(call_id)
        self.asked.call(call_id, text(fields.get("name")), fields.get("input"))
        made.events.append(
            AssistantToolCall(
                name=text(fields.get("name")), args=args_of(fields.get("input")), call_id=call_id,
                # The calls of one response are made at once. Which response it is, is told by its id in any file.
                batch=crc32(envelope["call"].encode("utf-8", "surrogatepass")), **envelope,
            )
        )  # fmt: skip
        rest = {name: each for name, each in fields.items() if name not in _OF_CALL or _is_odd(name, each)}
        if fields["type"] != "tool_use":
            rest["type"] = fields["type"]
        return rest


def is_the_clients(value: dict[str, Any]) -> bool:
    """Whether the client wrote an entry in the model's place: an error it met, or nothing to say."""
    return value["message"].get("model") == "<synthetic>" or value.get("isApiErrorMessage") is True


def _result(fields: dict[str, Any], envelope: dict[str, Any]) -> Event:
    """What a tool on the provider's side gave, within the response itself."""
    said = fields.get("content")
    failed = text(mapping(said).get("type")).endswith("error")
    return ToolResult(
        call_id=fields["tool_use_id"], content=text_in(said) if not isinstance(said, dict) else "", is_error=failed,
        status="error" if failed else "ok", returned=said, **envelope,
    )  # fmt: skip


def _rest(fields: dict[str, Any], *taken: str) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name != "type" and name not in taken}


def _is_odd(name: str, value: object) -> bool:
    return name in ("id", "name") and not isinstance(value, str)
