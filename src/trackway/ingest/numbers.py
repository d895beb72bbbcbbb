"""A number by a number, for as many as a file has entries: 27 to 54 bytes each, where a dict takes 100 and more.

Up to some tens of thousands they are in a dict, which is faster. More are in two arrays, each key in the first free
place from where its low bits say. The loops are written out: a call costs as much as all they do.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

_FEW: Final = 1 << 14
_FULL: Final = 0.6
_NOTHING: Final = array("q")


class Numbers:
    """A dict from 64-bit numbers to 64-bit numbers, as far as it is needed: nothing is ever taken out.

    0 marks a free place, so it is no key: as one it is the same as 1, as two keys may be by chance.
    """

    __slots__ = ("_count", "_few", "_keys", "_last", "_values")

    def __init__(self) -> None:
        self._few: dict[int, int] | None = {}
        self._keys = self._values = _NOTHING
        self._count = self._last = 0

    def get(self, key: int) -> int | None:
        """What is there, or None."""
        key = key or 1
        if self._few is not None:
            return self._few.get(key)
        keys, last = self._keys, self._last
        at = key & last
        while (found := keys[at]) != key:
            if not found:
                return None
            at = (at + 1) & last
        return self._values[at]

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._count if self._few is None else len(self._few)

    def __setitem__(self, key: int, value: int) -> None:
        key = key or 1
        if self._few is not None:
            self._few[key] = value
            if len(self._few) > _FEW:
                self._move(self._few.items(), 2 * _FEW)
            return
        keys, last = self._keys, self._last
        at = key & last
        while (found := keys[at]) and found != key:
            at = (at + 1) & last
        keys[at], self._values[at] = key, value
        if not found:
            self._count += 1
            if self._count > _FULL * last:
                self._move(zip(keys, self._values, strict=True), 2 * last + 2)

    def setdefault(self, key: int, value: int) -> int:
        """What is there; this, where nothing was."""
        found = self.get(key)
        if found is None:
            self[key] = found = value
        return found

    def _move(self, items: Iterable[tuple[int, int]], size: int) -> None:
        """All of it into arrays of that many places, a power of two."""
        self._few, self._count, self._last = None, 0, size - 1
        self._keys, self._values = array("q", bytes(8 * size)), array("q", bytes(8 * size))
        for key, value in items:
            if key:
                self[key] = value
