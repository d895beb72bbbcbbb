"""``trackway prune``: delete episodes for good, by age, count, size or filter, with a receipt."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._filters import filters
from trackway.cli._options import common, examples, opened, there, utc

if TYPE_CHECKING:
    from trackway.cli._print import Line
    from trackway.store.choice import Criteria, Plan
    from trackway.store.live import LiveStore
    from trackway.store.progress import Progress
    from trackway.store.prune import Receipt
    from trackway.store.retention import Retention

_SHOWN: Final = 10


@click.command(
    epilog=examples(
        "trackway prune --older-than 90d --dry-run",
        "trackway prune --keep 1000 --yes",
        "trackway prune --max-size 5GB --protect gold",
        "trackway prune --task scratch --outcome failure",
        "trackway prune --yes      # what [retention] in trackway.toml says",
    )
)
@click.option("--older-than", metavar="AGE", help="Ended longer ago than 12h, 90d, 2w, 1y.")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="All but the newest N.")
@click.option("--max-size", metavar="SIZE", help="The oldest, until the store takes no more than 500MB, 5GB.")
@click.option("--protect", metavar="TAG", multiple=True, help="Never episodes with this tag either, beside keep.")
@filters
@click.option("--state", type=click.Choice(["crashed", "ended"]), help="This state only.")
@utc
@click.option("--dry-run", is_flag=True, help="Say what would go; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--scrub/--no-scrub", default=None, help="Write the file anew, or not. [default: up to 512 MiB]")
@common
def prune(
    *,
    as_json: bool,
    home: str | None,
    store: str | None,
    dry_run: bool,
    yes: bool,
    scrub: bool | None,
    **asked: Any,  # noqa: ANN401  click hands over what the options say
) -> None:
    """Delete episodes for good, and give their space back.

    Filters narrow down what is looked at; of that goes what any limit says, or all of it where there is no limit.
    Without either, what [retention] in trackway.toml says. Running episodes never go. Safe while agents record.
    """
    from trackway.cli._progress import stages
    from trackway.store.choice import choose
    from trackway.store.prune import prune as delete

    now = time.time_ns()
    with opened(home, store) as live:
        there(live, store)
        criteria = _criteria(live, asked)
        plan = choose(live, criteria, now)
        if dry_run:
            _tell_plan(live, plan, as_json=as_json)
            return
        if plan.going and not yes:
            _ask(live, plan, as_json=as_json)
        with stages() as progress:
            receipt = delete(live, criteria, now=now, whole=scrub, progress=progress)
            _purge_index(live, progress)
        _tell_receipt(live, receipt, as_json=as_json)


def _purge_index(live: LiveStore, progress: Progress) -> None:
    """Out of the search index too, where there is one; also what an earlier prune was killed before."""
    from trackway.cli._print import talk
    from trackway.errors import SearchUnavailable
    from trackway.search.catching_up import catch_up

    try:
        done = catch_up(live, progress=progress, purge_only=True)
        why = "another process is writing it" if done is None else None
    except SearchUnavailable as error:
        why = error.why
    if why is not None:
        talk(f"the search index was not purged: {why} (hint: the next search does, or remove {live.home.search})")


# --- what is asked for ----------------------------------------------------------------------------------------------


def _criteria(live: LiveStore, asked: dict[str, Any]) -> Criteria:
    from trackway.cli._filters import NAMES
    from trackway.recording.settings_file import load
    from trackway.store.base import Query
    from trackway.store.choice import Criteria

    settings = load(live.home)
    query = Query(**{name: asked[name] for name in NAMES})
    limits = _limits(asked, settings.retention)
    criteria = Criteria(query=query, state=asked["state"], limits=limits)
    if criteria == Criteria(limits=limits) and not limits.is_limit:
        if not settings.retention.is_limit:
            raise click.UsageError(
                "nothing says what to prune: name a limit (--older-than, --keep, --max-size) or a filter, "
                "or set [retention] in trackway.toml"
            )
        return Criteria(limits=settings.retention)
    return criteria


def _limits(asked: dict[str, Any], said: Retention) -> Retention:
    """The limits of the command line; what protects is the settings' word where the command line has none."""
    from trackway.errors import BadSetting
    from trackway.store.retention import Retention, age_ns, size_bytes

    for name, read in (("older_than", age_ns), ("max_size", size_bytes)):
        try:
            if asked[name] is not None:
                read(asked[name])
        except BadSetting as error:
            option = f"--{name.replace('_', '-')}"
            raise click.BadParameter(f"{asked[name]!r}: {error.hint}", param_hint=option) from error
    return Retention(
        max_age=asked["older_than"], max_episodes=asked["keep"], max_size=asked["max_size"],
        keep_tags=tuple(dict.fromkeys((*said.keep_tags, *asked["protect"]))),
    )  # fmt: skip


def _ask(live: LiveStore, plan: Plan, *, as_json: bool) -> None:
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("nobody is there to ask: --yes prunes without, --dry-run says what would go")
    _show_plan(live, plan)
    click.confirm(f"Delete {_episodes(len(plan.going))} for good?", abort=True, err=True)


# --- what is said ---------------------------------------------------------------------------------------------------


def _tell_plan(live: LiveStore, plan: Plan, *, as_json: bool) -> None:
    from trackway.cli._print import talk, write_json

    if as_json:
        listed = [each.id for each in plan.going]
        write_json(
            {"dry_run": True, "episodes": len(listed), **plan.total._asdict(), "spared": plan.spared, "ids": listed}
        )
        return
    if plan.going:
        _show_plan(live, plan)
    else:
        talk(f"nothing to prune{_spared(plan.spared, ' (spared: ', ')')}")


def _show_plan(live: LiveStore, plan: Plan) -> None:
    from trackway.cli._print import Column, Screen, Span, line
    from trackway.cli._size import size
    from trackway.cli._state import standing
    from trackway.cli._text import age
    from trackway.schema import ids

    screen, now = Screen(), time.time_ns()
    shown = [(each, live.episode(each.id)) for each in plan.going[:_SHOWN]]
    columns = [
        Column("ID"), Column("TASK", flexible=True), Column("STATE"), Column("EVENTS", right=True),
        Column("SIZE", right=True), Column("STARTED", right=True),
    ]  # fmt: skip
    screen.table(columns, (
        [
            Span(ids.short(each.id), "tool"), Span(summary.task), standing(summary), Span(f"{each.weight.events:,}"),
            Span(size(each.weight.bytes)), Span(age(summary.started_at, now), "dim"),
        ]
        for each, summary in shown
    ))  # fmt: skip
    if len(plan.going) > _SHOWN:
        screen.show([line(Span(f"… {len(plan.going) - _SHOWN:,} more", "dim"))._replace(gutter=0)])
    said = f"{_episodes(len(plan.going))}, {_weight(plan)}{_spared(plan.spared, '; spared: ', '')}"
    screen.show([line(said, label="would go", style="warn")])
    screen.flush()


def _tell_receipt(live: LiveStore, receipt: Receipt, *, as_json: bool) -> None:
    import msgspec

    from trackway.cli._print import Screen, line, talk, write_json
    from trackway.cli._text import count

    if as_json:
        write_json({"dry_run": False, "episodes": len(receipt.ids), **msgspec.to_builtins(receipt)})
        return
    if receipt.finished:
        talk(f"an interrupted prune is finished: {', '.join(receipt.finished)}")
    if not receipt.ids:
        talk(f"nothing to prune{_spared(receipt.spared, ' (spared: ', ')')}")
        return
    gone = f"{_episodes(len(receipt.ids))}, {count(receipt.events, 'event')}, {count(receipt.blobs, 'blob')}"
    said = [line(gone, label="pruned", style="good")]
    if receipt.spared:
        said.append(line(_spared(receipt.spared), label="spared"))
    said += _space(receipt)
    said.append(line(f"{receipt.prune} in {live.home.receipts}", label="receipt"))
    Screen().show(said)


def _space(receipt: Receipt) -> Iterator[Line]:
    """What the file took and takes, and what of the deleted may still be in it."""
    from trackway.cli._print import line
    from trackway.cli._size import size

    if receipt.before is None or receipt.after is None:
        return
    before, after = (each.store + each.wal for each in (receipt.before, receipt.after))
    yield line(f"{size(before)} → {size(after)}, {size(max(0, before - after))} given back", label="space")
    if not receipt.whole:
        note = "the file was not written anew: traces of what is gone may be left in pages in use (--scrub)"
        yield line(note, label="· note", style="warn")
    if not receipt.log_emptied:
        note = "somebody reads the store: its log still holds what is gone, until they are done and something is sealed"
        yield line(note, label="· note", style="warn")


def _episodes(number: int) -> str:
    from trackway.cli._text import count

    return count(number, "episode")


def _weight(plan: Plan) -> str:
    from trackway.cli._size import size
    from trackway.cli._text import count

    events, blobs, stored = plan.total
    return f"{count(events, 'event')}, {count(blobs, 'blob')}, {size(stored)}"


def _spared(spared: dict[str, int], before: str = "", after: str = "") -> str:
    said = ", ".join(f"{times:,} {why}" for why, times in spared.items())
    return f"{before}{said}{after}" if said else ""
