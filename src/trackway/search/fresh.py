"""How what is asked gets everything there is: the index as committed, caught up where that is worth it, and its tail.

    journals → nothing new, by a look at two files → a little: into memory → more: into the index first, under its lock

A reader never waits for a writer: while another process writes, there is what is committed and what fits into memory,
and it is said what is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from trackway.errors import SearchUnavailable
from trackway.schema import ids
from trackway.search import state as states
from trackway.search.catching_up import Behind, behind, catch_up
from trackway.search.index import Place, opened, place_of
from trackway.search.seen import has_all, remember
from trackway.search.state import State
from trackway.search.tail import Tail, Wanted
from trackway.store.listing import mark, sizes, unsealed
from trackway.store.live import LiveStore
from trackway.store.progress import Progress

if TYPE_CHECKING:
    import tantivy

_FEW: Final = 300
"""Events that are sooner indexed in memory, by every question, than once on the disk."""


class Fresh:
    """The two halves of what can be found, and what has to be said of them."""

    def __init__(self, live: LiveStore, progress: Progress, broken: str | None = None) -> None:
        self._live = live
        self._progress = progress
        self.place = place_of(live)
        self.notes: list[str] = []
        self.tail = Tail()
        self.index: tantivy.Searcher | None = None
        self._broken = broken
        self._anew = broken is not None
        self.waiting = waiting = unsealed(live)  # the journals first: what is sealed meanwhile is then in the store
        state, lacks = self._opened()
        self.tail.take(live, self._wanted(waiting, state, lacks))
        if self.tail.left_out:
            what = "episode is" if self.tail.left_out == 1 else "episodes are"
            self.notes.append(f"{self.tail.left_out:,} {what} not searched to the end: not indexed yet, or unreadable")

    def _opened(self) -> tuple[State, Behind]:
        """Open the index, caught up where that is worth it; what is known of it, and what it still lacks."""
        store, place = self._live.store, self.place
        if place is None:
            return State(), behind(State(), sizes(store))
        seen = mark(store)
        index = None if self._anew else self._readable(place)
        if index is not None:
            self.index = index.searcher()
            if has_all(place, store):
                return State(), Behind()
            state = states.load(self.index)
            lacks = behind(state, sizes(store))
            if lacks.is_nothing:
                remember(place, seen)
            if lacks.is_nothing or _is_little(lacks):
                return state, lacks
        elif not sizes(store):  # nothing is stored: nothing is made
            return State(), Behind()
        return self._caught_up(place)

    def _readable(self, place: Place) -> tantivy.Index | None:
        try:
            return opened(place)
        except SearchUnavailable as error:
            self._broken = error.why
            return None

    def _caught_up(self, place: Place) -> tuple[State, Behind]:
        is_written = self._wrote()
        state = State()
        self.index = None
        if is_written or not self._anew:  # else what is there is what could not be read
            with contextlib.suppress(SearchUnavailable):
                index = opened(place)
                self.index = None if index is None else index.searcher()
                state = state if self.index is None else states.load(self.index)
        return state, behind(state, sizes(self._live.store))

    def _wrote(self) -> bool:
        try:
            done = catch_up(self._live, progress=self._progress, patience=0, anew=self._anew)
        except (SearchUnavailable, OSError) as error:
            self.notes.append(f"the search index could not be written: {getattr(error, 'why', error)}")
            return False
        if done is None:
            self.notes.append("another process is writing the search index")
        elif self._broken or done.rebuilt:
            self.notes.append(f"the search index was made anew: {self._broken or done.rebuilt}")
        return done is not None

    def _wanted(self, waiting: Collection[str], state: State, lacks: Behind) -> Iterator[Wanted]:
        """What has to be in memory: what waits in journals, then what the index lacks, the newest first."""
        if waiting and not state.episodes and self.index is not None:
            state = states.load(self.index)
        for each in sorted(waiting, reverse=True):
            known = state.episodes.get(ids.to_bytes(each), states.NOTHING)
            yield Wanted(each, known.again, unsealed=True)
        for episode, known, count in lacks.grown:
            name = ids.from_bytes(episode)
            if name not in waiting:
                yield Wanted(name, known.again if count > known.reached else 0, unsealed=False)


def _is_little(lacks: Behind) -> bool:
    """Whether it is sooner done in memory; not where something in the index is not what is stored any more."""
    return lacks.events <= _FEW and not lacks.gone and all(count > known.reached for _, known, count in lacks.grown)
