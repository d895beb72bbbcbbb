"""Where two episodes part, and in what: the stretches of a comparison's rows that differ, each with its reason.

Histories that have parted differ in every later context. So a parting is a row that differs in itself; a context that
differs is one only where nothing before it explains it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from trackway.read.elements import Element, Elements, Line, Point
from trackway.read.identity import first_difference

How = Literal["equal", "context", "changed", "only_a", "only_b"]
Sides = tuple[Line, Line]

_TOGETHER: Final = ("equal", "context")
_CONTEXT: Final = "different context"
_NOUNS: Final = {
    "user": "input", "assistant_thinking": "thinking", "assistant_text": "text", "assistant_tool_call": "action",
    "tool_result": "result", "model_result": "model error", "context": "change of context", "test_run": "test result",
    "episode_end": "end",
}  # fmt: skip


class Row(msgspec.Struct, frozen=True, gc=False):
    """One element of each side that belong together, or one that stands alone."""

    how: How
    a: Element | None
    b: Element | None


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the two part: what each does there (None: it has ended), and why that is not the same.

    ``row`` is the first row that differs, ``again`` the one in which both are together again (None: they never are);
    in between ``a`` has ``only_a`` elements without an equal, and ``b`` ``only_b``.
    """

    reason: str
    a: Element | None
    b: Element | None
    row: int
    again: int | None = None
    only_a: int = 0
    only_b: int = 0
    agent: str | None = None


def partings(rows: list[Row], lines: Sides, *, start: int) -> Iterator[Parting]:
    """The partings of one agent, whose rows are those from ``start`` on."""
    places = [0, 0]
    apart = False
    at = start
    while at < len(rows):
        how = rows[at].how
        parts = how not in _TOGETHER or (how == "context" and not apart)
        stop = at + 1
        while parts and stop < len(rows) and rows[stop].how not in _TOGETHER:
            stop += 1
        own = [sum(each.a is not None for each in rows[at:stop]), sum(each.b is not None for each in rows[at:stop])]
        if parts:
            a, b = (line.point(place) for line, place in zip(lines, places, strict=True))
            yield Parting(
                reason=_nobody(lines) or _reason(a, b, own), a=a and a.element, b=b and b.element, row=at,
                again=stop if stop < len(rows) else None, only_a=own[0], only_b=own[1], agent=_agent(lines),
            )  # fmt: skip
            apart = True
        elif how == "equal" and lines[0].asked[places[0]] is not None:
            apart = False  # the model saw the same again: what differs after this has another cause
        places = [place + count for place, count in zip(places, own, strict=True)]
        at = stop


def _agent(lines: Sides) -> str | None:
    return next(line.elements[0].agent for line in lines if line.elements)


def _nobody(lines: Sides) -> str:
    """The reason where one side has no such agent."""
    here = [name for name, line in zip("ab", lines, strict=True) if line.elements]
    if len(here) == 2:
        return ""
    agent = _agent(lines)
    return f"only in {here[0]}: everything" if agent is None else f"only in {here[0]}: agent {agent}"


def _reason(a: Point | None, b: Point | None, own: list[int]) -> str:
    over = [name for name, each in (("a", a), ("b", b)) if each is None or each.element.kind == "episode_end"]
    if len(over) == 1:
        return "a goes on, b ended" if over == ["b"] else "b goes on, a ended"
    if a is None or b is None or over:
        return "different end"
    if 0 in own:
        more = f", and {max(own) - 1} more" if max(own) > 1 else ""
        return f"only in {'a' if own[0] else 'b'}: {_noun(a if own[0] else b)}{more}"
    if a.element.kind != b.element.kind:
        return f"a goes on with {_noun(a)}, b with {_noun(b)}"
    return _of_one_kind(a, b)


def _of_one_kind(a: Point, b: Point) -> str:
    kind = a.element.kind
    if kind == "tool_result" and a.key[1] == b.key[1]:
        return "same action, different result"
    if kind == "assistant_tool_call" and a.loose == b.loose:
        return "same tool, different arguments"
    if kind == "model_call":
        return _CONTEXT if a.key == b.key else f"different {'model' if a.key[1] != b.key[1] else 'parameters'}"
    return f"different {_noun(a)}"


def _noun(point: Point) -> str:
    return _NOUNS.get(point.element.kind, point.element.kind.replace("_", " "))


def explained(parting: Parting, a: Elements, b: Elements) -> Parting:
    """The parting; where it is a context that differs, with what in it does."""
    if parting.reason != _CONTEXT or parting.a is None or parting.b is None:
        return parting
    lines = a.lines[parting.agent], b.lines[parting.agent]
    places = [line.elements.index(each) for line, each in zip(lines, (parting.a, parting.b), strict=True)]
    asked_a, asked_b = (line.asked[place] for line, place in zip(lines, places, strict=True))
    assert asked_a is not None
    assert asked_b is not None
    if asked_a.system != asked_b.system:
        return msgspec.structs.replace(parting, reason="different system prompt")
    if asked_a.tools != asked_b.tools:
        return msgspec.structs.replace(parting, reason="different tools")
    one, other = (
        side.contexts.each_message(line.calls[place]) for side, line, place in zip((a, b), lines, places, strict=True)
    )
    return msgspec.structs.replace(
        parting, reason=f"different messages, from message {first_difference(one, other) + 1}"
    )
