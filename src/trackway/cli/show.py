"""``trackway show``: one episode, as a transcript, as its events, or as one of the readings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from trackway.cli import _print
from trackway.cli._forms import FORMS
from trackway.cli._options import common, complete_episode, examples, lift, opened, utc
from trackway.schema.view import dumps, event_fields, summary_fields

if TYPE_CHECKING:
    from trackway.schema.episode import EpisodeSummary
    from trackway.schema.events import Event
    from trackway.store.live import LiveStore


@click.command(
    epilog=examples(
        "trackway show last",
        "trackway show 5f0c1d2e --full",
        "trackway show 5f0c1d2e --at 120",
        "trackway show last --follow",
        "trackway show last --as steps",
        "trackway show last --as trace > turns.jsonl",
        "trackway show last --as context | tail -1 | jq .messages",
        "trackway show last --json | jq '.events[].kind'",
    )
)
@click.argument("episode", metavar="ID", shell_complete=complete_episode)
@click.option(
    "--as", "form", type=click.Choice(["transcript", *FORMS]), default="transcript", show_default=True,
    help="steps, timeline: a table; trace: a FullTrace a line, one per turn; trajectory: steps with rewards, as JSON; "
    "context: what the model saw, a call a line; events: JSON lines.",
)  # fmt: skip
@click.option("-f", "--follow", is_flag=True, help="Go on with each new event until the episode ends.")
@click.option("--at", type=int, metavar="N", help="Event N, as search numbers them, and what stands around it.")
@click.option("--full", is_flag=True, help="Long texts whole, not only their ends.")
@lift
@utc
@common
def show(
    episode: str,
    *,
    form: str,
    follow: bool,
    at: int | None,
    full: bool,
    lift: bool,
    utc: bool,
    as_json: bool,
    home: str | None,
    store: str | None,
) -> None:
    """Show one episode: what was asked, thought, done, seen and said.

    ID is an episode's id, its short form, any beginning or end of it (four characters or more), or `last`.
    """
    if follow and form not in ("transcript", "events"):
        raise click.UsageError(f"--follow shows events as they come; --as {form} needs all of them")
    if at is not None and (follow or form not in ("transcript", "events")):
        raise click.UsageError(
            f"--at shows the events around one; --{'follow' if follow else f'as {form}'} shows others"
        )
    with opened(home, store, lift=lift) as live:
        summary = live.episode(live.resolve(episode))
        if at is not None:
            _show_at(live, summary, at, form="json" if as_json else form, full=full, utc=utc)
        elif follow:
            follow_episode(live, summary, in_json=as_json or form == "events", full=full, utc=utc)
        elif as_json:
            json_episode(live, summary, form=form)
        elif form == "transcript":
            transcript(live, summary, full=full, utc=utc)
        else:
            FORMS[form].show(_events(live, summary, form))


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


def _show_at(live: LiveStore, summary: EpisodeSummary, at: int, *, form: str, full: bool, utc: bool) -> None:
    """Print one event and those around it."""
    from trackway.cli._at import place_at
    from trackway.cli._transcript import Transcript, header

    place = place_at(live, summary, at)
    if form == "events":
        FORMS[form].show(place.shown())
    elif form == "json":
        before = f'{{"episode": {dumps(_with_ending(live, summary))},\n"at": {at},\n"events": '
        _print.write_array(FORMS["events"].lines(place.shown()), before=before, after="}")
    else:
        screen = _print.Screen()
        screen.show(header(summary, full=full, utc=utc))
        screen.show(Transcript(blob=live.blob, full=full, utc=utc).around(place, summary.n_events))


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
    from trackway.read import order

    return order.in_order(live.events(summary.id), summary.writers)


def _events(live: LiveStore, summary: EpisodeSummary, form: str) -> Iterable[Event]:
    """What a form reads: its own events in order as they come; a reading puts them in order itself."""
    return in_order(live, summary) if form == "events" else live.events(summary.id)


def json_episode(live: LiveStore, summary: EpisodeSummary, *, form: str = "events") -> None:
    """Print an episode for programs: ``{"episode": …}`` with its events, or with what is read from them."""
    form = "events" if form == "transcript" else form
    episode = _with_ending(live, summary)
    _print.write_episode(episode, FORMS[form].plural, FORMS[form].lines(_events(live, summary, form)))


def _with_ending(live: LiveStore, summary: EpisodeSummary) -> dict[str, Any]:
    from trackway.cli._state import ending_of

    return {**summary_fields(summary), "ending": ending_of(live, summary)}
