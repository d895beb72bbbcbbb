"""Long things as lines: a text with its middle left out, a call's arguments, a file's difference.

What is left out is left out of the display only, and the line says how much and how to see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from trackway.cli._print import Line, Span, line
from trackway.cli._text import clip
from trackway.errors import NotFound
from trackway.schema.events import FileChange, FileState
from trackway.schema.view import dumps

Blob = Callable[[str], Iterator[bytes]]

_SHORT: Final = 100
_DIFF_BYTES: Final = 200_000
_DIFF_STYLES: Final = {"+": "added", "-": "removed", "@": "dim"}


def block(text: str, *, full: bool, label: str = "", style: str = "dim", text_style: str = "") -> Iterator[Line]:
    """A text as lines, the first with the label; with its middle left out unless all of it is asked for."""
    head, hidden, tail = (text, 0, "") if full else clip(text)
    for each in _lines(head):
        yield line(Span(each, text_style), label=label, style=style)
        label = ""
    if hidden:
        yield line(Span(f"… {hidden:,} more characters (--full)", "dim"))
        for each in _lines(tail):
            yield line(Span(each, text_style))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def call(name: str, args: bytes, *, full: bool, label: str) -> Iterator[Line]:
    """A tool's name and arguments: short ones beside it, long ones and texts of many lines below, by name."""
    text, head, named = brief(args), Span(name, "tool"), _named(args)
    if _is_short(text) and not any("\n" in each for each in named.values()):
        yield line(head, "  ", text, label=label)
    elif not named:
        yield line(head, label=label)
        yield from block(text, full=full)
    else:
        yield line(head, label=label)
        for key, value in named.items():
            yield from _argument(key, value, full=full)


def brief(args: bytes) -> str:
    """Arguments as one text: the value of a single one, else the JSON as it was written."""
    named = _named(args)
    if len(named) == 1:
        return next(iter(named.values()))
    return "" if args == b"{}" else args.decode("utf-8", "backslashreplace")


def _argument(key: str, value: str, *, full: bool) -> Iterator[Line]:
    if _is_short(value):
        yield line(Span(f"{key}: ", "dim"), value)
        return
    yield line(Span(f"{key}:", "dim"))
    for each in block(value, full=full):
        yield line("  ", *each.spans)


def _is_short(text: str) -> bool:
    return len(text) <= _SHORT and "\n" not in text


def _named(args: bytes) -> dict[str, str]:
    """The arguments by name, where they are a JSON object; texts as they are, other values as JSON."""
    try:
        value = msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {key: each if isinstance(each, str) else dumps(each) for key, each in value.items()}


def difference(change: FileChange, *, blob: Blob, full: bool) -> Iterator[Line]:
    """What changed in a file, where both sides are kept and are text."""
    before, after = (_text(each, blob) for each in (change.before, change.after))
    if before is None or after is None:
        return
    from difflib import unified_diff

    changed = list(unified_diff(before, after, lineterm="", n=2))[2:]
    shown = changed if full else changed[:40]
    for each in shown:
        yield line(Span(each, _DIFF_STYLES.get(each[:1], "")))
    if len(shown) < len(changed):
        yield line(Span(f"… {len(changed) - len(shown):,} more lines (--full)", "dim"))


def _text(state: FileState | None, blob: Blob) -> list[str] | None:
    if state is None:
        return []
    if state.size > _DIFF_BYTES:
        return None
    try:
        return b"".join(blob(state.hash)).decode().splitlines()
    except (NotFound, UnicodeDecodeError):
        return None
