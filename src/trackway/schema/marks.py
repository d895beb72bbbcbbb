r"""A plain value ↔ JSON that any parser loads without changing it.

What JSON has no word for, or what parsers damage, is an object with one key, and only these seven are such a mark:

    {"$float": "nan"}  {"$integer": "9007199254740993"}  {"$base64": "/w=="}  {"$text": "lone \\ud83d"}
    {"$tuple": [1]}  {"$time": "2027-01-15T08:00:00+00:00"}  {"$map": [[1, "a key that is no text"]]}

A mapping that looks like a mark stands as its pairs, in a ``$map``. Everything else is itself. Spelling is part of the
format: a value has one, in every version.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from trackway.errors import EventRefused
from trackway.schema.codec import Ext

_DEEPEST: Final = 100
_SAFE: Final = 2**53 - 1
_LONGEST_DECIMAL: Final = 10_000
"""In bits: Python refuses to print much longer ones in decimal."""

_SURROGATE: Final = re.compile(r"[\\\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:(\\)|u(d[89a-f][0-9a-f]{2})|)")
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,3999}|0x[0-9a-f]+)")

dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""JSON of what ``spelled`` gave, in one line; floats as Python's ``repr``."""


class Unspeakable(Exception):
    """A value that better stands as its bytes: deeper than other people's parsers go, or of an unknown extension."""


def spelled(value: Any, depth: int = 0) -> Any:  # noqa: ANN401
    """The value in JSON's words, marks where it has none; ``TypeError`` for what no store gives back."""
    spell = _SPELLINGS.get(type(value))
    if spell is not None:
        return spell(value)
    if depth > _DEEPEST or type(value) is Ext:
        raise Unspeakable
    if type(value) is dict:
        return _mapping(value, depth + 1)
    if type(value) is list:
        return [spelled(each, depth + 1) for each in value]
    if type(value) is tuple:
        return {"$tuple": [spelled(each, depth + 1) for each in value]}
    raise TypeError(f"a value in it is a {type(value).__name__}")


def _mapping(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    if all(type(key) is str and is_utf8(key) for key in value) and not (len(value) == 1 and _MARKS.keys() & value):
        return {key: spelled(each, depth) for key, each in value.items()}
    return {"$map": [[spelled(key, depth), spelled(each, depth)] for key, each in value.items()]}


def text(value: str) -> Any:  # noqa: ANN401
    """Text as it is; with lone surrogates, marked and each of them written out."""
    if is_utf8(value):
        return value
    return {"$text": _SURROGATE.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\u{ord(found[0]):x}", value)}


def is_utf8(value: str) -> bool:
    """Whether the text has no lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def integer(value: int) -> Any:  # noqa: ANN401
    """A number as it is while every parser keeps it exactly, marked beyond."""
    if -_SAFE <= value <= _SAFE:
        return value
    return {"$integer": str(value) if value.bit_length() <= _LONGEST_DECIMAL else f"{value:#x}"}


def _float(value: float) -> Any:  # noqa: ANN401
    return value if value - value == 0 else {"$float": repr(value)}


def base64_of(body: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(body).decode()


_SPELLINGS: Final[dict[type, Callable[[Any], Any]]] = {
    str: text,
    int: integer,
    float: _float,
    bool: lambda value: value,
    type(None): lambda value: value,
    bytes: lambda value: {"$base64": base64_of(value)},
    datetime: lambda value: {"$time": value.isoformat()},
}


# --- reading ------------------------------------------------------------------------------------------------------


def object_of(line: bytes | str) -> dict[str, Any]:
    """The object of a line, marks read as what they stand for; raises ``EventRefused``, also where a name is twice."""
    try:
        tree = _read(line if isinstance(line, str) else line.decode())
    except UnicodeDecodeError as error:
        raise EventRefused(f"not UTF-8: {error.reason} at byte {error.start} of the line") from error
    except (RecursionError, ValueError) as error:
        raise EventRefused(f"not JSON as trackway writes it: {error}") from error
    if type(tree) is not dict or not all(type(name) is str for name in tree):
        raise EventRefused(f"a line is an object, this is a {type(tree).__name__}")
    return tree


def bytes_of(value: Any) -> bytes:  # noqa: ANN401
    """The bytes of base64; raises ``ValueError`` for what is none."""
    if type(value) is not str:
        raise ValueError(f"base64 is text, not a {type(value).__name__}")
    return base64.b64decode(value, validate=True)


def _object(pairs: list[tuple[str, Any]]) -> Any:  # noqa: ANN401
    """An object as it closes: a mapping, or what its mark stands for."""
    if len(pairs) == 1 and pairs[0][0] in _MARKS:
        mark, value = pairs[0]
        wanted, meaning = _MARKS[mark]
        if type(value) is not wanted:
            raise ValueError(f"{mark} wants a {wanted.__name__}, not a {type(value).__name__}")
        return meaning(value)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _lone_surrogates(value: str) -> str:
    def meant(found: re.Match[str]) -> str:
        if found[0] == "\\":
            raise ValueError("$text has a backslash that marks nothing")
        return found[1] or chr(int(found[2], 16))

    return _ESCAPED.sub(meant, value)


def _big_integer(value: str) -> int:
    if _INTEGER.fullmatch(value) is None:
        raise ValueError(f"{value[:40]!r} is no $integer")
    return int(value, 16 if "x" in value else 10)


def _special_float(value: str) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(f"{value[:40]!r} is no $float")
    return float(value)


def _pairs(pairs: list[Any]) -> dict[Any, Any]:
    if not all(type(each) is list and len(each) == 2 for each in pairs):
        raise ValueError("$map wants pairs")
    try:
        found = dict(pairs)
    except TypeError as error:
        raise ValueError(f"$map: {error}") from error
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one $map")
    return found


_MARKS: Final[dict[str, tuple[type, Callable[[Any], Any]]]] = {
    "$float": (str, _special_float),
    "$integer": (str, _big_integer),
    "$base64": (str, bytes_of),
    "$text": (str, _lone_surrogates),
    "$tuple": (list, tuple),
    "$time": (str, datetime.fromisoformat),
    "$map": (list, _pairs),
}


def _finite(digits: str) -> float:
    value = float(digits)
    if value - value != 0:
        raise ValueError(f"{digits[:40]} is beyond every float")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


_read = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant).decode
