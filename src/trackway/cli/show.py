"""``trackway show``: one episode, as a transcript, as traces, as steps or as its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli import _print
from trackway.cli._options import common, complete_episode, examples, opened, utc
from trackway.schema.view import dumps, event_fields, instant, splice, summary_fields

if TYPE_CHECKING:
    from trackway.read.steps import Step
    from trackway.schema.episode import EpisodeSummary
    from trackway.schema.events import Event
    from trackway.store.live import LiveStore

_MS: Final = 1_000_000


@click.command(
    epilog=examples(
        "trackway show last",
        "trackway show 5f0c1d2e --full",
        "trackway show last --follow",
        "trackway show last --as steps",
        "trackway show last --as trace > turns.jsonl",
        "trackway show last --json | jq '.events[].kind'",
    )
)
@click.argument("episode", metavar="ID", shell_complete=complete_episode)
@click.option(
    "--as", "form", type=click.Choice(["transcript", "trace", "steps", "events"]), default="transcript",
    show_default=True, help="trace: a FullTrace a line, one per turn; steps: a table; events: JSON lines.",
)  # fmt: skip
@click.option("-f", "--follow", is_flag=True, help="Go on with each new event until the episode ends.")
@click.option("--full", is_flag=True, help="Long texts whole, not only their ends.")
@utc
@common
def show(
    episode: str,
    *,
    form: str,
    follow: bool,
    full: bool,
    utc: bool,
    as_json: bool,
    home: str | None,
    store: str | None,
) -> None:
    """Show one episode: what was asked, thought, done, seen and said.

    ID is an episode's id, its short form, any beginning or end of it (four characters or more), or `last`.
    """
    if follow and form in ("trace", "steps"):
        raise click.UsageError(f"--follow shows events as they come; --as {form} needs all of them")
    with opened(home, store) as live:
        summary = live.episode(live.resolve(episode))
        if follow:
            follow_episode(live, summary, in_json=as_json or form == "events", full=full, utc=utc)
        elif as_json:
            json_episode(live, summary, form=form)
        elif form == "transcript":
            transcript(live, summary, full=full, utc=utc)
        else:
            _FORMS[form](live, summary)


def transcript(live: LiveStore, summary: EpisodeSummary, *, full: bool = False, utc: bool = False) -> None:
    """Print an episode for people."""
    _transcript(live, summary, in_order(live, summary), full=full, utc=utc)


def _transcript(
    live: LiveStore, summary: EpisodeSummary, events: Iterable[Event], *, full: bool, utc: bool, following: bool = False
) -> None:
    from trackway.cli._state import ending_of
    from trackway.cli._transcript import Transcript, header

    screen = _print.Screen()
    screen.show(header(summary, full=full, utc=utc))
    shown = Transcript(blob=live.blob, full=full, utc=utc)
    for event in events:
        screen.show(shown.lines(event))
        if following:
            screen.flush()
    now = live.episode(summary.id)
    if now.state != "ended":
        said = _print.Span(ending_of(live, now), "bad" if now.state == "crashed" else "tool")
        screen.show(
            [_print.Line((), gutter=0), _print.line(said, label="crashed" if now.state == "crashed" else "now")]
        )


def follow_episode(live: LiveStore, summary: EpisodeSummary, *, in_json: bool, full: bool, utc: bool) -> None:
    """Print what is there and then each new event, until the end."""
    if not in_json:
        _transcript(live, summary, live.follow(summary.id), full=full, utc=utc, following=True)
        return
    for event in live.follow(summary.id):
        _print.write_json(event_fields(event))
        _print.flush()


def in_order(live: LiveStore, summary: EpisodeSummary) -> Iterable[Event]:
    """The events in reading order. Those of one recording process are stored in it, and need not be held to sort."""
    events = live.events(summary.id)
    if len(summary.writers) == 1 and "" not in summary.writers:
        return events
    from trackway.read.order import ordered

    return ordered(events)


def json_episode(live: LiveStore, summary: EpisodeSummary, *, form: str = "events") -> None:
    """Print an episode for programs: ``{"episode": …}`` with its events, or with what is read from them."""
    from trackway.cli._state import ending_of

    episode = {**summary_fields(summary), "ending": ending_of(live, summary)}
    if form == "trace":
        _print.write_episode(episode, "traces", _traces(live, summary))
    elif form == "steps":
        _print.write_episode(episode, "steps", (dumps(_step_fields(each)) for each in _steps(live, summary)))
    else:
        _print.write_episode(episode, "events", (dumps(event_fields(each)) for each in in_order(live, summary)))


def _traces(live: LiveStore, summary: EpisodeSummary) -> Iterator[str]:
    from trackway.read.trace import trace

    for each in trace(live.events(summary.id)):
        yield each.to_json().decode()


def _steps(live: LiveStore, summary: EpisodeSummary) -> list[Step]:
    from trackway.read.steps import steps

    return steps(live.events(summary.id))


def _step_fields(step: Step) -> dict[str, Any]:
    fields = {name: getattr(step, name) for name in step.__struct_fields__ if name != "args"}
    return {**fields, **splice(step.args), "started_at": instant(step.started_at), "signature": step.signature}


def _as_events(live: LiveStore, summary: EpisodeSummary) -> None:
    for each in in_order(live, summary):
        _print.write_json(event_fields(each))


def _as_trace(live: LiveStore, summary: EpisodeSummary) -> None:
    for each in _traces(live, summary):
        _print.write_json_line(each)


def _as_steps(live: LiveStore, summary: EpisodeSummary) -> None:
    found = _steps(live, summary)
    if not found:
        _print.talk("this episode has no steps: no tool was called")
        return
    columns = [
        _print.Column("STEP", right=True), _print.Column("TURN", right=True), _print.Column("TOOL"),
        _print.Column("ARGS", flexible=True), _print.Column("RESULT"), _print.Column("TIME", right=True),
        _print.Column("OBSERVATION", flexible=True),
    ]  # fmt: skip
    _print.Screen().table(columns, (_step_row(each) for each in found))


def _step_row(step: Step) -> list[_print.Span]:
    from trackway.cli._blocks import brief
    from trackway.cli._text import duration

    result = step.status if step.exit_code is None else f"{step.status} {step.exit_code}"
    style = "warn" if step.status == "missing" else "bad" if step.error is not None else "good"
    return [
        _print.Span(str(step.index + 1), "dim"),
        _print.Span(str(step.turn), "dim"),
        _print.Span(step.tool if step.agent is None else f"{step.agent}: {step.tool}", "tool"),
        _print.Span(brief(step.args)),
        _print.Span(result, style),
        _print.Span(duration(None if step.duration_ms is None else step.duration_ms * _MS), "dim"),
        _print.Span(step.observation or "-"),
    ]


_FORMS: Final[dict[str, Callable[[LiveStore, EpisodeSummary], None]]] = {
    "events": _as_events,
    "trace": _as_trace,
    "steps": _as_steps,
}
