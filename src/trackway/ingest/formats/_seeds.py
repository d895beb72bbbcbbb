"""What both of seed 001's line formats have in common: how a trace is named, and what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trackway.ingest.formats._rows import items
from trackway.ingest.making import Keys, digest_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Trouble
from trackway.schema.events import Context, Event
from trackway.schema.plain import text_of


class Names:
    """The names of the traces of one file.

    A trace is named by its id and its second; the same line again is the same trace, another line under the same name
    is another one: ids are only as different as who wrote them made them.
    """

    def __init__(self) -> None:
        self._keys = Keys()
        self._lines: dict[str, dict[str, str]] = {}

    def of(self, value: dict[str, Any], line: bytes) -> str:
        """The session a line is."""
        told = f"{text_of(value.get('trace_id'))}@{text_of(value.get('timestamp'))}"
        known = self._lines.setdefault(told, {})
        digest = digest_of(line)
        if digest not in known:
            known[digest] = self._keys.of(told)
        return known[digest]


def traces(original: Original, name: str) -> Iterator[tuple[Item, str] | Trouble]:
    """Every line that has a list of that name, and the session it is; any other is trouble."""
    names = Names()
    for item in items(original):
        if isinstance(item, Trouble):
            yield item
        elif not isinstance(item.value, dict) or not isinstance(item.value.get(name), list):
            yield Trouble(item.place, f"a line without a list of {name}")
        else:
            yield item, names.of(item.value, item.raw)


def opening(system: Any, tools: Any, at: int) -> list[Event]:  # noqa: ANN401  as the line has them
    """The system prompt and the tools that stood when the turn began."""
    prompt = system if isinstance(system, str) and system else None
    return [Context(op="set", system_prompt=prompt, tools=tools or None, at=at)] if prompt or tools else []
