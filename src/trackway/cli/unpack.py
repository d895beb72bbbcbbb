"""``trackway unpack``: packs become episodes again, each whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from trackway.cli._options import common, examples, opened
from trackway.errors import TrackwayError

if TYPE_CHECKING:
    from trackway.store.live import LiveStore
    from trackway.store.unpack import Unpacked


@click.command(
    epilog=examples(
        "trackway unpack fix-the-flaky-test-5f0c1d2e.jsonl",
        "trackway unpack packs/*.jsonl.zst",
        "ssh there trackway pack last -o - | trackway unpack -",
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@common
def unpack(files: tuple[str, ...], *, as_json: bool, home: str | None, store: str | None) -> None:
    """Store the episodes of packs, each whole or not at all.

    FILE is what `trackway pack` wrote, compressed or not; - is stdin. An episode that is here already stays as it is;
    of one that has grown since, only what is new is added.
    """
    with opened(home, store) as live:
        answers = (_answer(live, file) for file in files)
        refused = _print_json(answers) if as_json else _print_lines(answers)
    if refused:
        click.get_current_context().exit(1)


class _Answer(NamedTuple):
    """What became of one file."""

    file: str
    task: str = ""
    done: Unpacked | None = None
    error: str = ""


def _answer(live: LiveStore, file: str) -> _Answer:
    from trackway.cli._progress import progress
    from trackway.store.unpack import unpack

    try:
        with _opened(file) as (stream, size), progress("unpacking", size * 2) as more:
            done = unpack(stream, live, name="stdin" if file == "-" else file, done=more)
        return _Answer(file, live.episode(done.episode).task, done)
    except TrackwayError as error:
        return _Answer(file, error=str(error))
    except OSError as error:
        return _Answer(file, error=f"{file}: {error.strerror or error}")


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """A stream that can be read twice, and how many bytes it has; from a pipe it goes to a temporary file first."""
    with contextlib.ExitStack() as stack:
        stream: BinaryIO = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        if not stream.seekable():
            import tempfile

            kept = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(stream, kept)
            kept.seek(0)
            stream = kept
        start = stream.tell()
        size = stream.seek(0, 2) - start
        stream.seek(start)
        yield stream, size


def _print_lines(answers: Iterator[_Answer]) -> int:
    from trackway.cli._print import Screen, Span, line, talk
    from trackway.cli._text import count
    from trackway.schema import ids

    screen, refused = Screen(), 0
    for each in answers:
        if each.done is None:
            talk(each.error)
            refused += 1
            continue
        said = count(each.done.events, "event")
        if each.done.state == "grown":
            said = f"{each.done.added:,} new of {said}"
        spans = (Span(ids.short(each.done.episode), "tool"), f"  {each.task}  ", Span(said, "dim"))
        screen.show([line(*spans, label=each.done.state)])
        screen.flush()
        if each.done.missing:
            talk(f"{each.file} lacks {count(each.done.missing, 'file content')}: missing already where it was packed")
    return refused


def _print_json(answers: Iterator[_Answer]) -> int:
    from trackway.cli._print import write_array
    from trackway.schema.view import dumps

    found = [_fields(each) for each in answers]
    write_array(map(dumps, found))
    return sum("error" in each for each in found)


def _fields(each: _Answer) -> dict[str, Any]:
    if each.done is None:
        return {"file": each.file, "state": "refused", "error": each.error}
    fields = each.done._asdict()
    del fields["was_here"]
    return {"file": each.file, "state": each.done.state, "task": each.task, **fields}
