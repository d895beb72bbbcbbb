"""What the model saw at a call: the messages, put together again from the differences they were recorded as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from trackway.read.order import ordered
from trackway.schema.events import Event, ModelCall


class Seen(NamedTuple):
    """A request and the whole list of its messages."""

    call: ModelCall
    messages: list[Any] | None


def contexts(events: Iterable[Event]) -> Iterator[Seen]:
    """Every model call with its messages, in reading order; None where the caller gave none."""
    known: dict[str, list[Any]] = {}
    for event in ordered(events):
        if isinstance(event, ModelCall):
            messages = rebuild(event, known.get(event.base or "", []))
            if messages is not None:
                known[event.id] = messages
            yield Seen(event, messages)


def rebuild(call: ModelCall, base: list[Any]) -> list[Any] | None:
    """The messages of one call, given those of the call it was recorded against.

    >>> rebuild(ModelCall(id="2", reuse=((0, 0, 2), (3, 2, 3)), messages=("new",)), ["a", "b", "c"])
    ['a', 'b', 'new', 'c']
    """
    if call.messages is None:
        return None
    fresh = iter(call.messages)
    result: list[Any] = []
    for at, start, stop in call.reuse:
        while len(result) < at:
            result.append(next(fresh))
        result.extend(base[start:stop])
    return [*result, *fresh]
