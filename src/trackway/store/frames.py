"""Events of one episode, packed: a msgpack array, compressed with zstd, checksummed.

The array is made by joining the events' own bytes, so nothing is encoded twice, and is decoded by one call into C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import zstandard
from xxhash import xxh3_64_intdigest

from trackway.errors import StoreDamaged
from trackway.schema.codec import ExtHook, decode_array, exact_hook
from trackway.schema.events import Event
from trackway.schema.version import SCHEMA
from trackway.store import forks

FULL_BYTES: Final = 256 << 10
FULL_EVENTS: Final = 1024
_LEVEL: Final = 3
_ARRAY32: Final = b"\xdd"
_SIGN: Final = 1 << 63
PLAIN_MARK: Final = SCHEMA
"""The mark of an event of this schema that needs no care."""


class Frame(NamedTuple):
    """Compressed events and what is needed to read them."""

    body: bytes
    n: int
    flags: int
    schema: int
    checksum: int


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
        """Its events; raises ``StoreDamaged`` where the bytes are not what was stored."""
        return decode_array(
            self.inflate(frame.body, frame.checksum, where), flags=frame.flags, schema=frame.schema, hook=hook
        )

    def deflate(self, body: bytes) -> bytes:
        """Compressed bytes, for blobs."""
        with self._lock:
            return self._compressor.compress(body)

    def inflate(self, body: bytes, checksum: int, where: str) -> bytes:
        """The bytes back, once their checksum holds."""
        if check(body) != checksum:
            raise StoreDamaged(f"the checksum of {where} does not hold", hint="trackway doctor", where=where)
        try:
            with self._lock:
                return self._decompressor.decompress(body)
        except zstandard.ZstdError as error:
            raise StoreDamaged(f"{where} does not decompress: {error}", hint="trackway doctor", where=where) from error
