"""A query as SQL: which summaries, in which order. Only names from this file go into the text, values go beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trackway.schema.episode import EpisodeSummary
from trackway.store.base import SORTS, Query
from trackway.store.frames import damaged

_LEAST, _MOST = -(2**63), 2**63 - 1
_WITH_WORD: Final = "SELECT episode FROM episode_{0}s WHERE {0} = (SELECT id FROM words WHERE word = ?)"
_BY_WORD: Final = f"id IN ({_WITH_WORD})"
_HAS_WORD: Final = f"EXISTS ({_WITH_WORD} AND episode = episodes.id)"
_ALL: Final = "episodes"
_NEWEST: Final = "(SELECT * FROM episodes ORDER BY started_at DESC, uuid DESC LIMIT {0}) AS episodes"
_WINDOW: Final = 20
"""How many times as many of the newest are looked at first, for those with a word that many have."""

Select = tuple[str, tuple[Any, ...]]
"""SQL, and its values."""


def select_among_newest(query: Query) -> Select | None:
    """A shorter way for the newest with a word: it holds where it finds as many as are asked for.

    The other way puts all that have the word in order first: fast for a rare word, slow for one that most have.
    """
    if not query.limit or (query.tool is None and query.tag is None) or query.sort != SORTS[0]:
        return None
    return _select(query, _NEWEST.format(query.limit * _WINDOW), _HAS_WORD) if query.newest_first else None


def select_summaries(query: Query) -> Select:
    """The SQL of a query, and its values."""
    return _select(query, _ALL, _BY_WORD)


def _select(query: Query, among: str, by_word: str) -> Select:
    filters: list[tuple[str, Any]] = [
        ("outcome IS NULL" if query.outcome == "none" else "outcome = ?", query.outcome),
        ("variant = ?", query.variant),
        ("agent = ?", query.agent),
        ("model = ?", query.model),
        (by_word.format("tool"), query.tool),
        (by_word.format("tag"), query.tag),
        ("started_at >= ?", _as_sql(query.since)),
        ("started_at < ?", _as_sql(query.until)),
        ("instr(casefold(task), casefold(?)) > 0", query.task),
    ]
    asked = [(clause, value) for clause, value in filters if value is not None]
    where = "WHERE " + " AND ".join(clause for clause, _ in asked) if asked else ""
    values = [value for clause, value in asked if "?" in clause]
    direction = "DESC" if query.newest_first else "ASC"
    order = f"ORDER BY {query.sort if query.sort in SORTS else SORTS[0]} {direction} NULLS LAST, uuid {direction}"
    limit = -1 if query.limit is None else query.limit
    return f"SELECT summary FROM {among} {where} {order} LIMIT ?", (*values, limit)  # noqa: S608


def _as_sql(at: int | None) -> int | None:
    """A time as SQL can hold it, as the column does."""
    return None if at is None else max(_LEAST, min(at, _MOST))


def as_asked(query: Query, found: Iterable[EpisodeSummary]) -> Iterator[EpisodeSummary]:
    """The summaries, held against the question: columns and indexes are there to search by, and may be damaged."""
    sign = -1 if query.newest_first else 1
    before: tuple[bool, int, str] | None = None
    for each in found:
        if query.sort == SORTS[0]:
            at = each.started_at or 0
            here = (each.started_at is None, sign * (_as_sql(at) or 0), each.id)
            if before is not None and not _follows(before, here, newest_first=query.newest_first):
                raise damaged("the list of episodes is out of order: some may be missing", episode=each.id)
            before = here
        if query.takes(each):
            yield each


def _follows(before: tuple[bool, int, str], here: tuple[bool, int, str], *, newest_first: bool) -> bool:
    if before[:2] != here[:2]:
        return before[:2] < here[:2]
    return before[2] > here[2] if newest_first else before[2] < here[2]
