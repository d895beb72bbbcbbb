"""OpenHands V0 (up to 0.6x): a list of events, a folder of them, and the rows of its evaluation and its resolver.

A list is a session, and may go on; a row is finished, and says what came of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from trackway.ingest.formats._beginnings import opened
from trackway.ingest.formats._openhands_folders import V0, apart, event_values, folder_of, is_part
from trackway.ingest.formats._openhands_rows import as_items, history_of, is_row, listed, rows
from trackway.ingest.formats._openhands_v0_events import Events
from trackway.ingest.head import Head
from trackway.ingest.making import task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, EpisodeStart, Header

_NAME = "openhands_v0"


def _detect(head: Head) -> Sign | None:
    value = head.value
    first = next(iter(head.objects), None)
    if isinstance(value, dict) and is_event(value) and whole_event(value):
        return Sign(0.85, "one event: id, source, action or observation", is_part(head.name, head.path, V0))
    events = listing(value) or listing(mapping(value).get("trajectory"))
    if events and all(is_event(each) for each in events[:5]):
        return Sign(0.95, "a list of actions and observations")
    for each in (value, events[0] if events else None, first):
        if is_row(each) and _is_old(each):
            return Sign(0.93, "a row with a history of actions and observations")
    return None


def is_event(value: Any) -> bool:  # noqa: ANN401  a JSON value is anything
    """Whether a value is an event of this generation, or a pair of them."""
    if isinstance(value, list):
        return bool(value) and all(is_event(each) for each in value)
    event = mapping(value)
    if isinstance(event.get("action"), str):
        return bool({"args", "source", "action_risk", "is_confirmed", "wait_for_response"} & set(event))
    return isinstance(event.get("observation"), str) and "content" in event


def whole_event(event: dict[str, Any]) -> bool:
    """Whether it is one that was written to a file of its own."""
    return {"id", "timestamp", "source"} <= set(event) and bool({"args", "extras"} & set(event))


def _is_old(row: Any) -> bool:  # noqa: ANN401  as above
    history = history_of(row)
    return (
        any(is_event(each) for each in history[:5]) if history else "llm" not in mapping(mapping(row).get("metadata"))
    )


def _read(original: Original) -> Iterator[Entry | Trouble]:
    found = listed(original)
    if found is not None:
        values, are_rows = found
        yield from _rows(as_items(values)) if are_rows else _stream("", values)
        return
    items = original.items()
    first_items = list(itertools.islice(items, 1))
    value = first_items[0].value if first_items and isinstance(first_items[0], Item) else None
    if isinstance(value, dict) and is_event(value) and V0.fullmatch(original.path.name):
        yield from _told(folder_of(original), event_values(original, V0))
    elif isinstance(value, dict) and isinstance(value.get("trajectory"), list):
        yield from _stream("", value["trajectory"])
    elif isinstance(value, dict) and is_event(value):
        lines = itertools.chain(first_items, items)
        yield from _told("", (each if isinstance(each, Trouble) else each.value for each in lines))
    else:
        yield from _rows(itertools.chain(first_items, items))


def _told(session: str, found: Iterable[Any | Trouble]) -> Iterator[Entry | Trouble]:
    """Events that stand apart, each on a line or in a file of its own: some may not be readable."""
    troubles: list[Trouble] = []
    yield from _stream(session, apart(found, troubles))
    yield from troubles


def _stream(session: str, events: Iterable[Any]) -> Iterator[Entry | Trouble]:
    """A stream of events that is one episode."""
    about: dict[str, Any] = {}

    def told(entries: Iterable[Entry | Trouble]) -> Iterator[Entry | Trouble]:
        for each in entries:
            first = each.events[0] if isinstance(each, Entry) else None
            if isinstance(each, Entry) and isinstance(first, Context) and first.system_prompt is not None:
                about.update(each.native or {})
            yield each

    def start(prompt: str, at: int) -> Entry:
        metadata = {"version": about.get("openhands_version"), "agent_class": about.get("agent_class")}
        header = Header(
            task=task_of(prompt) or session, agent="openhands", source=_NAME, taps=("transcript",),
            metadata={key: each for key, each in metadata.items() if text(each)} or None,
        )  # fmt: skip
        return Entry(session, "start", [EpisodeStart(header=header, at=at)])

    yield from opened(told(Events(session).entries(events)), start)


def _rows(items: Iterable[Item | Trouble]) -> Iterator[Entry | Trouble]:
    return rows(_NAME, items, lambda session, _: Events(session, first="harness", later="simulated").entries)


SOURCE = Source(
    name=_NAME,
    title="OpenHands (V0)",
    detect=_detect,
    read=_read,
    looked_for="OpenHands V0 events (action or observation, source, args or content), or rows with a history of them",
)
