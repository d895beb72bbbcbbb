"""Text for a screen: made safe, measured, cut, and times and durations as people read them.

Stored text is untrusted. What could move the cursor, change a colour, reorder or hide letters is shown as a visible
mark instead; ``safe`` is applied to everything that is printed, in one place (``_print.Screen``).
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

# C0 but tab and line feed, DEL, C1; bidi marks, overrides and isolates; line separators; what has no width and no use
# on a screen; interlinear marks; surrogates; tags. Joiners stay: scripts and emoji need them.
_UNSAFE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_NOT_ASCII: Final = re.compile(r"[^\t\n\x20-\x7e]")
_NS: Final = 1_000_000_000
_LINES: Final = 24
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_CHARS: Final = 2_000


def safe(text: str) -> str:
    r"""The text with nothing in it that a terminal obeys; line feeds and tabs stay.

    >>> safe("\x1b[31mred")
    '␛[31mred'
    """
    return _UNSAFE.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_safe(line: str, *, ascii_only: bool = False) -> str:
    r"""A line of JSON with the same characters written as ``\uXXXX``: another spelling of the same value."""
    return (_NOT_ASCII if ascii_only else _UNSAFE).sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def width(text: str) -> int:
    """How many columns the text takes: two for wide characters, none for what combines.

    >>> width("日本"), width("e\u0301")
    (4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fit(text: str, columns: int) -> str:
    """The text cut to so many columns, with an ellipsis where something is missing."""
    if width(text) <= columns:
        return text
    if text.isascii():
        return text[: columns - 1].rstrip() + "…"
    used, kept = 0, 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text filled up with spaces."""
    gap = " " * max(0, columns - width(text))
    return gap + text if right else text + gap


def cell(text: str, columns: int) -> str:
    """Any text as a short piece of one line: white space collapsed, safe, cut."""
    return fit(safe(" ".join(text[: columns * 8].split())), columns)


class Clipped(NamedTuple):
    """A long text as shown: its beginning, how many characters are left out, its end."""

    head: str
    hidden: int
    tail: str


def clip(text: str, *, lines: int = _LINES, chars: int = _CHARS) -> Clipped:
    """Both ends of a text: what failed stands at the end of an output as often as at its beginning."""
    if len(text) <= chars and text.count("\n") < lines:
        return Clipped(text, 0, "")
    head = "\n".join(text[: chars * 2 // 3].split("\n")[: lines * 2 // 3])
    tail = "\n".join(text[-(chars // 3) :].split("\n")[-(lines // 3) :])
    hidden = len(text) - len(head) - len(tail)
    return Clipped(head, hidden, tail) if hidden > 0 else Clipped(text, 0, "")


def moment(at: int | None, *, utc: bool) -> str:
    """An instant to the second, local or UTC."""
    if at is None:
        return "-"
    try:
        there = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at // _NS)
        return f"{there:%Y-%m-%d %H:%M:%S} UTC" if utc else f"{there.astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):  # an imported time may be anything
        return str(at)


def duration(ns: float | None) -> str:
    """A length of time in two figures or so.

    >>> duration(312_000_000), duration(75 * 10**9), duration(2 * 3600 * 10**9)
    ('312 ms', '1m 15s', '2h 00m')
    """
    if ns is None:
        return "-"
    seconds = max(0, ns) / _NS
    if seconds < 0.001:
        return "<1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {left:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def age(at: int | None, now: int) -> str:
    """How long ago, in one unit; what a wrong clock put into the future says so."""
    if at is None:
        return "-"
    ahead, seconds = at > now + 60 * _NS, abs(now - at) // _NS
    if seconds < 5 or (at > now and not ahead):
        return "now"
    for size, unit in ((604_800 * 2, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds >= size:
            long = f"{seconds // (604_800 if unit == 'w' else size)}{unit}"
            return f"in {long}" if ahead else f"{long} ago"
    return "now"


def count(number: int, what: str) -> str:
    """``1 step``, ``2 steps``, ``1,200 events``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def number(value: float) -> str:
    """A score or reward: as short as it can be said exactly enough."""
    return f"{value:.4g}"


def bar(share: float, columns: int = 12) -> str:
    """A share of the whole as a bar of eighths of a column; the least bit shows.

    >>> bar(0.5, 4), bar(0.01, 4), bar(0, 4)
    ('██', '▏', '')
    """
    eighths = math.ceil(min(max(share, 0.0), 1.0) * columns * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[rest]
