"""How long episodes are kept: limits as people write them, ``90d`` and ``5GB``, and as numbers.

An episode goes when any limit says so, unless it carries a tag of ``keep_tags`` or is still running. No limit, nothing
goes. A value that cannot be read is refused when the struct is made, so whoever holds one can rely on it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from trackway.errors import BadSetting

_NS: Final = 1_000_000_000
_AGES: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_SIZES: Final = {
    "": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12, "tb": 10**12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_DIGITS: Final = 18
KEEP: Final = "keep"
"""The tag that protects an episode where nobody names another."""


def age_ns(text: str, what: str = "max_age") -> int:
    """A length of time in nanoseconds.

    >>> age_ns("90d") == 90 * 86_400 * 10**9
    True
    """
    found = _NUMBER.fullmatch(text.strip().lower())
    if found is None or found[2] not in _AGES:
        raise BadSetting(f"{what} is {text!r}", hint="write 30m, 12h, 90d, 2w or 1y", value=text)
    return int(_times(found[1], _AGES[found[2]], text, what)) * _NS


def size_bytes(text: str | int, what: str = "max_size") -> int:
    """A size in bytes; ``GB`` is 10**9, ``GiB`` is 2**30.

    >>> size_bytes("1.5GB"), size_bytes("1KiB")
    (1500000000, 1024)
    """
    found = _NUMBER.fullmatch(str(text).strip().lower())
    if found is None or found[2] not in _SIZES:
        raise BadSetting(f"{what} is {text!r}", hint="write 500MB, 5GB or 2GiB", value=text)
    return _times(found[1], _SIZES[found[2]], str(text), what)


def _times(number: str, unit: int, text: str, what: str) -> int:
    if len(number) > _DIGITS:
        shown = text if len(text) <= 2 * _DIGITS else f"{text[:_DIGITS]}…"
        raise BadSetting(f"{what} is {shown!r}", hint=f"a number of at most {_DIGITS} digits", value=text)
    return int(float(number) * unit)


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``[retention]`` says: ``max_age = "90d"``, ``max_episodes = 1000``, ``max_size = "5GB"``, ``keep_tags``."""

    max_age: str | None = None
    max_episodes: int | None = None
    max_size: str | int | None = None
    keep_tags: tuple[str, ...] = (KEEP,)

    def __post_init__(self) -> None:
        if self.max_age is not None:
            age_ns(self.max_age)
        if self.max_size is not None:
            size_bytes(self.max_size)
        if self.max_episodes is not None and self.max_episodes < 0:
            raise BadSetting(f"max_episodes is {self.max_episodes}", hint="a number from 0 on", value=self.max_episodes)

    @property
    def is_limit(self) -> bool:
        """Whether anything at all is limited."""
        return (self.max_age, self.max_episodes, self.max_size) != (None, None, None)

    @property
    def age(self) -> int | None:
        """``max_age`` in nanoseconds."""
        return None if self.max_age is None else age_ns(self.max_age)

    @property
    def size(self) -> int | None:
        """``max_size`` in bytes."""
        return None if self.max_size is None else size_bytes(self.max_size)
