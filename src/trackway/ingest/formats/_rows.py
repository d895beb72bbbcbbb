"""Datasets: a file of rows, each an episode by itself, on a line of its own or as an element of one list.

A row is known by its content, so a file that was added to says the same rows again under the same names; of equal rows
in one file each is kept. A list that is cut off gives the rows that are whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import FileRefused
from trackway.ingest.decoding import value_of
from trackway.ingest.json_parts import parts
from trackway.ingest.making import Keys, digest_of
from trackway.ingest.original import LONGEST, Item, Original, Part
from trackway.ingest.source import Entry, Place, Trouble
from trackway.schema.events import EpisodeStart, Event, Header
from trackway.schema.plain import json_text

_LOOKED_AT: Final = 40
_spelled: Final = msgspec.json.Encoder(order="sorted").encode


class Row(NamedTuple):
    """One row: the name of its episode, what it says, where it stands, and its line where it is one."""

    session: str
    value: Any
    place: Place
    raw: bytes = b""


def rows(original: Original) -> Iterator[Row | Trouble]:
    """Every row of a file that is an object, or a list where each line is one; anything else is trouble."""
    keys = Keys()
    if is_one_list(original):
        for part in elements(original):
            yield part if isinstance(part, Trouble) else Row(keys.of(name_of(part.value)), part.value, Place())
        return
    for item in items(original):
        if isinstance(item, Trouble):
            yield item
        elif isinstance(item.value, (dict, list)):
            yield Row(keys.of(digest_of(item.raw)), item.value, item.place, item.raw)
        else:
            yield Trouble(item.place, f"no row: {item.value!r:.40}")


def items(original: Original) -> Iterator[Item | Trouble]:
    """``original.items``; one object spread over many lines, however many, is one item."""
    if is_spread(original):
        value = original.value()
        yield Item(value, Place(0, 1), b"".join(original.blocks()))
    else:
        yield from original.items()


def is_spread(original: Original) -> bool:
    """Whether a file is one value over many lines: its first says nothing by itself, nor does another that begins one.

    A file of lines whose first is broken is none: a later line of it is a whole object.
    """
    lines = [each for each in original.head().body.split(b"\n") if each.strip()][:_LOOKED_AT]
    return (
        len(lines) > 1 and not _is_whole(lines[0]) and not any(each[:1] == b"{" and _is_whole(each) for each in lines)
    )


def _is_whole(line: bytes) -> bool:
    try:
        return bool(value_of(line))
    except (ValueError, RecursionError):
        return False


def is_one_list(original: Original) -> bool:
    """Whether a file is one list, and not a list on each line."""
    head = original.head()
    if head.body.lstrip()[:1] != b"[":
        return False
    return not (len(head.lines) > 1 and all(isinstance(each, list) for each in head.lines))


def elements(original: Original, *split: str) -> Iterator[Part | Trouble]:
    """``original.members``; of a document that is not whole, the parts that are, and then what is wrong."""
    found = False
    try:
        for part in original.members(*split):
            found = True
            yield part
    except FileRefused as error:
        if found:
            yield Trouble(Place(), error.message)
            return
        yield from _whole_ones(original, split, error)


def _whole_ones(original: Original, split: tuple[str, ...], refused: FileRefused) -> Iterator[Part | Trouble]:
    found = False
    try:
        for key, number, raw in parts(original.blocks(), frozenset(split), LONGEST):
            value = value_of(raw)
            found = True
            yield Part(key, number, value)
    except (ValueError, RecursionError):
        pass
    if not found:
        raise refused
    yield Trouble(Place(), f"{refused.message}; what stands before that was read")


def beside(original: Original, *split: str) -> dict[str, Any]:
    """The members of a document that stand beside its long lists, which are passed by unread."""
    found: dict[str, Any] = {}
    try:
        for key, number, raw in parts(original.blocks(), frozenset(split), LONGEST):
            if number is None:
                found[key] = value_of(raw)
    except (ValueError, RecursionError):
        pass  # who reads the lists says so
    return found


def name_of(value: Any) -> str:  # noqa: ANN401  a JSON value is anything
    """A short name of a value by its content, whatever the order of its keys."""
    try:
        return digest_of(_spelled(value))
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, RecursionError, TypeError, ValueError):
        return digest_of(json_text(value))


def start(
    session: str, header: Header, *more: Event, at: int = 0, place: Place = Place(), native: Any = None,  # noqa: ANN401, B008
) -> Entry:  # fmt: skip
    """The first entry of an episode."""
    return Entry(session, "start", [EpisodeStart(header=header, at=at), *more], place, None, native)


def header(source: str, task: str, **more: Any) -> Header:  # noqa: ANN401  what the header takes
    """What is known when the episode starts; read from a file that was written when it was over."""
    return Header(task=task, source=source, taps=("transcript",), **more)


def outcome_of(reward: float | None) -> str | None:
    """Success at 1, failure at 0, partial in between; beyond that a number says nothing by itself.

    >>> outcome_of(1.0), outcome_of(0), outcome_of(0.5), outcome_of(7.0), outcome_of(None)
    ('success', 'failure', 'partial', None, None)
    """
    if reward is None or not 0 <= reward <= 1:
        return None
    return "success" if reward == 1 else "failure" if reward == 0 else "partial"
