"""Droid, Factory's agent: its session files, and the lines of ``droid exec --output-format stream-json``.

A session file begins with ``session_start``; messages follow, linked by ``id`` and ``parentId``. Beside it lies
``<session>.settings.json`` with the model and the sum of tokens, which is all that is known of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agent_blocks import Blocks, reminders, said_beside
from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import About, Sessions, homes_of
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, args_of, at_of, digest_of, rest_of
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import mapping, text, whole
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
from trackway.schema.plain import text_of

_STREAM: Final = frozenset({"system", "message", "tool_call", "tool_result", "completion", "error", "reasoning"})
_SETTINGS: Final = frozenset(
    {"tokenUsage", "assistantActiveTimeMs", "autonomyLevel", "autonomyMode", "reasoningEffort"}
)
_SAID: Final = ("type", "timestamp", "session_id", "sessionId", "text", "parameters", "value", "finalText", "usage")
_EXITED: Final = re.compile(
    r"\AError: Command failed \(exit code: (-?\d{1,9})\)|\[Process exited with code (-?\d{1,9})\]\s*\Z"
)


def _detect(head: Head) -> Sign | None:
    objects = head.objects
    if any(_is_start(each) for each in objects[:3]):
        return Sign(0.95, 'a line of type "session_start" with id, title and cwd')
    found = [each for each in objects if _is_line(each)]
    if any(_is_telling(each) for each in found) and len(found) * 2 > len(objects):
        return Sign(0.9, "lines of a stream with session id: message, tool_call, tool_result, completion")
    whole_file = head.document
    if "model" in whole_file and len(_SETTINGS & whole_file.keys()) > 1:
        return Sign(0.8, "settings of a session of Droid: model and tokenUsage", is_part=True)
    return None


def _is_start(line: Mapping[str, Any]) -> bool:
    return (
        line.get("type") == "session_start" and isinstance(line.get("id"), str) and bool({"title", "cwd"} & line.keys())
    )


def _is_line(line: Mapping[str, Any]) -> bool:
    named = isinstance(line.get("session_id"), str) or isinstance(line.get("sessionId"), str)
    return named and text(line.get("type")) in _STREAM and "timestamp" in line and "uuid" not in line


def _is_telling(line: Mapping[str, Any]) -> bool:
    """Lines that no other client's stream has."""
    kind = line.get("type")
    if kind == "tool_call":
        return "parameters" in line and bool({"toolName", "toolId"} & line.keys())
    if kind == "tool_result":
        return "value" in line and bool({"toolCallId", "toolId"} & line.keys())
    return kind == "completion" and "finalText" in line


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("droid", "droid")
    if any(_is_line(each) and not _is_start(each) for each in original.head().objects[:3]):
        return sessions.opened(_Stream(sessions).entries(original))
    return sessions.opened(_Stored(sessions).entries(original))


class _Stored:
    """A session file while it is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._session = ""
        self._blocks = Blocks(exited=_EXITED)
        self._keys = Keys()
        self._by_id: dict[str, str] = {}

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The lines, without the session's beginning."""
        for item in original.items():
            line = mapping(item.value) if not isinstance(item, Trouble) else {}
            if isinstance(item, Trouble):
                yield item
            elif not line:
                yield Trouble(item.place, "no object: kept with the file, and not read")
            elif line.get("type") == "session_start":
                self._begin(line, item.place, original)
            else:
                yield self._entry(line, item.place)
        yield from self._tokens(original)

    def _begin(self, line: dict[str, Any], place: Place, original: Original) -> None:
        self._session = text(line.get("id")) or self._session
        about = self._sessions.about(self._session)
        about.native, about.place = line, place
        about.title = text(line.get("title")) or text(line.get("sessionTitle"))
        about.note(cwd=line.get("cwd"), version=line.get("version"))
        parent = text(line.get("parent")) or text(line.get("callingSessionId"))
        if parent:
            about.parent = Parent(episode=episode_id("droid", parent, keeps_ids=True))
        about.model = text(self._settings(original).get("model")) or None

    def _settings(self, original: Original) -> dict[str, Any]:
        beside = original.near(0, f"{original.path.stem}.settings.json")
        try:
            return {} if beside is None else mapping(beside.value())
        except FileRefused:  # kept, and not understood
            return {}

    def _tokens(self, original: Original) -> Iterator[Entry]:
        """The sum of all calls: the last one that was written counts, under one name."""
        used = mapping(self._settings(original).get("tokenUsage"))
        if used:
            key = f"tokens {digest_of(json.dumps(used, sort_keys=True).encode())}"
            result = ModelResult(id=f"{self._session} in all", usage=used, usage_from="session")
            yield Entry(self._session, key, [result], native={"settings": self._settings(original)})

    def _entry(self, line: dict[str, Any], place: Place) -> Entry:
        at, own, parent = at_of(line.get("timestamp")), text(line.get("id")), line.get("parentId")
        key = self._keys.of(own or f"{line.get('type')} {line.get('timestamp')}")
        after = self._by_id.get(parent) if isinstance(parent, str) else None
        if own:
            self._by_id[own] = key
        about, message = self._sessions.about(self._session), mapping(line.get("message"))
        about.at = about.at or at
        rest = rest_of(line, "type", "timestamp", "message") or {}
        if line.get("type") != "message" or not message:
            note = Note(topic=text(line.get("type")) or "droid", at=at)
            if text(line.get("type")).startswith("compaction"):
                said = text(line.get("summaryText")) or text(line.get("summary"))
                return Entry(self._session, key, [Context(op="compact", text=said, at=at)], place, after, line)
            return Entry(self._session, key, [note], place, after, line)
        beside = rest_of(message, "role", "content")
        rest = {**rest, "message": beside} if beside else rest
        if message.get("role") == "assistant":
            spoken = self._blocks.answer(message.get("content"), key, at)
            model = text(message.get("model")) or text(message.get("modelId")) or None
            events: list[Event] = [ModelCall(id=key, model=model, at=at), *spoken.events]
        else:
            spoken = self._blocks.prompt(message.get("content"), at)
            events = spoken.events
            _name(about, events)
        return Entry(self._session, key, events, place, after, said_beside(spoken.left, rest), spoken.contents)


class _Stream:
    """The lines of one execution while they are read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._keys = Keys()
        self._edits = Edits()
        self._last = ""

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The lines, without the session's beginning."""
        for item in original.items():
            if isinstance(item, Trouble):
                yield item
                continue
            line = mapping(item.value)
            session = text(line.get("session_id")) or text(line.get("sessionId"))
            at, kind = at_of(line.get("timestamp")), text(line.get("type"))
            key = self._keys.of(
                f"{kind} {text(line.get('id')) or text(line.get('toolCallId')) or line.get('timestamp')}"
            )
            about = self._sessions.about(session)
            about.at = about.at or at
            contents: list[bytes] = []
            read = _KINDS.get(kind)
            events: list[Event] = [Note(topic=kind or "droid", at=at)]
            if read is not None:
                events = read(self, line, at, contents)
            if kind == "system":
                about.model = about.model or text(line.get("model")) or None
                about.note(cwd=line.get("cwd"))
            _name(about, events)
            native = line if read is None else rest_of(line, *_SAID)
            yield Entry(session, key, events, item.place, native=native, contents=contents)

    def _system(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        return [Note(topic="system", text=text(line.get("subtype")) or None, at=at)]

    def _message(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        said = text_of(line.get("text", line.get("content")))
        if line.get("role") == "assistant":
            self._last = said
            return [AssistantText(content=said, at=at)]
        added, typed = reminders(said)
        events: list[Event] = [Context(op="inject", text=each, at=at) for each in added]
        return [*events, User(content=typed, at=at)] if typed or not added else events

    def _thought(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        return [AssistantThinking(content=text_of(line.get("text", line.get("content"))), at=at)]

    def _call(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        name = text(line.get("toolName")) or text(line.get("toolId"))
        call_id = text(line.get("toolCallId")) or text(line.get("id"))
        self._edits.call(call_id, name, line.get("parameters"))
        return [AssistantToolCall(name=name, args=args_of(line.get("parameters")), call_id=call_id, at=at)]

    def _result(self, line: dict[str, Any], at: int, contents: list[bytes]) -> list[Event]:
        value, failed = line.get("value"), line.get("isError") is True
        fields = mapping(value)
        call_id = text(line.get("toolCallId")) or text(line.get("id"))
        outputs = [text(fields.get(name)) for name in ("stdout", "stderr")]
        said = (
            "\n".join(filter(None, outputs)) if any(outputs) else text_of(line.get("error") if value is None else value)
        )
        changes, bodies = self._edits.result(call_id, ok=not failed, at=at)
        contents += bodies
        result = ToolResult(
            call_id=call_id, content=said, is_error=failed, status="error" if failed else "ok",
            exit_code=whole(fields.get("exitCode")), returned=fields or None, at=at,
        )  # fmt: skip
        return [result, *changes]

    def _completion(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        """What it all came to; the last message says the same words, where there is one."""
        said, usage = text(line.get("finalText")), mapping(line.get("usage"))
        events: list[Event] = [] if not said or said == self._last else [AssistantText(content=said, at=at)]
        if usage:
            events.append(ModelResult(id="in all", usage=usage, at=at))
        return events or [Note(topic="completion", at=at)]

    def _error(self, line: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        return [Note(topic="error", text=text_of(line.get("message")), at=at)]


_KINDS: Final = {
    "system": _Stream._system, "message": _Stream._message, "reasoning": _Stream._thought,  # noqa: SLF001  its own
    "tool_call": _Stream._call, "tool_result": _Stream._result, "completion": _Stream._completion,  # noqa: SLF001
    "error": _Stream._error,  # noqa: SLF001
}  # fmt: skip


def _name(about: About, events: list[Event]) -> None:
    for each in events:
        if isinstance(each, User) and each.actor == "human":
            about.prompt(each.content)


SOURCE = Source(
    name="droid", title="Droid", detect=_detect, read=_read, keeps_ids=True,
    homes=homes_of("FACTORY_DIR", ".factory", "sessions"),
    looked_for='a line of type "session_start", or a stream of message, tool_call, tool_result and completion',
)  # fmt: skip
