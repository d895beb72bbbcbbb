"""Events of one episode, packed: a msgpack array, compressed with zstd, checksummed.

The array is made by joining the events' own bytes, so nothing is encoded twice, and is decoded by one call into C. The
checksum is seeded with the place: whole bytes that turn up under another episode, number or flag are not believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import zstandard
from xxhash import xxh3_64_intdigest

from trackway.errors import StoreDamaged
from trackway.schema.codec import Encoded, ExtHook, decode, decode_array, exact_hook, split_array
from trackway.schema.events import Event
from trackway.schema.version import SCHEMA
from trackway.store import forks

FULL_BYTES: Final = 256 << 10
FULL_EVENTS: Final = 1024
_LEVEL: Final = 2
_ARRAY32: Final = b"\xdd"
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_EPISODES: Final = 0x9E3779B97F4A7C15
_SEQS: Final = 0xC2B2AE3D27D4EB4F
_CODEC: Final = 0xFF
BOUND: Final = 1 << 8
"""Beside the codec's flags: the checksum is seeded with the place. Formats 1 and 2 wrote without."""

PLAIN_MARK: Final = SCHEMA
"""The mark of an event of this schema that needs no care."""


class Frame(NamedTuple):
    """Compressed events and what is needed to read them."""

    body: bytes
    n: int
    flags: int
    schema: int
    checksum: int

    def bound(self, episode: int, seq: int) -> Frame:
        """The same, to be believed in this place only."""
        checksum = check_at(self.body, episode, seq=seq, mark=mark_of(self.flags, self.schema))
        return self._replace(flags=self.flags | BOUND, checksum=checksum)


def array_of(bodies: Sequence[bytes]) -> bytes:
    """The msgpack array of these events."""
    return b"".join((_ARRAY32, len(bodies).to_bytes(4, "big"), *bodies))


def mark_of(flags: int, schema: int) -> int:
    """How an event's bytes must be read, in one number."""
    return flags << 16 | schema


def split_mark(mark: int) -> tuple[int, int]:
    """Flags and schema again."""
    return mark >> 16, mark & 0xFFFF


def signed(number: int) -> int:
    """An unsigned 64-bit number as SQL has it."""
    return number - (1 << 64) if number >= _SIGN else number


def check(body: bytes) -> int:
    """The checksum kept beside stored bytes."""
    return signed(xxh3_64_intdigest(body))


def check_at(body: bytes, episode: int, *, seq: int, mark: int) -> int:
    """The checksum of events in their place: the number of their episode's row, of their first event, their mark."""
    return signed(xxh3_64_intdigest(body, (episode * _EPISODES + seq * _SEQS + mark) & _ALL))


def is_intact(frame: Frame, episode: int, seq: int) -> bool:
    """Whether the bytes, of a frame or of a tail row, are what was stored in this place."""
    body, _, flags, schema, checksum = frame
    if type(body) is not bytes or type(flags) is not int or type(schema) is not int:
        return False  # a damaged page has other types
    if flags & BOUND:
        return check_at(body, episode, seq=seq, mark=mark_of(flags & _CODEC, schema)) == checksum
    return check(body) == checksum


def believed(frame: Frame, episode: int, seq: int, *, where: str = "it") -> Frame:
    """The frame with the codec's flags alone; raises ``StoreDamaged`` where it is not what was stored here."""
    if not is_intact(frame, episode, seq):
        raise damaged(f"the checksum of {where} does not hold", where=where)
    return frame._replace(flags=frame.flags & _CODEC)


def damaged(what: str, **operands: object) -> StoreDamaged:
    """Something stored that is not what it was."""
    return StoreDamaged(what, hint="trackway verify tells how far it goes", **operands)


class Packer:
    """Packs and unpacks frames. The library's objects serve one thread at a time, hence the lock."""

    def __init__(self) -> None:
        self._lock = forks.lock_of(self, "_lock")
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, bodies: Sequence[bytes], marks: Sequence[int]) -> Frame:
        """One frame of these events; it must be read as its most demanding one."""
        body = self.deflate(array_of(bodies))
        flags = schema = 0
        for each in set(marks):
            flags |= each >> 16
            schema = max(schema, each & 0xFFFF)
        return Frame(body, len(bodies), flags, schema, check(body))

    def unpack(self, frame: Frame, *, where: str, hook: ExtHook = exact_hook) -> list[Event]:
        """The events of a frame that is believed; raises ``StoreDamaged`` where there are not so many."""
        events = decode_array(self.expand(frame.body, where), flags=frame.flags, schema=frame.schema, hook=hook)
        if len(events) != frame.n:
            raise damaged(f"{where} holds {len(events)} events, not {frame.n}", where=where)
        return events

    def unpack_singly(self, frame: Frame, skip: int, *, where: str, hook: ExtHook) -> Iterator[Event]:
        """The same from the one at ``skip`` on, one by one: each may be large once its values are back in it."""
        bodies = split_array(self.expand(frame.body, where))
        if len(bodies) != frame.n:
            raise damaged(f"{where} holds {len(bodies)} events, not {frame.n}", where=where)
        for body in bodies[skip:]:
            yield decode(Encoded(body, frame.flags, frame.schema), hook)

    def deflate(self, body: bytes) -> bytes:
        """Compressed bytes, for blobs."""
        with self._lock:
            return self._compressor.compress(body)

    def inflate(self, body: bytes, checksum: int, where: str) -> bytes:
        """The bytes back, once their checksum holds."""
        if type(body) is not bytes or check(body) != checksum:
            raise damaged(f"the checksum of {where} does not hold", where=where)
        return self.expand(body, where)

    def expand(self, body: bytes, where: str) -> bytes:
        """The bytes back, their checksum known to hold."""
        try:
            with self._lock:
                return self._decompressor.decompress(body)
        except zstandard.ZstdError as error:
            raise damaged(f"{where} does not decompress: {error}", where=where) from error
