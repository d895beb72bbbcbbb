"""The model calls of one sample: what is new in each input, what the model gave, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._inspect_files import expanded
from trackway.ingest.formats._inspect_words import (
    Attachments,
    actor_of,
    chat_message,
    is_server_tool,
    result_of,
    signature,
    usage_of,
)
from trackway.ingest.formats._message_parts import text_shown
from trackway.ingest.formats._messages import Chat, Said
from trackway.ingest.making import args_of, at_of, rest_of
from trackway.ingest.values import number, part_of, text_at
from trackway.schema.events import AssistantToolCall, Context, Event, ModelCall, ModelResult, Note, User
from trackway.schema.plain import text_of

_TOLD: Final = (
    "event", "timestamp", "uuid", "model", "input", "input_refs", "tools", "config", "output", "error", "completed",
    "working_time", "call",
)  # fmt: skip
_LISTS: Final = ("messages", "input", "contents")
_MESSAGE: Final = ("role", "content", "tool_calls", "tool_call_id", "id", "source", "model")


class _Input(NamedTuple):
    """The input of a call: its id, its messages, and what tells each from the others."""

    call: str
    messages: list[Any]
    names: list[Any]


class ModelCalls:
    """What was said so far in a sample, and to whom."""

    def __init__(self, attachments: Attachments, pool: Sequence[Any], calls: Sequence[Any]) -> None:
        self._attachments = attachments
        self._pool = pool
        self._wire = calls
        self._chats: dict[str | None, Chat] = {}
        self._last: dict[str | None, _Input] = {}
        self._sent: dict[str | None, list[Any]] = {}
        self._tools: dict[str | None, Any] = {}
        self._told: Counter[Any] = Counter()
        self._ids: set[str] = set()
        self._asked: dict[str, str | None] = {}
        self._answered: set[str] = set()

    def asked_by(self, call_id: str) -> tuple[str | None] | None:
        """Whose call it is; None where no model made it."""
        return (self._asked[call_id],) if call_id in self._asked else None

    def answered(self, call_id: str) -> None:
        """A tool's event told what came of it: the message that says so again does not."""
        self._answered.add(call_id)

    def model(self, event: dict[str, Any], call: str, at: int, agent: str | None) -> Said:
        """A call to a model."""
        output = event.get("output")
        found = self._given(event, call, at, agent)
        choices = output.get("choices") if isinstance(output, dict) else None
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = self._attachments.whole(first.get("message"))
        ended = at_of(event.get("completed")) or at
        if isinstance(message, dict):
            self._tell(message)
            found += self._reply(message, ended, call, agent)
        seconds = number(event.get("working_time"))
        wire = part_of(event, "call")
        error = event.get("error") or (output.get("error") if isinstance(output, dict) else None)
        found.append(
            ModelResult(
                id=call, usage=usage_of(output), at=ended, agent=agent, finish_reason=text_at(first, "stop_reason"),
                latency_ms=None if seconds is None else seconds * 1000, model=text_at(output, "model"),
                error=None if error is None else text_of(error), response=self._attachments.whole(wire.get("response")),
            )
        )  # fmt: skip
        return Said(found, self._rest(event, choices, agent))

    # --- what a model is given ----------------------------------------------------------------------------------

    def _given(self, event: dict[str, Any], call: str, at: int, agent: str | None) -> list[Event]:
        found: list[Event] = []
        tools = event.get("tools")
        if tools and tools != self._tools.get(agent):
            self._tools[agent] = tools
            found.append(Context(op="set", tools=self._attachments.whole(tools), at=at, agent=agent))
        before = self._last.get(agent)
        now, kept = self._input(event, call, before)
        self._last[agent] = now
        counts: Counter[Any] = Counter(now.names[:kept])
        for name, message in zip(now.names[kept:], now.messages[kept:], strict=True):
            counts[name] += 1
            if counts[name] > self._told[name] and not self._is_told(message):
                self._told[name] += 1
                found += self._put_in(message, at, agent)
        settings = event.get("config")
        reuse = ((0, 0, kept),) if before is not None and kept else ()
        found.append(
            ModelCall(
                id=call, model=text_at(event, "model"), at=at, agent=agent,
                parameters=settings if isinstance(settings, dict) and settings else None,
                base=before.call if before is not None and reuse else None, reuse=reuse,
                messages=tuple(now.messages[kept:]),
            )
        )  # fmt: skip
        return found

    def _input(self, event: dict[str, Any], call: str, before: _Input | None) -> tuple[_Input, int]:
        """The messages of an input, and how many of them are those of the call before."""
        refs = event.get("input_refs")
        raw = event.get("input")
        messages = expanded(refs, self._pool) if refs else raw if isinstance(raw, list) else []
        if isinstance(raw, str):
            messages = [{"role": "user", "content": raw}]
        kept = 0
        old = before.messages if before is not None else []
        whole = [self._attachments.whole(each) for each in messages]
        while kept < len(old) and kept < len(whole) and (old[kept] is whole[kept] or old[kept] == whole[kept]):
            kept += 1
        names = before.names[:kept] if before is not None else []
        return _Input(call, [*old[:kept], *whole[kept:]], [*names, *map(signature, whole[kept:])]), kept

    def _is_told(self, message: Any) -> bool:  # noqa: ANN401
        """Whether an event told it: a reply by its id, a result by its call."""
        if not isinstance(message, dict):
            return False
        if message.get("role") == "tool":
            return text_of(message.get("tool_call_id")) in self._answered
        return text_of(message.get("id")) in self._ids

    def _tell(self, message: dict[str, Any]) -> None:
        self._told[signature(message)] += 1
        name = text_at(message, "id")
        if name:
            self._ids.add(name)

    def _put_in(self, message: Any, at: int, agent: str | None) -> list[Event]:  # noqa: ANN401
        """A message that stands in an input and came from no call of this log."""
        if not isinstance(message, dict):
            return [Note(topic="message", detail=message, at=at, agent=agent)]
        role = message.get("role")
        name = text_at(message, "id")
        if name:
            self._ids.add(name)
        if role == "assistant":
            return self._reply(message, at, None, agent)
        if role == "tool":
            call_id = text_of(message.get("tool_call_id"))
            self._answered.add(call_id)
            owner = self._asked.get(call_id, agent)
            return [result_of(call_id, message.get("content"), message.get("error"), at=at, agent=owner)]
        if role == "user":
            return [User(content=text_shown(message.get("content")), actor=actor_of(message), at=at, agent=agent)]
        return self._chat(agent).message(message, at=at).events

    def late(self, message: Any) -> Said | None:  # noqa: ANN401
        """A message of the final conversation, where nothing told it."""
        message = self._attachments.whole(message)
        name = signature(message)
        if self._told[name] > 0 or self._is_told(message):
            self._told[name] -= 1  # the same words twice were said twice
            return None
        events = self._put_in(message, 0, None)
        rest = rest_of(message, *_MESSAGE) if isinstance(message, dict) else None
        return Said(events, rest)

    # --- what a model gives -------------------------------------------------------------------------------------

    def _chat(self, agent: str | None) -> Chat:
        return self._chats.setdefault(agent, Chat(agent=agent, tags=False))

    def _reply(self, message: dict[str, Any], at: int, call: str | None, agent: str | None) -> list[Event]:
        found = self._chat(agent).assistant(chat_message(message), at=at, call=call)
        for each in found:
            if isinstance(each, AssistantToolCall):
                self._asked[each.call_id] = agent
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if is_server_tool(block):
                found += self._server_tool(block, at, call, agent)
        return found

    def _server_tool(self, block: dict[str, Any], at: int, call: str | None, agent: str | None) -> list[Event]:
        name, call_id = text_of(block.get("name")), text_of(block.get("id"))
        error = block.get("error")
        return [
            AssistantToolCall(
                name=name, args=args_of(block.get("arguments")), call_id=call_id, at=at, call=call, agent=agent
            ),
            result_of(call_id, block.get("result"), {"message": error} if error else None, at=at, agent=agent),
        ]

    # --- what is left -------------------------------------------------------------------------------------------

    def _rest(self, event: dict[str, Any], choices: Any, agent: str | None) -> dict[str, Any] | None:  # noqa: ANN401
        left = {key: each for key, each in event.items() if key not in _TOLD and each is not None}
        output = event.get("output")
        if isinstance(output, dict):
            more = rest_of(output, "choices", "usage", "completion", "model")
            if more:
                left["output"] = more
            kept = [_choice(each, i) for i, each in enumerate(choices if isinstance(choices, list) else ())]
            if any(kept):
                left["choices"] = kept
        elif output is not None:
            left["output"] = output
        wire = event.get("call")
        if isinstance(wire, dict):
            left["call"] = self._request(wire, agent)
        return left or None

    def _request(self, wire: dict[str, Any], agent: str | None) -> dict[str, Any]:
        """What went over the wire; of its messages those that the call before had not."""
        request = part_of(wire, "request")
        key = text_at(wire, "call_key") or next((each for each in _LISTS if isinstance(request.get(each), list)), None)
        found = rest_of(wire, "request", "response", "call_refs", "call_key") or {}
        if key is None:
            return {**found, "request": self._attachments.whole(request)}
        sent = expanded(wire["call_refs"], self._wire) if wire.get("call_refs") else request.get(key)
        sent = sent if isinstance(sent, list) else []
        before, kept = self._sent.get(agent, []), 0
        while kept < len(before) and kept < len(sent) and before[kept] == sent[kept]:
            kept += 1
        self._sent[agent] = sent
        new = {**request, key: sent[kept:]}
        return {**found, "request": self._attachments.whole(new), "kept": {key: kept}}


def _choice(choice: Any, number: int) -> Any:  # noqa: ANN401  what of a choice no event says
    if number or not isinstance(choice, dict):
        return choice
    left = rest_of(choice, "message", "stop_reason") or {}
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    more = rest_of(message, *_MESSAGE) or {} if isinstance(message, dict) else {}
    if isinstance(content, list) and any(not _is_plain(each) for each in content):
        more["content"] = content
    if more:
        left["message"] = more
    return left or None


def _is_plain(block: Any) -> bool:  # noqa: ANN401
    return isinstance(block, dict) and set(block) == {"type", "text"}
