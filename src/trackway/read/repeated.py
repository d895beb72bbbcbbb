"""The calls of many episodes by number: which were made most often again, where, and how they failed.

A call that an agent makes again in the same episode is repeated; one that many episodes make once each is merely
common, and stands behind. Only the few that are shown are looked at one by one.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

from trackway.read.counts import Digest
from trackway.read.repeats import Words, numbers_in
from trackway.read.tables import CallRow


class Repeated:
    """The calls of all episodes so far."""

    def __init__(self) -> None:
        self._different = array("Q")
        self._episodes: list[str] = []
        self._ends: list[int] = []
        self._again: dict[int, int] = {}
        self._where: dict[int, str] = {}
        self._ways: list[tuple[int, int, int]] = []

    def add(self, episode: str, digest: Digest) -> None:
        """Count the calls of one more."""
        if not digest.different:
            return
        self._different += numbers_in(digest.different)
        self._episodes.append(episode)
        self._ends.append(len(self._different))
        again = self._again
        for number, times in digest.again.items():
            if number in again:
                again[number] += times
            else:
                again[number] = times
                self._where[number] = episode
        self._ways += digest.ways

    @property
    def n_again(self) -> int:
        """How many different calls were made again in an episode."""
        return len(self._again)

    def rows(self, top: int | None, words: Callable[[str], Words]) -> list[CallRow]:
        """The most repeated first; those that no episode repeats but several make, behind them."""
        episodes = Counter(self._different)
        again = self._again
        often = (number for number, times in episodes.items() if times > 1 or number in again)
        shown = heapq.nlargest(
            len(episodes) if top is None else top, often, key=lambda each: (again.get(each, 0), episodes[each], each)
        )
        failures = self._failures(set(shown))
        return [self._row(number, episodes[number], failures.get(number, []), words) for number in shown]

    def _row(self, number: int, episodes: int, failures: list[int], words: Callable[[str], Words]) -> CallRow:
        again = self._again.get(number, 0)
        tool, args = words(self._place(number)).get(number, (None, None))
        return CallRow(
            tool=tool, args=args, times=episodes + again, episodes=episodes, again=again, failed=sum(failures),
            alike=max(failures, default=0),
        )  # fmt: skip

    def _place(self, number: int) -> str:
        """An episode that has words for the call."""
        found = self._where.get(number)
        return self._episodes[bisect_right(self._ends, self._different.index(number))] if found is None else found

    def _failures(self, shown: set[int]) -> dict[int, list[int]]:
        """Of each call, how often it failed in each way."""
        counts: dict[int, Counter[int]] = {}
        for number, way, times in self._ways:
            if number in shown:
                counts.setdefault(number, Counter())[way] += times
        return {number: list(each.values()) for number, each in counts.items()}
