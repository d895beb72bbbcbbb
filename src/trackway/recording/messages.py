"""What is new in a model's context: each message is encoded and compared with earlier calls by a fast digest.

Only new messages are recorded; the rest is named by its place in the call it has most in common with. Object identity
is never trusted (a message may be edited in place) and neither is ``==`` (1 == True): equal bytes are equal messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from xxhash import xxh3_128_digest

from trackway.recording.redact import Redactor, Tally
from trackway.schema.codec import encode_fast, exact
from trackway.schema.contexts import Reuse, difference
from trackway.schema.outside import is_thrown_in
from trackway.schema.plain import is_plain, plain
from trackway.store.large import BIG


class Difference(NamedTuple):
    """A context told by the one before it."""

    reuse: Reuse
    messages: tuple[Any, ...]


class Taken(NamedTuple):
    """A context looked at, not yet the base of the next one."""

    base: str | None
    difference: Difference
    digests: list[bytes]
    fresh: list[bytes]
    redacted: dict[str, int] | None
    large: bool = False
    """Whether a new message is better kept in parts."""


class _Base(NamedTuple):
    """A call that others may refer to."""

    call_id: str
    digests: list[bytes]


_NO_BASE: Final = _Base("", [])
_REMEMBERED: Final = 8
_ROOM: Final = 256


class ContextTracker:
    """The digests of an agent's last few calls that were recorded. Not thread-safe: the view locks.

    A few and not one: agents ask other things in between (a title, a summary), rewind, and go on where they were.
    ``_known`` holds every digest of these calls, and some of calls that are forgotten: what is not in it is new.
    """

    def __init__(self) -> None:
        self._bases: deque[_Base] = deque(maxlen=_REMEMBERED)
        self._known: set[bytes] = set()
        self._room = _ROOM

    def commit(self, call_id: str, taken: Taken) -> None:
        """The call was recorded: the next ones may refer to it."""
        for i in range(len(self._bases) - 1, -1, -1):
            known = self._bases[i]
            if known.call_id == taken.base:
                if known.digests == taken.digests[: len(known.digests)]:
                    del self._bases[i]  # the new one says all that it said
                break
        self._bases.append(_Base(call_id, taken.digests))
        self._known.update(taken.fresh)
        if len(self._known) > self._room:
            self._known = {digest for base in self._bases for digest in base.digests}
            self._room = 2 * len(self._known) + _ROOM

    def look(self, messages: Iterable[Any], redactor: Redactor | None = None) -> Taken:
        """The base and the difference to it, secrets hidden in what is new: what was said before was hidden then."""
        given = list(messages)
        try:
            encoded, raw = [encode_fast(each) for each in given], True
        except Exception as error:  # what msgpack has no word for is kept as a value, not as bytes
            if is_thrown_in(error):
                raise
            encoded, raw = [_encoded(each) for each in given], False
        digests = [xxh3_128_digest(body) for body in encoded]
        large = sum(map(len, encoded)) >= BIG
        if large:  # none of these is held as bytes beside what it is
            encoded = [body if len(body) < BIG else b"" for body in encoded]
        base, reuse, fresh = self._against(digests)
        for i in fresh:
            if not is_plain(given[i]):  # what was said before has been looked at then
                raw, given = False, [plain(each) for each in given]
                break
        counts = None
        if redactor is not None:
            tally = Tally()
            new = tuple([redactor.value(plain(given[i]), tally) for i in fresh])
            counts = dict(tally.counts)
        else:
            new = tuple([msgspec.Raw(encoded[i]) if raw and encoded[i] else given[i] for i in fresh])
        found = Difference(reuse, new)
        return Taken(base.call_id if reuse else None, found, digests, [digests[i] for i in fresh], counts, large)

    def _against(self, digests: list[bytes]) -> tuple[_Base, Reuse, list[int]]:
        """The call that has most in common with this one, the last of those that have, and how the two differ."""
        if not self._bases:
            return _NO_BASE, (), list(range(len(digests)))
        last = self._bases[-1]
        reuse, fresh = difference(last.digests, digests)
        if self._known.isdisjoint([digests[i] for i in fresh]):  # the usual case: no other call has more to offer
            return last, reuse, fresh
        wanted = frozenset(digests)
        best = max(reversed(self._bases), key=lambda known: len(wanted.intersection(known.digests)))
        return best, *difference(best.digests, digests)


def _encoded(message: Any) -> bytes:  # noqa: ANN401
    try:
        return encode_fast(message)
    except Exception as error:
        if is_thrown_in(error):
            raise
        return encode_fast(exact(plain(message)))
