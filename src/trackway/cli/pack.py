"""``trackway pack``: an episode as one file, to keep, to send or to read with other programs."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from trackway.cli._options import common, complete_episode, examples, opened

if TYPE_CHECKING:
    from trackway.schema.episode import EpisodeSummary
    from trackway.store.live import LiveStore
    from trackway.store.pack import Packed

_LONGEST_NAME: Final = 40
_OPEN: Final = {
    "running": "the episode is running: this is what was recorded up to now (hint: a later pack goes on from here)",
    "crashed": "the episode has no end, and nobody is recording it: this is all there is",
}
"""What is said of an episode that has not ended; the pack itself does not say it."""


@click.command(
    epilog=examples(
        "trackway pack last",
        "trackway pack 5f0c1d2e -o episode.jsonl.zst",
        "trackway pack last -o - | jq -r 'select(.kind == \"user\") | .content'",
        "trackway pack last -o - | ssh there trackway unpack -",
    )
)
@click.argument("episode", metavar="ID", shell_complete=complete_episode)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(),
    help="The file, or a folder for it; compressed if it ends in .zst; - is stdout. [default: named after the task]",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@common
def pack(episode: str, *, output: str | None, force: bool, as_json: bool, home: str | None, store: str | None) -> None:
    """Write one episode, its files included, to a file of JSON lines.

    ID is an episode's id, its short form, any beginning or end of it, or `last`. The file becomes the same episode
    again with `trackway unpack`, here or elsewhere. It holds everything the agent saw: look before you send it.
    """
    if output == "-" and as_json:
        raise click.UsageError("--json would stand in the middle of the pack: both go to stdout")
    if output == "-" and sys.stdout.isatty():
        raise click.UsageError("a pack is for a file or a pipe; trackway show is for reading")
    with opened(home, store) as live:
        summary = live.episode(live.resolve(episode))
        path = None if output == "-" else _path(output, summary)
        packed = _write(live, summary, path, force=force)
    _say(summary, packed, path, as_json=as_json)


def _path(output: str | None, summary: EpisodeSummary) -> Path:
    path = Path("." if output is None else output)
    return path / _name(summary) if path.is_dir() else path


def _name(summary: EpisodeSummary) -> str:
    """``fix-the-flaky-test-5f0c1d2e.jsonl``: letters and digits that every system can have in a name."""
    from trackway.schema import ids

    plain = unicodedata.normalize("NFKD", summary.task[:1000]).encode("ascii", "ignore").decode().lower()
    words = re.sub("[^a-z0-9]+", "-", plain)[:_LONGEST_NAME].strip("-")
    return f"{words or 'episode'}-{ids.short(summary.id)}.jsonl"


def _write(live: LiveStore, summary: EpisodeSummary, path: Path | None, *, force: bool) -> Packed:
    from trackway.cli._progress import progress
    from trackway.store.pack import pack
    from trackway.store.pack_file import pack_to

    with progress("packing", summary.n_events) as done:
        if path is None:
            return pack(live, summary.id, sys.stdout.buffer, done=done)
        return pack_to(live, summary.id, path, replace=force, done=done)


def _say(summary: EpisodeSummary, packed: Packed, path: Path | None, *, as_json: bool) -> None:
    from trackway.cli._print import talk, write_json
    from trackway.cli._text import count

    if as_json:
        found: dict[str, Any] = {"file": str(path), "state": summary.state, **packed._asdict()}
        write_json(found)
        return
    if path is not None:
        click.echo(str(path))
    talk(f"packed {count(packed.events, 'event')} and {count(packed.blobs, 'file content')}, {packed.size:,} bytes")
    if packed.missing:
        talk(f"{count(packed.missing, 'file content')} could not be packed: not in the store, marked as missing")
    if summary.state in _OPEN:
        talk(_OPEN[summary.state])
