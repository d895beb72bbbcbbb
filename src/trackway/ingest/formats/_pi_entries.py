"""A session as pi writes it → entries. OpenClaw keeps its sessions in the same form.

One line an entry, a tree by ``id`` and ``parentId``; the first line names the session. Files of before December 2025
have no ids, and pi rewrites them with new ones when it opens them: entries are known by when they were made, which
stays. The stream of ``pi --mode json`` says the same messages in other lines, and has the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from trackway.ingest.formats._agents import About, Sessions, objects
from trackway.ingest.formats._pi_messages import Messages, Said, spent
from trackway.ingest.making import Keys, at_of, is_only_text, rest_of, text_in
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import mapping, text
from trackway.schema.events import Context, Event, Note, Parent, User

_FILE: Final = re.compile(r"(?:^|[/\\])[^/\\_]*_([^/\\]+)\.jsonl\Z")
_SAID_AGAIN: Final = frozenset({
    "message_start", "message_update", "tool_execution_start", "tool_execution_update", "agent_start", "turn_start",
})  # fmt: skip
"""Lines of the stream that say nothing which its ``message_end`` lines do not say in whole."""
_BASE: Final = ("type", "id", "parentId", "timestamp")


def read(original: Original, source: str, agent: str) -> Iterator[Entry | Trouble]:
    """Everything a file says; ``source`` and ``agent`` are whose format, and who wrote it."""
    sessions = Sessions(source, agent)
    return sessions.opened(_Reading(sessions).entries(original))


class _Session:
    """Where a session stands while its file is read."""

    def __init__(self, name: str, about: About) -> None:
        self.name = name
        self.about = about
        self.messages = Messages()
        self.keys = Keys()
        self.by_id: dict[str, str] = {}
        self.last: str | None = None


class _Reading:
    """One file while it is read: its sessions, and the one it is in."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._all: dict[str, _Session] = {}
        self._in = self._session("")

    def _session(self, name: str) -> _Session:
        found = self._all.get(name)
        if found is None:
            found = self._all[name] = _Session(name, self._sessions.about(name))
        return found

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The lines of a file, without the sessions' beginnings."""
        for item in objects(original.items()):
            if isinstance(item, Trouble):
                yield item
            elif item.value.get("type") == "session":
                self._head(item.value, item.place)
            elif text(item.value.get("type")) not in _SAID_AGAIN:
                yield self._entry(item.value, item.place)

    def _head(self, head: dict[str, Any], place: Place) -> None:
        self._in = self._session(text(head.get("id")))
        about = self._in.about
        if about.native is not None:  # it was begun before, and is gone on with
            return
        about.native, about.place, about.at = head, place, at_of(head.get("timestamp"))
        about.model = text(head.get("modelId")) or None
        about.note(cwd=head.get("cwd"), version=head.get("version"), provider=head.get("provider"))
        before = _FILE.search(text(head.get("parentSession")) or text(head.get("branchedFrom")))
        if before:
            about.parent = Parent(episode=episode_id(self._sessions.source, before[1], keeps_ids=True))

    def _entry(self, entry: dict[str, Any], place: Place) -> Entry:
        session = self._in
        at = at_of(entry.get("timestamp"))
        key = session.keys.of(_name(entry))
        own, parent = text(entry.get("id")), entry.get("parentId")
        said = self._said(entry, key, at)
        events, after = said.events, session.by_id.get(parent) if isinstance(parent, str) else None
        if own and session.last and parent != session.last and (after or parent is None) and _is_jump(entry):
            events = [Context(op="rewind", detail={"to": parent}, at=at), *events]
        if own:
            session.by_id[own] = key
            session.last = own
        for each in events:
            if isinstance(each, User):
                session.about.prompt(each.content)
        native = {**_ids(entry), **(said.native or {})}
        return Entry(session.name, key, events, place, after, native or None, said.contents)

    def _said(self, entry: dict[str, Any], key: str, at: int) -> Said:
        messages, about = self._in.messages, self._in.about
        kind = text(entry.get("type"))
        if kind in ("message", "message_end") and isinstance(entry.get("message"), dict):
            at = at or at_of(entry["message"].get("timestamp"))
            # A fork begins with copies of what it was forked from: they are older than it is.
            is_copied = about.parent is not None and 0 < at < about.at
            said = messages.said(entry["message"], key, at, is_copied=is_copied)
            beside = rest_of(entry, *_BASE, "message")
            return said._replace(native={**(said.native or {}), "entry": beside}) if beside else said
        read = _KINDS.get(kind)
        if read is None:
            return Said([Note(topic=kind or self._sessions.source, at=at)], entry)
        if kind == "model_change" and about.model is None:
            about.model = text(entry.get("modelId")) or None
        events = read(entry, key, at)
        system = entry.get("systemMessage")
        if isinstance(system, dict):
            messages.system.begin()
            events.append(messages.system.take(system, at))
        return Said(events, rest_of(entry, *_BASE, *_TEXTS.get(kind, ())))


def _ids(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("id", "parentId") if name in entry}


def _name(entry: dict[str, Any]) -> str:
    """What an entry is known by: when it was made, and what it is."""
    message = mapping(entry.get("message"))
    at = message.get("timestamp") or entry.get("timestamp")
    if not isinstance(at, (str, int, float)):
        at = text(entry.get("id"))
    return f"{message.get('role') or entry.get('type')}@{at}"


def _is_jump(entry: dict[str, Any]) -> bool:
    """A summary of the branch that was left says so itself."""
    return entry.get("type") != "branch_summary"


def _compaction(entry: dict[str, Any], key: str, at: int) -> list[Event]:
    detail = rest_of(entry, *_BASE, "summary", "usage", "systemMessage")
    event = Context(op="compact", text=text(entry.get("summary")), detail=detail, at=at)
    return [event, *spent(key, mapping(entry.get("usage")), None, at)]


def _branch(entry: dict[str, Any], key: str, at: int) -> list[Event]:
    detail = {"to": entry.get("parentId"), **(rest_of(entry, *_BASE, "summary", "usage") or {})}
    event = Context(op="rewind", text=text(entry.get("summary")), detail=detail, at=at)
    return [event, *spent(key, mapping(entry.get("usage")), None, at)]


def _context_edit(entry: dict[str, Any], _key: str, at: int) -> list[Event]:
    """One earlier entry is left out, or replaced, in what the model sees from here on."""
    return [Context(op="compact", detail=rest_of(entry, *_BASE), at=at)]


def _injected(entry: dict[str, Any], _key: str, at: int) -> list[Event]:
    return [Context(op="inject", text=text_in(entry.get("content")), detail=_of_custom(entry), at=at)]


def _of_custom(entry: dict[str, Any]) -> dict[str, Any] | None:
    return rest_of(entry, *_BASE, *(("content",) if is_only_text(entry.get("content")) else ()))


def _usage(entry: dict[str, Any], key: str, at: int) -> list[Event]:
    return list(spent(key, mapping(entry.get("usage")), text(entry.get("model")) or None, at)) or [Note(topic="usage")]


def _noted(field: str) -> Callable[[dict[str, Any], str, int], list[Event]]:
    def note(entry: dict[str, Any], _key: str, at: int) -> list[Event]:
        said = text(entry.get(field)) or None
        kind = text(entry.get("type"))
        return [Note(topic=f"{kind} {said}" if field == "customType" and said else kind, text=said, at=at)]

    return note


def _stream_compaction(entry: dict[str, Any], key: str, at: int) -> list[Event]:
    return _compaction({**mapping(entry.get("result")), "reason": entry.get("reason")}, key, at)


_KINDS: Final[dict[str, Callable[[dict[str, Any], str, int], list[Event]]]] = {
    "compaction": _compaction, "branch_summary": _branch, "context_edit": _context_edit, "custom_message": _injected,
    "usage": _usage, "model_change": _noted("modelId"), "thinking_level_change": _noted("thinkingLevel"),
    "custom": _noted("customType"), "label": _noted("label"), "session_info": _noted("name"),
    "compaction_end": _stream_compaction, "agent_end": _noted("type"), "turn_end": _noted("type"),
    "tool_execution_end": _noted("toolCallId"),
}  # fmt: skip
_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "compaction": (
        "summary", "firstKeptEntryId", "firstKeptEntryIndex", "tokensBefore", "details", "fromHook", "usage",
    ),
    "branch_summary": ("summary", "fromId", "details", "fromHook", "usage"),
    "context_edit": ("targetId", "replacement"),
    "custom_message": ("content", "customType", "display", "details"),
    "compaction_end": ("result", "reason"), "agent_end": ("messages",), "turn_end": ("message", "toolResults"),
    "tool_execution_end": ("result",),
}  # fmt: skip
"""Per kind, the fields that an event has; in the stream, those that other lines say in whole."""
