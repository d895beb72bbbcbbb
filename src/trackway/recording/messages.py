"""What is new in a model's context: each message is encoded and compared with earlier calls by a fast digest.

Only new messages are recorded; the rest is named by its place in the call it has most in common with. Object identity
is never trusted (a message may be edited in place) and neither is ``==`` (1 == True): equal bytes are equal messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from xxhash import xxh3_128_digest

from trackway.recording.redact import Redactor, Tally
from trackway.schema.codec import encode_fast, exact
from trackway.schema.outside import is_thrown_in
from trackway.schema.plain import is_plain, plain

Reuse = tuple[tuple[int, int, int], ...]


class Difference(NamedTuple):
    """A context told by the one before it."""

    reuse: Reuse
    messages: tuple[Any, ...]


class Taken(NamedTuple):
    """A context looked at, not yet the base of the next one."""

    base: str | None
    difference: Difference
    digests: list[bytes]
    redacted: dict[str, int]


class _Base(NamedTuple):
    """A call that others may refer to."""

    call_id: str
    digests: list[bytes]


_NO_BASE: Final = _Base("", [])
_REMEMBERED: Final = 8


class ContextTracker:
    """The digests of an agent's last few calls that were recorded. Not thread-safe: the view locks.

    A few and not one: agents ask other things in between (a title, a summary), rewind, and go on where they were.
    """

    def __init__(self) -> None:
        self._bases: deque[_Base] = deque(maxlen=_REMEMBERED)

    def commit(self, call_id: str, taken: Taken) -> None:
        """The call was recorded: the next ones may refer to it."""
        for i, known in enumerate(self._bases):
            if known.call_id == taken.base and known.digests == taken.digests[: len(known.digests)]:
                del self._bases[i]  # the new one says all that it said
                break
        self._bases.append(_Base(call_id, taken.digests))

    def _nearest(self, digests: list[bytes]) -> _Base:
        """The call that has most in common with this one, the last of those that have."""
        if not self._bases:
            return _NO_BASE
        last = self._bases[-1]
        size = len(last.digests)
        # The usual case, without counting: it goes on from the last one, and no other is long enough to have more.
        if digests[:size] == last.digests and all(len(known.digests) <= size for known in self._bases):
            return last
        wanted = frozenset(digests)
        return max(reversed(self._bases), key=lambda known: len(wanted.intersection(known.digests)))

    def look(self, messages: Iterable[Any], redactor: Redactor | None = None) -> Taken:
        """The base and the difference to it, secrets hidden in what is new: what was said before was hidden then."""
        given = list(messages)
        encoded, digests = [], []
        raw = True
        for each in given:
            try:
                body = encode_fast(each)
            except Exception as error:  # what msgpack has no word for is kept as a value, not as bytes
                if is_thrown_in(error):
                    raise
                body, raw = encode_fast(exact(plain(each))), False
            encoded.append(body)
            digests.append(xxh3_128_digest(body))
        base = self._nearest(digests)
        reuse, fresh = difference(base.digests, digests)
        for i in fresh:
            if not is_plain(given[i]):  # what was said before has been looked at then
                raw, given = False, [plain(each) for each in given]
                break
        tally = Tally()
        if redactor is not None:
            new = tuple([redactor.value(plain(given[i]), tally) for i in fresh])
        else:
            new = tuple([msgspec.Raw(encoded[i]) if raw else given[i] for i in fresh])
        return Taken(base.call_id if reuse else None, Difference(reuse, new), digests, dict(tally.counts))


def difference(before: Sequence[bytes], now: Sequence[bytes]) -> tuple[Reuse, list[int]]:
    """Which stretches of ``before`` stand where in ``now``, and which places of ``now`` are new.

    >>> difference([b"a", b"b", b"c"], [b"a", b"x", b"c", b"d"])
    (((0, 0, 1), (2, 2, 3)), [1, 3])
    """
    if len(now) >= len(before) and now[: len(before)] == before:
        return (((0, 0, len(before)),) if before else ()), list(range(len(before), len(now)))
    places = {digest: i for i, digest in reversed(list(enumerate(before)))}
    reuse: list[tuple[int, int, int]] = []
    fresh: list[int] = []
    at = 0
    while at < len(now):
        start = places.get(now[at])
        if start is None:
            fresh.append(at)
            at += 1
            continue
        stop = start
        while stop < len(before) and at + stop - start < len(now) and before[stop] == now[at + stop - start]:
            stop += 1
        reuse.append((at, start, stop))
        at += stop - start
    return tuple(reuse), fresh
