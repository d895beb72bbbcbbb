"""trackway's own packs: one episode as JSON lines, behind a line that says so.

A pack is told here and taken in by ``store.unpack``: its events have their writers and numbers already, and must stay
as they are, so they do not pass through entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trackway.ingest.head import Head
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.store.pack import HEADER


def detect(head: Head) -> Sign | None:
    """A first line that says it is a pack, of whatever version."""
    first = head.lines[0] if head.lines else None
    if not isinstance(first, dict) or HEADER not in first:
        return None
    return Sign(1.0, f'a first line with "{HEADER}"')


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Nothing: who imports a pack unpacks it."""
    raise original.refused("a pack holds events that are numbered already: trackway unpack takes it in")


SOURCE: Final = Source(
    name="pack",
    title="trackway packs",
    detect=detect,
    read=read,
    looked_for=f'a first line with "{HEADER}"',
)
