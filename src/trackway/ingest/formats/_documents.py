"""One JSON document with a few long lists: its other members at once, each list element by element.

A document of ordinary size is parsed once. A larger one is scanned once for what is held of it, and once more for each
list: never more than one element of that is held, and no element is parsed that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.decoding import value_of
from trackway.ingest.json_parts import parts
from trackway.ingest.original import LONGEST, Original

_WHOLE: Final = 32 << 20


class Document:
    """A document: ``members`` are those that are not among the lists named; the lists in ``hold`` are held whole."""

    def __init__(self, original: Original, *split: str, hold: tuple[str, ...] = ()) -> None:
        self._original = original
        self._split = frozenset((*split, *hold))
        self._lists: dict[str, list[Any]] = {}
        self._scanned: set[str] = set()
        self.members: dict[str, Any] = {}
        if original.is_longer(_WHOLE):
            self._scan(hold)
            return
        value = original.value()
        if not isinstance(value, dict):
            raise original.refused("one JSON object was expected")
        self._lists = {name: value[name] for name in self._split if isinstance(value.get(name), list)}
        self.members = {key: each for key, each in value.items() if key not in self._lists}

    def _scan(self, hold: tuple[str, ...]) -> None:
        for key, number, raw in self._parts():
            if number is None:
                self.members[key] = _value(raw)
            elif key in hold:
                self._lists.setdefault(key, []).append(_value(raw))
            else:
                self._scanned.add(key)

    def _parts(self) -> Iterator[tuple[str, int | None, bytes]]:
        try:
            yield from parts(self._original.blocks(), self._split, LONGEST)
        except (ValueError, RecursionError) as error:
            raise self._original.refused(str(error)) from error

    def each(self, name: str) -> Iterator[tuple[int, Any]]:
        """The elements of a list, by their numbers; none where there is no such list."""
        if name not in self._scanned:
            yield from enumerate(self._lists.get(name, ()))
            return
        for key, number, raw in self._parts():
            if key == name and number is not None:
                yield number, _value(raw)


def _value(raw: bytes) -> Any:  # noqa: ANN401  a JSON value is anything
    """The value of a part; None where it is none: readers say so, and go on."""
    try:
        return value_of(raw)
    except (ValueError, RecursionError):
        return None
