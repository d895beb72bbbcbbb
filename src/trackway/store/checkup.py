"""Is the store's file sound: SQLite's own check, the layout number, and how much is in it. Reads only."""

from __future__ import annotations

from typing import Final, NamedTuple

from trackway.store.sqlite import SqliteStore

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


def checkup(store: SqliteStore) -> Checkup | None:
    """Look at the whole file; None while there is none. Raises ``StoreTrouble`` where it cannot even be read."""
    rows = store._rows  # noqa: SLF001  the two are one subsystem
    version = rows("PRAGMA user_version", ())
    if not version or not version[0][0]:
        return None
    said = tuple(str(each) for (each,) in rows("PRAGMA quick_check(20)", ()))
    return Checkup(version[0][0], () if said == ("ok",) else said, *rows(_COUNTS, ())[0])
