"""Messages put together again from the differences they were recorded as.

Each call's messages are told by those of an earlier call, its base: which stretches of them stand where, and what is
new. A base that is not there, or is not what the difference was made against, is an error: no context is better than a
wrong one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from trackway.errors import NotFound
from trackway.schema.events import ModelCall


def by_id(calls: Iterable[ModelCall]) -> dict[str, ModelCall]:
    """The calls by id. Where two that differ share one, nothing can be told by it: that is an error if it was."""
    found: dict[str, ModelCall] = {}
    twice = set()
    told_by = set()
    for each in calls:
        earlier = found.setdefault(each.id, each)
        if (earlier.base, earlier.reuse, earlier.messages) != (each.base, each.reuse, each.messages):
            twice.add(each.id)
        if each.reuse:
            told_by.add(each.base)
    for name in twice & told_by:
        raise NotFound(
            f"two model calls are called {name}, and a later one is told by the messages of one of them",
            hint="an id names one call of an episode: give each its own", call=name,
        )  # fmt: skip
    return found


def chain(call: ModelCall, calls: Mapping[str, ModelCall], kept: Container[str | None] = ()) -> Iterator[ModelCall]:
    """The call, the one it is told by, and so on, up to one that stands for itself or is told by one of ``kept``."""
    passed = set()
    while True:
        yield call
        passed.add(call.id)
        if not call.reuse or call.messages is None or call.base in kept:
            return
        base = calls.get(call.base or "")
        if base is None or base.id in passed:
            reason = "is not among these events" if base is None else "is told by it"
            raise NotFound(
                f"the messages of model call {call.id} are told by those of call {call.base}, which {reason}",
                hint="give all events of the episode: a part of it cannot be put together",
                call=call.id, base=call.base,
            )  # fmt: skip
        call = base


class _Piece(NamedTuple):
    """A stretch of a call's messages: ``size`` of its own from ``start``, or of its base."""

    at: int
    size: int
    start: int
    own: bool


def _pieces(call: ModelCall) -> list[_Piece]:
    """The messages of a call as stretches, in order, without a gap."""
    own = len(call.messages or ())
    found: list[_Piece] = []
    at = used = 0
    for place, start, stop in call.reuse if call.messages is not None else ():
        fresh = place - at
        if fresh < 0 or used + fresh > own or not 0 <= start <= stop:
            _misfit(call, start, stop)
        found += [_Piece(at, fresh, used, own=True), _Piece(place, stop - start, start, own=False)]
        at, used = place + stop - start, used + fresh
    return [*found, _Piece(at, own - used, used, own=True)]


def _misfit(call: ModelCall, start: int, stop: int) -> NoReturn:
    raise NotFound(
        f"model call {call.id} takes messages {start} to {stop} of call {call.base}: they are not there, or have no "
        "place in it", hint="the recording of this call is damaged: trackway verify", call=call.id, base=call.base,
    )  # fmt: skip


def rebuild(call: ModelCall, base: list[Any] | None) -> list[Any] | None:
    """The messages of one call, given those of the call it was recorded against.

    >>> rebuild(ModelCall(id="2", reuse=((0, 0, 2), (3, 2, 3)), messages=("new",)), ["a", "b", "c"])
    ['a', 'b', 'new', 'c']
    """
    if call.messages is None:
        return None
    result: list[Any] = []
    for _, size, start, own in _pieces(call):
        if not own and start + size > len(base or ()):
            _misfit(call, start, start + size)
        result += (call.messages if own else base or ())[start : start + size]
    return result


def resolve(
    call: ModelCall, calls: Mapping[str, ModelCall], own: Callable[[ModelCall], Sequence[Any]] | None = None
) -> list[Any] | None:
    """The messages of one call without those of the calls between: each is fetched from where it was first recorded.

    ``own`` gives a call's new messages, where something else is to stand for them.
    """
    if call.messages is None:
        return None
    last = _pieces(call)[-1]
    result: list[Any] = [None] * (last.at + last.size)
    wanted = [(0, 0, len(result))]
    by = call
    for each in chain(call, calls):
        wanted = _fetched(each, wanted, result, own(each) if own else each.messages or (), by=by)
        if not wanted:
            return result
        by = each
    _misfit(by, wanted[0][1], wanted[0][2])


def _fetched(
    call: ModelCall, wanted: list[tuple[int, int, int]], result: list[Any], messages: Sequence[Any], *, by: ModelCall
) -> list[tuple[int, int, int]]:
    """Put in place what is the call's own; gives what its base has. Wanted is ``(place in result, start, stop)``."""
    pieces = _pieces(call)
    ends = [each.at + each.size for each in pieces]
    deeper = []
    for place, start, stop in wanted:
        if stop > ends[-1]:
            _misfit(by, start, stop)
        for index in range(bisect_right(ends, start), len(pieces)):
            at, size, first, own = pieces[index]
            if at >= stop:
                break
            low, high = max(start, at), min(stop, at + size)
            to, source = place + low - start, first + low - at
            if own:
                result[to : to + high - low] = messages[source : source + high - low]
            elif high > low:
                deeper.append((to, source, source + high - low))
    return deeper
