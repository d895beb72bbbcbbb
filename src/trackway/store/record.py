"""The journal's bytes: segments of records, written and read in one file so that the two cannot drift apart.

    segment   = header (64 bytes) record*
    header    = magic 8s | version u16 | 0 u16 | activation u32 | writer 16s | made at u64 | 0 | xxh3 u64 of these
    record    = length u32 | meta u32 | xxh3 u64 | body, padded with zeros to 8 bytes
    meta      = type u8 | codec flags u8 | schema u16
    body      = episode id (16 bytes) + event, or + blob number u32 | last u8 | bytes

In the place of codec flags, a blob part has its own number: 1 to 255 and round again, so that a missing one is noticed.

The checksum is seeded with the record's offset and meta, so bytes in a wrong place are not taken for a record. The
header of a record is stored after its body: a reader that sees it sees the body. Length 0 is where writing stopped.
``activation`` is 0 until the segment is taken into use; the order of activations is the order of writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from trackway.schema.codec import Encoded
from trackway.schema.version import JOURNAL, SCHEMA

MAGIC: Final = b"TRACKWAY"
SEGMENT_HEADER: Final = 64
RECORD_HEADER: Final = 16
EPISODE: Final = 16

EVENT: Final = 1
BLOB_PART: Final = 2
PLAIN_EVENT: Final = (SCHEMA << 16) | EVENT

_segment = Struct("<8sHHI16sQ16s")
_record = Struct("<IIQ")
_u64 = Struct("<Q")
_blob = Struct("<IB")
BLOB_HEADER: Final = _blob.size
pack_header = _record.pack
_unpack_header = _record.unpack_from


class Position(NamedTuple):
    """A place in a journal: everything before it is meant."""

    activation: int
    offset: int


START: Final = Position(0, 0)


class Record(NamedTuple):
    """One record as it was read: its meta word, its body, where it starts, where the next one does."""

    meta: int
    whole: bytes
    start: int = 0
    end: int = 0

    @property
    def type(self) -> int:
        """An event or a part of a blob."""
        return self.meta & 0xFF

    @property
    def flags(self) -> int:
        """How the codec must read it."""
        return (self.meta >> 8) & 0xFF

    @property
    def schema(self) -> int:
        """The schema it was written under."""
        return self.meta >> 16

    @property
    def episode(self) -> bytes:
        """The 16 bytes of the episode's id."""
        return self.whole[:EPISODE]

    @property
    def body(self) -> bytes:
        """What follows the episode's id."""
        return self.whole[EPISODE:]

    @property
    def encoded(self) -> Encoded:
        """The event, ready to decode."""
        return Encoded(self.whole[EPISODE:], self.flags, self.schema)


RawRecord = tuple[int, bytes, int, int]
"""A ``Record`` without its name; ``Record(*raw)`` gives it one."""


class Damage(NamedTuple):
    """Bytes that are no record. ``torn`` where a dead writer was still at it: never acknowledged, nothing is lost."""

    start: int
    end: int
    body: bytes
    torn: bool


class SegmentHeader(NamedTuple):
    """The stamp of a segment."""

    version: int
    activation: int
    writer: str
    made_at: int


def meta_of(kind: int, flags: int, schema: int) -> int:
    """A record's meta word."""
    return (schema << 16) | (flags << 8) | kind


def checksum(body: bytes, offset: int, meta: int) -> int:
    """A record's checksum, bound to its place."""
    return xxh3_64_intdigest(body, (offset << 32) | meta)


def padded(end: int) -> int:
    """The next multiple of 8: where the next record starts."""
    return (end + 7) & ~7


def pack_segment_header(writer: str, activation: int, made_at: int) -> bytes:
    """The 64 bytes at the start of a segment."""
    made_at = max(0, min(made_at, 2**64 - 1))  # for display: no clock, however wrong, keeps events from being recorded
    head = _segment.pack(MAGIC, JOURNAL, 0, activation, writer.encode(), made_at, b"")
    return head + _u64.pack(xxh3_64_intdigest(head))


def read_segment_header(segment: bytes) -> SegmentHeader | None:
    """The stamp; None where the segment was never taken into use, or its stamp is damaged."""
    if len(segment) < SEGMENT_HEADER:
        return None
    magic, version, _, activation, writer, made_at, _ = _segment.unpack_from(segment)
    intact = _u64.unpack_from(segment, SEGMENT_HEADER - 8)[0] == xxh3_64_intdigest(segment[: SEGMENT_HEADER - 8])
    if magic != MAGIC or not intact:
        return None
    return SegmentHeader(version, activation, writer.decode("ascii", "replace").rstrip("\0"), made_at)


def part_number(i: int) -> int:
    """What stands for the ``i``-th part of a blob, from 0 on; never 0, which older writers put."""
    return i % 255 + 1


def pack_blob_part(number: int, body: bytes, *, last: bool) -> bytes:
    """The body of a blob part, after the episode id."""
    return _blob.pack(number, last) + body


def unpack_blob_part(body: bytes) -> tuple[int, bool, bytes]:
    """Its number, whether it is the last, its bytes."""
    number, last = _blob.unpack_from(body)
    return number, bool(last), body[_blob.size :]


# A stretch is a piece of a segment; ``start`` is the offset of its first byte in the file, and of its first record.


def record_at(stretch: bytes, at: int, start: int) -> Record | None:
    """The record at an index of a stretch; None where there is none, or none that is whole."""
    if at + RECORD_HEADER > len(stretch):
        return None
    length, meta, digest = _unpack_header(stretch, at)
    end = at + RECORD_HEADER + length
    if length < EPISODE or end > len(stretch):
        return None
    whole = stretch[at + RECORD_HEADER : end]
    if xxh3_64_intdigest(whole, (start + at << 32) | meta) != digest:
        return None
    return Record(meta, whole, start + at, start + padded(end))


def live_records(stretch: bytes, start: int) -> Iterator[Record]:
    """The records up to the first place where none is: all there is to say of a living writer."""
    at = 0
    while (record := record_at(stretch, at, start)) is not None:
        yield record
        at = record.end - start


def walk(stretch: bytes, start: int) -> list[tuple[int, int]] | None:
    """Type and end of each record by the headers alone; None where they are not one chain followed by zeros only."""
    found = []
    at = 0
    while at + RECORD_HEADER <= len(stretch):
        length, meta, _ = _unpack_header(stretch, at)
        if not length:
            break
        at = padded(at + RECORD_HEADER + length)
        found.append((meta & 0xFF, start + at))
    return found if at <= len(stretch) and not stretch[at:].strip(b"\0") else None


class Scan(NamedTuple):
    """What a stretch holds: its records, as plain tuples of a ``Record``'s fields, and what is none."""

    records: list[RawRecord]
    damage: list[Damage]


def scan(stretch: bytes, start: int) -> Scan:
    """All records nobody writes to any more; the scan goes on behind a damaged one.

    Sealing lives in this loop: no call per record but the three it is about, and tuples the garbage collector can
    forget about.
    """
    records: list[RawRecord] = []
    damage: list[Damage] = []
    size, at = len(stretch), 0
    limit = min(size, padded(len(stretch.rstrip(b"\0"))))
    while at < limit:
        if at + RECORD_HEADER <= size:
            length, meta, digest = _unpack_header(stretch, at)
            end = at + RECORD_HEADER + length
            if length >= EPISODE and end <= size:
                whole = stretch[at + RECORD_HEADER : end]
                if xxh3_64_intdigest(whole, (start + at << 32) | meta) == digest:
                    end = (end + 7) & ~7
                    records.append((meta, whole, start + at, start + end))
                    at = end
                    continue
        resumed = _next_record(stretch, at + 8, start, limit)
        found = _measured_anew(stretch, at, resumed, start)
        if found is not None:
            records.append(found)
        else:
            damage.append(_damage(stretch, at, resumed, start, is_last=resumed == limit))
        at = resumed
    return Scan(records, damage)


def _measured_anew(stretch: bytes, at: int, end: int, start: int) -> RawRecord | None:
    """The record between two places whose length alone is damaged: the checksum is over the rest, and knows it."""
    if at + RECORD_HEADER > len(stretch):
        return None
    _, meta, digest = _unpack_header(stretch, at)
    for stop in range(min(end + 8, len(stretch)), max(at + RECORD_HEADER + EPISODE, end - 8) - 1, -1):
        whole = stretch[at + RECORD_HEADER : stop]
        if xxh3_64_intdigest(whole, (start + at << 32) | meta) == digest:
            return meta, whole, start + at, start + end
    return None


def _damage(stretch: bytes, at: int, end: int, start: int, *, is_last: bool) -> Damage:
    """Torn is what a dying writer left at the very end: a body that has no header yet, or a file that ends too soon."""
    length = int.from_bytes(stretch[at : at + 4], "little")
    overruns = at + RECORD_HEADER + length > len(stretch) and end >= len(stretch) - 7
    torn = is_last and (not stretch[at : at + RECORD_HEADER].strip(b"\0") or overruns)
    return Damage(start + at, start + end, stretch[at:end].rstrip(b"\0"), torn)


def _next_record(stretch: bytes, at: int, start: int, limit: int) -> int:
    while at < limit:
        length = int.from_bytes(stretch[at : at + 4], "little")
        if length and at + RECORD_HEADER + length <= len(stretch) and record_at(stretch, at, start) is not None:
            return at
        at += 8
    return limit
