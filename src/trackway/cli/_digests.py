"""Digests of episodes: those that are kept, and those that have to be made because none is, or it is out of date.

Whoever makes one keeps it (``store.derived``), so that the next one who asks finds it. What cannot be kept is made
again the next time, and nothing fails by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from trackway.cli._reading import Reader, read_all
from trackway.errors import EpisodeNotFound, StoreDamaged
from trackway.read.counts import VERSION, Digest, digest_in, words_in
from trackway.read.digest import Row, row_of
from trackway.recording import settings_file
from trackway.store import derived
from trackway.store.base import ALL
from trackway.store.live import LiveStore, readable
from trackway.store.progress import Progress, silent

if TYPE_CHECKING:
    from trackway.read.repeats import Words
    from trackway.schema.episode import EpisodeSummary

_BATCH: Final = 200
_HELD: Final = 10_000


def catch_up(live: LiveStore, ids: Collection[str] | None = None, progress: Progress = silent) -> int:
    """Make and keep the digests that are missing: of these episodes, or of all. Returns how many were made.

    An episode that cannot be read is passed over: whoever counts it will be told.
    """
    digests = Digests(live)
    there = list(readable(live.episodes(ALL), digests.damage)) if ids is None else _known(live, ids)
    for _ in digests.of(there, progress, whole=ids is None):
        pass
    return digests.made


def _known(live: LiveStore, ids: Collection[str]) -> Iterator[EpisodeSummary]:
    for each in ids:
        try:
            yield live.episode(each)
        except (EpisodeNotFound, StoreDamaged):
            continue


class Digests:
    """The digests of a store. ``damage`` says what could not be read: it is counted nowhere."""

    def __init__(self, live: LiveStore) -> None:
        # What was redacted stays so: nothing that was lifted is ever kept.
        self.live = live if type(live) is LiveStore else LiveStore(live.home, live.store)
        self.damage: list[StoreDamaged] = []
        self.made = 0
        self._reader = Reader(settings_file.load(live.home).prices())
        self._rows: list[Row] = []
        self._words: dict[str, Words] = {}
        self._not_kept: dict[str, bytes] = {}

    def of(
        self, summaries: Iterable[EpisodeSummary], progress: Progress = silent, *, whole: bool = False
    ) -> Iterator[tuple[EpisodeSummary, Digest]]:
        """The digest of each episode, in any order. ``whole`` says that there are no others in the store."""
        wanted = {each.id: each for each in summaries}
        gone = []
        for found in derived.kept(self.live.home, self.live.key, VERSION, None if whole else list(wanted)):
            summary = wanted.get(found.episode)
            if summary is None:
                gone.append(found.episode)
                continue
            digest = self._current(found, summary, progress)
            if digest is not None:
                del wanted[found.episode]
                yield summary, digest
        if whole:
            self._forget(gone)  # a prune in another home knows nothing of what is kept in this one
        yield from self._make(wanted, progress)
        self._keep()

    def words(self, episode: str) -> Words:
        """The words of an episode's calls; none where none are kept."""
        if episode not in self._words:
            found = self._not_kept.get(episode) or derived.words_of(self.live.home, self.live.key, VERSION, episode)
            try:
                self._words[episode] = {} if found is None else words_in(found)
            except ValueError:
                self._words[episode] = {}
        return self._words[episode]

    def _current(self, found: derived.Kept, summary: EpisodeSummary, progress: Progress) -> Digest | None:
        """What was kept, if it is of the episode as it is now, with costs by the prices that there are now."""
        if found.n_events != summary.n_events:
            return None
        try:
            digest = digest_in(found.body)
        except ValueError:
            return None
        priced = self._reader.priced(digest)
        if priced is not digest:
            self._rows.append(row_of(summary.id, priced, None))
            progress("pricing episodes", len(self._rows), 0)
        return priced

    def _make(self, wanted: dict[str, EpisodeSummary], progress: Progress) -> Iterator[tuple[EpisodeSummary, Digest]]:
        for done, each in enumerate(read_all(self.live, self._reader, list(wanted.values())), 1):
            progress("counting episodes", done, len(wanted))
            if isinstance(each, StoreDamaged):
                self.damage.append(each)
            elif each is not None:
                self.made += 1
                self._rows.append(each)
                if len(self._rows) >= _BATCH:
                    self._keep()
                yield wanted[each.episode], digest_in(each.body)

    # --- keeping --------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        rows, self._rows = self._rows, []
        if derived.put_many(self.live.home, self.live.key, rows):
            # One that was pruned since it was read: its prune has purged what was kept by then, and this was not.
            self._forget(each.episode for each in rows)
        elif len(self._not_kept) < _HELD:
            self._not_kept |= {each.episode: each.words for each in rows if each.words is not None}

    def _forget(self, episodes: Iterable[str]) -> None:
        """Purge what is kept of those among them that are there no more."""
        with contextlib.suppress(OSError):  # a disk that is read-only: whoever may write there will do it
            derived.purge(self.live.home, self.live.key, [each for each in episodes if not self._is_there(each)])

    def _is_there(self, episode: str) -> bool:
        for where in (self.live.store, self.live):  # the second looks into journals, which takes longer
            try:
                where.episode(episode)
            except EpisodeNotFound:
                continue
            except StoreDamaged:
                pass
            return True
        return False
