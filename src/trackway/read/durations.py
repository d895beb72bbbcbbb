"""Many lengths of time, kept by size in steps of 5 %, two bytes each: a quantile is right to within that.

Sums, the least and the most are exact. What was kept of several episodes is put together without looking at any one.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from typing import Final

import msgspec

_STEP: Final = math.log(1.05)
_LEAST: Final = 1e-3
_LITTLE: Final = sys.byteorder == "little"
_NS: Final = 1_000_000


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of time, in milliseconds: how many were told, their sum, the middle, and what few exceed."""

    n: int = 0
    total: float = 0.0
    p50: float | None = None
    p95: float | None = None


class Sizes(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Lengths of time as they are kept: the total in nanoseconds, and 16-bit numbers of steps, little-endian."""

    total: int = 0
    least: float = math.inf
    most: float = 0.0
    steps: bytes = b""


class Durations:
    """Lengths of time, counted by size."""

    __slots__ = ("_least", "_most", "_steps", "_total")

    def __init__(self) -> None:
        self._steps = array("h")
        self._total = 0  # a whole number: the sum is the same in whatever order it is made
        self._least, self._most = math.inf, 0.0

    def add(self, milliseconds: float | None) -> None:
        """Count one; None was not told."""
        if milliseconds is None:
            return
        try:
            length = float(milliseconds)
        except OverflowError:  # an integer that no clock has counted
            return
        if math.isfinite(length * _NS):
            self._total += round(length * _NS)
            self._least, self._most = min(self._least, length), max(self._most, length)
            self._steps.append(round(math.log(max(length, _LEAST)) / _STEP))

    def join(self, sizes: Sizes) -> None:
        """Count what was kept of others."""
        if not sizes.steps:
            return
        self._total += sizes.total
        self._least, self._most = min(self._least, sizes.least), max(self._most, sizes.most)
        self._steps.frombytes(sizes.steps if _LITTLE else _in_order(sizes.steps))

    def sizes(self) -> Sizes:
        """What there is to keep."""
        return Sizes(self._total, self._least, self._most, _in_order(self._steps.tobytes()))

    def spread(self) -> Spread:
        """Their sum and quantiles."""
        counts = Counter(self._steps)
        ranked = sorted(counts.items())
        return Spread(
            n=len(self._steps), total=self._total / _NS, p50=self._at(0.5, ranked), p95=self._at(0.95, ranked)
        )  # fmt: skip

    def _at(self, share: float, ranked: list[tuple[int, int]]) -> float | None:
        left = share * len(self._steps)
        for size, times in ranked:
            left -= times
            if left <= 0:
                return min(max(math.exp(size * _STEP), self._least), self._most)
        return None


def _in_order(steps: bytes) -> bytes:
    """The numbers little-endian, from or to this machine's order."""
    if _LITTLE:
        return steps
    turned = array("h", steps)
    turned.byteswap()
    return turned.tobytes()
