"""A store that lives and dies with its process: for tests and notebooks. Same bytes, same answers, no file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator

from blake3 import blake3

from trackway.errors import BlobNotFound, EpisodeNotFound, StoreTrouble
from trackway.schema import ids
from trackway.schema.canonical import digest_of
from trackway.schema.codec import BLOBS, Encoded, decode, numbered
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.events import EpisodeStart, Event, FileChange
from trackway.store import forks, record
from trackway.store.base import ALL, Batch, Dropped, Query, late
from trackway.store.frames import Packer
from trackway.store.originals import Incoming, OriginalFile, Part
from trackway.store.payloads import APART, left_out, put_together, references, take_apart
from trackway.store.record import Position
from trackway.store.sqlite_seal import file_digests

_instances = itertools.count(1)


class MemoryStore:
    """Episodes in this process."""

    def __init__(self) -> None:
        self.key = f"memory:{os.getpid()}-{next(_instances)}"
        self._lock = forks.lock_of(self, "_lock")
        self._episodes: dict[str, list[Encoded]] = {}
        self._summaries: dict[str, EpisodeSummary] = {}
        self._positions: dict[str, Position] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._needs: dict[str, set[bytes]] = {}
        self._dropped: set[str] = set()
        self._packer = Packer()
        self._originals: dict[str, tuple[OriginalFile, list[Part]]] = {}
        self._about: dict[str, dict[str, tuple[int, int]]] = {}

    def seal(self, batch: Batch) -> int:
        """Take the batch whole; what fails leaves nothing behind but unreferenced blobs."""
        with self._lock:
            stored = self._positions.get(batch.writer, record.START)
            if batch.writer and stored != batch.start:
                raise StoreTrouble(f"writer {batch.writer} is sealed up to {stored}, the batch starts at {batch.start}")
            ready = list(self._ready(batch))
            self._check_not_dropped(ready)
            for episode, encoded in ready:
                self._episodes.setdefault(episode, []).append(encoded)
                self._needs.setdefault(episode, set()).update(_needed(encoded))
            for episode, group in itertools.groupby(ready, lambda each: each[0]):
                summary = self._summaries.get(episode) or EpisodeSummary(id=episode)
                self._summaries[episode] = fold(summary, [self._decode(each) for _, each in group])
            if batch.writer and batch.position is not None:
                self._positions[batch.writer] = batch.position
            for each in batch.originals:
                self._keep_file(each)
            return len(ready)

    def _keep_file(self, incoming: Incoming) -> None:
        name = incoming.file.hash
        about = {each: span for each, span in incoming.episodes.items() if each in self._episodes}
        if incoming.instead is not None:
            self._originals.pop(incoming.instead, None)
            about = self._about.pop(incoming.instead, {}) | about
        self._originals[name] = (incoming.file, list(incoming.parts))
        self._about[name] = self._about.get(name, {}) | about

    def originals(self, episode_id: str) -> list[OriginalFile]:
        """The files that an episode came from, the largest first."""
        found = [self._originals[name][0] for name, about in self._about.items() if episode_id in about]
        return sorted(found, key=lambda each: (each.beside is not None, -each.size, each.name))

    def has_original(self, name: str) -> bool:
        """Whether a file is kept, by its hash."""
        return name in self._originals

    def episodes_from(self, name: str) -> list[str]:
        """The episodes that came from a file, by its hash."""
        return list(self._about.get(name, ()))

    def original(self, name: str) -> Iterator[bytes]:
        """A file's bytes, by its hash."""
        if name not in self._originals:
            raise BlobNotFound(f"no imported file {name}", hint="trackway export raw --list ID", name=name)
        for part in self._originals[name][1]:
            yield self._packer.expand(part.packed, f"a part of {self._originals[name][0].name}")

    def _drop_files(self, episode_id: str) -> None:
        """Files that are about it go, whatever else they are about."""
        for name in [name for name, about in self._about.items() if episode_id in about]:
            del self._about[name], self._originals[name]

    def _ready(self, batch: Batch) -> Iterator[tuple[str, Encoded]]:
        parts: dict[int, list[bytes | None]] = {}
        local: dict[int, bytes] = {}
        for each in itertools.starmap(record.Record, batch.records):
            if each.type == record.BLOB_PART:
                number, last, part = record.unpack_blob_part(each.body)
                parts.setdefault(number, []).append(part if each.flags in (0, _next_of(parts, number)) else None)
                if last and None not in (whole := parts.pop(number)):
                    local[number] = self._keep(b"".join(filter(None, whole)))
                continue
            encoded = each.encoded
            if encoded.flags & BLOBS or len(encoded.body) >= APART:
                encoded = take_apart(encoded, self._keep, local)
            self._decode(encoded)  # what cannot be read back is refused now
            yield ids.from_bytes(each.episode), encoded

    def _keep(self, body: bytes) -> bytes:
        digest = blake3(body).digest()
        self._blobs[digest] = body
        return digest

    def _decode(self, encoded: Encoded) -> Event:
        return decode(encoded, put_together(self._fetch))

    def _fetch(self, digest: bytes) -> Iterator[bytes]:
        if digest not in self._blobs:
            raise BlobNotFound(f"no blob blake3:{digest.hex()}")
        yield self._blobs[digest]

    def position(self, writer: str) -> Position:
        """How far this writer's journal is sealed."""
        return self._positions.get(writer, record.START)

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries that match, in the order asked for."""
        with self._lock:
            matching = [each for each in self._summaries.values() if query.takes(each)]
        yield from query.ordered(matching)

    def find(self, ref: str) -> list[str]:
        """The ids that a whole id, prefix, suffix or ``last`` names."""
        if ref == ids.LAST:
            return [each.id for each in self.episodes(Query(limit=1))]
        return [each for each in self._summaries if ids.matches(ref, each)]

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary; raises ``EpisodeNotFound``."""
        if episode_id not in self._summaries:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        return self._summaries[episode_id]

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events with a ``seq`` beyond ``after``, in that order."""
        if episode_id not in self._episodes:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        events = self._episodes[episode_id]
        for seq in range(after + 1, len(events)):
            if self._episodes.get(episode_id) is not events:
                raise EpisodeNotFound(f"episode {episode_id} was deleted while it was read", ref=episode_id)
            yield from numbered([self._decode(events[seq])], seq)

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob's bytes; raises ``BlobNotFound``."""
        yield from self._fetch(digest_of(name))

    def drop(self, episode_ids: Iterable[str]) -> Dropped:
        """Delete episodes and the blobs nobody else needs."""
        with self._lock:
            gone = [each for each in dict.fromkeys(episode_ids) if each in self._episodes]
            bodies = [encoded.body for each in gone for encoded in self._episodes.pop(each)]
            needed = set[bytes]().union(*(self._needs.pop(each) for each in gone))
            for each in gone:
                del self._summaries[each]
                self._drop_files(each)
            self._dropped.update(gone)
            free = needed.difference(*self._needs.values()) & self._blobs.keys()
            size = sum(map(len, bodies)) + sum(len(self._blobs.pop(each)) for each in free)
            return Dropped(tuple(gone), len(bodies), len(free), size)

    def dropped(self, among: Collection[bytes]) -> set[bytes]:
        """Which of these ids, 16 bytes each, are of episodes that were dropped."""
        return {each for each in among if ids.from_bytes(each) in self._dropped}

    def _check_not_dropped(self, ready: list[tuple[str, Encoded]]) -> None:
        for episode in {each for each, _ in ready} & self._dropped:
            if not any(type(self._decode(each)) is EpisodeStart for name, each in ready if name == episode):
                raise late(episode)
            self._dropped.discard(episode)

    def close(self) -> None:
        """Nothing to let go of: what it holds stays readable."""


def _needed(encoded: Encoded) -> set[bytes]:
    """The blobs an event needs: those it refers to, and those a file change names."""
    found = references(encoded.body) if encoded.flags & BLOBS else set()
    event = decode(encoded, left_out)
    if isinstance(event, FileChange):
        found |= file_digests(event)
    return found


def _next_of(parts: dict[int, list[bytes | None]], number: int) -> int:
    return record.part_number(len(parts.get(number, ())))
