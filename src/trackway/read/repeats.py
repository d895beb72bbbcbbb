"""The calls of an episode by what they were: which were made again, and which of those failed the same way again.

A call is known by 8 bytes made of its tool and its canonical arguments, so that what is kept of an episode is small and
that of many is put together exactly. The words by which a person knows it are kept apart, for the calls that were made
again and for a few of the others: they are wanted for the handful that is shown.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import Counter
from struct import Struct
from typing import Any, Final

import msgspec
from blake3 import blake3

from trackway.read.action import action_of
from trackway.schema.canonical import signature
from trackway.schema.events import ToolResult
from trackway.schema.plain import text_of

WORDS: Final = 160
"""How many characters of a call's arguments are kept to show it by."""

LONG: Final = 4096
"""Arguments longer than this are shown as they begin."""

_MOST: Final = 50_000
"""How many different calls of one episode are told apart; beyond that, new ones are counted as such and no more."""

_AGAIN: Final = 256
_ONCE: Final = 64
_PART: Final = 40
_HEAD: Final = 2000
_NUMBERS: Final = re.compile(r"\d+")
_mark = Struct("<Q")

Words = dict[int, tuple[str, str]]
"""By a call's number: its tool, and its arguments in short."""


def number_of(tool: str, args: bytes) -> int:
    """The number of a call: equal for equal arguments, whatever their spacing and key order."""
    return _number(signature(tool, args))


def way_of(result: ToolResult | None) -> int:
    """In which way a call failed: what it said and how it ended, numbers in it left out; or nothing came back."""
    if result is None:
        return _number("missing")
    said = result.content if len(result.content) <= 2 * _HEAD else result.content[:_HEAD] + result.content[-_HEAD:]
    return _number(f"{result.status} {result.exit_code} {_NUMBERS.sub('0', said)}")


def numbers_in(different: bytes) -> array[int]:
    """The numbers of ``Repeats.different``."""
    found = array("Q", different)
    if sys.byteorder != "little":
        found.byteswap()
    return found


def _number(text: str) -> int:
    found: tuple[int] = _mark.unpack(blake3(text.encode("utf-8", "surrogatepass")).digest(8))
    return found[0]


def in_words(args: bytes) -> str:
    """What a call was told, in a line: what it is about first, then its other arguments by name.

    >>> in_words(b'{"limit": 5, "command": "ls  -l"}')
    'ls -l limit=5'
    """
    found: Any = None
    if len(args) <= LONG:
        try:
            found = msgspec.json.decode(args)
        except (msgspec.DecodeError, ValueError, RecursionError):
            found = None
    if not isinstance(found, dict):
        return _short(args[: WORDS * 4].decode("utf-8", "replace"), WORDS)
    about = action_of(args)
    first = [each for each in (about.query, about.path) if each]
    rest = [f"{name}={_short(said, _PART)}" for name, said in _texts(found) if said not in first]
    return _short(" ".join([*first, *rest]), WORDS)


def _texts(args: dict[str, Any]) -> list[tuple[str, str]]:
    words = ((name, each) for name, each in args.items() if each not in (None, ""))
    return [(name, " ".join(map(text_of, each)) if isinstance(each, list) else text_of(each)) for name, each in words]


def _short(text: str, most: int) -> str:
    """On one line, and no longer than that."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"


class Repeats:
    """The calls of one episode while it is read."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._words: dict[int, tuple[str, str]] = {}
        self._ways: Counter[tuple[int, int]] = Counter()
        self.untold = 0

    def call(self, number: int, tool: str, args: bytes) -> None:
        """Count a call; of long arguments, their beginning will do here."""
        times = self._times.get(number, 0)
        if not times and len(self._times) >= _MOST:
            self.untold += 1
            return
        self._times[number] = times + 1
        if times == 1 or len(self._times) <= _ONCE:
            self._words[number] = tool, in_words(args)

    def failure(self, number: int, way: int) -> None:
        """Count a call that failed."""
        if number in self._times:
            self._ways[number, way] += 1

    def different(self) -> bytes:
        """The numbers of all calls, each once, 8 bytes little-endian."""
        return b"".join(map(_mark.pack, self._times))

    def again(self) -> dict[int, int]:
        """How many times more than once a call was made."""
        return {number: times - 1 for number, times in self._times.items() if times > 1}

    def ways(self) -> list[tuple[int, int, int]]:
        """Call, way and how often, of what failed."""
        return [(number, way, times) for (number, way), times in self._ways.items()]

    def words(self) -> Words:
        """The words of the calls that were made again, the most repeated first, and of a few others."""
        repeated = sorted((each for each in self._words if self._times[each] > 1), key=lambda x: -self._times[x])
        others = [each for each in self._words if self._times[each] == 1]
        return {number: self._words[number] for number in [*repeated[:_AGAIN], *others[:_ONCE]]}
