"""An episode → one portable file: JSON lines that any program reads, and that become the same episode elsewhere.

    header        {"trackway_pack":1,"episode":ID,"schema":N}
    blobs, event  a line each, in stored order; the blobs an event is the first to need stand right before it
    end           {"trackway_pack_end":1,"events":N,"blobs":N,"missing":N,"hash":"blake3:…"}, over all bytes before

Nothing in it depends on the moment, the machine or how far the store has come with its frames: the same events give the
same bytes. Written piece by piece; a blob is never held whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

import msgspec
from blake3 import blake3

from trackway.errors import BlobNotFound, PackRefused, StoreDamaged
from trackway.schema import ids
from trackway.schema.canonical import name_of
from trackway.schema.events import Event, FileChange, Unknown
from trackway.schema.exact_json import line_of
from trackway.schema.marks import base64_of, dumps
from trackway.schema.version import SCHEMA
from trackway.store.live import LiveStore
from trackway.store.tail import Part, Tails
from trackway.store.unsealed import blobs_in, parts_or_stored

VERSION: Final = 1
HEADER: Final = "trackway_pack"
END: Final = "trackway_pack_end"
PART: Final = 1 << 20
LONGEST_LINE: Final = 4 << 30
"""What a reader holds at most; no event is larger in practice, and no pack has a longer line."""


class Packed(NamedTuple):
    """What went into a pack. ``missing`` counts the files whose content the store does not have."""

    episode: str
    events: int = 0
    blobs: int = 0
    missing: int = 0
    size: int = 0


Done = Callable[[int], object]
"""Is told that so much more is done."""


def nobody(_more: int) -> None:
    """Does not want to know."""


def pack(live: LiveStore, episode_id: str, file: BinaryIO, *, done: Done = nobody) -> Packed:
    """Write an episode to ``file``, what is not sealed yet included; ``done`` counts its events."""
    return _Packing(live, live.resolve(episode_id), file).write(done)


class _Packing:
    """One pack on its way out."""

    def __init__(self, live: LiveStore, episode_id: str, file: BinaryIO) -> None:
        self._live = live
        self._episode = episode_id
        self._file = file
        self._hash = blake3()
        self._size = 0
        self._named: dict[str, bool] = {}
        self._unsealed = _UnsealedBlobs(live, ids.to_bytes(episode_id))

    def write(self, done: Done) -> Packed:
        """All of it, in order."""
        self._line(dumps({HEADER: VERSION, "episode": self._episode, "schema": SCHEMA}).encode())
        count = 0
        for event in self._live.events(self._episode):
            for name in blobs_of(event):
                if name not in self._named:
                    self._named[name] = self._blob(name)
            self._line(line_of(as_packed(event)))
            count += 1
            done(1)
        blobs = sum(self._named.values())
        packed = Packed(self._episode, count, blobs, len(self._named) - blobs)
        self._line(end_line(packed, self._hash.digest()))
        return packed._replace(size=self._size)

    def _line(self, line: bytes) -> None:
        if len(line) >= LONGEST_LINE:
            raise PackRefused(f"an event of {self._episode} takes {len(line):,} bytes: more than a pack's line may")
        for piece in (line, b"\n"):
            self._hash.update(piece)
            self._file.write(piece)
        self._size += len(line) + 1

    def _blob(self, name: str) -> bool:
        """Write a blob in parts; where nobody has it, write that. Returns whether it is there."""
        pieces = self._pieces(name)
        if pieces is None:
            self._line(dumps({"blob": name, "missing": True}).encode())
            return False
        digest = blake3()
        for part, more in _with_more(_parts(pieces)):
            digest.update(part)
            self._line(dumps({"blob": name, **spelled_part(part), **({"more": True} if more else {})}).encode())
        if name_of(digest.digest()) != name:
            raise StoreDamaged(f"blob {name} is not what its name says", hint="trackway doctor", where=name)
        return True

    def _pieces(self, name: str) -> Iterable[bytes] | None:
        # What a sealer moves meanwhile leaves the journal only once it is in the store: asked for last, it is found.
        for find in (self._live.store.blob, self._unsealed.blob, self._live.store.blob):
            try:
                pieces = iter(find(name))
                return itertools.chain([next(pieces, b"")], pieces)
            except (BlobNotFound, ValueError):  # not there; or no name of a blob at all
                continue
        return None


class _UnsealedBlobs:
    """The blobs of one episode that are in journals, by name; what is there is hashed once, not for each question."""

    def __init__(self, live: LiveStore, episode: bytes) -> None:
        self._tails = Tails(live.home, live.store.key)
        self._sealed = live.store.position
        self._episode = episode
        self._store = live.store
        self._found: dict[str, list[Part]] = {}

    def blob(self, name: str) -> Iterator[bytes]:
        """Its parts; raises ``BlobNotFound``."""
        if name not in self._found:
            self._look()
        if name not in self._found:
            raise BlobNotFound(f"no blob {name} in a journal", name=name)
        yield from parts_or_stored(self._found[name], self._store, name)

    def _look(self) -> None:
        self._tails.refresh(self._sealed)
        for records in self._tails.of(self._episode):
            self._found.update(blobs_in(records))


# --- lines --------------------------------------------------------------------------------------------------------


def as_packed(event: Event) -> Event:
    """The event without what a store adds: its number, and how the frame around an unknown kind is to be read."""
    if isinstance(event, Unknown):
        return msgspec.structs.replace(event, seq=None, exact=False)
    return msgspec.structs.replace(event, seq=None)


def blobs_of(event: Event) -> list[str]:
    """The names of the blobs an event needs: a file's content before and after."""
    if not isinstance(event, FileChange):
        return []
    return list(dict.fromkeys(each.hash for each in (event.before, event.after) if each is not None))


def spelled_part(part: bytes) -> dict[str, str]:
    """A part of a blob: text where it is text, else base64."""
    if b"\0" not in part:
        try:
            return {"text": part.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": base64_of(part)}


def end_line(packed: Packed, digest: bytes) -> bytes:
    """The last line; there is one spelling of it, so a change of it is seen too."""
    counts = {"events": packed.events, "blobs": packed.blobs, "missing": packed.missing}
    return dumps({END: VERSION, **counts, "hash": name_of(digest)}).encode()


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of one size, whatever the pieces: at least one, cut between characters of text."""
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        while len(waiting) > PART:
            cut = next((at for at in range(PART, PART - 4, -1) if waiting[at] & 0xC0 != 0x80), PART)
            yield bytes(waiting[:cut])
            del waiting[:cut]
    yield bytes(waiting)


def _with_more(parts: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    part = next(parts)
    for following in parts:
        yield part, True
        part = following
    yield part, False
