"""A query as SQL: which summaries, in which order. Only names from this file go into the text, values go beside it."""

from __future__ import annotations

from typing import Any, Final

from trackway.store.base import SORTS, Query

_BY_WORD: Final = "SELECT episode FROM episode_{0}s WHERE {0} = (SELECT id FROM words WHERE word = ?)"


def select_summaries(query: Query) -> tuple[str, tuple[Any, ...]]:
    """The SQL of a query, and its values."""
    filters: list[tuple[str, Any]] = [
        ("outcome IS NULL" if query.outcome == "none" else "outcome = ?", query.outcome),
        ("variant = ?", query.variant),
        ("agent = ?", query.agent),
        ("model = ?", query.model),
        (f"id IN ({_BY_WORD.format('tool')})", query.tool),
        (f"id IN ({_BY_WORD.format('tag')})", query.tag),
        ("started_at >= ?", query.since),
        ("started_at < ?", query.until),
        ("instr(casefold(task), casefold(?)) > 0", query.task),
    ]
    asked = [(clause, value) for clause, value in filters if value is not None]
    where = "WHERE " + " AND ".join(clause for clause, _ in asked) if asked else ""
    values = [value for clause, value in asked if "?" in clause]
    direction = "DESC" if query.newest_first else "ASC"
    order = f"ORDER BY {query.sort if query.sort in SORTS else SORTS[0]} {direction} NULLS LAST, uuid {direction}"
    limit = -1 if query.limit is None else query.limit
    return f"SELECT summary FROM episodes {where} {order} LIMIT ?", (*values, limit)  # noqa: S608
