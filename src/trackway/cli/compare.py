"""``trackway compare``: two episodes side by side: where they part, and what each did after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._options import common, complete_episode, examples, opened

if TYPE_CHECKING:
    from trackway.cli._print import Line, Screen, Span
    from trackway.read.compare import Comparison
    from trackway.read.elements import Element
    from trackway.read.partings import Parting, Row
    from trackway.schema.episode import EpisodeSummary
    from trackway.schema.events import Event
    from trackway.store.live import LiveStore

_MARKS: Final = {"equal": "", "context": "~", "changed": "≠", "only_a": "-", "only_b": "+"}
_STYLES: Final = {"equal": "dim", "context": "warn", "changed": "warn", "only_a": "removed", "only_b": "added"}
_NAMES: Final = {
    "assistant_tool_call": "call", "tool_result": "result", "assistant_text": "text", "assistant_thinking": "thinking",
    "episode_end": "end",
}  # fmt: skip
_ROWS: Final = 30
_LEAD: Final = 24


@click.command(
    epilog=examples(
        "trackway compare 5f0c1d2e last",
        "trackway compare 5f0c1d2e last --level steps --all",
        "trackway compare 5f0c1d2e last --json | jq .first.reason",
    )
)
@click.argument("a", metavar="A", shell_complete=complete_episode)
@click.argument("b", metavar="B", shell_complete=complete_episode)
@click.option(
    "--level", type=click.Choice(["events", "steps"]), default="events", show_default=True,
    help="steps: actions and their results alone.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="What is equal, too.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=_ROWS, show_default=True,
    help="At most so many rows; 0 is all. JSON has all.",
)  # fmt: skip
@common
def compare(
    a: str, b: str, *, level: str, everything: bool, limit: int, as_json: bool, home: str | None, store: str | None
) -> None:
    """Compare two episodes: where they part, and what each did after.

    They are aligned by what happened, not by number: what one did in between does not make the rest differ. Ids, times
    and durations do not count. Exits 1 where they differ.
    """
    from trackway.cli._print import Screen, write_json

    with opened(home, store) as live:
        summaries = live.episode(live.resolve(a)), live.episode(live.resolve(b))
        found = _compared(live, *(list(live.events(each.id)) for each in summaries), level=level)
    if as_json:
        import msgspec

        sides = {name: _side(each) for name, each in zip("ab", summaries, strict=True)}
        write_json({**sides, **msgspec.to_builtins(found)})
    else:
        _show(Screen(), summaries, found, everything=everything, limit=limit or None)
    if not found.equal:
        raise click.exceptions.Exit(1)


def _compared(live: LiveStore, a: list[Event], b: list[Event], *, level: str) -> Comparison:
    """Compared by what was meant: redacted text is lifted where the key is here, and shown as it is kept."""
    from trackway.read.compare import compare as side_by_side

    if not live.home.key.exists() or not any(event.redacted for event in (*a, *b)):
        return side_by_side(a, b, level=level)
    from trackway.recording.key import tokens_to_lift
    from trackway.recording.lifting import lift

    tokens = tokens_to_lift(live.home)
    lifted = ([lift(event, tokens) for event in events] for events in (a, b))
    return _as_kept(side_by_side(*lifted, level=level), a, b)


def _as_kept(found: Comparison, a: list[Event], b: list[Event]) -> Comparison:
    import msgspec

    from trackway.read.elements import Elements

    lines = [line for events in (a, b) for line in Elements(events).lines.values()]
    texts = {element.event: element.text for line in lines for element in line.elements}

    def kept(side: Any) -> Any:  # noqa: ANN401  a row or a parting, which have their sides in common
        sides = {name: getattr(side, name) for name in ("a", "b")}
        shown = {
            name: each and msgspec.structs.replace(each, text=texts.get(each.event, each.text))
            for name, each in sides.items()
        }
        return msgspec.structs.replace(side, **shown)

    parted = [kept(each) for each in found.partings]
    rows = [kept(each) for each in found.rows]
    return msgspec.structs.replace(found, rows=rows, partings=parted, first=parted[0] if parted else None)


def _side(summary: EpisodeSummary) -> dict[str, Any]:
    return {"id": summary.id, "task": summary.task, "outcome": summary.outcome, "score": summary.score}


def _show(
    screen: Screen,
    summaries: tuple[EpisodeSummary, EpisodeSummary],
    found: Comparison,
    *,
    everything: bool,
    limit: int | None,
) -> None:
    from trackway.cli._print import Span, line
    from trackway.cli._state import standing
    from trackway.schema import ids

    for name, each in zip("ab", summaries, strict=True):
        screen.show([line(Span(ids.short(each.id), "tool"), f"  {each.task}  ", standing(each), label=name)])
    if found.first is None:
        screen.show(
            [line(Span(f"{found.counts['equal']:,} things happened, and the same in both", "good"), label="equal")]
        )
    else:
        screen.show(_parting(found.first))
        counts = ", ".join(f"{number:,} {_said(how)}" for how, number in found.counts.items() if number)
        screen.show([line(counts, label="in all")])
    _rows(screen, found, everything=everything, limit=limit)


def _said(how: str) -> str:
    return {"context": "equal in another context", "only_a": "only in a", "only_b": "only in b"}.get(how, how)


def _parting(first: Parting) -> Iterator[Line]:
    from trackway.cli._print import Span, line

    who = "" if first.agent is None else f" (agent {first.agent})"
    yield line(Span(first.reason + who, "warn"), label="they part")
    for name, each, style in (("a", first.a, "removed"), ("b", first.b, "added")):
        yield line(Span(f"{name}  ", "dim"), Span(_element(each), style))
    if first.again is not None:
        yield line(Span(f"after {first.only_a:,} of a and {first.only_b:,} of b both are together again", "dim"))
    else:
        yield line(Span("they do not come together again", "dim"))


def _element(each: Element | None) -> str:
    if each is None:
        return "has ended"
    return f"turn {each.turn}, step {each.step}: {_name(each)}  {_cut(each.text)}"


def _name(each: Element) -> str:
    return _NAMES.get(each.kind, each.kind.replace("_", " "))


def _cut(text: str) -> str:
    from trackway.cli._text import cell

    return cell(text, 160)


def _rows(screen: Screen, found: Comparison, *, everything: bool, limit: int | None) -> None:
    from trackway.cli._print import Column, Line, Span, talk

    rows = found.rows if everything else list(found.differences())
    if not rows:
        return
    screen.show([Line((), gutter=0)])
    columns = [
        Column("STEP", right=True), Column("A", flexible=True), Column(""), Column("STEP", right=True),
        Column("B", flexible=True),
    ]  # fmt: skip
    screen.table(columns, (_row(each) for each in rows[:limit]))
    screen.flush()
    if limit is not None and len(rows) > limit:
        talk(f"… {len(rows) - limit:,} more (--limit 0 shows all)")
    elif not everything and found.counts["equal"]:
        screen.show([Line((Span(f"{found.counts['equal']:,} equal ones are not shown (--all)", "dim"),), gutter=0)])


def _row(row: Row) -> list[Span]:
    from trackway.cli._print import Span

    style = _STYLES[row.how]
    texts = ["" if each is None else each.text for each in (row.a, row.b)]
    if row.how == "changed":
        texts = _where_they_differ(*texts)
    return [*_cells(row.a, texts[0], style), Span(_MARKS[row.how], style), *_cells(row.b, texts[1], style)]


def _where_they_differ(a: str, b: str) -> list[str]:
    """Both texts without a long beginning they have in common: a column is too short to get to the difference."""
    pairs = enumerate(zip(a, b, strict=False))
    same = next((i for i, (one, other) in pairs if one != other), min(len(a), len(b)))
    if a == b:
        return [f"{a} (of another action)", f"{b} (of another action)"]
    head = f"{a[:_LEAD].partition(' ')[0]} " if " " in a[:_LEAD] else ""  # the tool of a call
    return [a, b] if same <= _LEAD else [f"{head}…{each[same - _LEAD // 2 :]}" for each in (a, b)]


def _cells(each: Element | None, text: str, style: str) -> list[Span]:
    from trackway.cli._print import Span

    if each is None:
        return [Span(""), Span("")]
    return [Span(str(each.step), "dim"), Span(f"{_name(each)}: {text}", style)]
