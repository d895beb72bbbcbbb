"""ATIF, the trajectory format Harbor writes and converts to (v1.0 to v1.8): one JSON document an episode.

A document is often a conversion of a session that is imported natively, too: it stays an episode of its own. What it
says of itself as a whole (``final_metrics``, ``notes``, where it is continued) stands with its beginning, because at
the end it would stand between this version and what a longer one adds. It tells no outcome, and none is made up.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from trackway.ingest.formats._atif_steps import Steps
from trackway.ingest.formats._beginnings import opened
from trackway.ingest.formats._documents import Document
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, digest_of, left, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import EpisodeStart, Header
from trackway.schema.plain import json_text

_NAME = "atif"
_LISTS = ("steps", "subagent_trajectories")
_NOWHERE = Place()


def _detect(head: Head) -> Sign | None:
    lines = head.objects
    for each in (head.document, lines[0] if lines else {}):
        version = text(each.get("schema_version"))
        if version.startswith("ATIF"):
            return Sign(0.98, f"schema_version {version}")
        steps = [mapping(one) for one in listing(each.get("steps"))[:4]]
        if steps and isinstance(each.get("agent"), dict) and all("step_id" in one and "source" in one for one in steps):
            return Sign(0.6, "an agent and steps with step_id and source")
    return None


def _read(original: Original) -> Iterator[Entry | Trouble]:
    lines = list(itertools.islice(original.lines(), 2))
    if len(lines) == 2 and (lines[0][1] or b"").rstrip().endswith(b"}") and lines[0][1] != b"}":
        yield from _rows(original)
        return
    document = Document(original, "steps", hold=("subagent_trajectories",))
    steps = document.each("steps")
    first = list(itertools.islice(steps, 1))
    if not first:
        raise original.refused("no steps")
    session = _session(document.members, first[0][1])
    subagents = (each for _, each in document.each("subagent_trajectories"))
    yield from _episode(session, document.members, itertools.chain(first, steps), subagents)


def _rows(original: Original) -> Iterator[Entry | Trouble]:
    """A document a line."""
    keys = Keys()
    for item in original.items():
        if isinstance(item, Trouble):
            yield item
            continue
        steps = listing(mapping(item.value).get("steps"))
        if not steps:
            yield Trouble(item.place, "no trajectory with steps")
            continue
        about = {key: each for key, each in item.value.items() if key not in _LISTS}
        session = _session(about, steps[0]) or keys.of(digest_of(item.raw))
        subagents = listing(item.value.get("subagent_trajectories"))
        yield from _episode(session, about, enumerate(steps), subagents, item.place)


def _session(about: dict[str, Any], first: Any) -> str:  # noqa: ANN401  a step may be anything
    """What the episode is known by.

    Converters also write "unknown", or their own name: the first step tells those apart, and stays the same while a
    document grows.
    """
    session, document = text(about.get("session_id")), text(about.get("trajectory_id"))
    name = ":".join(filter(None, (session, document)))
    if not name:
        return ""
    try:
        uuid.UUID(session)
    except ValueError:
        return f"{name}:{digest_of(json_text(first))}"
    return name


def _episode(
    session: str, about: dict[str, Any], steps: Iterable[tuple[int, Any]], subagents: Iterable[Any],
    place: Place = _NOWHERE,
) -> Iterator[Entry | Trouble]:  # fmt: skip
    agent = mapping(about.get("agent"))
    metadata = {"version": agent.get("version"), "schema_version": about.get("schema_version")}

    def start(prompt: str, at: int) -> Entry:
        header = Header(
            task=task_of(prompt) or text(about.get("session_id")), agent=text(agent.get("name")) or None,
            model=text(agent.get("model_name")) or None, source=_NAME, taps=("transcript",),
            metadata={key: each for key, each in metadata.items() if isinstance(each, str)} or None,
        )  # fmt: skip
        native = left(about, "schema_version", "agent")
        if beside := left(agent, "name", "version", "model_name", "tool_definitions"):
            native["agent"] = beside
        return Entry(session, "start", [EpisodeStart(header=header, at=at)], place, native=native or None)

    yield from opened(Steps(session, about, subagents).entries(steps), start)


SOURCE = Source(
    name=_NAME,
    title="ATIF (Harbor's trajectory format)",
    detect=_detect,
    read=_read,
    looked_for="an ATIF trajectory (schema_version ATIF-v1.x, agent, steps)",
)
