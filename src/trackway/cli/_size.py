"""How many bytes, as people read it. Units are the powers of ten that disks are sold by, as in ``prune --max-size``."""

from __future__ import annotations


def size(number: float) -> str:
    """Three figures or so.

    >>> size(87), size(1536), size(2_450_000_000)
    ('87 B', '1.5 kB', '2.5 GB')
    """
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= power:
            return f"{number / power:,.1f} {unit}"
    return f"{number:,.0f} B"
