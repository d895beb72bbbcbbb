"""What stands in a file, taken as what should stand there: a value of another type counts as missing, and never raises.

Nothing is lost by that: whoever reads the entry keeps it whole beside what was taken from it.
"""

from __future__ import annotations

import math
from typing import Any, Final

_MOST: Final = 2**63 - 1


def text(value: object) -> str:
    """The value where it is a text, else an empty one.

    >>> text("said"), text(7), text(None)
    ('said', '', '')
    """
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one.

    >>> mapping({"a": 1}), mapping([1]), mapping(None)
    ({'a': 1}, {}, {})
    """
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """The value where it is a list, else an empty one.

    >>> listing([1]), listing({"a": 1}), listing("abc")
    ([1], [], [])
    """
    return value if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """The value where it is a whole number that can be kept as one; yes and no are none.

    >>> whole(7), whole(True), whole(7.0), whole(2**63)
    (7, None, None, None)
    """
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST else None


def number(value: object) -> float | None:
    """The value as a number where it is one, or says yes or no.

    >>> number(7), number(True), number(float("nan")), number("7")
    (7.0, 1.0, None, None)
    """
    if isinstance(value, (bool, int, float)) and abs(value) <= _MOST and math.isfinite(value):
        return float(value)
    return None


def milliseconds(seconds: object) -> float | None:
    """Seconds as milliseconds; None where they are no time that passes.

    >>> milliseconds(1.5), milliseconds(-1), milliseconds(True)
    (1500.0, None, None)
    """
    found = None if isinstance(seconds, bool) else number(seconds)
    return None if found is None or found < 0 else round(found * 1000, 3)


def part_of(fields: object, name: str) -> dict[str, Any]:
    """An object inside an object; an empty one where there is none.

    >>> part_of({"a": {"b": 1}}, "a"), part_of({"a": 1}, "a"), part_of(None, "a")
    ({'b': 1}, {}, {})
    """
    return mapping(mapping(fields).get(name))


def text_at(fields: object, name: str) -> str | None:
    """A text inside an object; None where there is none, or it is empty.

    >>> text_at({"a": "said"}, "a"), text_at({"a": ""}, "a"), text_at(None, "a")
    ('said', None, None)
    """
    return text(mapping(fields).get(name)) or None
