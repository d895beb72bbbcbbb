"""Grok's command-line agent: ``sessions/<folder>/<session>/chat_history.jsonl``, with ``summary.json`` beside it.

The history has no ids and no times: an entry is known by its place, and the session's times are the summary's. What
the model thought and searched for stands on lines before the answer they belong to. A sub-agent has a folder of its
own beside its session's, and is named in that one's: ``<session>/subagents/<sub-agent>/meta.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import Sessions, homes_of, set_aside, uuid_in
from trackway.ingest.head import Head
from trackway.ingest.making import Calls, args_of, at_of, is_only_text, rest_of, text_in
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelResult,
    Note,
    ToolResult,
    User,
)

_ELSEWHERE: Final = frozenset({"uuid", "sessionId", "session_id", "timestamp", "payload", "message", "data"})


def _detect(head: Head) -> Sign | None:
    telling = [each for each in head.objects if _is_telling(each)]
    if telling and not any(_ELSEWHERE & each.keys() for each in head.objects):
        return Sign(0.9, "lines of type user, assistant and tool_result with prompt_index, model_id and tool_call_id")
    whole = head.document
    if (
        isinstance(mapping(whole.get("info")).get("id"), str)
        and {"num_chat_messages", "chat_format_version"} & whole.keys()
    ):
        return Sign(0.9, "the summary of a session of Grok: info, num_chat_messages", is_part=True)
    if {"parent_session_id", "subagent_type"} <= whole.keys():
        return Sign(0.8, "what Grok says of a sub-agent: parent_session_id and subagent_type", is_part=True)
    return None


def _is_telling(line: Mapping[str, Any]) -> bool:
    kind = line.get("type")
    if kind == "assistant":
        return "model_id" in line or "model_fingerprint" in line
    if kind == "user":
        return ("prompt_index" in line or "synthetic_reason" in line) and "content" in line
    return kind == "backend_tool_call" and isinstance(line.get("kind"), dict)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("grok", "grok")
    summary = _value(original.near(0, "summary.json"))
    own = text(mapping(summary.get("info")).get("id")) or uuid_in(original.path.parent.name)
    parent, told = _above(original, own, summary)
    if not parent:
        return sessions.opened(_Chat(sessions, own, None).entries(original, summary))
    sessions.sub_agent(parent, own, text(told.get("description")), {"summary": summary, "meta": told})
    above, said = original.near(1, parent, "chat_history.jsonl"), original.near(1, parent, "summary.json")
    for _ in () if above is None else _Chat(sessions, parent, None).entries(above, _value(said)):
        if sessions.about(parent).task:
            break
    set_aside(original, above)
    set_aside(original, said)
    return sessions.opened(_Chat(sessions, parent, own).entries(original, summary))


def _above(original: Original, own: str, summary: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The session that a sub-agent belongs to, and what that one says of it."""
    if not own:
        return "", {}
    if uuid_in(own) == own:  # nothing but letters and digits: it may stand in a pattern
        for file in original.all_near(1, pattern=f"*/subagents/{own}/meta.json"):
            told = _value(file)
            return text(told.get("parent_session_id")) or file.path.parents[2].name, told
    return text(summary.get("parent_session_id")), {}


def _value(file: Original | None) -> dict[str, Any]:
    try:
        return {} if file is None else mapping(file.value())
    except FileRefused:  # kept, and not understood
        return {}


class _Chat:
    """One history while it is read."""

    def __init__(self, sessions: Sessions, session: str, agent: str | None) -> None:
        self._about = sessions.about(session)
        self._session = session
        self._agent = agent
        self._calls = Calls()
        self._edits = Edits()
        self._call: str | None = None
        self._replies = 0
        self._contents: list[bytes] = []

    def entries(self, original: Original, summary: dict[str, Any]) -> Iterator[Entry | Trouble]:
        """The lines, without the session's beginning."""
        if self._agent is None:
            self._tell(summary)
        number = 0
        for item in original.items():
            if isinstance(item, Trouble):
                yield item
                continue
            line = mapping(item.value) or {"value": item.value}
            key = f"{self._agent} {number}" if self._agent else str(number)
            number += 1
            read = {
                "system": self._system, "user": self._user, "reasoning": self._thought, "assistant": self._answer,
                "tool_result": self._result, "backend_tool_call": self._searched,
            }.get(text(line.get("type")))  # fmt: skip
            events, native = (
                read(line, key) if read else ([Note(topic=text(line.get("type")) or "grok", agent=self._agent)], line)
            )
            contents, self._contents = self._contents, []
            yield Entry(self._session, key, events, item.place, native=native, contents=contents)

    def _tell(self, summary: dict[str, Any]) -> None:
        about = self._about
        about.native = {"summary": summary} if summary else None
        about.at, about.model = at_of(summary.get("created_at")), text(summary.get("current_model_id")) or None
        about.title = text(summary.get("generated_title")) or text(summary.get("session_summary"))
        about.note(cwd=mapping(summary.get("info")).get("cwd"), git_branch=summary.get("head_branch"),
                   commit=summary.get("head_commit"))  # fmt: skip

    def _open(self, key: str) -> list[Event]:
        """The model is at work: its thoughts, searches and words up to the end of its answer are one call."""
        if self._call is not None:
            return []
        self._call = key
        return list(self._calls.begin(key, self._about.model, 0, self._agent))

    def _system(self, line: dict[str, Any], _key: str) -> tuple[list[Event], dict[str, Any] | None]:
        event = Context(op="set", system_prompt=text_in(line.get("content")), agent=self._agent)
        return [event], rest_of(line, "type", "content")

    def _user(self, line: dict[str, Any], _key: str) -> tuple[list[Event], dict[str, Any] | None]:
        content, self._call = line.get("content"), None
        said = text_in(content)
        native = rest_of(line, "type", "content" if is_only_text(content) else "")
        if line.get("synthetic_reason"):
            return [Context(op="inject", text=said, agent=self._agent)], native
        if self._agent is None:
            self._about.prompt(said)
        actor = "human" if self._agent is None else "harness"
        return [User(content=said, actor=actor, agent=self._agent)], native

    def _thought(self, line: dict[str, Any], key: str) -> tuple[list[Event], dict[str, Any] | None]:
        events = self._open(key)
        state = rest_of(line, "type", "summary")
        said = text_in(line.get("summary"))
        return [*events, AssistantThinking(content=said, state=state, call=self._call, agent=self._agent)], None

    def _searched(self, line: dict[str, Any], key: str) -> tuple[list[Event], dict[str, Any] | None]:
        """A tool of the provider's own: what came of it is not in the file."""
        events, kind = self._open(key), mapping(line.get("kind"))
        call = AssistantToolCall(
            name=text(kind.get("tool_type")), args=args_of(kind.get("action")), call_id=text(kind.get("id")) or key,
            call=self._call, agent=self._agent,
        )  # fmt: skip
        return [*events, call], rest_of(line, "type")

    def _answer(self, line: dict[str, Any], key: str) -> tuple[list[Event], dict[str, Any] | None]:
        events = self._open(key)
        call, self._call = self._call, None
        said = text_in(line.get("content"))
        if said:
            events.append(AssistantText(content=said, call=call, agent=self._agent))
        calls = [mapping(each) for each in listing(line.get("tool_calls"))]
        self._replies += 1
        batch = self._replies if len(calls) > 1 else None
        for each in calls:
            name, call_id, args = text(each.get("name")), text(each.get("id")), each.get("arguments")
            self._edits.call(call_id, name, args)
            events.append(
                AssistantToolCall(
                    name=name, args=args_of(args), call_id=call_id, call=call, batch=batch, agent=self._agent
                )
            )
        events.append(ModelResult(id=call or key, model=text(line.get("model_id")) or None, agent=self._agent))
        return events, rest_of(line, "type", "content", "tool_calls", "model_id")

    def _result(self, line: dict[str, Any], _key: str) -> tuple[list[Event], dict[str, Any] | None]:
        call_id, self._call, content = text(line.get("tool_call_id")), None, line.get("content")
        failed = line.get("is_error") is True
        changes, self._contents = self._edits.result(call_id, ok=not failed, agent=self._agent)
        event = ToolResult(
            call_id=call_id, content=text_in(content), is_error=failed, status="error" if failed else "ok",
            agent=self._agent,
        )  # fmt: skip
        known = ("content",) if is_only_text(content) else ()
        return [event, *changes], rest_of(line, "type", "tool_call_id", "is_error", *known)


SOURCE = Source(
    name="grok", title="Grok", detect=_detect, read=_read, keeps_ids=True,
    homes=homes_of("GROK_HOME", ".grok", "sessions"),
    looked_for="lines of type user, assistant and tool_result with prompt_index, model_id and tool_call_id",
)  # fmt: skip
