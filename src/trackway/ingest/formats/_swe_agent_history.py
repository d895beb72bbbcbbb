"""SWE-agent's ``history``, what the model has seen, beside its ``trajectory``, what was done: which item is which step.

The history opens with what was there before the first step: system prompt, demonstrations, the task. Each step that
went through is in it again, as the assistant's message with its tool calls and the observation as the model saw it. A
step the model was asked to repeat is in the trajectory alone. Demonstrations are of another episode, and never steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trackway.ingest.making import is_only_text, left, text_in
from trackway.ingest.values import mapping, text
from trackway.schema.events import Context, Event, Note, User

_FAR: Final = 8
_ITEM: Final = ("role", "content", "is_demo")
_SEEN_BY: Final = ("user", "tool")


class Matched(NamedTuple):
    """A step as the history has it: the assistant's message, what the model saw of the result, items passed by."""

    said: dict[str, Any]
    seen: dict[str, Any] | None
    passed: list[tuple[int, dict[str, Any]]]


class History:
    """The items, and how far the steps have come in them."""

    def __init__(self, items: list[Any]) -> None:
        self._items = [mapping(each) for each in items]
        self._at = 0
        self.agent = text(self._items[0].get("agent")) if self._items else ""

    def __bool__(self) -> bool:
        return bool(self._items)

    def opening(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What stands before the first step."""
        while self._at < len(self._items):
            item = self._items[self._at]
            if item.get("role") == "assistant" and not item.get("is_demo"):
                return
            yield self._at, item
            self._at += 1

    def match(self, step: dict[str, Any]) -> Matched | None:
        """The step's place in the history; None where it has none."""
        is_next = True
        for at in range(self._at, min(self._at + _FAR, len(self._items))):
            if not self._is_ours(at, "assistant"):
                continue
            if _is_same(step, self._items[at]) or (is_next and _acts_the_same(step, self._items[at])):
                passed = [(each, self._items[each]) for each in range(self._at, at)]
                seen = self._items[at + 1] if self._is_ours(at + 1, *_SEEN_BY) else None
                self._at = at + 1 + (seen is not None)
                return Matched(self._items[at], seen, passed)
            is_next = False
        return None

    def following(self) -> Iterator[Matched]:
        """What is left, read as steps: for a history that comes alone."""
        passed: list[tuple[int, dict[str, Any]]] = []
        while self._at < len(self._items):
            at = self._at
            self._at += 1
            if not self._is_ours(at, "assistant"):
                passed.append((at, self._items[at]))
                continue
            seen = self._items[at + 1] if self._is_ours(at + 1, *_SEEN_BY) else None
            self._at += seen is not None
            yield Matched(self._items[at], seen, passed)
            passed = []
        if passed:
            yield Matched({}, None, passed)

    def rest(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What no step was found for."""
        yield from ((at, self._items[at]) for at in range(self._at, len(self._items)))

    def _is_ours(self, at: int, *roles: str) -> bool:
        if at >= len(self._items):
            return False
        item = self._items[at]
        return item.get("role") in roles and not item.get("is_demo") and text(item.get("agent")) == self.agent


def _is_same(step: dict[str, Any], item: dict[str, Any]) -> bool:
    if "response" in step and text_in(item.get("content")) == step["response"]:
        return text(item.get("action")) == text(step.get("action"))
    said = text(step.get("action")), text(step.get("thought"))
    return said == (text(item.get("action")), text(item.get("thought"))) and any(said)


def _acts_the_same(step: dict[str, Any], item: dict[str, Any]) -> bool:
    """Whether it is the step with other words: demonstrations are mended by hand, in one place of the two."""
    action = text(step.get("action"))
    return bool(action.strip()) and action == text(item.get("action"))


def shown(item: dict[str, Any]) -> tuple[list[Event], dict[str, Any]]:
    """An item that is no step: what the model was shown, and the rest of it."""
    said, role = text_in(item.get("content")), text(item.get("role"))
    native = left(item, *_ITEM)
    if not is_only_text(item.get("content")):
        native["content"] = item["content"]
    if item.get("is_demo"):
        return [Context(op="inject", text=said, detail={"demonstration": True, "role": role})], native
    if role == "system":
        return [Context(op="set", system_prompt=said)], native
    if role == "user":
        return [User(content=said, actor="harness")], native
    return [Note(topic="history", text=said)], {**native, "role": role}
