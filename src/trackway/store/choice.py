"""Which episodes a prune takes, and what goes with them. Reads only: a dry run is this file and nothing else.

Filters narrow down what is looked at; among that, an episode goes when any limit says so, or, where there is no limit,
all of it does. Never one that runs, carries a protecting tag, or has events that a living process has not sealed yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import BadSetting
from trackway.schema import ids
from trackway.schema.episode import EpisodeSummary
from trackway.store.base import ALL, Query
from trackway.store.live import LiveStore
from trackway.store.retention import Retention
from trackway.store.sqlite import SqliteStore
from trackway.store.sqlite_drop import BLOB_BYTES

RUNNING: Final = "running"
PROTECTED: Final = "protected"
UNSEALED: Final = "unsealed"

_OWN: Final = """
    SELECT id, length(summary) + coalesce((SELECT sum(length(body)) FROM frames WHERE episode = episodes.id), 0)
        + coalesce((SELECT sum(length(body)) FROM tail WHERE episode = episodes.id), 0)
    FROM episodes WHERE uuid = ?"""
_BLOBS: Final = "SELECT blob FROM blob_refs WHERE episode = ?"
_TIMES_NEEDED: Final = "SELECT count(*) FROM blob_refs WHERE blob = ?"
_USED: Final = """
    SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"""


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """What to prune: filters that must all hold, and limits of which any suffices."""

    query: Query = ALL
    state: str | None = None
    limits: Retention = Retention()

    def check(self) -> None:
        """Refuse criteria that say nothing: that is never meant as "everything"."""
        if self.query == ALL and self.state is None and not self.limits.is_limit:
            raise BadSetting(
                "nothing says what to prune", hint="name a limit or a filter; max_age 0s is everything", value=None
            )

    def looks_at(self, summary: EpisodeSummary) -> bool:
        """Whether every filter holds."""
        return self.query.takes(summary) and self.state in (None, summary.state)

    def spares(self, summary: EpisodeSummary, unsealed: set[str]) -> str | None:
        """Why this episode must not go; None where it may."""
        if summary.state == RUNNING:
            return RUNNING
        if not set(self.limits.keep_tags).isdisjoint(summary.tags):
            return PROTECTED
        return UNSEALED if summary.id in unsealed else None

    def condemns(self, summary: EpisodeSummary, place: int, now: int) -> bool:
        """Whether age or count says that it goes; ``place`` counts from 0, the newest."""
        limits = self.limits
        if not limits.is_limit:
            return True
        too_many = limits.max_episodes is not None and place >= limits.max_episodes
        heard = _last_heard(summary)
        if summary.started_at is None and not heard:  # nobody knows when, as of an imported file that does not tell
            return too_many
        return too_many or (limits.age is not None and heard < now - limits.age)

    def described(self) -> dict[str, Any]:
        """As a receipt says it: what was asked for, defaults left out."""
        asked = {name: each for name, each in msgspec.structs.asdict(self.query).items() if each is not None}
        for name in ("sort", "newest_first"):
            asked.pop(name)
        limits = {name: each for name, each in msgspec.structs.asdict(self.limits).items() if each is not None}
        return {**asked, **({"state": self.state} if self.state else {}), **limits}


def _last_heard(summary: EpisodeSummary) -> int:
    """The latest it says of itself, whichever way a clock went. A label given later makes nothing younger."""
    said = (summary.ended_at, summary.last_at, summary.started_at)
    return max((each for each in said if each is not None), default=0)


class Weight(NamedTuple):
    """What goes with an episode, or with many."""

    events: int = 0
    blobs: int = 0
    bytes: int = 0

    def plus(self, other: Weight) -> Weight:
        """Both together."""
        return Weight(self.events + other.events, self.blobs + other.blobs, self.bytes + other.bytes)


class Going(NamedTuple):
    """An episode that is to go; its weight counts those before it as gone."""

    id: str
    weight: Weight


class Plan(NamedTuple):
    """What would go, oldest first, and how many were spared for which reason."""

    going: tuple[Going, ...]
    total: Weight
    spared: dict[str, int]


class _Candidate(NamedTuple):
    """What is remembered of a summary: there may be very many."""

    id: str
    events: int


class Scales:
    """Weighs episodes one after the other; a shared blob goes with the last of those that need it."""

    def __init__(self, live: LiveStore) -> None:
        self._store = live.store if isinstance(live.store, SqliteStore) else None
        self._left: dict[int, int] = {}
        self.total = Weight()

    def used(self) -> int:
        """What the store's file takes, free pages not counted."""
        if self._store is None:
            raise BadSetting("this store cannot tell its size", hint="prune by age or count", value="max_size")
        rows = self._rows(_USED, ())
        return int(rows[0][0]) if rows else 0

    def weigh(self, each: _Candidate) -> Going:
        """What goes with this one, after all that were weighed before."""
        rows = self._rows(_OWN, (ids.to_bytes(each.id),))
        number, own = rows[0] if rows else (0, 0)
        sizes = [self._last_of(blob) for (blob,) in self._rows(_BLOBS, (number,))]
        freed = [size for size in sizes if size is not None]
        weight = Weight(each.events, len(freed), own + sum(freed))
        self.total = self.total.plus(weight)
        return Going(each.id, weight)

    def _last_of(self, blob: int) -> int | None:
        """The bytes of a blob, once nobody else is left who needs it."""
        left = self._left.pop(blob, 0) or self._rows(_TIMES_NEEDED, (blob,))[0][0]
        if left > 1:
            self._left[blob] = left - 1
            return None
        rows = self._rows(BLOB_BYTES, (blob,))
        return int(rows[0][0]) if rows else None

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        return self._store._rows(sql, values) if self._store is not None else []  # noqa: SLF001  one subsystem


def choose(live: LiveStore, criteria: Criteria, now: int) -> Plan:
    """What would go; ``now`` in UTC nanoseconds."""
    criteria.check()
    spared: Counter[str] = Counter()
    condemned: list[_Candidate] = []
    others: list[_Candidate] = []
    for summary, goes, why in _judged(live, criteria, now):
        if why is not None:
            spared[why] += goes
        elif goes:
            condemned.append(_Candidate(summary.id, summary.n_events))
        elif criteria.limits.size is not None:
            others.append(_Candidate(summary.id, summary.n_events))
    scales = Scales(live)
    going = [scales.weigh(each) for each in reversed(condemned)]
    if criteria.limits.size is not None:
        going += _until_small(scales, reversed(others), criteria.limits.size)
    return Plan(tuple(going), scales.total, {name: times for name, times in sorted(spared.items()) if times})


def _judged(live: LiveStore, criteria: Criteria, now: int) -> Iterator[tuple[EpisodeSummary, bool, str | None]]:
    unsealed = live.unsealed()
    newest_first = msgspec.structs.replace(criteria.query, sort="started_at", newest_first=True)
    found = (each for each in live.episodes(newest_first) if criteria.looks_at(each))
    for place, each in enumerate(found):
        yield each, criteria.condemns(each, place, now), criteria.spares(each, unsealed)


def _until_small(scales: Scales, oldest_first: Iterable[_Candidate], limit: int) -> Iterator[Going]:
    used = scales.used()
    for each in oldest_first:
        if used - scales.total.bytes <= limit:
            return
        yield scales.weigh(each)
