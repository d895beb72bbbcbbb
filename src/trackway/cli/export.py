"""``trackway export``: episodes in the forms other programs take. ``raw`` is the form they came in."""

from __future__ import annotations

import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from trackway.cli._options import common, complete_episode, examples, opened

if TYPE_CHECKING:
    from trackway.store.live import LiveStore
    from trackway.store.originals import OriginalFile


@click.group(epilog=examples("trackway export raw last > session.jsonl"))
def export() -> None:
    """Write episodes in the forms other programs take."""


@export.command(
    epilog=examples(
        "trackway export raw 5f0c1d2e > session.jsonl",
        "trackway export raw last -o session.jsonl",
        "trackway export raw last --list",
        "trackway export raw last --file 2 -o agent.jsonl",
        "trackway export raw last --all -o files/",
    )
)
@click.argument("episode", metavar="ID", shell_complete=complete_episode)
@click.option("-o", "--output", metavar="PATH", type=click.Path(path_type=Path), help="Where to; else stdout.")
@click.option("--list", "only_list", is_flag=True, help="Say which files there are.")
@click.option("--file", "number", type=click.IntRange(min=1), help="This one of them, as --list counts.")
@click.option("--all", "everything", is_flag=True, help="All of them, into the folder that -o names.")
@common
def raw(
    episode: str, *, output: Path | None, only_list: bool, number: int | None, everything: bool,
    as_json: bool, home: str | None, store: str | None,
) -> None:  # fmt: skip
    """Give back the file an episode was imported from, byte for byte.

    An episode may have come from several files: copies, sub-agents, what lies beside. The largest is meant unless
    --file or --all says otherwise.
    """
    from trackway.errors import NotImported
    from trackway.schema import ids

    with opened(home, store) as live:
        whole = live.resolve(episode)
        files = live.originals(whole)
        if not files:
            hint = "trackway pack writes an episode that was recorded"
            raise NotImported(f"episode {ids.short(whole)} came from no file", hint=hint, episode=whole)
        if only_list:
            _list(files, as_json=as_json)
        elif everything:
            if output is None:
                raise click.UsageError("--all needs -o FOLDER")
            _write_all(live, files, output, as_json=as_json)
        else:
            _write_one(live, files, number, output, as_json=as_json)


def _list(files: list[OriginalFile], *, as_json: bool) -> None:
    from trackway.cli._print import Column, Screen, Span, write_json
    from trackway.cli._size import size

    if as_json:
        write_json([_fields(each) for each in files])
        return
    columns = [Column("", right=True), Column("FORMAT"), Column("SIZE", right=True), Column("FILE", flexible=True)]
    rows = [
        [Span(str(i)), Span(each.source, "tool"), Span(size(each.size)), Span(each.name)]
        for i, each in enumerate(files, start=1)
    ]
    screen = Screen()
    screen.table(columns, rows)
    screen.flush()


def _fields(file: OriginalFile) -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(file)
    return fields


def _write_one(
    live: LiveStore, files: list[OriginalFile], number: int | None, output: Path | None, *, as_json: bool
) -> None:
    from trackway.cli._print import talk, write_json

    if number is not None and number > len(files):
        raise click.BadParameter(f"there are {len(files)} files", param_hint="--file")
    file = files[(number or 1) - 1]
    if output is None:
        for piece in live.original(file.hash):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    else:
        _write(live, file, output / PurePath(file.name).name if output.is_dir() else output)
        if as_json:
            write_json({**_fields(file), "output": str(output)})
    if number is None and len(files) > 1:
        talk(f"this is {file.name}, one of {len(files)} files of the episode: --list shows them, --all takes them")


def _write_all(live: LiveStore, files: list[OriginalFile], folder: Path, *, as_json: bool) -> None:
    from trackway.cli._print import write_json

    folder.mkdir(parents=True, exist_ok=True)
    told = []
    taken: set[str] = set()
    for i, file in enumerate(files, start=1):
        name = PurePath(file.name).name
        name = f"{i}-{name}" if name in taken else name
        taken.add(name)
        _write(live, file, folder / name)
        told.append({**_fields(file), "output": str(folder / name)})
        if not as_json:
            click.echo(folder / name)
    if as_json:
        write_json(told)


def _write(live: LiveStore, file: OriginalFile, path: Path) -> None:
    """Under its name only when all of it is there."""
    part = path.with_name(f".{path.name}.trackway.part")
    try:
        with part.open("wb") as stream:
            for piece in live.original(file.hash):
                stream.write(piece)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
