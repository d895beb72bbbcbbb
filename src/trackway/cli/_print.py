"""Everything that is printed goes through here: lines and tables for people, JSON for programs, talk on stderr.

On a terminal, where rich is installed, lines get colour and are wrapped under themselves; everywhere else the same
lines are plain text. ``--json`` never comes near a ``Screen``, and so never imports rich.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trackway.cli._text import cell, fit, json_safe, pad, safe, width
from trackway.schema.view import dumps

if TYPE_CHECKING:
    from rich.console import Console

GUTTER: Final = 10
_PIPED_WIDTH: Final = 120
_GAP: Final = 2
_STYLES: Final = {
    "": "", "title": "bold", "dim": "dim", "good": "green", "bad": "red", "warn": "yellow", "user": "bold blue",
    "tool": "bold cyan", "said": "bold", "rule": "dim", "added": "green", "removed": "red",
    "found": "bold yellow",
}  # fmt: skip


class Span(NamedTuple):
    """Text in one style."""

    text: str
    style: str = ""


class Line(NamedTuple):
    """A line: a label in the gutter, then spans; further lines of one thing have no label."""

    spans: tuple[Span, ...]
    label: Span = Span("")
    gutter: int = GUTTER


def line(*spans: Span | str, label: str = "", style: str = "dim") -> Line:
    """A line beside the gutter."""
    return Line(tuple(Span(each) if isinstance(each, str) else each for each in spans), Span(label, style))


class Column(NamedTuple):
    """A column of a table; a flexible one gives way where the screen is narrow, and none is wider than ``most``."""

    title: str
    right: bool = False
    flexible: bool = False
    most: int = 120


class Screen:
    """stdout for people."""

    def __init__(self) -> None:
        self._stream = sys.stdout
        self.is_terminal = self._stream.isatty()
        self.width = shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._console = None if plain or not self.is_terminal else _console()

    def show(self, lines: Iterable[Line]) -> None:
        """Print the lines."""
        for each in lines:
            self._write(each)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        """Print a table: as wide as it needs to be and the screen allows."""
        body = [
            [Span(cell(each.text, column.most), each.style) for each, column in zip(row, columns, strict=True)]
            for row in rows
        ]
        whole = [[Span(each.title, "dim") for each in columns], *body]
        wide = _fitted(columns, [max(width(row[i].text) for row in whole) for i in range(len(columns))], self.width)
        for row in whole:
            cells = [
                Span(pad(fit(each.text, wide[i]), wide[i], right=columns[i].right) + " " * _GAP, each.style)
                for i, each in enumerate(row)
            ]
            cells[-1] = Span(cells[-1].text.rstrip(), cells[-1].style)
            self._write(Line(tuple(cells), gutter=0))

    def flush(self) -> None:
        """Let go of what was printed."""
        self._stream.flush()

    def _write(self, each: Line) -> None:
        spans = [Span(_one_line(span.text), span.style) for span in each.spans]
        label = Span(pad(fit(_one_line(each.label.text), max(0, each.gutter - 1)), each.gutter), each.label.style)
        if self._console is None:
            self._stream.write((label.text + "".join(span.text for span in spans)).rstrip() + "\n")
            return
        from rich.text import Text

        text = Text.assemble(*((span.text, _STYLES[span.style]) for span in spans))
        first = (label.text, _STYLES[label.style])
        pieces = [text] if not each.gutter else text.wrap(self._console, max(20, self.width - each.gutter))
        for piece in pieces or [text]:
            self._console.print(Text.assemble(first, piece), soft_wrap=True)
            first = (" " * each.gutter, "")


def _console() -> Console | None:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def _one_line(text: str) -> str:
    return safe(text.expandtabs(4)).replace("\n", "␊")


def _fitted(columns: Sequence[Column], natural: list[int], screen: int) -> list[int]:
    """Column widths: the flexible ones share what the others leave, the smallest served first."""
    flexible = sorted((i for i, each in enumerate(columns) if each.flexible), key=lambda i: natural[i])
    left = screen - _GAP * (len(columns) - 1) - sum(natural[i] for i, each in enumerate(columns) if not each.flexible)
    result = list(natural)
    for served, i in enumerate(flexible):
        result[i] = min(natural[i], max(8, left // (len(flexible) - served)))
        left -= result[i]
    return result


def talk(message: str) -> None:
    """A line on stderr, for whoever watches."""
    print(f"trackway: {_one_line(message)}", file=sys.stderr, flush=True)  # noqa: T201  here and nowhere else


def write_json(value: Any) -> None:  # noqa: ANN401
    """One value, one line."""
    write_json_line(dumps(value))


def write_json_line(text: str) -> None:
    """JSON that is text already."""
    _write_json(text)
    sys.stdout.write("\n")


def _write_json(text: str) -> None:
    # JSON is UTF-8; to a stream that is not, it goes in ASCII, which every encoding has.
    sys.stdout.write(json_safe(text, ascii_only="utf-8" not in sys.stdout.encoding.lower()))


def write_array(items: Iterable[str], *, before: str = "", after: str = "") -> None:
    """A JSON array written as its items come, one a line; nothing is written before the first is there."""
    comes: Iterator[str] = iter(items)
    first = next(comes, None)
    _write_json(before + "[")
    if first is not None:
        _write_json("\n" + first)
        for each in comes:
            _write_json(",\n" + each)
        sys.stdout.write("\n")
    sys.stdout.write("]" + after + "\n")


def write_episode(episode: dict[str, Any], name: str, items: Iterable[str]) -> None:
    """``{"episode": …, NAME: […]}``, the items as they come."""
    write_array(items, before=f'{{"episode": {dumps(episode)},\n"{name}": ', after="}")


def flush() -> None:
    """Let go of what was written."""
    sys.stdout.flush()
