"""A moment as people write it: a day, a minute, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

FORMS: Final = "2025-11-15, 2025-11-15T08:30, 30m, 12h, 7d or 2w"
"""How it may be written, for messages."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"(\d+)\s*([smhdw])")
_NS: Final = 1_000_000_000


def instant(text: str, *, now: int, utc: bool = False) -> int:
    """UTC nanoseconds; ``utc`` says how a time without a zone is read. Raises ``ValueError`` for what is no time.

    >>> instant("2025-11-15T08:30+01:00", now=0)
    1763191800000000000
    >>> instant("2w", now=10**18)
    998790400000000000
    """
    ago = _AGO.fullmatch(text.strip().lower())
    try:
        if ago:
            return now - int(ago[1]) * _UNITS[ago[2]] * _NS
        said = datetime.fromisoformat(text.strip())
        if said.tzinfo is None and utc:
            said = said.replace(tzinfo=UTC)
        return int(said.timestamp() * 1_000_000) * 1000
    except OverflowError as error:
        raise ValueError(str(error)) from error
