"""How far the index has come: kept in the index, in the same commit as what it is about.

So a commit is the whole truth: killed at any moment, what is in the index and what it says of itself agree. Each commit
adds one document with what it changed; now and then they are put together into one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from trackway.schema.events import Event
from trackway.search.index import STATE, engine, schema, unfit

if TYPE_CHECKING:
    import tantivy

_ROW: Final = struct.Struct("<16sIIQ")
_MOST: Final = 1_000_000
_TOO_MANY: Final = 24


class Known(NamedTuple):
    """What the index has of an episode: how many events, from which on they are taken again, the last one's print."""

    reached: int
    again: int
    last: int


NOTHING: Final = Known(0, 0, 0)
"""Stands for an episode that is not, or no longer, in the index."""


def print_of(event: Event) -> int:
    """Tells an event from another one with the same number, as a restored store may have."""
    return xxh3_64_intdigest(f"{event.writer}:{event.n}:{event.at}:{event.kind}".encode("utf-8", "replace"))


class State:
    """Every episode in the index; ``file`` tells the store's file from another in its place."""

    def __init__(self) -> None:
        self.episodes: dict[bytes, Known] = {}
        self.file = 0
        self.documents = 0
        self.number = 0

    def changed(self, changes: Mapping[bytes, Known]) -> None:
        """Take these in."""
        for episode, known in changes.items():
            if known == NOTHING:
                self.episodes.pop(episode, None)
            else:
                self.episodes[episode] = known

    @property
    def is_scattered(self) -> bool:
        """Whether it is in so many documents that it should be put together."""
        return self.documents >= _TOO_MANY


def load(searcher: tantivy.Searcher) -> State:
    """The state of the index as it was committed."""
    import tantivy

    state = State()
    with engine("it cannot be read"):
        query = tantivy.Query.term_query(schema(), "kind", STATE, index_option="basic")
        hits = searcher.search(query, limit=_MOST, count=False).hits
        found = sorted(_decoded(searcher.doc(address).get_first("state")) for _, address in hits)
    for number, file, rows in found:
        state.number, state.file = number, file
        state.changed({episode: Known(*known) for episode, *known in _ROW.iter_unpack(rows)})
    state.documents = len(found)
    return state


def _decoded(body: Any) -> tuple[int, int, bytes]:  # noqa: ANN401  what the engine gives back
    try:
        number, file, rows = msgspec.msgpack.decode(bytes(body))
        return int(number), int(file), bytes(rows)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise unfit(f"what it says of itself cannot be read ({error})") from error


def document(number: int, file: int, changes: Mapping[bytes, Known]) -> tantivy.Document:
    """What a commit changed, as a document."""
    import tantivy

    rows = b"".join(_ROW.pack(episode, *known) for episode, known in changes.items())
    found = tantivy.Document()
    found.add_text("kind", STATE)
    found.add_bytes("state", msgspec.msgpack.encode((number, file, rows)))
    return found
