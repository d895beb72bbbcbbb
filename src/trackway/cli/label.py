"""``trackway label``: a judgement added to an episode, with who gave it and when. Labels are added, never changed."""

from __future__ import annotations

from typing import Any

import click

from trackway.cli._options import common, complete_episode, examples
from trackway.schema.events import OUTCOMES


@click.command(
    epilog=examples(
        "trackway label last --outcome failure --note 'it only looked done'",
        "trackway label 5f0c1d2e --score 0.5 --tag reviewed --tag keep",
        "trackway label last --relation depends_on --to 5f0c1d2e",
    )
)
@click.argument("episode", metavar="ID", shell_complete=complete_episode)
@click.option("--outcome", type=click.Choice(OUTCOMES), help="How it really ended.")
@click.option("--score", type=float, help="A number for the whole of it.")
@click.option("--tag", "tags", multiple=True, help="A word to find it by; may be given again.")
@click.option("--note", metavar="TEXT", help="A remark.")
@click.option("--relation", metavar="WORD", help="How it stands to another episode: depends_on, follows, …")
@click.option("--to", metavar="ID", shell_complete=complete_episode, help="The other episode.")
@click.option("--by", metavar="WHO", help="Who says so. [default: your user name]")
@common
def label(episode: str, *, as_json: bool, home: str | None, store: str | None, by: str | None, **said: Any) -> None:  # noqa: ANN401
    """Add an outcome, score, tag, remark or relation to an episode.

    ID is any episode, running or long over. The last outcome and the last score given are the ones that count.
    """
    from trackway.cli._options import opened
    from trackway.cli._print import talk, write_json
    from trackway.errors import BadSetting
    from trackway.schema.view import summary_fields

    _check(said)
    with opened(home, store) as live:
        name = live.resolve(episode)
        other = None if said["to"] is None else live.resolve(said["to"])
    if other == name:
        raise BadSetting("an episode has no relation to itself", hint="name another one with --to")
    count = _record(name, other, home=home, store=store, by=by or _user(), **said)
    with opened(home, store) as live:
        summary = live.episode(name)
    if as_json:
        write_json(summary_fields(summary))
    else:
        talk(_said(summary.id, count))


def _check(said: dict[str, Any]) -> None:
    if (said["relation"] is None) != (said["to"] is None):
        raise click.UsageError("--relation and --to go together: --relation depends_on --to ID")
    if any(not tag.strip() for tag in said["tags"]) or (said["note"] is not None and not said["note"].strip()):
        raise click.UsageError("a tag or a note says something")
    if said["score"] is not None and said["score"] != said["score"]:
        raise click.UsageError("a score is a number, and nan is none")
    if not any(value not in (None, ()) for value in said.values()):
        raise click.UsageError("nothing to say: give --outcome, --score, --tag, --note, or --relation with --to")


def _record(
    name: str,
    other: str | None,
    *,
    home: str | None,
    store: str | None,
    by: str,
    outcome: str | None,
    score: float | None,
    tags: tuple[str, ...],
    note: str | None,
    relation: str | None,
    **_: Any,  # noqa: ANN401
) -> int:
    """Record the labels; returns how many. They are in the store when this returns, or an error says why not."""
    from trackway.errors import BadSetting, StoreUnavailable
    from trackway.recording.recorder import Recorder
    from trackway.recording.settings import is_disabled

    with Recorder(home, store=store) as recorder:
        if is_disabled(recorder.home):
            raise BadSetting("recording is switched off, labels too", hint="unset TRACKWAY_DISABLED")
        count = 0
        first, *more = tags or (None,)
        if (outcome, score, first, note) != (None, None, None, None):
            recorder.label(name, outcome=outcome, score=score, tag=first, comment=note, by=by)
            count += 1
        for tag in more:
            recorder.label(name, tag=tag, by=by)
            count += 1
        if relation is not None and other is not None:
            recorder.relate(name, relation, other, by=by)
            count += 1
        if recorder.lost(name):
            raise StoreUnavailable("the label could not be recorded", hint="trackway doctor")
    return count


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have
        import os

        return str(os.getuid())


def _said(episode_id: str, count: int) -> str:
    from trackway.schema import ids

    name = ids.short(episode_id)
    return f"{count} label{'s' * (count != 1)} added to {name}; trackway show {name} has it"
