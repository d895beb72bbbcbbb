"""``trackway search``: find events by their words, in all episodes, running ones included."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._options import common, examples, opened, utc

if TYPE_CHECKING:
    from trackway.cli._print import Line, Span
    from trackway.search.finding import Found, Group, Hit
    from trackway.search.snippets import Snippet

_LABELS: Final = {
    "episode_start": "task", "assistant_text": "said", "assistant_thinking": "thought", "tool_result": "result",
    "assistant_tool_call": "call", "model_call": "system", "model_result": "model", "file_change": "file",
    "test_run": "tests", "security_flag": "security", "verdict": "guard", "reflection": "lesson", "episode_end": "end",
}  # fmt: skip
_BLANK: Final = re.compile(r"\s+")
_LIKE_A_FIELD: Final = re.compile(r"(?<!\S)-?([A-Za-z_]+):\S")


class _Query(click.Command):
    """A command whose words may begin with a dash: ``-word`` is a part of the query, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options first, then the query as it is."""
        takes = {name: not each.is_flag for each in self.params if isinstance(each, click.Option) for name in each.opts}
        options: list[str] = []
        words: list[str] = []
        left = iter(args)
        for each in left:
            if each == "--":
                words += left
            elif each.startswith("--") or each in takes or each == "-h":
                options.append(each)
                options += itertools.islice(left, takes.get(each, False))
            else:
                words.append(each)
        return super().parse_args(ctx, [*options, "--", *words])


@click.command(
    cls=_Query,
    epilog=examples(
        "trackway search connection refused",
        "trackway search '\"no such file\" -docker'",
        "trackway search 'tool:bash error:true pytest' --newest",
        "trackway search 'migrat* path:src/*.py since:7d'",
        "trackway search 'outcome:failure (timeout OR deadlock)' --json",
    ),
)
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option("--newest", is_flag=True, help="The newest first, not the best.")
@click.option("-n", "--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Episodes; 0 is all.")
@click.option("--hits", type=click.IntRange(min=0), default=3, show_default=True, help="Events of each; 0 is all.")
@click.option("--rebuild", is_flag=True, help="Make the index anew first.")
@utc
@common
def search(
    query: tuple[str, ...],
    *,
    newest: bool,
    limit: int,
    hits: int,
    rebuild: bool,
    utc: bool,
    as_json: bool,
    home: str | None,
    store: str | None,
) -> None:
    """Find events by their words, in all episodes, running ones included.

    \b
    words             all of them in one event, in any case
    "a phrase"        next to each other
    prefix* gl?b*     patterns over words
    -word  OR  (…)    without; either; together
    tool:bash error:true path:src/*.py kind:user agent: source:
    task:"fix the" outcome:failure model: id: since:7d until:2026-01-01
    """  # noqa: D301  click's mark, not an escape
    from trackway.cli._print import talk, write_array
    from trackway.cli._progress import stages
    from trackway.errors import QueryRefused
    from trackway.schema.view import dumps
    from trackway.search.finding import Asked, find

    text = " ".join(query)
    asked = Asked(text, newest=newest, limit=limit, hits=hits, utc=utc)
    with opened(home, store) as live:
        try:
            with stages() as progress:
                found = find(live, asked, now=time.time_ns(), progress=progress, anew=rebuild)
        except QueryRefused as error:
            raise click.UsageError(str(error)) from error
    for each in found.notes:
        talk(each)
    if as_json:
        write_array(dumps(_fields(each)) for each in found.groups)
    elif found.groups:
        _show(found, utc=utc)
    else:
        talk(f"nothing matches {text!r}{_hint(text)}")
    if not found.groups:
        click.get_current_context().exit(1)


# --- for programs -----------------------------------------------------------------------------------------------------


def _fields(group: Group) -> dict[str, Any]:
    from trackway.schema.view import summary_fields

    hits = [_hit_fields(each) for each in group.hits]
    return {"episode": summary_fields(group.episode), "score": group.score, "hits": hits, "more": group.more}


def _hit_fields(hit: Hit) -> dict[str, Any]:
    from trackway.schema.view import instant

    cut = hit.snippet._asdict()
    return {**hit._asdict(), "at": instant(hit.at), "snippet": {**cut, "marks": [list(each) for each in cut["marks"]]}}


# --- for people -------------------------------------------------------------------------------------------------------


def _show(found: Found, *, utc: bool) -> None:
    from trackway.cli._print import Screen, talk
    from trackway.schema import ids

    screen, now = Screen(), time.time_ns()
    for group in found.groups:
        screen.show(_lines(group, now, utc=utc))
    screen.flush()
    if found.more:
        talk("more episodes match (--limit 0 shows all)")
    first = found.groups[0]
    best = max(first.hits, key=lambda each: (each.score, each.at))
    talk(f"trackway show {ids.short(first.episode.id)} --at {best.seq} opens the place")


def _hint(text: str) -> str:
    """What may have been meant: a field that is nearly one is looked for as text."""
    from difflib import get_close_matches

    from trackway.search.fields import FIELDS

    for name in _LIKE_A_FIELD.findall(text):
        near = get_close_matches(name.lower(), FIELDS, n=1)
        if near and name not in FIELDS:
            return f" (hint: {name}: is no field; did you mean {near[0]}:?)"
    return ""


def _lines(group: Group, now: int, *, utc: bool) -> Iterator[Line]:
    from trackway.cli._print import Line, Span, line
    from trackway.cli._state import standing
    from trackway.cli._text import age, cell, moment
    from trackway.schema import ids

    episode = group.episode
    who = "/".join(each for each in (episode.agent, episode.model) if each)
    when = moment(episode.started_at, utc=True) if utc else age(episode.started_at, now)
    said = [
        Span(ids.short(episode.id), "tool"),
        Span("  "),
        Span(cell(episode.task, 80) or "(no task)", "title"),
        Span("  "),
    ]
    said += [Span(f"{cell(who, 40)} · " if who else "", "dim"), standing(episode), Span(f" · {when}", "dim")]
    yield Line(tuple(said), gutter=0)
    for hit in group.hits:
        yield line(*_said(hit), label=f"{hit.seq:>8}")
    if group.more:
        yield line(Span(f"… {group.more:,} more (--hits 0)", "dim"))


def _said(hit: Hit) -> Iterator[Span]:
    from trackway.cli._print import Span

    yield Span(f"{_LABELS.get(hit.kind, hit.kind)}  ", "bad" if hit.error else "dim")
    yield from _highlighted(hit.snippet)


def _highlighted(cut: Snippet) -> Iterator[Span]:
    from trackway.cli._print import Span

    if not cut.begins:
        yield Span("… ", "dim")
    at = 0
    for start, end in cut.marks:
        yield Span(_BLANK.sub(" ", cut.text[at:start]))
        yield Span(_BLANK.sub(" ", cut.text[start:end]), "found")
        at = end
    yield Span(_BLANK.sub(" ", cut.text[at:]).rstrip())
    if not cut.ends:
        yield Span(" …", "dim")
