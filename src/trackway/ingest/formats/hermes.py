"""Hermes Agent: a session as one JSON document, and as a line of ``hermes sessions export``.

Messages are OpenAI's, with reasoning beside them. They have no ids: one is known by its place, as the document is
rewritten with more of them. Its own store is a database; what it exports is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import Sessions, homes_of
from trackway.ingest.head import Head
from trackway.ingest.making import args_of, at_of, is_only_text, rest_of, text_in
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelCall,
    ModelResult,
    Note,
    Parent,
    ToolResult,
    User,
)

_OF_SESSION: Final = frozenset({"session_start", "last_updated", "platform", "model_config", "started_at", "source"})
_THOUGHTS: Final = ("reasoning_content", "reasoning")


def _detect(head: Head) -> Sign | None:
    whole = head.document or next(iter(head.objects), {})
    named = isinstance(whole.get("session_id"), str) or ("id" in whole and "started_at" in whole)
    if named and isinstance(whole.get("messages"), list) and len(_OF_SESSION & whole.keys()) > 1:
        return Sign(0.9, "session_id, session_start or started_at, platform or source, and messages")
    return None


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("hermes", "hermes")
    if len(original.head().objects) > 1 or original.head().value is None:
        return sessions.opened(_exported(original, sessions))
    return sessions.opened(_document(original, sessions))


def _document(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    head = {part.key: part.value for part in original.members("messages") if part.key != "messages"}
    session = _Session(sessions, head)
    yield from session.begin()
    for part in original.members("messages"):
        if part.key == "messages":
            yield session.entry(part.value, Place())


def _exported(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    for item in original.items():
        if isinstance(item, Trouble):
            yield item
            continue
        whole = mapping(item.value)
        session = _Session(sessions, rest_of(whole, "messages") or {})
        for entry in session.begin():
            yield entry._replace(place=item.place)
        for message in listing(whole.get("messages")):
            yield session.entry(message, item.place)


class _Session:
    """One session while it is read."""

    def __init__(self, sessions: Sessions, head: dict[str, Any]) -> None:
        self._name = text(head.get("session_id")) or text(head.get("id"))
        self._head = head
        self._about = about = sessions.about(self._name)
        self._edits = Edits()
        self._replies = 0
        self._counts: Counter[str] = Counter()
        about.native = rest_of(head, "system_prompt", "tools")
        about.at = at_of(head.get("session_start")) or at_of(head.get("started_at"))
        about.model, about.title = text(head.get("model")) or None, text(head.get("title"))
        folder = head.get("cwd") or mapping(head.get("model_config")).get("cwd")
        about.note(cwd=folder, platform=head.get("platform") or head.get("source"))
        parent = text(head.get("parent_session_id"))
        if parent:
            about.parent = Parent(episode=episode_id("hermes", parent, keeps_ids=True))

    def begin(self) -> Iterator[Entry]:
        """What the model was told first, where it is in the file."""
        prompt, tools = text(self._head.get("system_prompt")), listing(self._head.get("tools"))
        if prompt or tools:
            event = Context(op="set", system_prompt=prompt or None, tools=tools or None, at=self._about.at)
            yield Entry(self._name, "system prompt", [event])

    def entry(self, value: object, place: Place) -> Entry:
        """One message."""
        message = mapping(value) or {"value": value}
        at, role = at_of(message.get("timestamp")), text(message.get("role"))
        key = self._key(role)
        contents: list[bytes] = []
        content = message.get("content")
        known: tuple[str, ...] = ("role", "timestamp", *(("content",) if is_only_text(content) else ()))
        events: list[Event]
        if role == "user":
            events = [User(content=text_in(content), at=at)]
            self._about.prompt(text_in(content))
        elif role == "assistant":
            events = self._answer(message, key, at)
            known += ("tool_calls", "usage", "finish_reason", *_THOUGHTS)
        elif role == "tool":
            events = self._result(message, at, contents)
            known += ("tool_call_id",)
        elif role == "system":
            events = [Context(op="set", system_prompt=text_in(content), at=at)]
        else:
            events, known = [Note(topic=role or "hermes", at=at)], ("role",)
        native = rest_of(message, *known)
        if role == "assistant" and (beside := _beside(message)):
            native = {**(native or {}), "tool_calls": beside}
        return Entry(self._name, key, events, place, native=native, contents=contents)

    def _key(self, role: str) -> str:
        """By its place among the messages of its kind: notes of the client's own may move when there are more."""
        kind = "message" if role in ("user", "assistant", "tool", "system") else role or "hermes"
        self._counts[kind] += 1
        return f"{kind} {self._counts[kind]}"

    def _answer(self, message: dict[str, Any], key: str, at: int) -> list[Event]:
        events: list[Event] = [ModelCall(id=key, model=text(message.get("model")) or None, at=at)]
        thought = next((text(message.get(name)) for name in _THOUGHTS if text(message.get(name))), "")
        if thought:
            events.append(AssistantThinking(content=thought, call=key, at=at))
        if said := text_in(message.get("content")):
            events.append(AssistantText(content=said, call=key, at=at))
        calls = [mapping(each) for each in listing(message.get("tool_calls"))]
        self._replies += 1
        batch = self._replies if len(calls) > 1 else None
        for each in calls:
            function = mapping(each.get("function"))
            name, args = text(function.get("name")), function.get("arguments")
            call_id = text(each.get("id")) or text(each.get("call_id"))
            self._edits.call(call_id, name, args)
            events.append(
                AssistantToolCall(name=name, args=args_of(args), call_id=call_id, call=key, batch=batch, at=at)
            )
        usage, finish = mapping(message.get("usage")), text(message.get("finish_reason")) or None
        if usage or finish:
            events.append(ModelResult(id=key, usage=usage or None, finish_reason=finish, at=at))
        return events

    def _result(self, message: dict[str, Any], at: int, contents: list[bytes]) -> list[Event]:
        failed = message.get("finish_reason") == "error" or message.get("is_error") is True
        call_id = text(message.get("tool_call_id"))
        changes, bodies = self._edits.result(call_id, ok=not failed, at=at)
        contents += bodies
        said, status = text_in(message.get("content")), "error" if failed else "ok"
        return [ToolResult(call_id=call_id, content=said, is_error=failed, status=status, at=at), *changes]


def _beside(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What calls have beside their name and arguments."""
    calls = (mapping(each) for each in listing(message.get("tool_calls")))
    rest = (rest_of(each, "id", "type", "function") for each in calls)
    return [each for each in rest if each]


SOURCE = Source(
    name="hermes", title="Hermes Agent", detect=_detect, read=_read, keeps_ids=True,
    homes=homes_of("HERMES_HOME", ".hermes", "sessions"),
    looked_for="a document with session_id, session_start, platform and messages",
)  # fmt: skip
