"""align(a, b): which items of two sequences belong together, in order, like a ``diff``.

The common beginning and end are matched first. Between them, items that occur once on both sides are anchors (the
longest rising run of them, as in a patience diff). Between two anchors the longest common subsequence is found with bit
vectors: exact, and 64 comparisons at a time. A stretch too long for that is cut into windows that are matched each for
itself. So the work grows with the length of the sequences and never with its square.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

Match = tuple[int, int]

_CELLS: Final = 1 << 26
"""How many comparisons one window may take: as bits, they are 8 MB."""


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Match]:
    """The places that match, rising on both sides.

    >>> align("abcxd", "abyd")
    [(0, 0), (1, 1), (4, 3)]
    """
    head = common_prefix(a, b)
    tail = _common_suffix(a, b, head)
    ends = len(a) - tail, len(b) - tail
    found = [(at, at) for at in range(head)]
    edges = [(head - 1, head - 1), *_anchors(a, b, head, ends), ends]
    for (left_a, left_b), (right_a, right_b) in pairwise(edges):
        for at_a, stop_a, at_b, stop_b in _windows(left_a + 1, right_a, left_b + 1, right_b):
            matches = _common_subsequence(a[at_a:stop_a], b[at_b:stop_b])
            found += [(at_a + i, at_b + j) for i, j in matches]
        if (right_a, right_b) != ends:
            found.append((right_a, right_b))
    found += [(ends[0] + at, ends[1] + at) for at in range(tail)]
    return found


def common_prefix(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """How many items both begin with."""
    most = min(len(a), len(b))
    return next((at for at in range(most) if a[at] != b[at]), most)


def _common_suffix(a: Sequence[Hashable], b: Sequence[Hashable], head: int) -> int:
    most = min(len(a), len(b)) - head
    return next((at for at in range(most) if a[-1 - at] != b[-1 - at]), most)


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], start: int, ends: Match) -> list[Match]:
    """Items that occur once on each side, as many as rise together."""
    counts_a, counts_b = Counter(a[start : ends[0]]), Counter(b[start : ends[1]])
    places = {b[at]: at for at in range(start, ends[1]) if counts_b[b[at]] == 1}
    both = [(at, places[a[at]]) for at in range(start, ends[0]) if counts_a[a[at]] == 1 and a[at] in places]
    return _longest_rise(both)


def _longest_rise(matches: list[Match]) -> list[Match]:
    """The longest run that rises on the right side too; the left one does already.

    >>> _longest_rise([(0, 2), (1, 0), (2, 1), (3, 5)])
    [(1, 0), (2, 1), (3, 5)]
    """
    lowest: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, right) in enumerate(matches):
        length = bisect_left(lowest, right)
        before.append(ends[length - 1] if length else -1)
        lowest[length : length + 1] = [right]
        ends[length : length + 1] = [at]
    found: list[Match] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(matches[at])
        at = before[at]
    return found[::-1]


def _windows(at_a: int, stop_a: int, at_b: int, stop_b: int) -> Iterator[tuple[int, int, int, int]]:
    """The stretch, cut on both sides in proportion into pieces that are small enough; none where a side is empty."""
    long_a, long_b = stop_a - at_a, stop_b - at_b
    pieces = 1
    while -(-long_a // pieces) * -(-long_b // pieces) > _CELLS:
        pieces += 1
    for piece in range(pieces if long_a and long_b else 0):
        yield (
            at_a + long_a * piece // pieces, at_a + long_a * (piece + 1) // pieces,
            at_b + long_b * piece // pieces, at_b + long_b * (piece + 1) // pieces,
        )  # fmt: skip


def _common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Match]:
    """The longest common subsequence (Hyyrö 2004): one whole number is a row of the table, a bit of it a cell.

    >>> _common_subsequence("axbyc", "abc")
    [(0, 0), (2, 1), (4, 2)]
    """
    if len(a) > len(b):  # a row is a step in Python: the fewer, the longer, the better
        return [(i, j) for j, i in _common_subsequence(b, a)]
    masks = _masks(a, b)
    every = (1 << len(b)) - 1
    row = every
    rows: list[int] = []
    for item in a:
        hits = row & masks.get(item, 0)
        row = ((row + hits) | (row - hits)) & every
        rows.append(row)
    return _walk_back(rows, len(b))


def _masks(a: Sequence[Hashable], b: Sequence[Hashable]) -> dict[Hashable, int]:
    """For each item of ``a``, where it stands in ``b``, as bits."""
    bits: dict[Hashable, bytearray] = {item: bytearray() for item in a}
    size = (len(b) + 7) // 8
    for at, item in enumerate(b):
        found = bits.get(item)
        if found is not None:
            if not found:
                found.extend(bytes(size))
            found[at >> 3] |= 1 << (at & 7)
    return {item: int.from_bytes(found, "little") for item, found in bits.items()}


def _walk_back(rows: list[int], columns: int) -> list[Match]:
    """The matches of the table: a cleared bit is where the common subsequence grew."""
    found: list[Match] = []
    row, column = len(rows), columns
    while row and column:
        if rows[row - 1] >> (column - 1) & 1:
            column -= 1
            continue
        row -= 1
        if not row or rows[row - 1] >> (column - 1) & 1:
            column -= 1
            found.append((row, column))
    return found[::-1]
