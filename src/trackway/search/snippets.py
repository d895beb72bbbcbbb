"""The place in a text that answers a query, cut out, and what to highlight in it.

The text is walked word by word, a stretch at a time, with the same words as in the index. Nothing is parsed out of what
the text says: marks are places in it, and whoever prints it makes it safe.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from trackway.search.pattern import Words
from trackway.search.words import Word, camel, words

LENGTH: Final = 200
_STRETCH: Final = 1 << 11
_FURTHEST: Final = 2 << 20
_LEAD: Final = 0.3
_MOST: Final = 200
_LETTER: Final = "[A-Za-z0-9]"
_BETWEEN: Final = "[^A-Za-z0-9]+"


class Snippet(NamedTuple):
    """A piece of a text; ``marks`` are the first character of what was found and the one behind its last."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    begins: bool = True
    ends: bool = True


class Cutter:
    """Cuts pieces out of texts for one query."""

    def __init__(self, asked: Iterable[Words]) -> None:
        self._needles = [_Needle(each) for each in asked]

    def snippet(self, text: str, *, length: int = LENGTH) -> Snippet:
        """Where most of what was asked for stands closest together; the beginning where none of it does."""
        found = _found(text, self._needles, length) if self._needles else []
        best = _best(found, length)
        first, last = (best[0].start, best[-1].end) if best else (0, 0)
        start = max(0, min(first - int((length - (last - first)) * _LEAD), len(text) - length))
        start, end = _at_words(text, start, min(len(text), start + length), first, last)
        marks = _joined(sorted({(each.start, each.end) for each in found if start <= each.start and each.end <= end}))
        cut = tuple((a - start, b - start) for a, b in marks)
        return Snippet(text[start:end], cut, begins=start == 0, ends=end == len(text))


class _Mark(NamedTuple):
    start: int
    end: int
    needle: int


class _Needle:
    """Words next to each other, to be held against the words of a text."""

    def __init__(self, said: Words) -> None:
        self._said = said
        self.literal = max((each.text for each in said.steps if not each.is_pattern), key=len, default="")
        self._steps = [
            (each.place, re.compile(each.text, re.DOTALL).fullmatch if each.is_pattern else each.text.__eq__)
            for each in said.steps
        ]

    def quick_marks(self, text: str, number: int) -> list[_Mark]:
        """The same in plain ASCII, by one pattern, but for parts of names."""
        found = itertools.islice(self._in_ascii.finditer(text), _MOST)
        return [_Mark(*each.span(), number) for each in found]

    @cached_property
    def _in_ascii(self) -> re.Pattern[str]:
        """Words are runs of letters and digits there, and whatever else stands between them."""
        said, place = "", 0
        for each in self._said.steps:
            gap = each.place - place
            said += _BETWEEN + f"{_LETTER}+{_BETWEEN}" * (gap - 1) if gap else ""
            said += each.text.replace(".", _LETTER) if each.is_pattern else re.escape(each.text)
            place = each.place
        return re.compile(f"(?<!{_LETTER}){said}(?!{_LETTER})", re.IGNORECASE | re.ASCII)

    def marks(self, row: list[Word], number: int) -> Iterator[_Mark]:
        first_place, is_first = self._steps[0]
        begun = [each for each in row if is_first(each.text)]
        if len(self._steps) == 1:
            yield from (_Mark(each.start, each.end, number) for each in begun)
            return
        by_place = {each.place: each for each in row} if begun else {}
        for each in begun:
            stand = [by_place.get(each.place + place - first_place) for place, _ in self._steps]
            if all(word and fits(word.text) for word, (_, fits) in zip(stand, self._steps, strict=True)):
                last = stand[-1]
                assert last is not None
                yield _Mark(each.start, last.end, number)


def _found(text: str, needles: list[_Needle], length: int) -> list[_Mark]:
    """Marks in the first stretch that has all of it, else in all that was looked at."""
    if text.isascii() and len(text) <= _FURTHEST:
        quick = [each.quick_marks(text, number) for number, each in enumerate(needles)]
        if all(quick):
            return sorted({mark for each in quick for mark in each})
    found: list[_Mark] = []
    at, seen = _first_sight(text, needles, length), min(len(text), _FURTHEST)
    while at < seen:
        piece = text[at : at + _STRETCH + length]
        row = list(words(piece, at))
        rows = [row, *(parts for each in row for parts in _parts(text, each))]
        here = [mark for number, each in enumerate(needles) for some in rows for mark in each.marks(some, number)]
        found += here
        if len({mark.needle for mark in here}) == len(needles):
            break
        at += _STRETCH
    return sorted(set(found))


def _first_sight(text: str, needles: list[_Needle], length: int) -> int:
    """A place before which nothing is found, where that can be told without looking at every word."""
    lower = text.lower()
    places = [lower.find(each.literal) for each in needles if each.literal]
    if len(lower) != len(text) or not text.isascii() or len(places) < len(needles) or min(places) < 0:
        return 0
    return max(0, text.rfind(" ", 0, max(0, min(places) - length)))


def _parts(text: str, word: Word) -> Iterator[list[Word]]:
    """A name in CamelCase as the words it is made of."""
    name = text[word.start : word.end]
    parts = () if name.islower() or name.isdigit() else camel(name)
    if parts:
        at, row = word.start, []
        for place, each in enumerate(parts):
            row.append(Word(each.lower(), place, at, at + len(each)))
            at += len(each)
        yield row


def _best(found: list[_Mark], length: int) -> list[_Mark]:
    """The marks within one length of each other that answer most of what was asked, the first of those."""
    best: list[_Mark] = []
    score = (0, 0)
    for i, first in enumerate(found[:1000]):
        here = [each for each in found[i : i + 50] if each.end <= first.start + length]
        mine = len({each.needle for each in here}), len(here)
        if mine > score:
            best, score = here, mine
    return best


def _at_words(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The ends moved inwards to where words end, as long as that is near and nothing found is lost."""
    if 0 < start < first:
        space = re.search(r"\s", text[start : min(start + 20, first)])
        start += space.end() if space is not None else 0
    if end < len(text):
        cut = max(text.rfind(each, max(last, end - 20), end) for each in " \n\t")
        end = cut if cut > start else end
    return start, end


def _joined(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Marks that touch or overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
