"""``trackway backup``: a verified copy of the store in one file, while agents record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli._options import common, examples, opened, there

if TYPE_CHECKING:
    from trackway.store.backup import Backup, Counts


@click.command(
    epilog=examples(
        "trackway backup ~/backups/monday.db",
        "trackway backup /mnt/disk/store.db --force",
        "trackway ls --store ~/backups/monday.db",
    )
)
@click.argument("file", type=click.Path(dir_okay=True))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@common
def backup(file: str, *, force: bool, as_json: bool, home: str | None, store: str | None) -> None:
    """Copy the store into a file, complete up to now, and verify the copy.

    Safe while agents record: what is not sealed yet is in the copy too. FILE appears when the copy is whole, verified
    and on the disk, and not before. Exits 1 if something in it is damaged.
    """
    from trackway.cli._print import talk, write_json
    from trackway.cli._progress import stages
    from trackway.cli.verify import as_fields
    from trackway.store.backup import backup as copy

    with opened(home, store) as live, stages() as progress:
        there(live, store)
        done = copy(live, Path(file), force=force, progress=progress)
        has_key = live.home.key.exists()
        key = live.home.key
    if as_json:
        counts = {"source": done.source._asdict(), "copy": done.copy._asdict()}
        verified = {"ok": done.verified.is_sound, **as_fields(done.verified)}
        write_json({**done._asdict(), "path": str(done.path), **counts, "verified": verified, "key": False})
    else:
        _show(done)
    if has_key:
        talk(f"the key {key} is not in it: without it, redacted text stays redacted (keep it elsewhere, safe)")
    if done.quarantined or not done.verified.is_sound:
        raise click.exceptions.Exit(1)


def _show(done: Backup) -> None:
    from trackway.cli._print import Screen, line
    from trackway.cli._size import size
    from trackway.cli._text import count
    from trackway.cli.verify import lines

    screen = Screen()
    waiting = f", {count(done.waiting, 'event')} of them not sealed yet" if done.waiting else ""
    screen.show((
        line(f"{_counted(done.source)}{waiting}", label="source"),
        line(_counted(done.copy), label="copy"),
        line(f"{done.path} ({size(done.bytes)})", label="file"),
    ))  # fmt: skip
    if done.quarantined:
        screen.show(
            [line(f"{count(done.quarantined, 'record')} could not be sealed into it", label="✗ left", style="bad")]
        )
    screen.show(lines(done.verified, str(done.path)))


def _counted(counts: Counts) -> str:
    from trackway.cli._text import count

    return ", ".join(count(number, name[:-1]) for name, number in counts._asdict().items())
