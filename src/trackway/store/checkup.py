"""Is the store's file sound: SQLite's own check, the layout number, and how much is in it; and is a journal whole.

Reads only.
"""

from __future__ import annotations

import contextlib
from typing import Final, NamedTuple

from trackway.store import record, tail
from trackway.store.record import SEGMENT_HEADER, Position
from trackway.store.sqlite import SqliteStore
from trackway.store.tail import Piece, WriterFolder

_COUNTS: Final = """
    SELECT (SELECT count(*) FROM episodes), (SELECT coalesce(sum(n_events), 0) FROM episodes),
           (SELECT count(*) FROM blobs)"""


_MISSING: Final = "SELECT writer, missing FROM writers WHERE missing > 0 AND typeof(missing) = 'integer'"


class Checkup(NamedTuple):
    """What was found; ``problems`` is empty where the file is sound."""

    version: int
    problems: tuple[str, ...]
    episodes: int
    events: int
    blobs: int


def missing(store: SqliteStore) -> list[tuple[str, int]]:
    """Writers of whose events some never came, and how many; their numbers tell, since there are no gaps in them."""
    rows = store._rows  # noqa: SLF001  the two are one subsystem
    if not any(name == "missing" for _, name, *_ in rows("PRAGMA table_info(writers)", ())):  # an older layout
        return []
    return [(str(writer), int(number)) for writer, number in rows(_MISSING, ())]


def damaged(dead: WriterFolder, sealed: Position) -> list[int]:
    """The sizes of the stretches of a dead writer's journal that are no records, but for what it was still writing."""
    found: list[int] = []
    for activation, path, size, _ in tail.segments(dead.folder):
        start = sealed.offset if activation == sealed.activation else SEGMENT_HEADER
        if activation < sealed.activation or start >= size:
            continue
        with contextlib.suppress(FileNotFoundError):  # sealed and unlinked in this moment
            body = tail.read(Piece(activation, path, start, size))
            found += [each.end - each.start for each in record.scan(body, start).damage if not each.torn]
    return found


def checkup(store: SqliteStore) -> Checkup | None:
    """Look at the whole file; None while there is none. Raises ``StoreTrouble`` where it cannot even be read."""
    rows = store._rows  # noqa: SLF001  the two are one subsystem
    version = rows("PRAGMA user_version", ())
    if not version or not version[0][0]:
        return None
    said = tuple(str(each) for (each,) in rows("PRAGMA quick_check(20)", ()))
    return Checkup(version[0][0], () if said == ("ok",) else said, *rows(_COUNTS, ())[0])
