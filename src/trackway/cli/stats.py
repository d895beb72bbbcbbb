"""``trackway stats``: what episodes come to, per task, tool and model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._filters import filters
from trackway.cli._options import common, examples, opened, utc

if TYPE_CHECKING:
    from trackway.cli._print import Column, Screen, Span
    from trackway.read.stats import ModelRow, Spread, Stats, TaskRow, ToolRow
    from trackway.read.usage import Usage
    from trackway.store.base import Query
    from trackway.store.live import LiveStore

_MS: Final = 1_000_000
_DEFAULT_LIMIT: Final = 10
_NARROW: Final = 100
_NO_MATCH: Final = "no episode matches (hint: trackway ls without filters shows what is there)"


@click.command(
    epilog=examples(
        "trackway stats",
        "trackway stats --since 7d --by tool",
        "trackway stats --task 'flaky test' --outcome failure",
        "trackway stats --json | jq '.models[] | {model, cost: .usage.cost}'",
    )
)
@utc
@filters
@click.option("--by", type=click.Choice(["task", "tool", "model"]), help="This table only.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=_DEFAULT_LIMIT, show_default=True,
    help="At most so many rows a table; 0 is all. JSON has all.",
)  # fmt: skip
@common
def stats(
    *,
    as_json: bool,
    home: str | None,
    store: str | None,
    utc: bool,  # noqa: ARG001  how --since and --until are read
    by: str | None,
    limit: int,
    **filters: Any,  # noqa: ANN401  click hands over what the options say
) -> None:
    """Count episodes together: how they ended, what failed, what took long, what it cost.

    Costs are known from the provider, from [prices] in trackway.toml, or from the genai-prices package where it is
    installed; what nobody knows is left out and said. Quantiles are right to within 5 %.
    """
    from trackway.cli._print import Screen, talk, write_json
    from trackway.store.base import Query

    with opened(home, store) as live:
        found = _counted(live, Query(**filters))
    if as_json:
        import msgspec

        write_json(msgspec.to_builtins(found))
    elif not found.episodes:
        asked = any(value is not None for value in filters.values())
        talk(_NO_MATCH if asked else f"nothing is recorded in {live.key} yet (hint: trackway demo)")
    else:
        _show(Screen(), found, by, limit or None)


def _counted(live: LiveStore, query: Query) -> Stats:
    from trackway.cli._progress import progress
    from trackway.read.stats import Counting
    from trackway.recording import settings_file
    from trackway.recording.prices import pricer

    counting = Counting(pricer(settings_file.load(live.home).prices()))
    found = list(live.episodes(query))
    with progress("counting episodes", len(found)) as done:
        for summary in found:
            counting.add(summary, live.events(summary.id))
            done(1)
    return counting.stats()


def _show(screen: Screen, found: Stats, by: str | None, limit: int | None) -> None:
    from trackway.cli._print import Line, line, talk

    if by is None:
        screen.show(line(text, label=name) for name, text in _whole(found))
    tables: tuple[tuple[str, Callable[[Screen, Any], None], Sequence[Any]], ...] = (
        ("task", _tasks, found.tasks), ("tool", _tools, found.tools), ("model", _models, found.models),
    )  # fmt: skip
    for name, table, rows in tables:
        if by not in (None, name) or not rows:
            continue
        if by is None:
            screen.show([Line((), gutter=0)])
        table(screen, rows[:limit])
        screen.flush()
        if limit is not None and len(rows) > limit:
            talk(f"… {len(rows) - limit:,} more (--limit 0 shows all)")


def _whole(found: Stats) -> Iterable[tuple[str, str]]:
    from trackway.cli._text import bar, count, duration

    yield "episodes", f"{found.episodes:,}"
    for outcome, number in sorted(found.outcomes.items(), key=lambda each: -each[1]):
        yield outcome, f"{bar(number / found.episodes)} {number:,}"
    yield "size", f"{count(found.steps, 'step')} · {count(found.errors, 'error')} · {count(found.events, 'event')}"
    yield "time", f"{duration(found.duration.total * _MS)} in all"
    yield "tokens", _tokens(found.usage)
    yield "cost", _cost_said(found.usage)


def _tokens(usage: Usage) -> str:
    if usage.total is None:
        return "none told"
    parts = (
        ("in", usage.input),
        ("from cache", usage.cache_read),
        ("to cache", usage.cache_write),
        ("out", usage.output),
    )
    said = [f"{value:,} {name}" for name, value in parts if value]
    unknown = f" · {usage.unknown:,} of {usage.calls:,} calls told none" if usage.unknown else ""
    return f"{usage.total:,} ({', '.join(said)}){unknown}" if said else f"{usage.total:,}{unknown}"


def _cost_said(usage: Usage) -> str:
    if usage.cost is None:
        return "not known (hint: [prices] in trackway.toml, or pip install genai-prices)" if usage.total else "-"
    without = f", without {usage.unpriced:,} calls nobody knows the price of" if usage.is_partial else ""
    return f"{_cost(usage)} by {'; '.join(usage.cost_from)}{without}"


def _cost(usage: Usage) -> str:
    if usage.cost is None:
        return "-"
    return (
        f"{'≥ ' * usage.is_partial}${usage.cost:,.4f}"
        if usage.cost < 1
        else f"{'≥ ' * usage.is_partial}${usage.cost:,.2f}"
    )


def _tasks(screen: Screen, rows: Sequence[TaskRow]) -> None:
    from trackway.cli._print import Column

    columns = [
        Column("TASK", flexible=True), Column("EPISODES", right=True), Column(""), Column("SUCCESS", right=True),
        Column("SCORE", right=True), Column("REWARD", right=True), Column("STEPS", right=True),
        Column("ERR", right=True), Column("P50", right=True), Column("TOKENS", right=True), Column("COST", right=True),
    ]  # fmt: skip
    _table(screen, columns, rows, [_task(each) for each in rows], [each.episodes for each in rows], place=2)


def _task(row: TaskRow) -> list[Span]:
    said = sum(row.outcomes.get(each, 0) for each in ("success", "partial", "failure", "abandoned"))
    return [
        _text(row.task), _number(row.episodes), _text(f"{row.outcomes.get('success', 0) / said:.0%}" if said else "-"),
        _number(row.score), _number(row.reward), _number(row.steps), _errors(row.errors), _time(row.duration),
        _number(row.usage.total), _dim(_cost(row.usage)),
    ]  # fmt: skip


def _tools(screen: Screen, rows: Sequence[ToolRow]) -> None:
    from trackway.cli._print import Column

    columns = [
        Column("TOOL", flexible=True), Column("CALLS", right=True), Column(""), Column("ERR", right=True),
        Column("RATE", right=True), Column("P50", right=True), Column("P95", right=True), Column("TOTAL", right=True),
    ]  # fmt: skip
    cells = [
        [
            _text(each.tool), _number(each.calls), _errors(each.errors), _dim(f"{each.errors / each.calls:.0%}"),
            _time(each.duration), _time(each.duration, "p95"), _time(each.duration, "total"),
        ]
        for each in rows
    ]  # fmt: skip
    _table(screen, columns, rows, cells, [each.calls for each in rows], place=2)


def _models(screen: Screen, rows: Sequence[ModelRow]) -> None:
    from trackway.cli._print import Column

    columns = [
        Column("MODEL", flexible=True), Column("CALLS", right=True), Column(""), Column("ERR", right=True),
        Column("P50", right=True), Column("P95", right=True), Column("IN", right=True), Column("CACHED", right=True),
        Column("OUT", right=True), Column("COST", right=True),
    ]  # fmt: skip
    cells = [
        [
            _text(each.model or ("(unnamed)" if each.calls else "(reported)")), _number(each.calls),
            _errors(each.errors), _time(each.latency), _time(each.latency, "p95"), _number(each.usage.input),
            _number(each.usage.cache_read), _number(each.usage.output), _dim(_cost(each.usage)),
        ]
        for each in rows
    ]  # fmt: skip
    _table(screen, columns, rows, cells, [each.calls for each in rows], place=2)


def _table(
    screen: Screen,
    columns: list[Column],
    rows: Sequence[object],
    cells: list[list[Span]],
    sizes: list[int],
    *,
    place: int,
) -> None:
    """A table with a bar of each row's size among its cells."""
    from trackway.cli._text import bar

    most = max(sizes, default=0) or 1
    if screen.width < _NARROW:
        columns = columns[:place] + columns[place + 1 :]
    else:
        for i in range(len(rows)):
            cells[i].insert(place, _dim(bar(sizes[i] / most, 8)))
    screen.table(columns, cells)


def _text(text: str) -> Span:
    from trackway.cli._print import Span

    return Span(text)


def _dim(text: str) -> Span:
    from trackway.cli._print import Span

    return Span(text, "dim")


def _errors(number: int) -> Span:
    from trackway.cli._print import Span

    return Span(f"{number:,}", "bad" if number else "dim")


def _number(value: float | None) -> Span:
    from trackway.cli._text import number

    return _dim("-") if value is None else _text(f"{value:,}" if isinstance(value, int) else number(value))


def _time(spread: Spread, which: str = "p50") -> Span:
    from trackway.cli._text import duration

    value = getattr(spread, which) if spread.n else None
    return _dim(duration(None if value is None else value * _MS))
