"""What a store holds, in short: how many events each episode has, and the little that a search narrows down by.

Read from columns, where the store has them, without decoding a summary: ten thousand episodes in milliseconds. And a
mark that changes with everything that is committed, so that whoever has seen it all need not even ask.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.schema import ids
from trackway.schema.episode import EpisodeSummary
from trackway.store.base import Store
from trackway.store.live import LiveStore
from trackway.store.sqlite import SqliteStore

_SIZES: Final = "SELECT uuid, n_events FROM episodes"
_FACTS: Final = "SELECT uuid, task, model, outcome FROM episodes"
_SETTLED: Final = 100_000_000
"""Nanoseconds. A file system's clock ticks every few milliseconds: what changed just now may change again unseen."""


class Facts(NamedTuple):
    """What is said of an episode as a whole."""

    id: bytes
    task: str
    model: str | None
    outcome: str | None


class Mark(NamedTuple):
    """What a store's file looks like from outside; ``file`` tells one file from another in its place."""

    file: int
    seen: tuple[int, ...]


def sizes(store: Store) -> dict[bytes, int]:
    """How many events of each episode are stored, by the 16 bytes of its id."""
    if isinstance(store, SqliteStore):
        return dict(store._ask(_SIZES, ()))  # noqa: SLF001  one subsystem, as below
    return {ids.to_bytes(each.id): each.n_events for each in store.episodes()}


def facts(store: Store) -> Iterator[Facts]:
    """Every stored episode, by what a search narrows down by."""
    if isinstance(store, SqliteStore):
        yield from (Facts(uuid, task or "", model, outcome) for uuid, task, model, outcome in store._ask(_FACTS, ()))  # noqa: SLF001
        return
    yield from map(facts_of, store.episodes())


def facts_of(summary: EpisodeSummary) -> Facts:
    """The same, of a summary."""
    return Facts(ids.to_bytes(summary.id), summary.task, summary.model, summary.outcome)


def unsealed(live: LiveStore) -> set[str]:
    """The episodes of which something is in journals only, of the living and of the dead."""
    return live._look()  # noqa: SLF001


def summary_of(live: LiveStore, episode_id: str, waiting: Collection[str]) -> EpisodeSummary:
    """One summary, where it was just looked which episodes have something in journals: they are not read again."""
    if episode_id in waiting or type(live) is not LiveStore:
        return live.episode(episode_id)
    return live._with_state(live.store.episode(episode_id))  # noqa: SLF001


def mark(store: Store) -> Mark | None:
    """The same as before only where nothing was committed since; None where nobody can tell."""
    if not isinstance(store, SqliteStore):
        return None
    log = store.path.with_name(f"{store.path.name}-wal")
    file, seen = _seen(store.path)
    _, beside = _seen(log)
    newest = max((*seen[1:2], *beside[1:2]), default=0)
    if not seen or abs(time.time_ns() - newest) < _SETTLED:
        return None
    return Mark(file, (*seen, *beside))


def _seen(path: Path) -> tuple[int, tuple[int, ...]]:
    try:
        found = path.stat()
    except OSError:
        return 0, ()
    return found.st_ino, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
