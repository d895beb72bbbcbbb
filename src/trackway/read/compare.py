"""compare(a, b): two episodes side by side, aligned by what happened and not by index: where they part, what each did.

Each agent is compared with the agent of the same name. Elements that match by their key belong together; of two that
match but for what the model had seen before, the row says ``context``. What is left between matches is paired where it
is of the same sort (``changed``), and stands alone where it is not. ``compare(b, a)`` is the mirror image.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from trackway.errors import BadSetting
from trackway.read.alignment import align, common_prefix
from trackway.read.elements import Elements, Line
from trackway.read.partings import Parting, Row, explained, partings
from trackway.schema.events import Event

LEVELS: Final = ("events", "steps")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two episodes side by side, the rows of each agent in one piece.

    ``counts`` has how many rows are equal, context, changed, only_a and only_b. ``partings`` are in reading order;
    ``first`` is the first of them.
    """

    equal: bool
    first: Parting | None
    counts: dict[str, int]
    partings: list[Parting]
    rows: list[Row]

    def differences(self) -> Iterator[Row]:
        """The rows that are not equal."""
        return (each for each in self.rows if each.how != "equal")


def compare(a: Iterable[Event], b: Iterable[Event], *, level: str = "events") -> Comparison:
    """Two episodes, aligned. ``level`` is ``events`` or, for actions and their results alone, ``steps``.

    >>> from trackway.schema.events import AssistantText, User
    >>> one = [User(content="hi", n=0), AssistantText(content="hello", n=1)]
    >>> other = [User(content="hi", n=0), AssistantText(content="good day", n=1)]
    >>> compare(one, other).first.reason
    'different text'
    """
    if level not in LEVELS:
        raise BadSetting(f"level is {level!r}", hint=f"one of {', '.join(LEVELS)}", value=level)
    one, other = (Elements(each, steps_only=level == "steps") for each in (a, b))
    rows: list[Row] = []
    found: list[Parting] = []
    for agent in dict.fromkeys(chain(one.lines, other.lines)):
        lines = one.lines.get(agent) or Line(), other.lines.get(agent) or Line()
        start = len(rows)
        rows += _rows(*lines)
        found += partings(rows, lines, start=start)
    found.sort(key=_position)
    if found:
        found[0] = explained(found[0], one, other)
    counts = dict.fromkeys(("equal", "context", "changed", "only_a", "only_b"), 0)
    for row in rows:
        counts[row.how] += 1
    return Comparison(equal=not found, first=found[0] if found else None, counts=counts, partings=found, rows=rows)


def _position(parting: Parting) -> tuple[int, str]:
    return min(each.index for each in (parting.a, parting.b) if each is not None), parting.agent or ""


def _rows(a: Line, b: Line) -> Iterator[Row]:
    """What belongs together, in order."""
    next_a = next_b = 0
    for at_a, at_b in chain(_aligned(a.keys, b.keys), [(len(a.keys), len(b.keys))]):
        yield from _between(a, b, range(next_a, at_a), range(next_b, at_b))
        if at_a < len(a.keys):
            same = a.asked[at_a] == b.asked[at_b]
            yield Row("equal" if same else "context", a.elements[at_a], b.elements[at_b])
        next_a, next_b = at_a + 1, at_b + 1


def _between(a: Line, b: Line, in_a: range, in_b: range) -> Iterator[Row]:
    """What has no equal: paired where it is of one sort; of what is not, a's stands before b's."""
    matches = _aligned(a.loose[in_a.start : in_a.stop], b.loose[in_b.start : in_b.stop]) if in_a and in_b else []
    next_a, next_b = in_a.start, in_b.start
    for at_a, at_b in chain(matches, [(len(in_a), len(in_b))]):
        yield from (Row("only_a", a.elements[at], None) for at in range(next_a, in_a.start + at_a))
        yield from (Row("only_b", None, b.elements[at]) for at in range(next_b, in_b.start + at_b))
        if at_a < len(in_a):
            yield Row("changed", a.elements[in_a[at_a]], b.elements[in_b[at_b]])
        next_a, next_b = in_a.start + at_a + 1, in_b.start + at_b + 1


def _aligned(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The alignment of two lines; given the other way around, the same one turned around."""
    numbers: dict[Hashable, int] = {}
    one, other = ([numbers.setdefault(key, len(numbers)) for key in keys] for keys in (a, b))
    head = common_prefix(one, other)
    if (len(a), *map(repr, a[head : head + 1])) <= (len(b), *map(repr, b[head : head + 1])):
        return align(one, other)
    return [(at_a, at_b) for at_b, at_a in align(other, one)]
