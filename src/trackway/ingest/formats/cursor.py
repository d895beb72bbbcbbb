"""Cursor's agent: transcripts under ``projects/…/agent-transcripts/<session>/<session>.jsonl``.

One message a line, ``{"role", "message": {"content": [blocks]}}``: no times, no ids, and often no results. The session
is named by its file; sub-agents lie in a folder ``subagents`` beside it, and are inside the session they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.ingest.formats._agent_blocks import Blocks, is_block_message, said_beside
from trackway.ingest.formats._agents import Sessions, folders, set_aside, uuid_in
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, rest_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import mapping, text
from trackway.schema.events import Event, ModelCall, Note, User

_ASKED: Final = ("<user_query>", "</user_query>")
_ELSEWHERE: Final = frozenset({"uuid", "sessionId", "session_id", "parentUuid", "parentId", "payload"})


def _detect(head: Head) -> Sign | None:
    said = [each for each in head.objects if _is_message(each)]
    others = [each for each in head.objects if not _is_message(each) and each.get("type") != "turn_ended"]
    if not said or len(others) > len(said):
        return None
    return Sign(0.85, "lines with role and message, whose content is blocks, and no id, time or session")


def _is_message(line: Mapping[str, Any]) -> bool:
    message = mapping(line.get("message"))
    plain = line.get("role") in ("user", "assistant") and "type" not in line and not _ELSEWHERE & line.keys()
    return plain and "role" not in message and is_block_message(message)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("cursor", "cursor")
    session, agent = _named(original.path)
    if agent is not None:
        sessions.sub_agent(session, agent)
        above = original.near(1, f"{session}.jsonl")
        for _ in () if above is None else _entries(above, sessions, session, None):
            if sessions.about(session).task:
                break
        set_aside(original, above)
    return sessions.opened(_entries(original, sessions, session, agent))


def _named(path: Path) -> tuple[str, str | None]:
    """The session a file is of, by its name, and the sub-agent where it is one's; else it has no name."""
    if path.parent.name == "subagents" and uuid_in(path.parents[1].name):
        return path.parents[1].name, path.stem
    return path.stem if uuid_in(path.stem) else "", None


def _entries(original: Original, sessions: Sessions, session: str, agent: str | None) -> Iterator[Entry | Trouble]:
    blocks = Blocks(agent)
    number = 0
    for item in original.items():
        if isinstance(item, Trouble):
            yield item
            continue
        key = f"{agent} {number}" if agent else str(number)
        number += 1
        yield _entry(mapping(item.value) or {"value": item.value}, key, blocks, item.place, sessions=sessions,
                     session=session, agent=agent)  # fmt: skip


def _entry(
    line: dict[str, Any], key: str, blocks: Blocks, place: Place, *, sessions: Sessions, session: str, agent: str | None
) -> Entry:
    message, at, about = mapping(line.get("message")), at_of(line.get("timestamp")), sessions.about(session)
    role = text(line.get("role")) or text(message.get("role"))
    if not message or role not in ("user", "assistant"):
        said = text(line.get("status")) or None
        return Entry(
            session, key, [Note(topic=text(line.get("type")) or role or "cursor", text=said, at=at)], place, native=line
        )
    rest = rest_of(line, "role", "message") or {}
    beside = rest_of(message, "content", "role")
    rest = {**rest, "message": beside} if beside else rest
    if role == "assistant":
        spoken = blocks.answer(message.get("content"), key, at)
        events: list[Event] = [
            ModelCall(id=key, model=text(line.get("model")) or None, at=at, agent=agent),
            *spoken.events,
        ]
    else:
        spoken = blocks.prompt(message.get("content"), at, "human" if agent is None else "harness")
        events = spoken.events
        for each in events:
            if isinstance(each, User) and agent is None:
                about.prompt(_asked(each.content))
    return Entry(session, key, events, place, native=said_beside(spoken.left, rest), contents=spoken.contents)


def _asked(said: str) -> str:
    """A person's own words among what the client puts around them."""
    start, end = (said.find(each) for each in _ASKED)
    return said[start + len(_ASKED[0]) : end] if 0 <= start < end else said


def _homes(home: Path, _environ: Mapping[str, str]) -> list[Path]:
    top = home / ".cursor" / "projects"
    return folders(*(sorted(top.glob("*/agent-transcripts")) if top.is_dir() else ()))


SOURCE = Source(
    name="cursor", title="Cursor", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for="lines with role and a message made of blocks, without ids",
)  # fmt: skip
