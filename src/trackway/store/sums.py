"""Small stored things that carry their own checksum: a summary, a position.

A summary is ``0xc1`` (which no msgpack begins with), xxh3-64 of the rest, little-endian, and the rest. Formats 1 and 2
kept the rest alone; it is read as it is.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from xxhash import xxh3_64_intdigest

from trackway.errors import StoreDamaged
from trackway.store.frames import check, damaged
from trackway.store.record import Position

_MARK: Final = b"\xc1"
_SUM: Final = 8
_START: Final = len(_MARK) + _SUM


def with_sum(body: bytes) -> bytes:
    """The bytes with their checksum before them."""
    return b"".join((_MARK, xxh3_64_intdigest(body).to_bytes(_SUM, "little"), body))


def without_sum(stored: bytes) -> bytes:
    """The bytes again; raises ``StoreDamaged`` where they are others."""
    if type(stored) is not bytes:
        raise no_summary("it is no bytes")
    if not stored.startswith(_MARK):
        return stored
    body = stored[_START:]
    if xxh3_64_intdigest(body).to_bytes(_SUM, "little") != stored[1:_START]:
        raise no_summary("its checksum does not hold")
    return body


def no_summary(why: str) -> StoreDamaged:
    """Why a summary cannot be read, and what to do."""
    hint = "trackway verify --fix makes it again from its events"
    return StoreDamaged(f"the summary of an episode cannot be read: {why}", hint=hint)


def sum_of(writer: str, position: Position, events: int, missing: int) -> int:
    """The checksum of what is known of a writer's journal."""
    return check(f"{writer} {position.activation} {position.offset} {events} {missing}".encode())


class Reached(NamedTuple):
    """How far a writer's journal is in the store: up to where, how many events that were, how many never came."""

    position: Position
    events: int | None = None
    missing: int = 0


def reached(writer: str, row: tuple[Any, ...]) -> Reached:
    """From a row of ``writers``, all columns of it; raises ``StoreDamaged`` where it is not what was written."""
    _, _, _, activation, offset, *more = row
    events, missing, checksum = more or (None, None, None)
    if type(activation) is not int or type(offset) is not int:
        raise damaged(f"the position of writer {writer} is none", writer=writer)
    position = Position(activation, offset)
    if checksum is None and events is None and missing is None:  # written by an older trackway
        return Reached(position)
    if type(events) is not int or type(missing) is not int or sum_of(writer, position, events, missing) != checksum:
        raise damaged(f"the checksum of the position of writer {writer} does not hold", writer=writer)
    return Reached(position, events, missing)
