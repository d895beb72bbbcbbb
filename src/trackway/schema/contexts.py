"""What one model call was given, told by what another was: the stretches they share, and what is new."""

from __future__ import annotations

from collections.abc import Sequence

Reuse = tuple[tuple[int, int, int], ...]
"""Stretches of an earlier context in a later one: ``(at, start, stop)``, as ``ModelCall.reuse`` has them."""


def difference(before: Sequence[bytes], now: Sequence[bytes]) -> tuple[Reuse, list[int]]:
    """Which stretches of ``before`` stand where in ``now``, and which places of ``now`` are new.

    >>> difference([b"a", b"b", b"c"], [b"a", b"x", b"c", b"d"])
    (((0, 0, 1), (2, 2, 3)), [1, 3])
    """
    if len(now) >= len(before) and now[: len(before)] == before:
        return (((0, 0, len(before)),) if before else ()), list(range(len(before), len(now)))
    places = dict(zip(reversed(before), range(len(before) - 1, -1, -1), strict=True))  # of equal ones the first
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
