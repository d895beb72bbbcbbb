"""Pydantic AI's messages as it dumps them: a list of requests and responses, each made of parts.

A message is known by its content, since the same conversation is dumped whole or only as far as it is new; the
conversation by its own id where the messages bear one. Instructions stand on every request: they are told when they
change. A part nobody knows is a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._beginnings import Held
from trackway.ingest.formats._pydantic_parts import Parts
from trackway.ingest.formats._rows import elements, header, name_of, start
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, at_of, rest_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import text_at

_NAME: Final = "pydantic_ai"


def detect(head: Head) -> Sign | None:
    """A list of messages with kind request or response and parts that have a part_kind."""
    found = head.value if isinstance(head.value, list) else []
    first = next((each for each in found if isinstance(each, dict)), {})
    parts = first.get("parts")
    if first.get("kind") not in ("request", "response") or not isinstance(parts, list):
        return None
    if parts and not (isinstance(parts[0], dict) and "part_kind" in parts[0]):
        return None
    return Sign(0.95, "a list of messages with kind request or response, made of parts with a part_kind")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each message as an entry; the conversations it belongs to one after the other."""
    sessions: dict[str, _Conversation] = {}
    session = ""
    for part in elements(original):
        if isinstance(part, Trouble):
            yield part
            continue
        if part.key or not isinstance(part.value, dict):
            yield Trouble(Place(), f"no message: {part.value!r:.40}")
            continue
        session = text_at(part.value, "conversation_id") or session
        if session not in sessions:
            sessions[session] = _Conversation(session)
        yield from sessions[session].message(part.value)
    for each in sessions.values():
        yield from each.flush()


class _Conversation:
    """One conversation on its way; entries are held until the first prompt is there."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._keys = Keys()
        self._parts = Parts()
        self._held = Held(lambda task, _: start(session, header(_NAME, task or "chat"), at=self._at))
        self._at = 0

    def message(self, message: dict[str, Any]) -> Iterator[Entry]:
        key = self._keys.of(name_of(message))
        at = at_of(message.get("timestamp"))
        self._at = self._at or at
        events = self._parts.of(message, at, key)
        rest = rest_of(message, "kind", "parts", "timestamp", "instructions", "usage", "conversation_id")
        rest = {name: each for name, each in (rest or {}).items() if each is not None}
        left = self._parts.rest
        if left:
            rest["parts"] = left
        yield from self._held.take(Entry(self._session, key, events, native=rest or None))

    def flush(self) -> Iterator[Entry]:
        """What is still held."""
        return self._held.flush()


SOURCE: Final = Source(
    name=_NAME,
    title="Pydantic AI messages",
    detect=detect,
    read=read,
    looked_for="a list of messages with kind request or response, made of parts with a part_kind",
    keeps_ids=True,
)
