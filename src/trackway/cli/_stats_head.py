"""What ``stats`` says before its tables: how many, when, how they ended, what was worked, what it took and cost."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from trackway.cli._days import Day, begins, day_of, sparkline
from trackway.cli._print import GUTTER, Line, Span, line
from trackway.cli._stats_tables import compact, cost, hours, share
from trackway.cli._text import bar, cell, count, pad
from trackway.read.tables import Stats
from trackway.read.usage import Usage
from trackway.schema.events import OUTCOMES

_NAME: Final = 24
_NAMES: Final = 4
_BARS: Final = 56
_BESIDE: Final = 26
_BAR: Final = 24
_PART: Final = 13


def head(found: Stats, days: list[Day], columns: int, *, utc: bool) -> Iterator[Line]:
    """The lines, none of them longer than the screen."""
    for label, text in _said(found, days, columns, utc=utc):
        wrapped = textwrap.wrap(text, max(20, columns - GUTTER), break_on_hyphens=False) or [""]
        for place, piece in enumerate(wrapped):
            yield line(piece, label="" if place else label)
        if label == "tokens":
            yield from _tokens(found.usage)


def _said(found: Stats, days: list[Day], columns: int, *, utc: bool) -> Iterator[tuple[str, str]]:
    yield "episodes", _episodes(found, utc=utc)
    if found.agents or found.sources:
        yield ("agents", _names(found.agents)) if found.agents else ("sources", _names(found.sources))
    if set(found.outcomes) - {"ended"}:
        yield "outcome", _outcomes(found)
    yield "steps", _steps(found)
    if days:
        yield "worked", _worked(found, days)
        yield from _bars(days, columns)
    if found.usage.calls or found.usage.reported:
        yield "tokens", _total(found.usage)
        yield "cost", _cost(found.usage)


def _bars(days: list[Day], columns: int) -> Iterator[tuple[str, str]]:
    room = min(_BARS, max(8, columns - GUTTER - _BESIDE))
    bars, each = sparkline(days, room)
    if len(bars) > 1:
        yield "days", f"{bars} since {begins(days, room)}" + f", {each} each" * (each > 1)


def _episodes(found: Stats, *, utc: bool) -> str:
    first, last = (day_of(each, utc=utc) for each in (found.first_at, found.last_at))
    when = "" if first is None or last is None else f" · {first}" if first == last else f" · {first} – {last}"
    untimed = f" · {found.untimed:,} of them at a time nobody knows" if found.untimed and first is not None else ""
    return f"{found.episodes:,}{when}{untimed}"


def _names(names: Mapping[str, int]) -> str:
    shown = [f"{cell(name, _NAME)} {times:,}" for name, times in list(names.items())[:_NAMES]]
    more = [f"{len(names) - _NAMES:,} more"] if len(names) > _NAMES else []
    return " · ".join([*shown, *more])


def _outcomes(found: Stats) -> str:
    order = [*OUTCOMES, "running", "crashed", "ended"]
    names = sorted(found.outcomes, key=lambda each: (order.index(each) if each in order else len(order), each))
    said = {"ended": "nobody said"}
    parts = ((said.get(name, cell(name, _NAME)), found.outcomes[name]) for name in names)
    return " · ".join(f"{name} {times:,} {bar(times / found.episodes, 6)}" for name, times in parts)


def _steps(found: Stats) -> str:
    failed = f" · {found.errors:,} failed ({share(found.errors, found.steps)})" if found.errors else ""
    return f"{found.steps:,}{failed} · {count(found.turns, 'turn')} · {count(found.events, 'event')}"


def _worked(found: Stats, days: list[Day]) -> str:
    busiest = max(days, key=lambda each: each.worked)
    most = f" · most on {busiest.day}: {hours(busiest.worked)}" if len(days) > 1 and busiest.worked else ""
    return f"{hours(found.worked)} on {count(len(days), 'day')}{most}"


def _total(usage: Usage) -> str:
    if usage.total is None:
        return "none told"
    cached = usage.cache_read or 0
    inside = (usage.input or 0) + cached + (usage.cache_write or 0)
    said = f" · {share(cached, inside)} of the input from cache" if cached else ""
    unknown = f" · {usage.unknown:,} of {count(usage.calls, 'call')} told none" if usage.unknown else ""
    return f"{usage.total:,}{said}{unknown}"


def _tokens(usage: Usage) -> Iterator[Line]:
    parts = [
        (name, value)
        for name, value in (
            ("input", usage.input), ("cache read", usage.cache_read), ("cache write", usage.cache_write),
            ("output", usage.output),
        )
        if value
    ]  # fmt: skip
    whole = sum(value for _, value in parts)
    wide = max((len(compact(value)) for _, value in parts), default=0)
    for name, value in parts:
        size = pad(compact(value), wide, right=True)
        named = Span(pad(name, _PART), "dim")
        shown = Span(pad(bar(value / whole, _BAR), _BAR), "tool")
        yield line(named, f"{size}  ", shown, Span(f" {share(value, whole)}", "dim"))


def _cost(usage: Usage) -> str:
    if usage.cost is None:
        return "not known (hint: [prices] in trackway.toml, or pip install genai-prices)" if usage.total else "-"
    without = f", without {count(usage.unpriced, 'call')} nobody knows the price of" if usage.is_partial else ""
    return f"{cost(usage)} by {'; '.join(usage.cost_from)}{without}"
