"""A journal's sealed position, found again where the stored one is damaged: by the numbers that its writer gave.

They are dense, and every summary knows the last one of each writer that it counts. So the position is behind the last
event that is in the store already: sealing on from there can neither lose an event nor bring one twice.
"""

from __future__ import annotations

import json
from typing import Final

from trackway.schema.codec import decode
from trackway.store import erase, record, system, tail
from trackway.store.home import Home
from trackway.store.payloads import left_out
from trackway.store.record import EVENT, SEGMENT_HEADER, START, Position, Record
from trackway.store.sqlite import SqliteStore
from trackway.store.sums import sum_of
from trackway.store.tail import Piece

_DROP: Final = "DELETE FROM writers WHERE writer = ?"
_ADD: Final = """
    INSERT INTO writers (writer, about, segment, "offset", events, missing, checksum) VALUES (?, ?, ?, ?, ?, 0, ?)"""


def find_again(home: Home, store: SqliteStore, writer: str) -> None:
    """Store the position anew; of a writer without a journal nothing depends on it, and its row goes."""
    with erase.holding(home):
        folder = home.journal(writer)
        last = max((each.writers.get(writer, -1) for each in store.episodes()), default=-1)
        position = _behind(home, writer, last) if folder.path.is_dir() else None
        with store.changing() as connection:
            connection.execute(_DROP, (writer,))
            if position is not None:
                about = json.dumps(tail.read_about(folder))
                checksum = sum_of(writer, position, last + 1, 0)
                connection.execute(_ADD, (writer, about, *position, last + 1, checksum))


def _behind(home: Home, writer: str, last: int) -> Position:
    folder = home.journal(writer)
    position = START
    for segment in tail.segments(folder, alive=system.is_locked(folder.lock)):
        body = tail.read(Piece(segment.activation, segment.path, SEGMENT_HEADER, segment.end))
        for raw in record.scan(body, SEGMENT_HEADER).records:
            each = Record(*raw)
            if each.type != EVENT:
                continue
            if each.episode.strip(b"\0") and decode(each.encoded, left_out).n > last:
                return position
            position = Position(segment.activation, each.end)
    return position
