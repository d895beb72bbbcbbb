"""What is not in the index yet, indexed in memory for one question: the same documents, so the same query finds them.

Events of running episodes that no sealer has seen, and the few that were stored since the index was last written to.
Built in milliseconds, thrown away with the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from trackway.errors import TrackwayError
from trackway.schema import ids
from trackway.schema.events import Event
from trackway.search.index import engine, in_memory
from trackway.search.texts import Entries, Entry
from trackway.search.writing import Of, document, key_of
from trackway.store.live import LiveStore

if TYPE_CHECKING:
    import tantivy

MOST: Final = 20_000
"""Events: more are not held in memory; what is left out is said."""

_HEAP: Final = 15 << 20


class Wanted(NamedTuple):
    """An episode, and from which event on it is not in the index; ``unsealed`` where journals have some of it."""

    id: str
    first: int
    unsealed: bool


class Tail:
    """Entries by the key of their episode and their number, and an index of them."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], Entry] = {}
        self.names: dict[int, str] = {}
        self.left_out = 0
        self._documents: list[tantivy.Document] = []
        self._searcher: tantivy.Searcher | None = None

    def take(self, live: LiveStore, wanted: Iterable[Wanted]) -> None:
        """Read these; one that is gone, or cannot be read, is passed over."""
        for each in wanted:
            room = MOST - len(self.entries)
            if room <= 0:
                self.left_out += 1
                continue
            try:
                self._add(live, each, room)
            except TrackwayError:
                self.left_out += 1

    def _add(self, live: LiveStore, wanted: Wanted, room: int) -> None:
        summary = live.episode(wanted.id) if wanted.unsealed else live.store.episode(wanted.id)
        of = Of(wanted.id, key_of(ids.to_bytes(wanted.id)), summary.agent, summary.source)
        self.names[of.key] = of.id
        events = _events(live, wanted)
        for entry in Entries(wanted.first).take(itertools.islice(events, room)):
            self.entries[of.key, entry.seq] = entry
            if entry.is_worth_finding:
                self._documents.append(document(entry, of))
        if next(events, None) is not None:
            self.left_out += 1

    @property
    def searcher(self) -> tantivy.Searcher:
        """The index of what was taken."""
        if self._searcher is None:
            with engine("the tail cannot be indexed"):
                index = in_memory()
                writer = index.writer(heap_size=_HEAP, num_threads=1)
                for each in self._documents:
                    writer.add_document(each)
                writer.commit()
                index.reload()
                self._searcher = index.searcher()
        return self._searcher

    def __len__(self) -> int:
        return len(self._documents)


def _events(live: LiveStore, wanted: Wanted) -> Iterator[Event]:
    """Numbered by where they stand: an event that is not sealed yet will get that number."""
    store = LiveStore(live.home, live.store) if wanted.unsealed else live.store  # never what is lifted: it is not asked
    return iter(store.events(wanted.id, after=wanted.first - 1))
