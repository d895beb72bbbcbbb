"""When it was worked: quarters of an hour as days and hours, local or UTC, and as a line of bars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

_SECONDS: Final = 900
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
_NOTHING: Final = "·"
_HOURS: Final = 24


class Day(NamedTuple):
    """What happened on one day: events, and milliseconds worked."""

    day: date
    events: int
    worked: int


def days_of(slots: Mapping[int, tuple[int, int]], *, utc: bool) -> list[Day]:
    """The days on which anything happened, the earliest first."""
    found: dict[date, list[int]] = {}
    for slot, (events, worked) in slots.items():
        there = _moment(slot, utc=utc)
        if there is not None:
            sums = found.setdefault(there.date(), [0, 0])
            sums[0] += events
            sums[1] += worked
    return [Day(day, *found[day]) for day in sorted(found)]


def hours_of(slots: Mapping[int, tuple[int, int]], *, utc: bool) -> list[int]:
    """Milliseconds worked by the hour of the day."""
    found = [0] * _HOURS
    for slot, (_, worked) in slots.items():
        there = _moment(slot, utc=utc)
        if there is not None:
            found[there.hour] += worked
    return found


def _moment(slot: int, *, utc: bool) -> datetime | None:
    """When a quarter of an hour begins; None where no calendar has it: an imported time may be anything."""
    try:
        return datetime.fromtimestamp(slot * _SECONDS, UTC if utc else None)
    except (OverflowError, ValueError, OSError):
        return None


def day_of(at: int | None, *, utc: bool) -> date | None:
    """The day of a time in UTC nanoseconds; None where there is none."""
    found = None if at is None else _moment(at // (_SECONDS * 1_000_000_000), utc=utc)
    return None if found is None else found.date()


def sparkline(days: list[Day], columns: int) -> tuple[str, int]:
    """Work over time as bars, the latest last, and how many days each stands for; a day without any is a dot.

    >>> sparkline([Day(date(2026, 11, 1), 9, 10), Day(date(2026, 11, 4), 9, 80)], 8)
    ('▁··█', 1)
    """
    if not days or columns < 1:
        return "", 1
    first, last = days[0].day, days[-1].day
    each = math.ceil(((last - first).days + 1) / columns)
    sums: dict[int, int] = {}
    for day in days:
        place = (last - day.day).days // each
        sums[place] = sums.get(place, 0) + (day.worked or 1)
    most = max(sums.values())
    heights = (sums.get(place, 0) for place in range((last - first).days // each, -1, -1))
    return "".join(_NOTHING if not size else _HEIGHTS[math.ceil(size / most * 8) - 1] for size in heights), each


def begins(days: list[Day], columns: int) -> date:
    """The first day that the bars stand for."""
    _, each = sparkline(days, columns)
    bars = (days[-1].day - days[0].day).days // each + 1
    try:
        return days[-1].day - timedelta(days=bars * each - 1)
    except OverflowError:
        return days[0].day
