"""OpenHands V1 (the software agent SDK): a conversation's events, a line each, in a list, or a file each in a folder.

A folder's ``base_state.json`` names the conversation and counts the tokens of every call. The rows of an evaluation
hold the same events, and what came of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from trackway.errors import FileRefused
from trackway.ingest.formats._beginnings import opened
from trackway.ingest.formats._openhands_folders import BASE, V1, apart, event_values, folder_of, is_part
from trackway.ingest.formats._openhands_rows import ReadHistory, as_items, history_of, is_row, listed, rows
from trackway.ingest.formats._openhands_v1_events import Events
from trackway.ingest.head import Head
from trackway.ingest.making import left, task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import EpisodeStart, Header

_NAME = "openhands_v1"
_SOURCES = ("agent", "user", "environment", "hook")
_IN_FLUX = ("stats", "execution_status", "leaf_event_id", "last_user_message_id", "head_is_empty", "agent_state")
"""What a conversation's state says of the moment it was written, and not of the conversation."""


def _detect(head: Head) -> Sign | None:
    value = head.value
    document = head.document
    if {"agent", "workspace", "id"} <= set(document) and {"execution_status", "persistence_dir"} & set(document):
        return Sign(0.9, "a conversation's base state: id, agent, workspace")
    if is_event(document):
        return Sign(0.9, "an event with id, source and kind", is_part(head.name, head.path, V1))
    events = listing(value) or listing(document.get("items"))
    if events and all(is_event(each) for each in events[:5]):
        return Sign(0.95, "a list of events with id, source and kind")
    first = next(iter(head.objects), None)
    for each in (value, events[0] if events else None, first):
        if is_row(each) and any(is_event(one) for one in history_of(each)[:5]):
            return Sign(0.94, "a row with a history of events with id, source and kind")
    lines = head.objects[:8]
    if lines and sum(map(is_event, lines)) * 2 > len(lines):
        return Sign(0.95, "lines with id, timestamp, source and kind")
    return None


def is_event(value: Any) -> bool:  # noqa: ANN401  a JSON value is anything
    """Whether a value is an event of this generation: kinds are named like classes."""
    event = mapping(value)
    kind = text(event.get("kind"))
    return kind[:1].isupper() and event.get("source") in _SOURCES and "id" in event and "timestamp" in event


def _read(original: Original) -> Iterator[Entry | Trouble]:
    name = PurePath(original.name).name
    if name == BASE or V1.fullmatch(name):
        yield from _folder(original, is_base=name == BASE)
        return
    found = listed(original)
    if found is not None:
        values, are_rows = found
        yield from _rows(as_items(values)) if are_rows else _conversation("", {}, Events("").entries(values))
        return
    items = original.items()
    head = list(itertools.islice(items, 1))
    value = mapping(head[0].value) if head and isinstance(head[0], Item) else {}
    if is_row(value):
        yield from _rows(itertools.chain(head, items))
    elif isinstance(value.get("items"), list):
        yield from _conversation("", {}, Events("").entries(value["items"]))
    elif "kind" not in value and "workspace" in value:
        yield from _conversation(text(value.get("id")), value, ())
    else:
        yield from _conversation("", {}, _lines(itertools.chain(head, items)))


def _lines(items: Iterable[Item | Trouble]) -> Iterator[Entry | Trouble]:
    """An event a line."""
    events = Events("")
    for i, item in enumerate(items):
        if isinstance(item, Trouble):
            yield item
        elif isinstance(item.value, dict):
            yield from events.entry(i, item.value, item.place)
        else:
            yield Trouble(item.place, "no object")


def _folder(original: Original, *, is_base: bool) -> Iterator[Entry | Trouble]:
    state = original
    if not is_base:
        state = original.near(1, BASE) or original
    base: dict[str, Any] = {}
    if is_base or state is not original:
        try:
            base = mapping(state.value())
        except FileRefused:
            if not is_base:
                yield Trouble(Place(), f"{state.name} cannot be read")
            else:
                raise
    session = text(base.get("id")) or folder_of(original)
    events = Events(session, _usages(mapping(base.get("stats"))))
    troubles: list[Trouble] = []
    yield from _conversation(session, base, events.entries(apart(event_values(original, V1), troubles)))
    yield from troubles


def _usages(stats: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tokens of each call by its response id, whichever model was asked."""
    found: dict[str, dict[str, Any]] = {}
    for metrics in [stats, *mapping(stats.get("usage_to_metrics")).values()]:
        for each in listing(mapping(metrics).get("token_usages")):
            usage = mapping(each)
            if name := text(usage.get("response_id")):
                found[name] = usage
    return found


def _conversation(session: str, base: dict[str, Any], entries: Iterable[Entry | Trouble]) -> Iterator[Entry | Trouble]:
    agent = mapping(base.get("agent"))
    llm = mapping(agent.get("llm"))

    def start(prompt: str, at: int) -> Entry:
        workspace = mapping(base.get("workspace"))
        metadata = {"cwd": workspace.get("working_dir"), "agent_class": agent.get("kind")}
        header = Header(
            task=task_of(prompt) or session, agent="openhands", model=text(llm.get("model")) or None, source=_NAME,
            taps=("transcript",), metadata={key: each for key, each in metadata.items() if text(each)} or None,
        )  # fmt: skip
        native = left(base, "id", *_IN_FLUX)
        return Entry(session, "start", [EpisodeStart(header=header, at=at)], native=native or None)

    yield from opened(entries, start)


def _rows(items: Iterable[Item | Trouble]) -> Iterator[Entry | Trouble]:
    def reader(session: str, row: dict[str, Any]) -> ReadHistory:
        return Events(session, _usages(mapping(row.get("metrics"))), first="harness", later="simulated").entries

    return rows(_NAME, items, reader)


SOURCE = Source(
    name=_NAME,
    title="OpenHands (V1)",
    detect=_detect,
    read=_read,
    looked_for="OpenHands V1 events (id, timestamp, source, kind), alone, in a folder with base_state.json, or in rows",
    keeps_ids=True,
)
