"""Antigravity's command-line agent: ``brain/<conversation>/.system_generated/logs/transcript.jsonl``, a step a line.

Calls have no ids, and what came of them is a step of its own kind (``list_dir`` → ``LIST_DIRECTORY``): a result is that
of the oldest open call whose tool makes such steps. A step for which nobody called is a result without a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import Sessions, folders, uuid_in
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, args_of, at_of, rest_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text, whole
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelCall,
    Note,
    ToolResult,
    User,
)

_MAKES: Final = {
    "list_dir": "LIST_DIRECTORY", "list_directory": "LIST_DIRECTORY", "view_file": "VIEW_FILE",
    "read_file": "VIEW_FILE", "run_command": "RUN_COMMAND", "command_status": "COMMAND_STATUS",
    "grep_search": "GREP_SEARCH", "search_web": "SEARCH_WEB", "find_by_name": "FIND", "write_file": "CODE_ACTION",
    "write_to_file": "CODE_ACTION",
    "replace_file_content": "CODE_ACTION", "multi_replace_file_content": "CODE_ACTION", "edit_file": "CODE_ACTION",
}  # fmt: skip
"""The steps that come of tools; what is not listed may be of any step."""
_STATUS: Final = {"ERROR": "error", "FAILED": "error", "CANCELED": "interrupted", "CANCELLED": "interrupted"}
_UNDER_WAY: Final = ("PENDING", "RUNNING", "WAITING", "GENERATING")
_EXITED: Final = re.compile(r"exit code:? (-?\d{1,9})")
_ASKED: Final = re.compile(r"<USER_REQUEST>\n?(.*?)\n?</USER_REQUEST>", re.DOTALL)
_MODEL: Final = re.compile(r"`Model Selection` from .{1,200}? to (.{1,200}?)\.?\s*(?:\n|$)")


def _detect(head: Head) -> Sign | None:
    found = [each for each in head.objects if _is_step(each)]
    if found and len(found) * 2 > len(head.objects):
        return Sign(0.95, "steps with step_index, source, type and created_at")
    return None


def _is_step(line: Mapping[str, Any]) -> bool:
    return {"step_index", "source", "status", "created_at"} <= line.keys() and isinstance(line.get("type"), str)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("antigravity", "antigravity")
    return sessions.opened(_Steps(sessions, _named(original.path)).entries(original))


def _named(path: Path) -> str:
    """The conversation, by the folder it lies in; a file that was taken out of it has no name."""
    folder = path.parents[2].name if len(path.parents) > 2 and path.parent.name == "logs" else ""
    return uuid_in(folder)


class _Steps:
    """One transcript while it is read."""

    def __init__(self, sessions: Sessions, session: str) -> None:
        self._about = sessions.about(session)
        self._session = session
        self._keys = Keys()
        self._edits = Edits()
        self._open: list[tuple[str, str]] = []
        self._count = 0
        self._replies = 0
        self._contents: list[bytes] = []

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The steps, without the session's beginning."""
        for item in original.items():
            if isinstance(item, Trouble):
                yield item
                continue
            step = mapping(item.value) or {"value": item.value}
            at, kind = at_of(step.get("created_at")), text(step.get("type"))
            key = self._keys.of(str(step.get("step_index") if whole(step.get("step_index")) is not None else kind))
            self._about.at = self._about.at or at
            events = self._events(step, kind, key, at)
            native = rest_of(step, "content", "thinking", "tool_calls", "created_at")
            if isinstance(events[-1], Note):
                native = step
            contents, self._contents = self._contents, []
            yield Entry(self._session, key, events, item.place, native=native, contents=contents)

    def _events(self, step: dict[str, Any], kind: str, key: str, at: int) -> list[Event]:
        said = text(step.get("content"))
        if kind == "USER_INPUT":
            return self._asked(said, at)
        if kind == "PLANNER_RESPONSE":
            return self._planned(step, key, at)
        if kind == "CHECKPOINT":
            return [Context(op="compact", text=said, at=at)]
        if step.get("source") == "MODEL" and step.get("status") not in _UNDER_WAY:
            return self._came(step, kind, key, at)
        if kind in ("SYSTEM_MESSAGE", "EPHEMERAL_MESSAGE"):
            return [Context(op="inject", text=said, at=at)]
        return [Note(topic=kind or "antigravity", text=said or None, at=at)]

    def _asked(self, said: str, at: int) -> list[Event]:
        """A person's words, and what the client put around them."""
        found, chosen = _ASKED.search(said), _MODEL.search(said)
        if chosen and self._about.model is None:
            self._about.model = chosen[1]
        typed = said if found is None else found[1]
        self._about.prompt(typed)
        around = "" if found is None else (said[: found.start()] + said[found.end() :]).strip()
        events: list[Event] = [User(content=typed, at=at)]
        return [*events, Context(op="inject", text=around, at=at)] if around else events

    def _planned(self, step: dict[str, Any], key: str, at: int) -> list[Event]:
        events: list[Event] = [ModelCall(id=key, model=self._about.model, at=at)]
        if thought := text(step.get("thinking")):
            events.append(AssistantThinking(content=thought, call=key, at=at))
        if said := text(step.get("content")):
            events.append(AssistantText(content=said, call=key, at=at))
        calls = [mapping(each) for each in listing(step.get("tool_calls"))]
        self._replies += 1
        batch = self._replies if len(calls) > 1 else None
        self._open = []  # what the model did not wait for was not answered
        for each in calls:
            self._count += 1
            name, args, call_id = text(each.get("name")), each.get("args"), f"call-{self._count}"
            self._open.append((call_id, name))
            self._edits.call(call_id, name, {one: _plain(value) for one, value in mapping(args).items()})
            events.append(
                AssistantToolCall(name=name, args=args_of(args), call_id=call_id, call=key, batch=batch, at=at)
            )
        return events

    def _came(self, step: dict[str, Any], kind: str, key: str, at: int) -> list[Event]:
        said, status = text(step.get("content")), _STATUS.get(text(step.get("status")), "ok")
        place = next((i for i, each in enumerate(self._open) if _MAKES.get(each[1], kind) == kind), None)
        call_id = f"step-{key}" if place is None else self._open.pop(place)[0]
        exited = _EXITED.search(said[:2000]) if kind == "RUN_COMMAND" else None
        changes, self._contents = self._edits.result(call_id, ok=status == "ok", at=at)
        event = ToolResult(
            call_id=call_id, content=said, is_error=status == "error", status=status, at=at,
            exit_code=int(exited[1]) if exited else None,
        )  # fmt: skip
        return [event, *changes]


def _plain(value: object) -> object:
    """Arguments are JSON inside of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _homes(home: Path, _environ: Mapping[str, str]) -> list[Path]:
    tops = (home / ".gemini" / name / "brain" for name in ("antigravity-cli", "antigravity"))
    return folders(*tops)


SOURCE = Source(
    name="antigravity", title="Antigravity", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for="steps with step_index, source, type and created_at",
)  # fmt: skip
