"""``trackway import``: what other programs left on this machine becomes episodes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli._options import common, examples, opened

if TYPE_CHECKING:
    from trackway.ingest.gathering import Candidate, Unreadable
    from trackway.ingest.importing import Options
    from trackway.ingest.storing import Imported
    from trackway.store.live import LiveStore


@click.command(
    "import",
    epilog=examples(
        "trackway import",
        "trackway import --yes",
        "trackway import ~/.claude/projects sessions.zip rollout-*.jsonl.zst",
        "trackway import runs/ --dry-run",
        "trackway import --detect transcript.json",
        "trackway import ~/.codex/sessions --watch",
    ),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path, readable=False))
@click.option("-y", "--yes", is_flag=True, help="Do not ask before reading what was found.")
@click.option("--detect", is_flag=True, help="Say what each file is, how surely and why; import nothing.")
@click.option("--dry-run", "dry", is_flag=True, help="Read everything, store nothing, say what would be new.")
@click.option("--watch", is_flag=True, help="Go on: files that grow, and new ones, as they come. Ctrl-C ends it.")
@click.option("--again", is_flag=True, help="Read what has not changed too, and bring back what was pruned.")
@click.option("--as", "source", metavar="FORMAT", help="Take every file for this format; see --detect.")
@common
def import_(
    paths: tuple[Path, ...], *, yes: bool, detect: bool, dry: bool, watch: bool, again: bool, source: str | None,
    as_json: bool, home: str | None, store: str | None,
) -> None:  # fmt: skip
    """Bring in what other agents left: files, folders, archives.

    Without a PATH it looks for what you have (Claude Code, Codex, Gemini CLI, pi, opencode and others) and asks before
    it reads anything. Files are told by their content. Their bytes are kept: `trackway export raw` gives them back.
    A file that was imported before adds only what is new.
    """
    from trackway.ingest.gathering import gathered
    from trackway.ingest.importing import Options

    if source is not None:
        _check_source(source)
    if detect:
        _detect(paths, as_json=as_json)
        return
    where = list(paths) or _discovered(yes=yes or dry, as_json=as_json)
    options = Options(again=again, dry=dry, source=source)
    with opened(home, store) as live:
        if watch:
            _watch(live, where, options, as_json=as_json)
            return
        refused = _import(live, gathered(where), options, as_json=as_json)
    if refused:
        click.get_current_context().exit(1)


def _check_source(name: str) -> None:
    from trackway.errors import BadSetting
    from trackway.ingest.sources import all_sources

    names = [each.name for each in all_sources()]
    if name not in names:
        raise BadSetting(f"no format {name!r}", hint=f"one of {', '.join(names)}", value=name)


def _import(live: LiveStore, found: Iterable[Candidate | Unreadable], options: Options, *, as_json: bool) -> bool:
    """Import, and say what became of it; whether a file was refused."""
    from trackway.cli._imported import Report
    from trackway.ingest.importing import import_files

    everything = list(found)
    total = sum(getattr(each, "size", 0) for each in everything)
    report = Report(is_dry=options.dry)
    for each in _with_bar(import_files(live, everything, options), total):
        report.add(each)
        if not as_json:
            report.tell(each)
    if not options.dry:
        report.derived(live)
    if as_json:
        report.write_json()
    else:
        report.show()
    return report.refused > 0


def _with_bar(imported: Iterator[Imported], total: int) -> Iterator[Imported]:
    from trackway.cli._progress import progress

    with progress("importing", total) as more:
        for each in imported:
            more(each.size if each.state != "archive" else 0)
            yield each


def _discovered(*, yes: bool, as_json: bool) -> list[Path]:
    """The folders this user has, once they have agreed."""
    import os

    from trackway.cli._imported import show_discovered
    from trackway.cli._print import talk
    from trackway.errors import NothingToImport
    from trackway.ingest.discovery import discover

    found = [each for each in discover(Path.home(), os.environ) if each.files]
    if not found:
        raise NothingToImport("no agent's history was found", hint="name files or folders: trackway import PATH")
    if not as_json:
        show_discovered(found)
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise NothingToImport("nothing was read", hint="say yes with --yes, or name files or folders")
        if not click.confirm("Import them?", default=True, err=True):
            talk("nothing was read")
            click.get_current_context().exit(1)
    return [folder for each in found for folder in each.folders]


def _detect(paths: tuple[Path, ...], *, as_json: bool) -> None:
    """What each file is taken for."""
    from trackway.cli._imported import Guess, show_guesses
    from trackway.ingest.gathering import Unreadable, gathered
    from trackway.ingest.original import Original
    from trackway.ingest.sources import detect

    if not paths:
        raise click.UsageError("--detect needs a PATH")
    guesses = []
    for each in gathered(paths):
        if isinstance(each, Unreadable):
            guesses.append(Guess(each.name, [], each.reason))
        else:
            try:
                guesses.append(Guess(each.name, detect(Original(each.path, each.name).head()), ""))
            except OSError as error:
                guesses.append(Guess(each.name, [], error.strerror or str(error)))
    show_guesses(guesses, as_json=as_json)
    if not all(each.found for each in guesses):
        click.get_current_context().exit(1)


def _watch(live: LiveStore, where: list[Path], options: Options, *, as_json: bool) -> None:
    import threading
    import time

    from trackway.cli._imported import Report
    from trackway.ingest.watching import Clock, watch

    report = Report(is_dry=options.dry)
    never = threading.Event()
    for each in watch(live, where, Clock(time.monotonic, lambda long: not never.wait(long)), options):
        report.add(each)
        report.tell_now(each, as_json=as_json)
