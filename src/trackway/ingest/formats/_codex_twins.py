"""A rollout says most texts twice: as an event for people, and as an item of the model's. Each is made once.

The item is what counts. An event that comes behind its item is passed by; one that comes before it is held until the
item is there, or until something follows that the item cannot follow any more: then it is all there is, and is said.
Some versions write a response's items behind its tokens: an item that comes after all says nothing new then.
A file that ends in between has not said it yet: the client writes both at once, and a file may still grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from trackway.ingest.source import Place

USER: Final = "user"
AGENT: Final = "agent"
THINKING: Final = "thinking"
ALL: Final = frozenset({USER, AGENT, THINKING})
MODEL: Final = frozenset({AGENT, THINKING})
_LAST: Final = 8


class Held(NamedTuple):
    """An event's text whose item has not come yet: where and when it was told, and what else it tells."""

    kind: str
    text: str
    when: str
    at: int
    place: Place
    native: dict[str, Any] | None


class Twins:
    """The texts of one thread that may still be told a second time."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self._told: deque[tuple[str, str]] = deque(maxlen=_LAST)
        self._said = {kind: deque[tuple[str, ...]](maxlen=_LAST) for kind in ALL}

    def item(self, kind: str, texts: tuple[str, ...]) -> None:
        """An item says these texts: what an event said of them is dropped, or will be."""
        if kind == USER:
            self._told.clear()
        if self.held:
            left = [each for each in self.held if each.kind != kind or not _is_of(each.text, texts)]
            if len(left) < len(self.held):
                self.held = left
                return
        self._said[kind].append(texts)

    def is_said(self, kind: str, text: str) -> bool:
        """Whether an item has said what an event tells now."""
        said = self._said[kind]
        for each in said:
            if _is_of(text, each):
                if kind != THINKING:  # told in parts, one event each
                    said.remove(each)
                return True
        return False

    def was_told(self, kind: str, texts: tuple[str, ...]) -> bool:
        """Whether events have told all of an item already, since a human spoke: they were not waited for any longer."""
        if not texts or not self._told:
            return False
        whole = [("".join(texts),)] if kind == AGENT else []
        for parts in (texts, *whole):
            if all((kind, each) in self._told for each in parts):
                for each in parts:
                    self._told.remove((kind, each))
                return True
        return False

    def hold(self, held: Held) -> None:
        """Wait for the item."""
        self.held.append(held)

    def take(self, kinds: Collection[str]) -> list[Held]:
        """What is held of these kinds: its items will not come."""
        taken = [each for each in self.held if each.kind in kinds]
        if taken:
            self._told.extend((each.kind, each.text) for each in taken)
            self.held = [each for each in self.held if each.kind not in kinds]
        return taken


def _is_of(text: str, texts: tuple[str, ...]) -> bool:
    return text in texts or text == "".join(texts) or text == "\n".join(texts)
