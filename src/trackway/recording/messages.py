"""What is new in a model's context: each message is encoded and compared with the previous call by a fast digest.

Only new messages are recorded; the rest is named by its place in the call before. Object identity is never trusted (a
message may be edited in place) and neither is ``==`` (1 == True): equal bytes are equal messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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


class ContextTracker:
    """The digests of one agent's last call that was recorded. Not thread-safe: the view locks."""

    def __init__(self) -> None:
        self._base: str | None = None
        self._digests: list[bytes] = []

    def commit(self, call_id: str, taken: Taken) -> None:
        """The call was recorded: the next one may refer to it."""
        self._base, self._digests = call_id, taken.digests

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
        reuse, fresh = difference(self._digests, digests)
        for i in fresh:
            if not is_plain(given[i]):  # what was said before has been looked at then
                raw, given = False, [plain(each) for each in given]
                break
        tally = Tally()
        if redactor is not None:
            new = tuple([redactor.value(plain(given[i]), tally) for i in fresh])
        else:
            new = tuple([msgspec.Raw(encoded[i]) if raw else given[i] for i in fresh])
        return Taken(self._base if reuse else None, Difference(reuse, new), digests, dict(tally.counts))


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
