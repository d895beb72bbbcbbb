"""What ``stats`` shows as tables: tasks, tools, models, calls that were made again, files, days.

Each is as wide as a narrow screen allows; columns of which nobody knows anything are left out there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from trackway.cli._days import Day
from trackway.cli._print import Column, Screen, Span
from trackway.cli._text import bar, duration, number, safe, width
from trackway.read.durations import Spread
from trackway.read.tables import CallRow, FileRow, ModelRow, TaskRow, ToolRow
from trackway.read.usage import Spent
from trackway.schema.events import OUTCOMES

_MS: Final = 1_000_000
_WIDE: Final = 100
_BAR: Final = 8
_EXACT: Final = 10_000


class _Field(NamedTuple):
    """A column, what stands in it for each row, and whether a narrow screen can do without."""

    column: Column
    cell: Callable[[Any], Span]
    spare: bool = False


def _right(title: str, cell: Callable[[Any], Span], *, spare: bool = False) -> _Field:
    return _Field(Column(title, right=True), cell, spare)


def _bars(rows: Sequence[Any], size: Callable[[Any], int]) -> _Field:
    most = max(map(size, rows), default=0) or 1
    return _Field(Column("", most=_BAR), lambda row: Span(bar(size(row) / most, _BAR), "tool"))


def show_tasks(screen: Screen, rows: Sequence[TaskRow]) -> None:
    """All tries at a task."""
    _show(screen, rows, [
        _Field(Column("TASK", flexible=True), lambda row: Span(row.task)),
        _right("EPISODES", lambda row: _count(row.episodes)), _bars(rows, lambda row: row.episodes),
        _right("SUCCESS", _success), _right("SCORE", lambda row: _number(row.score), spare=True),
        _right("REWARD", lambda row: _number(row.reward), spare=True), _right("STEPS", lambda row: _count(row.steps)),
        _right("ERR", lambda row: _errors(row.errors)), _right("P50", lambda row: _time(row.duration), spare=True),
        _right("TOKENS", lambda row: _count(row.usage.total)),
        _right("COST", lambda row: Span(cost(row.usage), "dim"), spare=True),
    ])  # fmt: skip


def show_tools(screen: Screen, rows: Sequence[ToolRow]) -> None:
    """All calls of a tool."""
    _show(screen, rows, [
        _Field(Column("TOOL", flexible=True), lambda row: Span(row.tool)),
        _right("CALLS", lambda row: _count(row.calls)), _bars(rows, lambda row: row.calls),
        _right("ERR", lambda row: _errors(row.errors)),
        _right("RATE", lambda row: Span(share(row.errors, row.calls), "dim")),
        _right("P50", lambda row: _time(row.duration), spare=True),
        _right("P95", lambda row: _time(row.duration, "p95"), spare=True),
        _right("TOTAL", lambda row: _time(row.duration, "total"), spare=True),
    ])  # fmt: skip


def show_models(screen: Screen, rows: Sequence[ModelRow]) -> None:
    """All calls of a model."""
    _show(screen, rows, [
        _Field(Column("MODEL", flexible=True), _model),
        _right("CALLS", lambda row: _count(row.calls)), _bars(rows, lambda row: row.calls),
        _right("ERR", lambda row: _errors(row.errors), spare=True),
        _right("P50", lambda row: _time(row.latency), spare=True),
        _right("P95", lambda row: _time(row.latency, "p95"), spare=True),
        _right("IN", lambda row: _count(row.usage.input)), _right("CACHED", lambda row: _count(row.usage.cache_read)),
        _right("OUT", lambda row: _count(row.usage.output)),
        _right("COST", lambda row: Span(cost(row.usage), "dim"), spare=True),
    ])  # fmt: skip


def show_calls(screen: Screen, rows: Sequence[CallRow]) -> None:
    """Calls that were made again."""
    _show(screen, rows, [
        _Field(Column("CALL MADE AGAIN", flexible=True), _call), _right("TIMES", lambda row: _count(row.times)),
        _bars(rows, lambda row: row.times), _right("EPISODES", lambda row: _count(row.episodes)),
        _right("ERR", lambda row: _errors(row.failed)), _right("ALIKE", lambda row: _errors(row.alike)),
    ])  # fmt: skip


def show_files(screen: Screen, rows: Sequence[FileRow]) -> None:
    """Files that were edited."""
    others = len("EDITS") + len("EPISODES") + len("OUTSIDE") + _BAR + 8 + 4
    _show(screen, rows, [
        _Field(Column("FILE", flexible=True), lambda row: Span(_end(_at_home(row.path), screen.width - others))),
        _right("EDITS", lambda row: _count(row.edits)), _bars(rows, lambda row: row.edits + row.outside),
        _right("EPISODES", lambda row: _count(row.episodes)), _right("OUTSIDE", lambda row: _errors(row.outside)),
    ])  # fmt: skip


def show_days(screen: Screen, rows: Sequence[Day]) -> None:
    """Days on which it was worked."""
    _show(screen, rows, [
        _Field(Column("DAY"), lambda row: Span(row.day.isoformat())),
        _right("WORKED", lambda row: Span(hours(row.worked))), _bars(rows, lambda row: row.worked),
        _right("EVENTS", lambda row: _count(row.events)),
    ])  # fmt: skip


def _show(screen: Screen, rows: Sequence[Any], fields: list[_Field]) -> None:
    cells = [[each.cell(row) for row in rows] for each in fields]
    shown = [
        i for i, each in enumerate(fields)
        if screen.width >= _WIDE or not each.spare or any(cell.text not in ("-", "0") for cell in cells[i])
    ]  # fmt: skip
    screen.table([fields[i].column for i in shown], zip(*(cells[i] for i in shown), strict=True))


# --- cells ----------------------------------------------------------------------------------------------------------


def cost(spent: Spent) -> str:
    """Dollars; a sum that leaves something out says so."""
    if spent.cost is None:
        return "-"
    return f"{'≥ ' * spent.is_partial}${spent.cost:,.{4 if spent.cost < 1 else 2}f}"


def hours(milliseconds: int) -> str:
    """A length of work in hours, however many."""
    if milliseconds < 3_600_000:
        return duration(milliseconds * _MS)
    whole, minutes = divmod(milliseconds // 60_000, 60)
    return f"{whole:,}h {minutes:02d}m"


def share(part: int, whole: int) -> str:
    """A share of the whole in per cent; little is not nothing, and nearly all is not all."""
    if not whole:
        return "-"
    return "<1%" if 0 < part / whole < 0.005 else ">99%" if 0.995 <= part / whole < 1 else f"{part / whole:.0%}"


def compact(value: int) -> str:
    """A count in three figures or so, where it is large.

    >>> compact(9_999), compact(12_345), compact(1_234_567), compact(5_000_000_000)
    ('9,999', '12.3k', '1.23M', '5.00G')
    """
    if abs(value) < _EXACT:
        return f"{value:,}"
    for unit, power in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        size = value / power
        if size >= 0.9995:
            return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}{unit}"
    return f"{value:,}"


def _count(value: int | None) -> Span:
    return Span("-", "dim") if value is None else Span(compact(value))


def _errors(value: int) -> Span:
    return Span(compact(value), "bad" if value else "dim")


def _number(value: float | None) -> Span:
    return Span("-", "dim") if value is None else Span(number(value))


def _time(spread: Spread, which: str = "p50") -> Span:
    value = getattr(spread, which) if spread.n else None
    return Span(duration(None if value is None else value * _MS), "dim")


def _success(row: TaskRow) -> Span:
    said = sum(row.outcomes.get(each, 0) for each in OUTCOMES)
    return Span(f"{row.outcomes.get('success', 0) / said:.0%}" if said else "-")


def _model(row: ModelRow) -> Span:
    return Span(row.model or ("(unnamed)" if row.calls else "(reported)"))


def _call(row: CallRow) -> Span:
    return Span("(its words were not kept)", "dim") if row.tool is None else Span(f"{row.tool} {row.args or ''}")


def _at_home(path: str) -> str:
    """The path as a shell shows it."""
    home = os.path.expanduser("~")  # noqa: PTH111  text for a screen, of a path that need not be one here
    return f"~{path[len(home) :]}" if home != "/" and path.startswith(f"{home}/") else path


def _end(path: str, columns: int) -> str:
    """The end of a path: that is where two of them differ."""
    text = safe(" ".join(path[-columns * 4 :].split()))
    while width(text) > columns > 1:
        text = "…" + text[1 + max(1, width(text) - columns) :]
    return text
