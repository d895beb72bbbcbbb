"""One JSON document with a few long lists: its other members at once, each list element by element.

A document of ordinary size is parsed once. A larger one is read anew for each list, and never more than one element of
it is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.original import Original

_WHOLE: Final = 32 << 20


class Document:
    """A document: ``members`` are those that are not among the lists named in ``split``."""

    def __init__(self, original: Original, *split: str) -> None:
        self._original = original
        self._split = split
        self._lists: dict[str, list[Any]] | None = None
        self.members: dict[str, Any] = {}
        if original.size > _WHOLE:
            self.members = {each.key: each.value for each in original.members(*split) if each.number is None}
            return
        value = original.value()
        if not isinstance(value, dict):
            raise original.refused("one JSON object was expected")
        self._lists = {name: value[name] for name in split if isinstance(value.get(name), list)}
        self.members = {key: each for key, each in value.items() if key not in self._lists}

    def each(self, name: str) -> Iterator[tuple[int, Any]]:
        """The elements of a list, by their numbers; none where there is no such list."""
        if self._lists is not None:
            yield from enumerate(self._lists.get(name, ()))
            return
        for part in self._original.members(*self._split):
            if part.key == name and part.number is not None:
                yield part.number, part.value
