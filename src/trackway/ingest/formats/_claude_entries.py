"""One session of Claude Code while its entries are read: each entry → its events, in the order of the file.

An entry is known by its uuid, or by what it says where it has none. A uuid that comes again is the same entry, written
once more when a session was taken up again: what is different in the copy is noted, and nothing is said twice.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.formats._agents import About
from trackway.ingest.formats._claude_files import Files
from trackway.ingest.formats._claude_notes import attached, noted
from trackway.ingest.formats._claude_prompts import Prompts
from trackway.ingest.formats._claude_replies import Replies, is_the_clients
from trackway.ingest.formats._claude_requests import Requests
from trackway.ingest.formats._claude_results import Made
from trackway.ingest.making import Keys, at_of, digest_of
from trackway.ingest.numbers import Numbers
from trackway.ingest.source import Entry, Place
from trackway.ingest.values import mapping, text
from trackway.schema.events import Event, Note
from trackway.schema.plain import json_text

_TAKEN: Final = frozenset({"type", "uuid", "sessionId", "timestamp", "parentUuid", "message", "isSidechain"})
_TITLES: Final = frozenset({"summary", "custom-title", "ai-title"})


class Session:
    """What has to be known of a session to read its next entry."""

    def __init__(self, name: str, about: About) -> None:
        self.name = name
        self.about = about
        self.seen = Numbers()
        self._files = Files()
        self._replies = Replies()
        self._requests = Requests()
        self._prompts = Prompts(about, self._files, self._replies)
        self._keys = Keys()
        self._last: str | None = None
        self._is_dated = False
        self._sides: dict[str, str] = {}

    def entry(self, value: dict[str, Any], place: Place, line: bytes) -> Entry:
        """One entry of the file, as events."""
        kind, at, agent = text(value.get("type")), at_of(value.get("timestamp")), self.agent_of(value)
        native = {name: each for name, each in value.items() if name not in _TAKEN}
        if agent is not None and native.get("agentId") == agent:
            del native["agentId"]
        if not at and "timestamp" in value:
            native["timestamp"] = value["timestamp"]
        if at and not self._is_dated:  # a fork has its prompt first, then what it copied
            self._is_dated = True
            self._replies.since = at if kind == "queue-operation" else 0
        key, is_again = self._key(value, kind, line)
        if is_again:
            native, made = {"again": value}, self._again(value, kind, at, agent)
        else:
            made = self._read(value, kind, native, at=at, agent=agent)
        parent = value.get("parentUuid")
        if parent != self._last:  # one that is nowhere, or none at all, is told nowhere else
            native["parentUuid"] = parent
        self._last = key
        after = parent if isinstance(parent, str) else None
        return Entry(self.name, key, made.events, place, after, native or None, made.contents)

    def _key(self, value: dict[str, Any], kind: str, line: bytes) -> tuple[str, bool]:
        """What the entry is known by, and whether another was known by it before, which said something else."""
        uuid = value.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            return self._keys.of(f"{kind}:{digest_of(json_text(value))}"), False
        said = hash(line)
        if self.seen.setdefault(hash(uuid), said) == said:
            return uuid, False
        return f"{uuid}:{digest_of(json_text(value))}", True

    def agent_of(self, value: dict[str, Any]) -> str | None:
        """The sub-agent an entry is of. The oldest versions give it no name: there it is told by its first entry."""
        agent = text(value.get("agentId"))
        if "isSidechain" not in value and "uuid" not in value:  # what the client keeps of a sub-agent's requests
            return agent or None
        if value.get("isSidechain") is not True:
            return None
        if agent:
            return agent
        uuid = text(value.get("uuid"))
        side = self._sides.get(text(value.get("parentUuid"))) or f"side-{uuid[:8]}"
        self._sides[uuid] = side
        return side

    def _read(self, value: dict[str, Any], kind: str, native: dict[str, Any], *, at: int, agent: str | None) -> Made:
        if isinstance(value.get("message"), dict):
            if kind == "assistant":
                self._answered(value, agent)
                return self._replies.read(value, native, at=at, agent=agent)
            if kind == "user":
                return self._prompts.read(value, native, at=at, agent=agent)
        if "message" in value:
            native["message"] = value["message"]
        if kind == "attachment" and isinstance(value.get("attachment"), dict):
            return attached(native, self._files, self._requests, at=at, agent=agent)
        event = self._requests.read(kind, native, at=at, agent=agent) or noted(kind, value, native, at=at, agent=agent)
        if kind == "system" and value.get("subtype") == "compact_boundary":
            self._prompts.boundary = value.get("compactMetadata")
        elif kind in _TITLES and isinstance(event, Note):
            self.about.title = self.about.title or event.text or ""
        return Made([event], [])

    def _answered(self, value: dict[str, Any], agent: str | None) -> None:
        """A command that the model answers is a prompt; one that the client answered itself waits for a better one."""
        if agent is None and self._prompts.command and not is_the_clients(value):
            self.about.prompt(self._prompts.command)

    def _again(self, value: dict[str, Any], kind: str, at: int, agent: str | None) -> Made:
        """An entry once more: of a response, its tokens may be known better by now."""
        message = mapping(value.get("message"))
        events: list[Event] = [Note(topic="repeated", text=f"{kind} {value['uuid']}", at=at, agent=agent)]
        if (
            kind == "assistant"
            and text(message.get("id"))
            and not self._replies.is_copy(value, at)
            and not is_the_clients(value)
        ):
            events.extend(self._replies.told(self._replies.name_of(value), message, at, agent))
        return Made(events, [])
