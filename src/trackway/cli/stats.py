"""``trackway stats``: what episodes come to, on one screen: time, tokens, cost, tools, repeated calls, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._filters import filters
from trackway.cli._options import common, examples, opened, utc

if TYPE_CHECKING:
    from trackway.cli._days import Day
    from trackway.cli._print import Screen
    from trackway.errors import StoreDamaged
    from trackway.read.tables import Stats
    from trackway.store.base import Query
    from trackway.store.live import LiveStore

_ROWS: Final = {"model": 4, "tool": 8, "call": 5, "file": 5, "task": 4}
"""How many rows of each table make one screen, in the order in which they are shown."""

_ALONE: Final = 10
_IN_JSON: Final = 100
_NO_MATCH: Final = "no episode matches (hint: trackway ls without filters shows what is there)"

Table = tuple[Callable[["Screen", Any], None], Sequence[Any], int]
"""How it is shown, its rows, and how many there are of them in all."""


@click.command(
    epilog=examples(
        "trackway stats",
        "trackway stats --since 7d --by tool",
        "trackway stats --by call -n 20",
        "trackway stats --task 'flaky test' --outcome failure",
        "trackway stats --json | jq '.models[] | {model, cost: .usage.cost}'",
    )
)
@utc
@filters
@click.option(
    "--by", type=click.Choice(["task", "tool", "model", "call", "file", "day"]), help="This table only."
)  # fmt: skip
@click.option(
    "-n", "--limit", type=click.IntRange(min=0),
    help="At most so many rows a table; 0 is all. [default: one screen; with --by: 10]",
)  # fmt: skip
@common
def stats(
    *,
    as_json: bool,
    home: str | None,
    store: str | None,
    utc: bool,
    by: str | None,
    limit: int | None,
    **filters: Any,  # noqa: ANN401  click hands over what the options say
) -> None:
    """Count episodes together: how they ended, what failed, what took long, what it cost.

    Costs are known from the provider, from [prices] in trackway.toml, or from the genai-prices package where it is
    installed; what nobody knows is left out and said. Quantiles are right to within 5 %.
    """
    from trackway.cli._print import Screen, talk, write_json
    from trackway.store.base import Query

    names = limit if limit is not None else _IN_JSON if as_json else _ALONE
    damage: list[StoreDamaged] = []
    with opened(home, store) as live:
        found = _counted(live, Query(**filters), None if as_json else names or None, names or None, damage)
    if as_json:
        write_json(_fields(found, utc=utc))
    elif found.episodes:
        _show(Screen(), found, by, limit, utc=utc)
    elif not damage:
        asked = any(value is not None for value in filters.values())
        talk(_NO_MATCH if asked else f"nothing is recorded in {live.key} yet (hint: trackway demo)")
    if damage:  # one that cannot be read hides none of the others
        raise damage[0]


def _counted(live: LiveStore, query: Query, tasks: int | None, names: int | None, damage: list[StoreDamaged]) -> Stats:
    from trackway.cli._digests import Digests
    from trackway.cli._progress import stages
    from trackway.read.stats import Counting
    from trackway.recording import settings_file
    from trackway.store.base import ALL
    from trackway.store.live import readable

    counting = Counting(table=settings_file.load(live.home).prices())
    digests = Digests(live)
    summaries = list(readable(live.episodes(query), damage))
    with stages() as progress:
        for summary, digest in digests.of(summaries, progress, whole=query == ALL and not damage):
            counting.take(summary, digest)
    damage += digests.damage
    return counting.stats(tasks=tasks, names=names, words=digests.words)


def _fields(found: Stats, *, utc: bool) -> dict[str, Any]:
    import msgspec

    from trackway.cli._days import days_of, hours_of

    said: dict[str, Any] = msgspec.to_builtins(found)
    del said["slots"]
    said["days"] = [
        {"day": each.day.isoformat(), "events": each.events, "worked": each.worked}
        for each in days_of(found.slots, utc=utc)
    ]
    said["hours"] = hours_of(found.slots, utc=utc)
    return said


def _show(screen: Screen, found: Stats, by: str | None, limit: int | None, *, utc: bool) -> None:
    from trackway.cli._days import days_of
    from trackway.cli._print import Line, talk
    from trackway.cli._stats_head import head

    days = days_of(found.slots, utc=utc)
    tables = _tables(found, days)
    if by is not None:
        show, rows, whole = tables[by]
        shown = rows[: (_ALONE if limit is None else limit) or None]
        show(screen, shown)
        screen.flush()
        if whole > len(shown):
            talk(f"… {whole - len(shown):,} more (--limit 0 shows all)")
        return
    screen.show(head(found, days, screen.width, utc=utc))
    for show, rows in _on_one_screen(tables, limit):
        screen.show([Line((), gutter=0)])
        show(screen, rows)
    screen.flush()


def _tables(found: Stats, days: list[Day]) -> dict[str, Table]:
    from trackway.cli import _stats_tables as tables

    return {
        "task": (tables.show_tasks, found.tasks, found.n_tasks),
        "tool": (tables.show_tools, found.tools, len(found.tools)),
        "model": (tables.show_models, found.models, len(found.models)),
        "call": (tables.show_calls, found.calls, max(found.n_calls, len(found.calls))),
        "file": (tables.show_files, found.files, found.n_files),
        "day": (tables.show_days, days[::-1], len(days)),
    }


def _on_one_screen(
    tables: dict[str, Table], limit: int | None
) -> Iterator[tuple[Callable[[Screen, Any], None], Sequence[Any]]]:
    """The tables that have something to say, and the rows that there is room for."""
    for name, few in _ROWS.items():
        show, rows, _ = tables[name]
        if name == "task":  # one try each says nothing that `ls` does not
            rows = [each for each in rows if each.episodes > 1]
        if rows:
            yield show, rows[: few if limit is None else limit or None]
