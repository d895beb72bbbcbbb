"""``trackway demo``: a small agent really works, is recorded while it does, and is shown.

Only the agent's decisions are scripted, and they look at what really came back. The workspace, the tools, the failing
test and the recording are real; the workspace is removed at the end, the episode stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from trackway.cli._options import common, examples

if TYPE_CHECKING:
    from trackway.store.home import Home


@click.command(epilog=examples("trackway demo", "trackway demo --home ./try-it", "trackway demo --json"))
@common
def demo(*, as_json: bool, home: str | None, store: str | None) -> None:
    """Record a small agent at work, then show the episode.

    The agent finds out why a test fails, repairs the code and sees the test pass, in a folder of its own that is
    removed afterwards. Its decisions are scripted; the files, the commands and the recording are real.
    """
    import tempfile

    from trackway.cli import show
    from trackway.cli._demo_agent import repair
    from trackway.cli._print import flush, talk
    from trackway.recording.recorder import Recorder
    from trackway.schema import ids
    from trackway.store.live import LiveStore

    with Recorder(home, store=store) as recorder:
        _check(recorder.home)
        where = recorder.home.path if store is None else recorder.store.key.removeprefix("sqlite:")
        talk(f"an agent repairs a failing test; every step is recorded in {where}")
        with tempfile.TemporaryDirectory(prefix="trackway-demo-") as workspace:
            episode_id = repair(recorder, workspace)
        recorder.flush()
        live = LiveStore(recorder.home, recorder.store)
        summary = live.episode(episode_id)
        if as_json:
            show.json_episode(live, summary)
        else:
            show.transcript(live, summary)
        flush()
    if not as_json:
        _what_next(ids.short(episode_id), _flags(home=home, store=store))


def _check(home: Home) -> None:
    """Recording never fails an agent; a demo that records nothing would be none, so here it is asked beforehand."""
    from trackway.errors import BadSetting, StoreUnavailable
    from trackway.recording.settings import is_disabled
    from trackway.store.system import make_folder

    if is_disabled(home):
        hint = "unset TRACKWAY_DISABLED, or see `disabled` in trackway.toml"
        raise BadSetting("recording is switched off, so nothing would be recorded", hint=hint)
    try:
        make_folder(home.path)
        make_folder(home.journals)
        probe = home.journals / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write to {home.path}: {error.strerror}",
            hint="set TRACKWAY_HOME to a folder of yours",
            path=home.path,
        ) from error


def _flags(**given: str | None) -> str:
    """The options this was called with, for the commands that are shown next."""
    import shlex

    return "".join(f" --{name} {shlex.quote(value)}" for name, value in given.items() if value is not None)


def _what_next(name: str, flags: str) -> None:
    click.echo("\nTry next:", err=True)
    # After `make demo` the command is in the checkout's .venv, which is on nobody's PATH.
    called = sys.argv[0] if os.path.basename(sys.argv[0]) == "trackway" else ""  # noqa: PTH119  no path object for a word
    trackway = "trackway" if shutil.which("trackway") or not called else os.path.relpath(called)
    for command, what in (
        (f"{trackway} ls{flags}", "every episode so far"),
        (f"{trackway} show {name} --as steps{flags}", "the same, one line per step"),
        (f"{trackway} show {name} --json{flags}", "all of it, for programs"),
        (f"{trackway} doctor{flags}", "where it is kept, and that it is sound"),
    ):
        click.echo(f"  {command:<{28 + len(trackway) + len(flags)}}# {what}", err=True)
