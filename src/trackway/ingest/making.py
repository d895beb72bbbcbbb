"""What sources share when they make events of what they read: times, arguments, texts, keys, calls counted once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from blake3 import blake3

from trackway.ingest.numbers import Numbers
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import Event, FileState, ModelCall, ModelResult
from trackway.schema.plain import json_text, text_of

_TITLE: Final = 200
_NS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_5138: Final = 10**11
_MOST: Final = 2**63 - 1
_packed: Final = msgspec.msgpack.Encoder().encode


def at_of(value: Any) -> int:  # noqa: ANN401  whatever stands in a file where a time should
    """UTC nanoseconds of an ISO text, or of seconds, milli-, micro- or nanoseconds since 1970; 0 where it is no time.

    >>> at_of("1970-01-01T00:00:01.5Z"), at_of(1_700_000_000), at_of(1_700_000_000_123), at_of("soon"), at_of(None)
    (1500000000, 1700000000000000000, 1700000000123000000, 0, 0)
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return 0
    scale = _NS
    while value >= _YEAR_5138 * _NS // scale and scale > 1:
        scale //= 1000
    at = value * scale if isinstance(value, int) else round(value * scale)
    return at if at <= _MOST else 0


def _of_text(text: str) -> int:
    text = text.strip()
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            return at_of(float(text))
        except (ValueError, OverflowError):
            return 0
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    try:
        since = at - _EPOCH
    except OverflowError:
        return 0
    whole = (since.days * 86400 + since.seconds) * _NS + since.microseconds * 1000
    return whole if 0 < whole <= _MOST else 0


def args_of(value: Any) -> bytes:  # noqa: ANN401  a JSON value is anything
    """Arguments as bytes: a text as it is (it is what the model wrote), else JSON; nothing is an empty object."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return b"{}" if value is None else json_text(value)


def text_in(content: Any) -> str:  # noqa: ANN401  a message's content: a text, or blocks
    r"""The text of a message: as it is, or that of its blocks, one below the other; other blocks are left out.

    >>> text_in([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "output_text", "text": "b"}])
    'a\nb'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else ""
    if isinstance(content, list):
        texts = (
            each if isinstance(each, str) else each.get("text") for each in content if isinstance(each, (str, dict))
        )
        return "\n".join(each for each in texts if isinstance(each, str))
    return "" if content is None else text_of(content)


def is_only_text(content: Any) -> bool:  # noqa: ANN401
    """Whether ``text_in`` says all there is: then the blocks need not be kept beside it."""
    if isinstance(content, list):
        plain = ({"type", "text"}, {"text"})
        return all(isinstance(each, str) or (isinstance(each, dict) and set(each) in plain) for each in content)
    return content is None or isinstance(content, str)


def task_of(prompt: str) -> str:
    """What an episode is called after its first prompt: the first line that says something."""
    for line in prompt.splitlines():
        said = line.strip()
        if said:
            return said if len(said) <= _TITLE else said[: _TITLE - 1] + "…"
    return ""


def rest_of(entry: Mapping[str, Any], *known: str) -> dict[str, Any] | None:
    """The fields that have no home in an event; None where all have."""
    left = {key: each for key, each in entry.items() if key not in known}
    return left or None


def left(entry: dict[str, Any], *known: str) -> dict[str, Any]:
    """What is in it beside ``known``, and says something."""
    return {key: each for key, each in entry.items() if key not in known and each not in (None, "", [], {})}


def digest_of(body: bytes) -> str:
    """A short name by content: 16 hex digits."""
    return blake3(body).hexdigest(8)


def file_state(content: bytes) -> FileState:
    """A file's content as events name it; the bytes go into the entry's ``contents``."""
    return FileState(hash=hash_bytes(content), size=len(content))


class Keys:
    """Names that may repeat, told apart: the second ``a`` is ``a#2``. The same file gives the same names."""

    def __init__(self) -> None:
        self._met = Numbers()  # by hash: a file has as many names as entries

    def of(self, name: str) -> str:
        """The name, with a number from its second time on."""
        known = hash(name)
        again = (self._met.get(known) or 0) + 1
        self._met[known] = again
        return name if again == 1 else f"{name}#{again}"


class Calls:
    """One model call said in several places: begun once; a result each time that more of it is known than before.

    A result is not held back until the last place was read: what follows may not have been written yet. Of several
    results of one call the last one counts, to every reading.
    """

    def __init__(self) -> None:
        self._told = Numbers()  # what was told of a call, both by hash

    def begin(self, call: str, model: str | None, at: int, agent: str | None = None) -> Iterator[Event]:
        """The call, where this is the first that is heard of it."""
        if hash(call) not in self._told:
            self._told[hash(call)] = 0
            yield ModelCall(id=call, model=model, at=at, agent=agent)

    def result(
        self, call: str, usage: Any, finish: str | None, at: int, agent: str | None = None, **more: Any,  # noqa: ANN401
    ) -> Iterator[Event]:  # fmt: skip
        """What came of it, where this says more than was known."""
        usage = usage if isinstance(usage, dict) else None
        told = hash((None if usage is None else _spelled(usage), finish))
        if (usage, finish) != (None, None) and told != self._told.get(hash(call)):
            self._told[hash(call)] = told
            yield ModelResult(id=call, usage=usage, finish_reason=finish, at=at, agent=agent, **more)


def _spelled(usage: dict[str, Any]) -> bytes | str:
    try:
        return _packed(usage)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return repr(usage)


def first_text(texts: Iterable[str]) -> str:
    """The first text that is not empty."""
    return next((each for each in texts if each.strip()), "")
