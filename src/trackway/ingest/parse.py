"""A source's entries → events as they are stored: numbered, linked to what they follow, and encoded.

The same file gives the same events, with the same numbers, under the same writer, on any machine: a writer is named
after the session and the entry a file begins with. What is known already is told by the entries' keys alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from blake3 import blake3
from msgspec.structs import force_setattr

from trackway.ingest.numbers import Numbers
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Source, Trouble
from trackway.schema.codec import Encoded, encode
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Event,
    Native,
    Note,
    Reflection,
    ToolResult,
    User,
)
from trackway.schema.ids import imported_writer

START: Final = "start"
KEY: Final = "key"
ENTRY: Final = "entry"
"""What ``native.fields`` holds of an imported entry's first event: what it is known by, and what had no home."""


_ANSWERING: Final = frozenset((AssistantText, AssistantThinking, AssistantToolCall, ToolResult, Reflection))
_SAYING: Final = _ANSWERING | {User}


class Found(NamedTuple):
    """An entry as it is stored: its session, the number that stands for its key, its events, the bytes they name.

    ``says`` is whether anybody says or does anything in it: a session in which nobody does is no episode yet.
    """

    session: str
    key: int
    place: Place
    events: list[Encoded]
    contents: Sequence[bytes]
    says: bool = True


class _Session:
    """One episode while its file is read."""

    __slots__ = ("at", "ends", "is_tentative", "last", "n", "turns", "writer")

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self.n = 0
        self.at = 0
        self.turns: dict[str | None, int] = {}
        self.ends = Numbers()
        self.last: str | None = None
        self.is_tentative = False


def key_of(key: str) -> int:
    """The number that stands for a key: 63 bits of its hash."""
    return int.from_bytes(blake3(key.encode("utf-8", "surrogatepass")).digest(8), "little") >> 1


def parsed(source: Source, original: Original) -> Iterator[Found | Trouble]:
    """Everything a file says, entry by entry, each once; what could not be made sense of, where it stands."""
    sessions: dict[str, _Session] = {}
    for entry, first in _with_first(source.read(original)):
        if isinstance(entry, Trouble):
            yield entry
            continue
        session = sessions.get(entry.session)
        if session is None:
            session = sessions[entry.session] = _Session(_writer(source.name, first))
        key = key_of(entry.key)
        if key not in session.ends:
            yield _found(source, entry, session, key)


def _with_first(entries: Iterable[Entry | Trouble]) -> Iterator[tuple[Entry | Trouble, Entry]]:
    """Each with the entry that its session's part of the file is known by: the first that is more than its start.

    A session may lie in several files, a sub-agent's in one of its own, and each of them says how it starts.
    """
    held: dict[str, Entry] = {}
    met: set[str] = set()
    nothing = Entry("", "", ())
    for entry in entries:
        if isinstance(entry, Trouble):
            yield entry, nothing
        elif entry.session in met:
            yield entry, entry
        elif entry.key == START and entry.session not in held:
            held[entry.session] = entry
        else:
            met.add(entry.session)
            if entry.session in held:
                yield held.pop(entry.session), entry
            yield entry, entry
    yield from ((each, each) for each in held.values())


def _found(source: Source, entry: Entry, session: _Session, key: int) -> Found:
    # A session without a name: another file of the kind has entries of the same keys, so what is said counts too.
    name = entry.key if entry.session else f"{entry.key}/{_digest(entry)}"
    events = [encode(each) for each in _placed(source, entry, session, name)]
    session.ends[key], session.last = session.n - 1, entry.key
    session.is_tentative = session.is_tentative or entry.is_tentative
    saying = _ANSWERING if session.is_tentative else _SAYING
    says = any(type(each) in saying for each in entry.events)
    return Found(entry.session, key if entry.session else key_of(name), entry.place, events, entry.contents, says)


def _digest(entry: Entry) -> str:
    said = blake3()
    for each in entry.events:
        said.update(encode(each).body)
    return said.hexdigest(8)


def _writer(source: str, entry: Entry) -> str:
    named = f"trackway import\0{source}\0{entry.session}\0{entry.key}"
    return imported_writer(blake3(named.encode("utf-8", "surrogatepass")).hexdigest(8))


def _placed(source: Source, entry: Entry, session: _Session, name: str) -> list[Event]:
    """The entry's events with everything set that only the order of entries tells."""
    events = list(entry.events) or [Note(topic=source.name)]
    follows = entry.parent is not None and entry.parent != session.last
    after = session.ends.get(key_of(str(entry.parent))) if follows else None
    fields: dict[Any, Any] = {KEY: name}
    if entry.native:
        fields[ENTRY] = entry.native if type(entry.native) is dict else dict(entry.native)
    for i, event in enumerate(events):
        turn = session.turns.get(event.agent, 0)
        # What a harness puts in belongs to the turn it comes in; only where nothing came before does it open one.
        if type(event) is User and (event.actor != "harness" or not turn):
            turn = session.turns[event.agent] = turn + 1
        if event.at:
            session.at = event.at
        else:
            force_setattr(event, "at", session.at)
        force_setattr(event, "writer", session.writer)
        force_setattr(event, "n", session.n)
        force_setattr(event, "turn", turn)
        if i == 0:
            force_setattr(event, "native", Native(source=source.name, offset=entry.place.offset, fields=fields))
            if after is not None:
                force_setattr(event, "parent", f"{session.writer}:{after}")
        session.n += 1
    return events


def events_of(source: Source, original: Original) -> dict[str, list[Event]]:
    """All events of a file by session, decoded again: for tests, and for whoever wants to look without storing."""
    from trackway.schema.codec import decode

    found: dict[str, list[Event]] = {}
    for each in parsed(source, original):
        if isinstance(each, Found):
            found.setdefault(each.session, []).extend(decode(one) for one in each.events)
    return found
