"""Kimi Code and Kimi CLI: journals of sessions, with sub-agents in files of their own.

    Kimi Code   sessions/<folder>/session_<id>/agents/<agent>/wire.jsonl     state.json beside agents/
    Kimi CLI    sessions/<folder>/<id>/wire.jsonl, context.jsonl             subagents/<agent>/wire.jsonl

Facts: MoonshotAI/kimi-cli 1.52 (wire/file.py, wire/types.py, soul/context.py), @moonshot-ai/kimi-code 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from trackway.errors import FileRefused
from trackway.ingest.formats import _kimi_cli, _kimi_code
from trackway.ingest.formats._agents import Sessions, folders, from_environ, set_aside, uuid_in
from trackway.ingest.formats._kimi_steps import Steps
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, rest_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import mapping, text
from trackway.schema.events import Context

_CODE: Final = frozenset(
    {"context.append_loop_event", "context.append_message", "turn.prompt", "tools.set_active_tools"}
)
_MARKS: Final = frozenset({"_system_prompt", "_checkpoint", "_usage"})


def _detect(head: Head) -> Sign | None:
    objects = head.objects
    if any(each.get("type") == "metadata" and isinstance(each.get("protocol_version"), str) for each in objects[:1]):
        return Sign(0.95, "a first line of type metadata with protocol_version, as Kimi's journals have")
    if any(text(each.get("type")) in _CODE and "time" in each for each in objects):
        return Sign(0.9, "lines of Kimi Code's journal: type, time, and what was added to the context")
    if sum(_is_wired(each) for each in objects) * 2 > len(objects):
        return Sign(0.9, "lines with timestamp and a message with type and payload, as Kimi CLI's wire has")
    if any(text(each.get("role")) in _MARKS for each in objects):
        beside = head.path is not None and head.path.with_name("wire.jsonl").is_file()
        said = "messages with Kimi CLI's own roles between them (_system_prompt, _checkpoint, _usage)"
        return Sign(0.85, said, is_part=beside)
    return _sign_of_state(head.document)


def _sign_of_state(state: Mapping[str, Any]) -> Sign | None:
    if any("homedir" in mapping(each) for each in mapping(state.get("agents")).values()):
        return Sign(0.9, "the state of a session of Kimi Code: its agents and their folders", is_part=True)
    if {"version", "approval"} <= state.keys() and {"custom_title", "additional_dirs", "plan_mode"} & state.keys():
        return Sign(0.8, "the state of a session of Kimi CLI", is_part=True)
    return None


def _is_wired(line: Mapping[str, Any]) -> bool:
    message = mapping(line.get("message"))
    return isinstance(line.get("timestamp"), (int, float)) and set(message) == {"type", "payload"}


class _Place(NamedTuple):
    """Whose file it is: the session, the sub-agent, and where the session's own file is."""

    session: str = ""
    agent: str | None = None
    above: Original | None = None


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("kimi", "kimi")
    place = _place(original)
    if place.agent is not None:
        sessions.sub_agent(place.session, place.agent)
        for _ in () if place.above is None else _entries(place.above, sessions, _Place(place.session)):
            if sessions.about(place.session).task:
                break
        set_aside(original, place.above)
    return sessions.opened(_entries(original, sessions, place))


def _place(original: Original) -> _Place:
    """By the folders it lies in; a file that was taken out of them has no name."""
    above = [each.name for each in original.path.parents[:3]]
    if len(above) == 3 and above[1] == "agents":
        session = _id(above[2]) or above[2]
        is_main = above[0] == "main"
        return _Place(
            session, None if is_main else above[0], None if is_main else original.near(1, "main", "wire.jsonl")
        )
    if len(above) == 3 and above[1] == "subagents":
        return _Place(_id(above[2]) or above[2], above[0], original.near(2, "wire.jsonl"))
    agents = mapping(_state(original).get("agents")).values()
    homes = (text(mapping(each).get("homedir")).split("/") for each in agents)
    return _Place(_id(above[0]) or next((_id(each[-3]) for each in homes if len(each) > 2), ""))


def _id(name: str) -> str:
    return uuid_in(name.removeprefix("session_"))


def _state(original: Original) -> dict[str, Any]:
    """What is said of the session beside its file: where each of the two programs has it, or under the file's name."""
    beside = original.near(0, f"{original.path.stem}.state.json")
    if beside is None and original.path.name in ("wire.jsonl", "context.jsonl"):
        beside = original.near(2 if original.path.parent.parent.name == "agents" else 0, "state.json")
    try:
        return {} if beside is None else mapping(beside.value())
    except FileRefused:  # kept, and not understood
        return {}


def _entries(original: Original, sessions: Sessions, place: _Place) -> Iterator[Entry | Trouble]:
    about = sessions.about(place.session)
    steps = _Agents(Steps(about, place.agent), original)
    if place.agent is None:
        state = _state(original)
        about.title = text(state.get("title")) or text(state.get("custom_title"))
        about.note(cwd=state.get("workDir"))
    yield from _prompted(original, place)
    number = 0
    for item in original.items():
        if isinstance(item, Trouble):
            yield item
            continue
        line = mapping(item.value) or {"value": item.value}
        at = at_of(line.get("time") or line.get("timestamp") or line.get("created_at"))
        about.at = about.at or (at if place.agent is None else 0)
        events, native, contents = steps.said(line, at)
        key = f"{place.agent} {number}" if place.agent else str(number)
        number += 1
        yield Entry(place.session, key, events, item.place, native=native, contents=contents)


def _prompted(original: Original, place: _Place) -> Iterator[Entry]:
    """The system prompt, which Kimi CLI keeps in the file beside its wire."""
    beside = original.near(0, "context.jsonl")
    if beside is None or beside.path == original.path:
        return
    first = next(iter(beside.items()), None)
    line = {} if first is None or isinstance(first, Trouble) else mapping(first.value)
    if line.get("role") == "_system_prompt":
        event = Context(op="set", system_prompt=text(line.get("content")), agent=place.agent)
        yield Entry(place.session, f"{place.agent or 'main'} system prompt", [event])


class _Agents:
    """The lines of a file: of the agent whose it is, and of those that it tells of."""

    def __init__(self, steps: Steps, original: Original) -> None:
        self._own = steps
        self._original = original
        self._others: dict[str, Steps | None] = {}

    def said(self, line: dict[str, Any], at: int) -> tuple[list[Any], dict[str, Any] | None, list[bytes]]:
        """The events of a line, what of it has no home, the contents that they name."""
        steps = self._own
        if _is_wired(line):
            message = line["message"]
            while message.get("type") == "SubagentEvent":
                payload = mapping(message.get("payload"))
                other = self._other(text(payload.get("agent_id")) or text(payload.get("parent_tool_call_id")))
                if other is None:
                    return steps.note("SubagentEvent", at), rest_of(payload, "event"), []
                steps, message = other, mapping(payload.get("event"))
            events, native = _kimi_cli.wired(steps, message, at)
        elif isinstance(line.get("role"), str) and "type" not in line:
            events, native = _kimi_cli.messaged(steps, line, at)
        else:
            events, native = _kimi_code.said(steps, line, at)
        contents, steps.contents = steps.contents, []
        return events, native, contents

    def _other(self, agent: str) -> Steps | None:
        """A sub-agent that the file tells of; None where it has a file of its own, which says the same."""
        if agent not in self._others:
            file = self._original.near(0, "subagents", agent, "wire.jsonl")
            set_aside(self._original, file)
            self._others[agent] = Steps(self._own.about, agent or "subagent") if file is None or not file.size else None
        return self._others[agent]


def _homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
    code = from_environ(environ, "KIMI_CODE_HOME", home) or home / ".kimi-code"
    cli = from_environ(environ, "KIMI_SHARE_DIR", home) or home / ".kimi"
    return folders(code / "sessions", cli / "sessions")


SOURCE = Source(
    name="kimi", title="Kimi", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for="a first line of type metadata with protocol_version, or messages with type and payload",
)  # fmt: skip
