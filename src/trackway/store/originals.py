"""Files as they were before they were imported: cut into parts, each kept once, put together again byte for byte.

Where a file is cut depends on what it says there, not on how far it is from its start: copies, longer versions and
slices of a file have most of their parts in common with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec
from blake3 import blake3
from xxhash import xxh3_64_intdigest

from trackway.schema.canonical import name_of

LEAST: Final = 128 << 10
MOST: Final = 1 << 20
_USUALLY: Final = 256 << 10
"""How far beyond the least a piece goes, on average: a line is chosen with a chance that grows with its length."""
_LOOKED_AT: Final = 64


class OriginalFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an imported file. ``beside`` names the file it belongs to, where it says little alone."""

    name: str
    source: str
    size: int
    hash: str
    modified: int = 0
    beside: str | None = None
    warnings: int = 0


class Part(NamedTuple):
    """A piece of a file: its digest, its size, its bytes compressed."""

    digest: bytes
    size: int
    packed: bytes


class Incoming(NamedTuple):
    """A file to be kept: its parts in order, and the bytes in it that are about each episode, from and up to.

    ``instead`` is the hash of what it has grown from, which it holds whole.
    """

    file: OriginalFile
    parts: Iterable[Part]
    episodes: Mapping[str, tuple[int, int]]
    instead: str | None = None


class KeepsOriginals(Protocol):
    """What a store that files can be imported into does besides being a ``Store``."""

    def originals(self, episode_id: str) -> list[OriginalFile]:
        """The files that an episode came from, the largest first; none for one that was recorded."""
        ...

    def has_original(self, name: str) -> bool:
        """Whether a file is kept, by its hash; one with holes is."""
        ...

    def episodes_from(self, name: str) -> list[str]:
        """The episodes that came from a file, by its hash."""
        ...

    def original(self, name: str) -> Iterator[bytes]:
        """A file's bytes, by its hash; raises ``BlobNotFound`` where it, or a part of it, is not kept any more."""
        ...


def cut(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of some hundred KB, cut behind lines chosen by what they end with."""
    rest = b""
    for block in blocks:
        rest = rest + block if rest else block
        start = 0
        while len(rest) - start > MOST:
            stop = _end(rest, start)
            yield rest[start:stop]
            start = stop
        rest = rest[start:]
    start = 0
    while len(rest) - start > LEAST:
        stop = min(_end(rest, start), len(rest))
        yield rest[start:stop]
        start = stop
    if len(rest) > start:
        yield rest[start:]


def _end(body: bytes, start: int) -> int:
    """Where the piece that starts here ends; beyond the body where that is not to be told yet."""
    most = start + MOST
    before = body.find(b"\n", start + LEAST, most)
    while before >= 0 and (at := body.find(b"\n", before + 1, most)) >= 0:
        if xxh3_64_intdigest(body[max(before, at - _LOOKED_AT) : at]) % _USUALLY < at - before:
            return at + 1
        before = at
    return most


class Hashing:
    """The hash of everything that passes, and of the first ``at`` bytes of it."""

    def __init__(self, at: int = -1) -> None:
        self._hash = blake3()
        self._at = at
        self.size = 0
        self.earlier: str | None = None

    @classmethod
    def of(cls, blocks: Iterable[bytes]) -> str:
        """The hash of these blocks."""
        hashing = cls()
        for _ in hashing.passing(blocks):
            pass
        return hashing.name

    def passing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks."""
        for block in blocks:
            here = self._at - self.size
            if 0 <= here <= len(block) and self.earlier is None:
                self._hash.update(block[:here])
                self.earlier = name_of(self._hash.digest())
                self._hash.update(block[here:])
            else:
                self._hash.update(block)
            self.size += len(block)
            yield block

    @property
    def name(self) -> str:
        """The hash, as blobs are named."""
        return name_of(self._hash.digest())
