"""Claude Code's sessions: JSON lines below ``~/.claude/projects``, one file a session, one a sub-agent.

Each entry names its session: that is the episode, under its own id, whichever file it stands in. A sub-agent's file
holds entries of the session that started it; they go into the same episode, under the sub-agent's name. Entries are
read in the order of the file, and linked by ``parentUuid``: time goes backwards in most files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from trackway.errors import FileRefused
from trackway.ingest.formats._agents import Sessions, homes_of
from trackway.ingest.formats._claude_entries import Session
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, digest_of, text_in
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import mapping, text
from trackway.schema.events import EpisodeStart, Note, Parent
from trackway.schema.plain import json_text

NAME: Final = "claude_code"
_LINKED: Final = frozenset({"user", "assistant", "system", "progress", "attachment"})
_ABOUT_AGENTS: Final = frozenset({"agentType", "toolUseId", "parentAgentId"})
_EARLY: Final = 4096
_BEGINNING: Final = 200


def detect(head: Head) -> Sign | None:
    """By its entries: each with a uuid, the uuid of the one before it, and the session they are of."""
    found = [each for each in head.objects if _is_linked(each)]
    if any("parts" in mapping(each.get("message")) or "systemPayload" in each for each in found):
        return None  # Qwen Code writes such lines as well, with another provider's messages in them
    if any("parentUuid" in each for each in found):
        return Sign(0.97, "lines with uuid, parentUuid and sessionId")
    if any(each["type"] in ("user", "assistant") and isinstance(each.get("message"), dict) for each in found):
        return Sign(0.8, "lines with uuid, sessionId and a message")
    if any(_is_aside(each) for each in head.objects):
        return Sign(0.7, "summaries, snapshots or settings of a session, as Claude Code writes them")
    return _part(head)


def _is_linked(value: dict[str, Any]) -> bool:
    return text(value.get("type")) in _LINKED and all(
        isinstance(value.get(name), str) for name in ("uuid", "sessionId")
    )


def _is_aside(value: dict[str, Any]) -> bool:
    """Whether an entry without links is one of those that stand before the first prompt."""
    kind, named = value.get("type"), isinstance(value.get("sessionId"), str)
    if kind == "summary":
        return isinstance(value.get("leafUuid"), str) and isinstance(value.get("summary"), str)
    if kind == "file-history-snapshot":
        return isinstance(value.get("messageId"), str) and isinstance(value.get("snapshot"), dict)
    if kind == "queue-operation":
        return named and isinstance(value.get("operation"), str)
    return named and kind in ("permission-mode", "custom-title", "ai-title", "last-prompt", "agent-setting", "mode")


def _part(head: Head) -> Sign | None:
    """A file that says something of a sub-agent's, and nothing by itself."""
    journal = [
        each for each in head.objects if isinstance(each.get("key"), str) and isinstance(each.get("agentId"), str)
    ]
    if journal and all(each.get("type") in ("started", "result") for each in journal):
        return Sign(0.6, "a workflow's list of its sub-agents", is_part=True)
    told = head.document
    if len(head.objects) > 1 or not _ABOUT_AGENTS & told.keys() or "uuid" in told or "messages" in told:
        return None
    named = Path(head.name).name
    is_named = named.startswith("agent-") and named.endswith(".meta.json")
    return Sign(0.7 if is_named else 0.4, "what a sub-agent is, and which call started it", is_part=True)


def read(original: Original) -> Iterator[Entry | Trouble]:
    """The entries of every session in a file."""
    sessions = Sessions(NAME, "claude-code")
    return sessions.opened(_File(original, sessions).entries())


class _File:
    """A file while it is read: its sessions, and what stands in it before the first of them is named."""

    def __init__(self, original: Original, sessions: Sessions) -> None:
        self._original = original
        self._about = sessions
        self._sessions: dict[str, Session] = {}
        self._unknown: set[str] = set()
        self._now: Session | None = None
        self._early: list[Item] = []

    def entries(self) -> Iterator[Entry | Trouble]:
        """Every entry, in the order of the file."""
        for item in self._original.items():
            if isinstance(item, Trouble):
                yield item
            elif isinstance(item.value, dict):
                name = item.value.get("sessionId") or item.value.get("session_id")
                if isinstance(name, str) and (self._now is None or name != self._now.name):
                    yield from self._turn(name, item.place)
                yield from self._entry(item)
            else:
                yield Trouble(item.place, f"a {type(item.value).__name__}, and no entry")
        yield from self._unnamed()

    def _entry(self, item: Item) -> Iterator[Entry | Trouble]:
        """An entry is of the session it names, or else of the one before it."""
        now = self._now
        if now is None:
            self._early.append(item)
            if len(self._early) >= _EARLY:
                yield from self._unnamed()
            return
        if now.name in self._unknown and "uuid" in item.value:
            yield from self._begun(now, item.value)
        yield now.entry(item.value, item.place, item.raw)

    def _turn(self, name: str, place: Place) -> Iterator[Entry | Trouble]:
        """From here on entries are of this session; and so is all that came before any session was named."""
        if self._sessions and name not in self._sessions:
            yield Trouble(place, f"an entry of session {name} in a file of session {next(iter(self._sessions))}")
        self._now = self._session(name)
        early, self._early = self._early, []
        for each in early:
            yield self._now.entry(each.value, each.place, each.raw)

    def _unnamed(self) -> Iterator[Entry | Trouble]:
        """Entries before any that names a session are of the one the file is named after, where it is."""
        if not self._early:
            return
        place = self._early[0].place
        try:
            name = str(UUID(Path(self._original.name).name.partition(".")[0]))
        except ValueError:
            self._early = []
            yield Trouble(place, "no line from here on says which session it is of; they are kept, and not read")
        else:
            yield from self._turn(name, place)

    def _session(self, name: str) -> Session:
        found = self._sessions.get(name)
        if found is None:
            found = self._sessions[name] = Session(name, self._about.about(name))
            self._unknown.add(name)
        return found

    def _begun(self, session: Session, value: dict[str, Any]) -> Iterator[Entry | Trouble]:
        """What a session's first entry says of all of it."""
        self._unknown.discard(session.name)
        about = session.about
        about.at = at_of(value.get("timestamp"))
        about.note(
            cwd=value.get("cwd"), version=value.get("version"), git_branch=value.get("gitBranch"),
            entrypoint=value.get("entrypoint"),
        )  # fmt: skip
        source = text(mapping(value.get("forkedFrom")).get("sessionId"))
        before = text(value.get("parentUuid"))
        for each in self._sessions.values():
            if not source and hash(before) in each.seen:  # it goes on with what was asked there
                source = each.name
                about.prompt(each.about.task)
        if source:
            about.parent = Parent(episode=episode_id(NAME, source, keeps_ids=True))
        if value.get("isSidechain") is True:
            yield from self._agent(session, value)

    def _agent(self, session: Session, value: dict[str, Any]) -> Iterator[Entry | Trouble]:
        """A file that begins inside a sub-agent is that sub-agent's: the session itself stands in another one."""
        session.about.prompt(
            _task(self._original, session.name) or text_in(mapping(value.get("message")).get("content"))
        )
        name = Path(self._original.path).name
        self._original.near(0, "journal.jsonl")  # kept with the file; what it says is in the sub-agents' own files
        beside = self._original.near(0, f"{name.removesuffix('.jsonl')}.meta.json")
        if beside is None:
            return
        try:
            told = beside.value()
        except FileRefused as error:
            yield Trouble(Place(), str(error))
            return
        agent = session.agent_of(value)
        note = Note(topic="agent", text=text(mapping(told).get("agentType")) or None, detail=told, agent=agent)
        yield Entry(session.name, f"agent:{agent}:{digest_of(json_text(told))}", [note])


def _task(original: Original, session: str) -> str:
    """What a session was asked, by the file it stands in: beside its sub-agents' files, or above their folder."""
    for up in (0, 2, 4):
        found = original.near(up, f"{session}.jsonl")
        if found is None or found.path == original.path:
            continue
        original.companions.pop(found.path, None)  # a session by itself: it is not kept once a sub-agent
        for entry in islice(read(found), _BEGINNING):
            if isinstance(entry, Entry) and entry.key == "start" and entry.session == session:
                return next((each.header.task for each in entry.events if isinstance(each, EpisodeStart)), "")
    return ""


SOURCE: Final = Source(
    name=NAME,
    title="Claude Code",
    detect=detect,
    read=read,
    looked_for="lines with uuid, parentUuid and sessionId (~/.claude/projects)",
    keeps_ids=True,
    homes=homes_of("CLAUDE_CONFIG_DIR", ".claude", "projects"),
)
