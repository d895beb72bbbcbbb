"""What was read of a file, into the store: only what is new, in one transaction, with the file itself.

The look at what is there and the adding happen under the sealers' lock: two imports of one file at once add it once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from trackway.ingest.naming import episode_id
from trackway.ingest.renaming import Renaming
from trackway.ingest.sources import source_of
from trackway.ingest.spool import Mentioned, ReadFile, Spooled, SpooledEntry, Told
from trackway.ingest.state import KnownFile, State, surroundings
from trackway.schema import ids
from trackway.schema.codec import Encoded
from trackway.schema.version import SCHEMA
from trackway.store import erase, record
from trackway.store.base import Batch
from trackway.store.live import LiveStore
from trackway.store.originals import Incoming
from trackway.store.record import BLOB_PART, EVENT, RawRecord


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file.

    ``state``: new, grown (of episodes that were here, something is new), present (nothing is), unchanged (not read
    again), empty (nothing has happened in it yet), pruned (its episodes were deleted here), part (read with another
    file), archive (read file by file), unknown (nothing we know), refused.
    """

    file: str
    state: str
    source: str = ""
    size: int = 0
    episodes: tuple[str, ...] = ()
    new_episodes: int = 0
    entries: int = 0
    events: int = 0
    warnings: tuple[Told, ...] = ()
    n_warnings: int = 0
    error: str = ""
    hint: str = ""


class _Known(NamedTuple):
    """An episode by its id, and what it has; None where it is not here."""

    id: str
    keys: set[int] | None


class _Episode:
    """One episode that a file is about: its id, what it has, what is added."""

    def __init__(self, known: _Known, *, is_pruned: bool, is_empty: bool) -> None:
        self.id = known.id
        self.bytes = ids.to_bytes(known.id)
        self.is_new = known.keys is None
        self.is_pruned = is_pruned
        self.is_empty = is_empty
        self.known = known.keys or set()
        self.added: set[int] = set()
        self.events = 0
        self.renaming: Renaming | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether nothing of it is stored."""
        return self.is_pruned or (self.is_empty and self.is_new)


class Storing:
    """Puts one file after the other into a store."""

    def __init__(self, live: LiveStore, state: State, *, again: bool = False, instead: State | None = None) -> None:
        """``instead`` makes it dry: what would be stored is noted there, and nowhere else."""
        self._live = live
        self._state = state
        self._again = again
        self._instead = instead

    def store(self, read: ReadFile, modified: int) -> Imported:
        """Add what is new; where this raises, nothing was changed."""
        spooled = _spool_of(read)
        try:
            if self._instead is not None:
                return self._counted(read, spooled, self._instead)
            with erase.holding(self._live.home):
                return self._stored(read, spooled, modified)
        finally:
            spooled.close()

    def _stored(self, read: ReadFile, spooled: Spooled, modified: int) -> Imported:
        episodes = self._episodes(read)
        if all(each.is_left_out for each in episodes):
            gone = tuple(each.id for each in episodes if each.is_pruned)
            if gone:
                self._state.note(read.name, self._file(read, modified)._replace(gone=gone), {})
            return _told(read, episodes)
        originals = self._originals(read, spooled, episodes)
        self._live.store.seal(Batch(self._records(spooled, episodes), originals=originals, is_whole=True))
        kept = [each for each in episodes if not each.is_left_out]
        unnamed = next((e.id for e, m in zip(episodes, read.sessions, strict=True) if not m.session), None)
        added = {each.id: (each.added, self._live.store.episode(each.id).n_events) for each in kept if each.added}
        self._state.note(read.name, self._file(read, modified)._replace(unnamed=unnamed), added)
        return _told(read, episodes)

    def _counted(self, read: ReadFile, spooled: Spooled, instead: State) -> Imported:
        """What would be new, beside what would be by then."""
        episodes = self._episodes(read)
        for episode, entry in _new(spooled, episodes):
            episode.events += len(entry.events)
        added = {each.id: (each.added, each.events) for each in episodes if each.added}
        instead.note(read.name, self._file(read, 0), added)
        return _told(read, episodes)

    @staticmethod
    def _file(read: ReadFile, modified: int) -> KnownFile:
        beside = tuple(map(os.fsdecode, read.beside))
        around = surroundings(beside)
        return KnownFile(read.size, modified, read.files[0].hash, read.source, None, beside, around)

    # --- which episodes -----------------------------------------------------------------------------------------

    def _episodes(self, read: ReadFile) -> list[_Episode]:
        found = [self._known(read, each) for each in read.sessions]
        gone = set[bytes]() if self._again else self._gone([ids.to_bytes(each.id) for each in found])
        return [
            _Episode(known, is_pruned=ids.to_bytes(known.id) in gone, is_empty=each.is_empty)
            for known, each in zip(found, read.sessions, strict=True)
        ]

    @property
    def is_dry(self) -> bool:
        """Whether nothing is stored."""
        return self._instead is not None

    def note(self, path: str, file: KnownFile) -> None:
        """Remember a file that was stored by somebody else."""
        if not self.is_dry:
            self._state.note(path, file, {})

    def are_left_out(self, episodes: Collection[str]) -> bool:
        """Whether they were all pruned here, and nobody asked for them again."""
        return not self._again and self.are_gone(episodes)

    def are_gone(self, episodes: Collection[str]) -> bool:
        """Whether they were all pruned here."""
        return len(self._gone([ids.to_bytes(each) for each in episodes])) == len(episodes)

    def _gone(self, among: list[bytes]) -> set[bytes]:
        dropped = getattr(self._live.store, "dropped", None)
        return set() if dropped is None else set(dropped(among))

    def _known(self, read: ReadFile, mentioned: Mentioned) -> _Known:
        source = source_of(read.source)
        keeps_ids = source is not None and source.keeps_ids
        if mentioned.session:
            uuid = episode_id(read.source, mentioned.session, keeps_ids=keeps_ids)
            return _Known(uuid, self._keys(uuid))
        by_content = episode_id(read.source, read.files[0].hash, keeps_ids=False)
        keys = self._keys(by_content)
        if keys is not None or self._gone([ids.to_bytes(by_content)]):
            return _Known(by_content, keys)
        return self._alike(read, mentioned) or _Known(by_content, None)

    def _keys(self, uuid: str) -> set[int] | None:
        keys = self._state.known(self._live, uuid)
        more = set[int]() if self._instead is None else self._instead.noted(uuid)
        return (keys or set()) | more if more else keys

    def _alike(self, read: ReadFile, mentioned: Mentioned) -> _Known | None:
        """The episode that a session without a name is: what this file was the last time, or what begins like it.

        Two that begin alike and go apart are two episodes: the second one is known by its content.
        """
        file = self._state.file(read.name)
        last = None if file is None or file.source != read.source else file.unnamed
        begun = episode_id(read.source, mentioned.beginning, keeps_ids=False) if mentioned.beginning else None
        came = self._from(read.files[0].hash)
        for uuid in filter(None, (last, begun)):
            keys = self._keys(uuid)
            if keys is not None and (uuid in came or _goes_with(keys, read)):
                return _Known(uuid, keys)
        return _Known(begun, None) if begun is not None and self._keys(begun) is None else None

    def _from(self, name: str) -> list[str]:
        """The episodes that this very file has become before: what lies beside it may have changed since."""
        found = getattr(self._live.store, "episodes_from", None)
        return [] if found is None else list(found(name))

    # --- what is new --------------------------------------------------------------------------------------------

    def _records(self, spooled: Spooled, episodes: list[_Episode]) -> Iterator[RawRecord]:
        """What is to be added, as a journal would hand it over."""
        number = 0
        for episode, entry in _new(spooled, episodes):
            for content in entry.contents:
                number += 1
                body = record.pack_blob_part(number, content, last=True)
                yield record.meta_of(BLOB_PART, 0, SCHEMA), episode.bytes + body, 0, 0
            for each in self._named(episode, entry):
                episode.events += 1
                yield record.meta_of(EVENT, each.flags, each.schema), episode.bytes + each.body, 0, 0

    def _named(self, episode: _Episode, entry: SpooledEntry) -> Iterator[Encoded]:
        """The events under numbers that are free: a slice that begins like a file we know counts otherwise."""
        if episode.renaming is None:
            last = {} if episode.is_new else self._live.store.episode(episode.id).writers
            episode.renaming = Renaming(last, entry)
        return episode.renaming.renamed(entry)

    def _originals(self, read: ReadFile, spooled: Spooled, episodes: list[_Episode]) -> Iterator[Incoming]:
        """The file, and what lies beside it; asked for when all entries were."""
        spans: dict[str, tuple[int, int]] = {}
        for episode, each in zip(episodes, read.sessions, strict=True):
            if not episode.is_left_out:
                spans[episode.id] = (each.start, each.stop)
        if not spans:
            return
        for i, file in enumerate(read.files):
            about = spans if i == 0 else dict.fromkeys(spans, (0, file.size))
            yield Incoming(file, spooled.parts(), about, read.instead if i == 0 else None)


def _spool_of(read: ReadFile) -> Spooled:
    return Spooled(Path(os.fsdecode(read.spool)))


def _new(spooled: Spooled, episodes: list[_Episode]) -> Iterator[tuple[_Episode, SpooledEntry]]:
    """The entries that their episodes have not yet; from now on they have."""
    for entry in spooled.entries():
        episode = episodes[entry.session]
        if not (episode.is_left_out or entry.key in episode.known or entry.key in episode.added):
            episode.added.add(entry.key)
            yield episode, entry


def _goes_with(keys: set[int], read: ReadFile) -> bool:
    """Whether a file says all that an episode does, or nothing but that, in its session without a name."""
    spooled = _spool_of(read)
    try:
        unnamed = next(i for i, each in enumerate(read.sessions) if not each.session)
        says = {each.key for each in spooled.entries() if each.session == unnamed}
    finally:
        spooled.close()
    return keys <= says or says <= keys


def _told(read: ReadFile, episodes: list[_Episode]) -> Imported:
    new = sum(each.is_new and not each.is_left_out for each in episodes)
    events = sum(each.events for each in episodes)
    if all(each.is_left_out for each in episodes):
        state = "pruned" if any(each.is_pruned for each in episodes) else "empty"
    elif new:
        state = "new"
    else:
        state = "grown" if events else "present"
    return Imported(
        file=read.name, state=state, source=read.source, size=read.size,
        episodes=tuple(each.id for each in episodes if not each.is_left_out), new_episodes=new,
        entries=sum(len(each.added) for each in episodes), events=events, warnings=tuple(read.troubles),
        n_warnings=read.n_troubles,
    )  # fmt: skip
