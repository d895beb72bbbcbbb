"""``trackway ls``: the episodes of a store, filtered, sorted, one line each."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._filters import filters
from trackway.cli._options import common, examples, opened, utc
from trackway.store.base import SORTS, Query

if TYPE_CHECKING:
    from trackway.cli._print import Span
    from trackway.errors import StoreDamaged
    from trackway.schema.episode import EpisodeSummary
    from trackway.store.live import LiveStore

_DEFAULT_LIMIT: Final = 20
_COUNTED: Final = 1_000
"""How many episodes beyond the table are counted, so that a full store does not slow down a short list."""


@click.command(
    epilog=examples(
        "trackway ls",
        "trackway ls --since 7d --outcome failure",
        "trackway ls --state crashed --tool bash",
        "trackway ls --sort score --limit 0",
        "trackway ls --json | jq '.[0].id'",
        "trackway ls --tag nightly --ids | xargs -n1 trackway pack",
    )
)
@utc
@filters
@click.option("--state", type=click.Choice(["running", "crashed", "ended"]), help="This state only.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="started_at",
    show_default=True,
    help="Sort by this: the newest or highest first, tasks from A.",
)
@click.option("--reverse", is_flag=True, help="The other way around.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), help="At most so many; 0 is all. [default: 20; with --json: all]"
)
@click.option("--ids", is_flag=True, help="Ids alone, one a line: for scripts.")
@common
def ls(
    *,
    as_json: bool,
    home: str | None,
    store: str | None,
    utc: bool,
    state: str | None,
    reverse: bool,
    limit: int | None,
    ids: bool,
    **filters: Any,  # noqa: ANN401  click hands over what the options say
) -> None:
    """List episodes, the newest first."""
    query = Query(newest_first=(filters["sort"] != "task") != reverse, **filters)
    damage: list[StoreDamaged] = []
    with opened(home, store) as live:
        if as_json:
            from trackway.cli._print import write_array
            from trackway.schema.view import dumps, summary_fields

            found = _found(live, query, state, limit or None, damage=damage)
            write_array(dumps(summary_fields(each)) for each in found)
        elif ids:
            for each in _found(live, query, state, limit or None, damage=damage):
                click.echo(each.id)
        else:
            _table(live, query, state, _DEFAULT_LIMIT if limit is None else limit, utc=utc, damage=damage)
    if damage:  # one that cannot be read hides none of the others
        raise damage[0]


def _found(
    live: LiveStore, query: Query, state: str | None, limit: int | None, *, damage: list[StoreDamaged]
) -> Iterator[EpisodeSummary]:
    """What matches. The state is known of a summary only once it is read, so the limit counts after it."""
    import msgspec

    from trackway.store.live import readable

    if state is None:
        return readable(live.episodes(msgspec.structs.replace(query, limit=limit)), damage)
    return itertools.islice((each for each in readable(live.episodes(query), damage) if each.state == state), limit)


def _table(
    live: LiveStore, query: Query, state: str | None, limit: int, *, utc: bool, damage: list[StoreDamaged]
) -> None:
    from trackway.cli._print import Column, Screen, talk

    found = list(_found(live, query, state, limit + _COUNTED + 1 if limit else None, damage=damage))
    shown = found[:limit] if limit else found
    if not shown and damage:
        return
    if not shown:
        talk(_nothing(live, query, state))
        return
    screen, now = Screen(), time.time_ns()
    columns = [
        Column("ID"), Column("TASK", flexible=True), Column("AGENT/MODEL", flexible=True, most=28), Column("STATE"),
        Column("STEPS", right=True), Column("ERR", right=True), Column("TIME", right=True),
        Column("STARTED", right=not utc),
    ]  # fmt: skip
    screen.table(columns, (_row(each, now, utc=utc) for each in shown))
    screen.flush()
    more = len(found) - len(shown)
    if more:
        talk(f"… {'over ' * (more > _COUNTED)}{min(more, _COUNTED):,} more (--limit 0 shows all)")


def _row(each: EpisodeSummary, now: int, *, utc: bool) -> list[Span]:
    from trackway.cli._print import Span
    from trackway.cli._state import standing
    from trackway.cli._text import age, duration, moment
    from trackway.schema import ids

    started, ended = each.started_at, each.ended_at or (now if each.state == "running" else each.last_at)
    return [
        Span(ids.short(each.id), "tool"),
        Span(each.task),
        Span("/".join(part for part in (each.agent, each.model) if part) or "-", "dim"),
        standing(each),
        Span(f"{each.n_steps:,}"),
        Span(f"{each.n_errors:,}", "bad" if each.n_errors else "dim"),
        Span(duration(None if started is None or ended is None else ended - started), "dim"),
        Span(moment(started, utc=True) if utc else age(started, now), "dim"),
    ]


def _nothing(live: LiveStore, query: Query, state: str | None) -> str:
    if state is not None or query != Query(sort=query.sort, newest_first=query.newest_first):
        return "no episode matches (hint: trackway ls without filters shows what is there)"
    return f"nothing is recorded in {live.key} yet (hint: trackway demo records a first episode)"
