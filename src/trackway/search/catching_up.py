"""What the index lacks, and how it gets it: whatever was stored since it was last written to, and nothing else.

    what is stored, by count → what the index has, by count → episode by episode, from where it stopped → commits

An episode that has fewer events than the index, or another event in the place of the last one, is not the one that was
indexed (pruned and recorded anew, a store put back from a backup): it is taken out, and in again from its beginning.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from trackway.errors import TrackwayError
from trackway.schema import ids
from trackway.schema.events import Event
from trackway.search.index import engine, place_of
from trackway.search.purging import expunge
from trackway.search.seen import file_of, remember
from trackway.search.state import NOTHING, Known, State, print_of
from trackway.search.texts import Entries
from trackway.search.writing import Of, Writing, holding, key_of
from trackway.store.base import Store
from trackway.store.holding import PATIENCE
from trackway.store.listing import mark, sizes
from trackway.store.live import LiveStore
from trackway.store.progress import Progress, silent

_COMMIT_EVERY: Final = 200_000
_COMMIT_AFTER: Final = 60.0
_LOOK_EVERY: Final = 512  # more than are taken again of an episode that goes on


class Behind(NamedTuple):
    """What the index lacks: episodes with more events than it has of them, and those it should not have."""

    grown: tuple[tuple[bytes, Known, int], ...] = ()
    gone: tuple[bytes, ...] = ()
    events: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether it has everything."""
        return not self.grown and not self.gone


class Caught(NamedTuple):
    """What catching up came to: events added, why the index was made anew (or None), episodes that cannot be read.

    ``is_all`` where the index has all that was stored when it began.
    """

    events: int = 0
    episodes: int = 0
    rebuilt: str | None = None
    unreadable: int = 0
    is_all: bool = True


def behind(state: State, stored: dict[bytes, int]) -> Behind:
    """What is missing; the newest episodes first, as they are the ones most likely to be asked for."""
    grown = []
    events = 0
    for episode, count in stored.items():
        known = state.episodes.get(episode, NOTHING)
        if count > known.reached:
            events += count - known.again
        elif count < known.reached:
            events += count
        else:
            continue
        grown.append((episode, known, count))
    grown.sort(reverse=True)
    gone = tuple(each for each in state.episodes if each not in stored)
    return Behind(tuple(grown), gone, events)


def catch_up(
    live: LiveStore,
    *,
    progress: Progress = silent,
    patience: float = PATIENCE,
    purge_only: bool = False,
    enough: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    anew: bool = False,
) -> Caught | None:
    """Bring the index of a store up to what is stored; None where another process is at it for longer than we wait.

    What is no longer stored is purged: its words are in no file of the index afterwards. ``purge_only`` does just that.
    Once ``enough`` says so, no more is added: the next one goes on. ``threads`` of the engine's own: by default as many
    as there are cores, two at most, where there is a lot to do. ``anew`` begins with an empty index.
    Safe beside recorders, importers, searches and others that catch up. Killed anywhere, the index is as of its last
    commit, and the next one goes on from there. Raises ``SearchUnavailable`` where it cannot be written.
    """
    place = place_of(live)
    if place is None or (purge_only and not place.folder.exists()):
        return Caught()
    with holding(place, patience) as got:
        if not got:
            return None
        with engine("it cannot be written to"), Writing(place, live.key, threads) as writing:
            if anew:
                writing.start_over()
            catching = CatchingUp(live, writing, progress, enough)
            done = catching.purge() if purge_only else catching.do()
        if done.is_all and not purge_only:
            remember(place, catching.mark)
        return done


class CatchingUp:
    """One catching up, under the lock."""

    def __init__(
        self, live: LiveStore, writing: Writing, progress: Progress = silent, enough: Callable[[], bool] = lambda: False
    ) -> None:
        self._store: Store = live.store  # not the journals: what is there has no number yet, and nothing is lifted
        self._writing = writing
        self._progress = progress
        self._enough = enough
        self._changes: dict[bytes, Known] = {}
        self._added = self._pending = 0
        self._unreadable = 0
        self._total = 0
        self._committed = time.monotonic()
        self.mark = mark(self._store)  # before anything is counted: what is stored meanwhile is seen the next time
        self._file = file_of(self._store)
        self._stored = sizes(self._store)

    def do(self) -> Caught:
        """All that is missing, and what should not be there."""
        state = self._writing.state
        if state.file not in (0, self._file):
            self._check_all()
        self._purge()
        return self._add(behind(state, self._stored))

    def purge(self) -> Caught:
        """What should not be there; and what had to go with it, in again, unless that is nearly everything."""
        again = self._purge()
        return self._add(behind(self._writing.state, {each: self._stored[each] for each in again}))

    def _purge(self) -> set[bytes]:
        """Take out what is stored no longer; those that had to go along."""
        gone = [each for each in self._writing.state.episodes if each not in self._stored]
        if not gone:
            return set()
        self._progress("purging the index", 0, len(gone))
        return expunge(self._writing, gone, file=self._file)

    def _add(self, lacks: Behind) -> Caught:
        writing = self._writing
        self._total = lacks.events
        writing.expect(lacks.events)
        left = len(lacks.grown)
        for episode, known, count in lacks.grown:
            left -= self._take(episode, known, count)
            if self._enough():
                break
        if self._changes or (self._file != writing.state.file and writing.state.episodes):
            self._commit()
        return Caught(self._added, len(lacks.grown) - left, writing.rebuilt, self._unreadable, is_all=not left)

    def _check_all(self) -> None:
        """The store's file is another one: what is not in it as it was indexed is taken out."""
        for episode, known in list(self._writing.state.episodes.items()):
            if self._stored.get(episode, 0) >= known.reached and not self._goes_on(episode, known):
                self._take_out(episode)

    def _take_out(self, episode: bytes) -> None:
        self._writing.forget(episode)
        self._writing.state.changed({episode: NOTHING})
        self._changes[episode] = NOTHING

    def _events(self, episode: bytes, first: int) -> Iterator[Event]:
        """The stored events from a number on; none where the episode is gone or cannot be read."""
        try:
            yield from self._store.events(ids.from_bytes(episode), after=first - 1)
        except TrackwayError:
            self._unreadable += 1

    def _take(self, episode: bytes, known: Known, count: int) -> bool:
        """What is new of an episode; whether that was all."""
        if known != NOTHING and (count < known.reached or not self._goes_on(episode, known)):
            self._take_out(episode)
            known = NOTHING
        if known.again < known.reached:
            self._writing.forget(episode, known.again)
        entries, last = Entries(known.again), _Last()
        of = self._of(episode)
        wanted = itertools.islice(self._events(episode, known.again), count - known.again)
        for entry in entries.take(last.of(wanted, self._enough)):
            if entry.is_worth_finding:
                self._writing.add(entry, of)
            self._added += 1
            if not self._added % 1024:
                self._progress("indexing", self._added, self._total)
        self._changes[episode] = Known(entries.reached, entries.again, last.print)
        self._pending += entries.reached - known.again
        if self._pending >= _COMMIT_EVERY or time.monotonic() - self._committed > _COMMIT_AFTER:
            self._commit()
        return entries.reached >= count

    def _goes_on(self, episode: bytes, known: Known) -> bool:
        """Whether the last event that was indexed is still the one with that number."""
        last = next(self._events(episode, known.reached - 1), None)
        return last is not None and print_of(last) == known.last

    def _of(self, episode: bytes) -> Of:
        name = ids.from_bytes(episode)
        try:
            summary = self._store.episode(name)
        except TrackwayError:
            return Of(name, key_of(episode), None, "")
        return Of(name, key_of(episode), summary.agent, summary.source)

    def _commit(self) -> None:
        self._writing.commit(self._changes, file=self._file)
        self._changes, self._pending, self._committed = {}, 0, time.monotonic()


class _Last:
    """Remembers the last of the events that pass, and lets no more pass once it is enough."""

    def __init__(self) -> None:
        self._event: Event | None = None

    def of(self, events: Iterable[Event], enough: Callable[[], bool]) -> Iterator[Event]:
        for number, event in enumerate(events, start=1):
            self._event = event
            yield event
            if not number % _LOOK_EVERY and enough():
                return

    @property
    def print(self) -> int:
        return 0 if self._event is None else print_of(self._event)
