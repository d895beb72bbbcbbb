"""A store together with the journals that are not sealed into it yet: a running episode is visible at once.

The journals are read first, then the store: what a sealer moves meanwhile is then seen twice, never missed, and the
second sight is dropped by the writer's own numbers. Nothing is written, so a reader needs no right to write.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

from trackway.errors import AmbiguousEpisode, BlobNotFound, EpisodeNotFound, EventRefused, StoreDamaged
from trackway.schema import ids
from trackway.schema.codec import decode
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.events import EpisodeStart, Event
from trackway.store import forks
from trackway.store.base import ALL, Batch, Dropped, Query, Store
from trackway.store.home import Home
from trackway.store.originals import OriginalFile
from trackway.store.payloads import left_out
from trackway.store.record import START, Position
from trackway.store.tail import Part, Tails
from trackway.store.unsealed import blobs_in, parts_or_stored, with_parts

_FOLLOW_EVERY = 0.1


def readable(found: Iterable[EpisodeSummary], damage: list[StoreDamaged]) -> Iterator[EpisodeSummary]:
    """The summaries that come before it is said that others cannot be read; that is put into the list."""
    try:
        yield from found
    except StoreDamaged as error:
        damage.append(error)


class LiveStore:
    """Reads like any store; ``state`` of its summaries is filled in."""

    def __init__(self, home: Home, store: Store) -> None:
        self.home = home
        self.store = store
        self.key = store.key
        self._lock = forks.lock_of(self, "_lock")
        self._tails = Tails(home, store.key)

    # --- the journals -------------------------------------------------------------------------------------------

    def _look(self) -> set[str]:
        """Read on in the journals; returns the episodes that have events there."""
        with self._lock:
            self._tails.refresh(self._sealed)
            return {ids.from_bytes(each) for each in self._tails.episodes()}

    def _sealed(self, writer: str) -> Position:
        """How far a journal is in the store; where that is damaged, read from its beginning: numbers tell the rest."""
        try:
            return self.store.position(writer)
        except StoreDamaged:
            return START

    def unsealed(self) -> set[str]:
        """The episodes of which a living process has recorded something that is not in the store yet."""
        with self._lock:
            self._tails.refresh(self._sealed)
            return {ids.from_bytes(each) for each in self._tails.of_the_living()}

    def _waiting(self, episode_id: str, *, whole: bool = True) -> list[Event]:
        """The events of an episode that are in journals, as of the last look; large values left out on request."""
        events: list[Event] = []
        with self._lock:
            tails = list(self._tails.of(ids.to_bytes(episode_id)))
        for found in tails:
            parts: dict[int, list[Part]] = defaultdict(list)
            hook = with_parts(parts) if whole else left_out
            for each in found:
                if isinstance(each, Part):
                    parts[each.number].append(each)
                    continue
                # What cannot be read is not shown as anything; the sealer puts it aside and doctor tells. A part that
                # is gone was sealed with its event: the store, asked after this, has both.
                with contextlib.suppress(EventRefused, FileNotFoundError):
                    events.append(decode(each.encoded, hook))
        return events

    def _with_state(self, summary: EpisodeSummary) -> EpisodeSummary:
        if summary.ended_at is not None or any(map(ids.is_imported, summary.writers)):
            state = "ended"
        else:
            state = "crashed" if self._tails.alive.isdisjoint(summary.writers) else "running"
        return msgspec.structs.replace(summary, state=state)

    # --- reading ------------------------------------------------------------------------------------------------

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries that match, running ones included, in the order asked for."""
        waiting = self._look()
        if not waiting:
            for each in self.store.episodes(query):
                yield self._with_state(each)
            return
        damage: list[StoreDamaged] = []
        stored, among = self._first_of(query, waiting, damage)
        found = [each for each in stored if each.id not in waiting]
        for episode_id in among:
            try:
                found += [each for each in [self._folded(episode_id)] if query.takes(each)]
            except EpisodeNotFound:  # pruned, and what came late for it is all there is
                continue
            except StoreDamaged as error:
                damage.append(error)
        for each in query.ordered(found):
            yield self._with_state(each)
        if damage:  # told behind all that can be read, as the store does
            raise damage[0]

    def _first_of(
        self, query: Query, waiting: set[str], damage: list[StoreDamaged]
    ) -> tuple[list[EpisodeSummary], set[str]]:
        """Stored summaries, and those that wait: all that may be among the first of what is asked for."""
        if query.limit is not None and _is_by_start(query):
            # When an episode started never changes, so thousands that wait need not be put together to show a few.
            stored = list(readable(self.store.episodes(query), damage))
            starts = {each.id: each.started_at for each in stored if each.started_at is not None} | self._starts()
            if len(starts) >= query.limit:
                by_start = sorted(starts, key=lambda each: (starts[each], each), reverse=query.newest_first)
                first = set(by_start[: query.limit])
                return [each for each in stored if each.id in first], first & waiting
        more = None if query.limit is None else query.limit + len(waiting)
        found = self.store.episodes(msgspec.structs.replace(query, limit=more))
        return list(readable(found, damage)), waiting

    def _starts(self) -> dict[str, int]:
        """When the episodes began whose start is in a journal."""
        found = {}
        with self._lock:
            records = self._tails.with_bytes(EpisodeStart.kind.encode())
        for each in records:
            with contextlib.suppress(EventRefused):
                event = decode(each.encoded, left_out)
                if type(event) is EpisodeStart:
                    found[ids.from_bytes(each.episode)] = event.at
        return found

    def _folded(self, episode_id: str) -> EpisodeSummary:
        waiting = self._waiting(episode_id, whole=False)
        try:
            base = self.store.episode(episode_id)
        except EpisodeNotFound:
            if self._came_late(episode_id, waiting):
                raise
            base = EpisodeSummary(id=episode_id)
        return fold(base, [each for each in waiting if each.n > base.writers.get(each.writer, -1)])

    def _came_late(self, episode_id: str, waiting: list[Event]) -> bool:
        """Whether the episode was pruned before these were recorded: the store will refuse them, nobody sees them."""
        dropped = getattr(self.store, "dropped", None)
        if dropped is None or any(type(each) is EpisodeStart for each in waiting):
            return False
        return bool(dropped([ids.to_bytes(episode_id)]))

    def find(self, ref: str) -> list[str]:
        """The ids a reference names."""
        before = ids.from_last(ref)
        if before is not None:
            return [each.id for each in self.episodes(Query(limit=before + 1))][before:]
        waiting = sorted(self._look())  # the journals first: what is sealed meanwhile is then in the store
        stored = self.store.find(ref)
        more = [each for each in waiting if ids.matches(ref, each) and each not in stored]
        return [*stored, *(each for each in more if not self._came_late(each, self._waiting(each)))]

    def resolve(self, ref: str) -> str:
        """The one id a reference names; raises ``EpisodeNotFound`` or ``AmbiguousEpisode``."""
        found = self.find(ref.strip())
        if not found:
            hint = "trackway ls shows what is there; an id is named by at least 4 characters of its start or end"
            if ids.from_last(ref) is not None:
                hint = "nothing is recorded here yet" if ref == ids.LAST else "there are not so many"
            raise EpisodeNotFound(f"no episode answers to {ref!r}", hint=hint, ref=ref)
        if len(found) > 1:
            names = ", ".join([*found[:5], *(["…"] if len(found) > 5 else [])])
            raise AmbiguousEpisode(f"{ref!r} names {len(found)} episodes: {names}", hint="type more of it", ref=ref)
        return found[0]

    def _whole(self, ref: str) -> str:
        return ref if ids.is_id(ref) else self.resolve(ref)

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary, what is not sealed yet counted in; a short id or ``last`` will do."""
        episode_id = self._whole(episode_id)
        if episode_id in self._look():
            return self._with_state(self._folded(episode_id))
        return self._with_state(self.store.episode(episode_id))

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """All events; those not sealed yet come last and have no ``seq``. A short id or ``last`` will do."""
        episode_id = self._whole(episode_id)
        self._look()
        waiting = self._waiting(episode_id)
        if not waiting:
            yield from self.store.events(episode_id, after=after)
            return
        last: dict[str, int] = {}
        try:
            last.update(self.store.episode(episode_id).writers)
            for event in self.store.events(episode_id, after=after):
                last[event.writer] = max(event.n, last.get(event.writer, -1))
                yield event
        except EpisodeNotFound:  # nothing of it is sealed yet
            if self._came_late(episode_id, waiting):
                raise
        yield from (event for event in waiting if event.n > last.get(event.writer, -1))

    def follow(self, episode_id: str) -> Iterator[Event]:
        """All events, and then each new one as it is recorded, until the episode ends or its writers are dead."""
        episode_id = self._whole(episode_id)
        sealed, seen = -1, dict[str, int]()
        while True:
            state = self.episode(episode_id).state  # asked before reading: what came until then is read for sure
            for event in self.events(episode_id, after=sealed):
                if event.seq is not None:
                    sealed = event.seq
                if event.n > seen.get(event.writer, -1):
                    seen[event.writer] = event.n
                    yield event
            if state != "running":
                return
            time.sleep(_FOLLOW_EVERY)

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob's bytes, from the journals while it is not sealed, else from the store."""
        stored = self._stored(name)  # most often it is there; to look for it in journals is to hash all that they hold
        if stored is not None:
            yield from stored
            return
        for episode_id in self._look():
            with self._lock:
                tails = list(self._tails.of(ids.to_bytes(episode_id)))
            for found in tails:
                parts = blobs_in(found).get(name)
                if parts is not None:
                    yield from parts_or_stored(parts, self.store, name)
                    return
        yield from self.store.blob(name)

    def originals(self, episode_id: str) -> list[OriginalFile]:
        """The files that an episode was imported from; none where the store keeps none."""
        found = getattr(self.store, "originals", None)
        return [] if found is None else list(found(self._whole(episode_id)))

    def original(self, name: str) -> Iterator[bytes]:
        """The bytes of one of them."""
        found: Iterator[bytes] = getattr(self.store, "original")(name)  # noqa: B009  one that names it has it
        return found

    def _stored(self, name: str) -> Iterator[bytes] | None:
        pieces = self.store.blob(name)
        try:
            return itertools.chain([next(pieces, b"")], pieces)
        except BlobNotFound:
            return None

    # --- the rest of the protocol -------------------------------------------------------------------------------

    def seal(self, batch: Batch) -> int:
        """Into the store."""
        return self.store.seal(batch)

    def position(self, writer: str) -> Position:
        """How far a writer's journal is sealed."""
        return self.store.position(writer)

    def drop(self, episode_ids: Iterable[str]) -> Dropped:
        """From the store; what is in journals is not looked at (``trackway.store.prune`` does)."""
        return self.store.drop(episode_ids)

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_by_start(query: Query) -> bool:
    """Whether all episodes are asked for, in the order of their starts."""
    return msgspec.structs.replace(query, newest_first=True, limit=None) == ALL
