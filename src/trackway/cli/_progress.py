"""A bar on stderr while something long goes on: only on a terminal, gone when it is done, never in the answer."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from trackway.cli._text import bar, fit, pad

_AFTER: Final = 0.3
_EVERY: Final = 0.1
_BAR: Final = 24

Done = Callable[[int], None]
"""Says that so much more is done."""

Stage = Callable[[str, int, int], None]
"""Says what is being done, how much of it is done, and how much there is (0 where nobody knows)."""


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Done]:
    """Call what this gives with each piece done; what is over in a moment shows nothing."""
    if not sys.stderr.isatty():
        yield lambda _more: None
        return
    shown = _Bar(label, total)
    try:
        yield shown.add
    finally:
        shown.clear()


@contextmanager
def stages() -> Iterator[Stage]:
    """For work that goes through several stages and says itself how far it is in each."""
    if not sys.stderr.isatty():
        yield lambda _label, _done, _total: None
        return
    shown = _Bar("", None)
    try:
        yield shown.at
    finally:
        shown.clear()


class _Bar:
    def __init__(self, label: str, total: int | None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._next = time.monotonic() + _AFTER
        self._drawn = False

    def add(self, more: int) -> None:
        self._done += more
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._draw()

    def at(self, label: str, done: int, total: int) -> None:
        self._label, self._total, self._done = label, total or None, done
        self.add(0)

    def _draw(self) -> None:
        said = f"{self._done:,}"
        if self._total:
            share = min(1.0, self._done / self._total)
            said = f"{pad(bar(share, _BAR), _BAR)} {share:4.0%}  {self._done:,} of {self._total:,}"
        columns = shutil.get_terminal_size((80, 24)).columns
        sys.stderr.write(f"\r\x1b[K{fit(f'{self._label} {said}', columns - 1)}")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
