"""A pack → the store: all of it or nothing, exactly once, whoever else is at work.

    check the whole file → hold seal.lock → one transaction: look what is here, add what is new

An episode that is here already is compared event by event, by writer and number, with what is sealed and with what its
journals hold; what differs is refused, what is new is added. The look happens inside the transaction that adds, so two
at once cannot both find the episode missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from blake3 import blake3

from trackway.errors import EpisodeNotFound, PackRefused
from trackway.schema import ids
from trackway.schema.canonical import canonical_json
from trackway.schema.codec import encode_fast, exact, tree_of
from trackway.schema.events import Event, Unknown
from trackway.schema.exact_json import line_of
from trackway.schema.version import SCHEMA
from trackway.store import erase, record, tail
from trackway.store.base import Batch
from trackway.store.live import LiveStore
from trackway.store.pack import Done, as_packed, blobs_of, nobody
from trackway.store.pack_reader import BlobPart, PackedEvent, PackFile
from trackway.store.record import BLOB_PART, EVENT, RawRecord

Key = tuple[str, int, int]


class Unpacked(NamedTuple):
    """What a pack held, how many of its events were new here, and whether anything of the episode was here before."""

    episode: str
    events: int
    added: int
    blobs: int
    missing: int
    was_here: bool

    @property
    def state(self) -> str:
        """``new``; ``grown`` where a part of it was here; ``present`` where all of it was."""
        return "new" if not self.was_here else "grown" if self.added else "present"


def unpack(file: BinaryIO, live: LiveStore, *, name: str | None = None, done: Done = nobody) -> Unpacked:
    """Store the episode in ``file``, which is read more than once; where this raises, nothing was changed.

    ``name`` is what errors call the file; ``done`` counts the bytes of its lines, each time they are read.
    """
    pack = PackFile(file, name or str(getattr(file, "name", "the pack")), done)
    found = pack.check()
    adding = _Adding(pack, live)
    with erase.holding(live.home):
        try:
            added = live.store.seal(Batch(adding.records()))
        except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise PackRefused(f"{pack.name}: the store cannot keep it: {error}", path=pack.name) from error
    return Unpacked(found.episode, found.events, added, found.blobs, found.missing, adding.was_here)


class _New(NamedTuple):
    """The lines of a pack that are not here yet, and the blobs they need."""

    lines: set[int]
    blobs: set[str]


class _Adding:
    """One pack on its way in."""

    def __init__(self, pack: PackFile, live: LiveStore) -> None:
        self.was_here = False
        self._pack = pack
        self._live = live

    def records(self) -> Iterator[RawRecord]:
        """What is to be added, as a journal would hand it over; once asked, it is inside the store's transaction."""
        known = self._known()
        self.was_here = bool(known)
        new = self._compare(known) if known else None
        if new is not None and not new.lines:
            return
        episode = ids.to_bytes(self._pack.episode)
        numbers: dict[str, int] = {}
        for each in self._pack.entries():
            if isinstance(each, BlobPart):
                if new is None or each.name in new.blobs:
                    number = numbers.setdefault(each.name, len(numbers) + 1)
                    body = record.pack_blob_part(number, each.body, last=each.last)
                    yield record.meta_of(BLOB_PART, 0, SCHEMA), episode + body, 0, 0
            elif new is None or each.number in new.lines:
                body, flags, schema = each.encoded
                yield record.meta_of(EVENT, flags, schema), episode + body, 0, 0

    def _known(self) -> dict[Key, bytes]:
        """What is here of the episode, sealed or in a journal that will be."""
        keys = _Keys()
        try:
            return {keys.of(each): _fingerprint(each) for each in self._live.events(self._pack.episode)}
        except EpisodeNotFound:
            return {}

    def _compare(self, known: dict[Key, bytes]) -> _New:
        new, keys, elsewhere = _New(set(), set()), _Keys(), self._recording_elsewhere()
        for each in self._pack.entries():
            if isinstance(each, BlobPart):
                continue
            found = known.get(keys.of(each.event))
            if found is None:
                if elsewhere(each.event.writer):
                    raise self._refused(each, "is not here, but may be in the journal of its writer, in another home")
                new.lines.add(each.number)
                new.blobs.update(blobs_of(each.event))
            elif found != _hash(each.line) and found != _fingerprint(each.event):
                raise self._refused(each, "is here with another content")
        return new

    def _recording_elsewhere(self) -> Callable[[str], bool]:
        """Whether a writer's journal belongs to this store and is not in this home: then it may hold what looks new."""
        try:
            self._live.store.episode(self._pack.episode)
        except EpisodeNotFound:
            return lambda _writer: False
        here = {each.writer for each in tail.writers(self._live.home, self._live.store.key)}
        return lambda writer: writer not in here and self._live.store.position(writer) != record.START

    def _refused(self, each: PackedEvent, why: str) -> PackRefused:
        return PackRefused(
            f"{self._pack.name}, line {each.number}: event {each.event.n} of writer {each.event.writer} {why}",
            hint=f"nothing was changed; see trackway show {ids.short(self._pack.episode)}",
            path=self._pack.name, line=each.number, episode=self._pack.episode,
        )  # fmt: skip


class _Keys:
    """What an event is known by: its writer and number, and which of them it is where a source numbered none."""

    def __init__(self) -> None:
        self._met: Counter[tuple[str, int]] = Counter()

    def of(self, event: Event) -> Key:
        self._met[event.writer, event.n] += 1
        return event.writer, event.n, self._met[event.writer, event.n]


def _fingerprint(event: Event) -> bytes:
    """Equal for equal events: most often that of their line. Newer fields and kinds may be spelled in more ways."""
    if isinstance(event, Unknown):
        return _hash(encode_fast(exact(tree_of(event.raw))))
    line = line_of(as_packed(event))
    return _hash(line if event.unknown_fields is None else canonical_json(json.loads(line)))


def _hash(body: bytes) -> bytes:
    return blake3(body).digest(16)
