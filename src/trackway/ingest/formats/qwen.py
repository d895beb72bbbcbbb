"""Qwen Code: chats (``projects/…/chats/<session>.jsonl``) and the files of their sub-agents.

One record a line, a tree by ``uuid`` and ``parentUuid``, messages as Gemini's contents with parts. Records of one
message may share a uuid. A sub-agent's records name the session they belong to, and are inside it.

Facts: QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import Sessions, folders, from_environ, objects, set_aside
from trackway.ingest.formats._gemini_results import exit_code_of
from trackway.ingest.head import Head
from trackway.ingest.making import Calls, Keys, args_of, at_of, file_state, is_only_text, rest_of, text_in
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    FileChange,
    Note,
    Parent,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of

_HARNESS: Final = frozenset(
    {"notification", "background_task_completed", "cron", "goal_runtime", "agent_launch_prompt"}
)
"""Kinds of messages under the user's role that no person wrote."""
_ADDED: Final = ("<qwen:user-prompt-submit-context>", "<system-reminder>")
_STATUS: Final = {"error": "error", "cancelled": "interrupted"}


def _detect(head: Head) -> Sign | None:
    found = sum(_is_record(each) for each in head.objects)
    if {"agentId", "agentType", "parentSessionId"} <= head.document.keys():
        return Sign(0.8, "what Qwen Code says of a sub-agent: agentId and parentSessionId", is_part=True)
    if not found:
        return None
    sure = 0.95 if found * 2 >= len(head.objects) else 0.5
    return Sign(sure, "lines with uuid, parentUuid and sessionId whose messages have parts, or a systemPayload")


def _is_record(line: Mapping[str, Any]) -> bool:
    if not {"uuid", "parentUuid", "sessionId", "type"} <= line.keys():
        return False
    message = mapping(line.get("message"))
    return isinstance(message.get("parts"), list) or "systemPayload" in line or "toolCallResult" in line


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("qwen", "qwen-code")
    return sessions.opened(_Chat(sessions).entries(original))


class _Chat:
    """One file while it is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._keys = Keys()
        self._last: dict[str, str] = {}
        self._calls = Calls()
        self._open: dict[str, str] = {}
        self._edits = Edits()
        self._replies = 0

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The records, without the sessions' beginnings."""
        first = True
        for item in objects(original.items()):
            if isinstance(item, Trouble):
                yield item
            else:
                if first and _agent(item.value):
                    self._belongs(original, item.value)
                first = False
                yield self._entry(item)

    def _belongs(self, original: Original, record: dict[str, Any]) -> None:
        """A sub-agent's file: its session is begun as the file of that session begins it."""
        session, agent = text(record.get("sessionId")), _agent(record) or ""
        self._sessions.sub_agent(session, agent, text(record.get("agentName")))
        original.near(0, f"agent-{agent}.meta.json")  # opened, so that it is kept
        chat = original.near(2, "chats", f"{session}.jsonl") or original.near(2, "chats", "archive", f"{session}.jsonl")
        for _ in () if chat is None else _Chat(self._sessions).entries(chat):
            if self._sessions.about(session).task:
                break
        set_aside(original, chat)

    def _entry(self, item: Item) -> Entry:
        record = item.value
        session, uuid = text(record.get("sessionId")), text(record.get("uuid"))
        self._tell(session, record)
        key = self._keys.of(uuid)
        parent = record.get("parentUuid")
        after = self._last.get(parent) if isinstance(parent, str) else None
        self._last[uuid] = key
        kind = text(record.get("type"))
        read = {"user": self._user, "assistant": self._assistant, "tool_result": self._result}.get(kind, self._other)
        contents: list[bytes] = []
        events = read(record, at_of(record.get("timestamp")), contents)
        return Entry(session, key, events, item.place, after, _native(record), contents)

    def _tell(self, session: str, record: dict[str, Any]) -> None:
        about = self._sessions.about(session)
        about.at = about.at or at_of(record.get("timestamp"))
        about.model = about.model or text(record.get("model")) or None
        about.note(cwd=record.get("cwd"), version=record.get("version"), git_branch=record.get("gitBranch"))
        before = text(mapping(record.get("forkedFrom")).get("sessionId"))
        before = before or text(mapping(record.get("systemPayload")).get("parentSessionId"))
        if before and about.parent is None:
            about.parent = Parent(episode=episode_id("qwen", before, keeps_ids=True))

    def _user(self, record: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        agent, parts = _agent(record), listing(mapping(record.get("message")).get("parts"))
        said = [text(mapping(each).get("text")) for each in parts]
        typed = [each for each in said if each and not each.startswith(_ADDED)]
        is_person = agent is None and text(record.get("subtype")) not in _HARNESS
        events: list[Event] = []
        if typed or len(typed) == len(parts):
            content = "\n".join(typed)
            events.append(User(content=content, actor="human" if is_person else "harness", at=at, agent=agent))
            if is_person:
                self._sessions.about(text(record.get("sessionId"))).prompt(content)
        added = (each for each in said if each.startswith(_ADDED))
        events += [Context(op="inject", text=each, at=at, agent=agent) for each in added]
        self._open.pop(agent or "", None)
        return events or [Note(topic="user", at=at, agent=agent)]

    def _assistant(self, record: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        agent, uuid = _agent(record), text(record.get("uuid"))
        # A sub-agent's answer is written as one record for its words and one for each call, up to what comes back.
        call = uuid if agent is None else self._open.setdefault(agent, uuid)
        model = text(record.get("model")) or None
        is_copied = isinstance(record.get("forkedFrom"), dict)  # then it was paid for in the other session
        events = [] if is_copied else list(self._calls.begin(call, model, at, agent))
        parts = listing(mapping(record.get("message")).get("parts"))
        self._replies += 1
        several = sum("functionCall" in mapping(each) for each in parts) > 1
        for part in parts:
            batch = self._replies if several else None
            events += self._part(mapping(part), None if is_copied else call, at, agent=agent, batch=batch)
        if not is_copied:
            events += self._calls.result(call, record.get("usageMetadata"), None, at, agent, model=model)
        return events or [Note(topic="assistant", at=at, agent=agent)]

    def _part(
        self, part: dict[str, Any], call: str | None, at: int, *, agent: str | None, batch: int | None
    ) -> Iterator[Event]:
        said, asked = part.get("text"), part.get("functionCall")
        if isinstance(said, str) and part.get("thought") is True:
            state = rest_of(part, "text", "thought")
            yield AssistantThinking(content=said, state=state, call=call, at=at, agent=agent)
        elif isinstance(said, str) and said:
            yield AssistantText(content=said, call=call, at=at, agent=agent)
        if isinstance(asked, dict):
            name, args = text(asked.get("name")), asked.get("args")
            call_id = text(asked.get("id")) or name
            self._edits.call(call_id, name, args)
            yield AssistantToolCall(
                name=name, args=args_of(args), call_id=call_id, call=call, batch=batch, at=at, agent=agent
            )

    def _result(self, record: dict[str, Any], at: int, contents: list[bytes]) -> list[Event]:
        agent, about = _agent(record), mapping(record.get("toolCallResult"))
        self._open.pop(agent or "", None)
        events: list[Event] = []
        for part in listing(mapping(record.get("message")).get("parts")):
            given = mapping(mapping(part).get("functionResponse"))
            if given:
                events += self._answered(given, about, at, agent=agent, contents=contents)
        return events or [Note(topic="tool_result", at=at, agent=agent)]

    def _answered(
        self, given: dict[str, Any], about: dict[str, Any], at: int, *, agent: str | None, contents: list[bytes]
    ) -> Iterator[Event]:
        response = mapping(given.get("response"))
        call_id = text(given.get("id")) or text(given.get("name"))
        failed = "error" in response or about.get("status") == "error"
        said = response.get("output", response.get("error", response or None))
        took, display = about.get("durationMs"), about.get("resultDisplay")
        is_command = given.get("name") == "run_shell_command"
        yield ToolResult(
            call_id=call_id, content=text_of(said), is_error=failed, at=at, agent=agent,
            exit_code=exit_code_of(text_of(said)) if is_command else None,
            status=_STATUS.get(text(about.get("status")), "error" if failed else "ok"),
            returned=None if display == said else display,
            duration_ms=took if isinstance(took, (int, float)) and not isinstance(took, bool) else None,
        )  # fmt: skip
        change = self._told(call_id, mapping(display), contents, ok=not failed)
        if change is not None:
            yield FileChange(**{**change, "at": at, "agent": agent})
            return
        changes, bodies = self._edits.result(
            call_id, ok=not failed and about.get("status") != "cancelled", at=at, agent=agent
        )
        contents += bodies
        yield from changes

    def _told(self, call_id: str, display: dict[str, Any], contents: list[bytes], *, ok: bool) -> dict[str, Any] | None:
        """The change that a tool gives with the whole content of its file; None where it was cut for the record."""
        old, new = display.get("originalContent"), display.get("newContent")
        path = self._edits.path(call_id) or text(display.get("fileName"))
        if not ok or not path or not isinstance(new, str) or not isinstance(old, (str, type(None))):
            return None
        if "originalContent" not in display or display.get("truncatedForSession"):
            return None
        is_new = old is None or (not old and "@@ -0,0 " in text(display.get("fileDiff")) and new != "")
        before = None if is_new or old is None else old.encode("utf-8", "surrogatepass")
        after = new.encode("utf-8", "surrogatepass")
        contents += [each for each in (before, after) if each is not None]
        change = {
            "op": "create" if before is None else "modify", "path": path, "cause": call_id,
            "before": None if before is None else file_state(before), "after": file_state(after),
        }  # fmt: skip
        self._edits.seen(call_id, path, after)
        return change

    def _other(self, record: dict[str, Any], at: int, _contents: list[bytes]) -> list[Event]:
        agent, sub = _agent(record), text(record.get("subtype"))
        payload = mapping(record.get("systemPayload"))
        if sub == "chat_compression":
            first = mapping(next(iter(listing(payload.get("compressedHistory"))), None))
            return [
                Context(op="compact", text=text_in(first.get("parts")), detail=payload.get("info"), at=at, agent=agent)
            ]
        if sub == "rewind":
            return [Context(op="rewind", detail={"to": record.get("parentUuid"), **payload}, at=at, agent=agent)]
        said = text(payload.get("customTitle")) or text(payload.get("rawCommand")) or None
        return [Note(topic=f"{text(record.get('type'))} {sub}".strip() or "qwen", text=said, at=at, agent=agent)]


def _agent(record: dict[str, Any]) -> str | None:
    """The sub-agent whose record it is."""
    named = text(record.get("agentId"))
    return named or ("sidechain" if record.get("isSidechain") is True else None)


def _native(record: dict[str, Any]) -> dict[str, Any]:
    """The record, without what its events say in whole."""
    kept = rest_of(record, "message", "" if "forkedFrom" in record else "usageMetadata") or {}
    if record.get("type") == "tool_result":
        about = rest_of(mapping(record.get("toolCallResult")), "resultDisplay", "callId")
        kept = {**(rest_of(kept, "toolCallResult") or {}), **({"toolCallResult": about} if about else {})}
    message = mapping(record.get("message"))
    parts = [each for each in listing(message.get("parts")) if not _is_said(mapping(each))]
    known = record.get("type") in ("user", "assistant", "tool_result")
    if not known and record.get("message") is not None:
        return {**kept, "message": record["message"]}
    return {**kept, "parts": parts} if parts else kept


def _is_said(part: dict[str, Any]) -> bool:
    if "text" in part:
        return part.get("thought") is True or is_only_text([rest_of(part, "thought")])
    return set(part) in ({"functionCall"}, {"functionResponse"})


def _homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
    chosen = from_environ(environ, "QWEN_HOME", home)
    return folders(chosen / "projects" if chosen else None, home / ".qwen" / "projects")


SOURCE = Source(
    name="qwen", title="Qwen Code", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for="lines with uuid, parentUuid and sessionId whose messages have parts",
)  # fmt: skip
