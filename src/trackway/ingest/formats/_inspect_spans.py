"""Inspect's spans: which agent an event is of, and which span of a tool is open. Older logs have steps instead."""

from __future__ import annotations

from typing import Any, NamedTuple

from trackway.schema.plain import text_of

_MOST = 10_000


class _Span(NamedTuple):
    kind: str
    name: str
    parent: str | None


class Spans:
    """The spans of one sample."""

    def __init__(self) -> None:
        self._spans: dict[str, _Span] = {}
        self._agents: dict[str, str | None] = {}
        self._open_tools: dict[str, str] = {}
        self._scorers: list[str] = []

    def note(self, event: dict[str, Any]) -> None:
        """Take in an event that begins or ends a span or a step."""
        kind = event.get("event")
        name = text_of(event.get("id"))
        if kind == "span_begin":
            parent = event.get("parent_id")
            span = _Span(
                text_of(event.get("type")), text_of(event.get("name")), parent if isinstance(parent, str) else None
            )  # fmt: skip
            self._spans[name] = span
            if span.kind == "tool":
                self._open_tools[name] = span.name
        elif kind == "span_end":
            self._open_tools.pop(name, None)
        elif kind == "step" and event.get("type") == "scorer":
            if event.get("action") == "begin":
                self._scorers.append(text_of(event.get("name")))
            elif self._scorers:
                self._scorers.pop()

    def agent_of(self, span: Any) -> str | None:  # noqa: ANN401  whatever stands where an id should
        """The agent inside the episode's own that a span is of; None for the episode's own."""
        if not isinstance(span, str):
            return f"scorer:{self._scorers[-1]}" if self._scorers else None
        if span not in self._agents:
            self._agents[span] = self._found(span)
        return self._agents[span]

    def _found(self, span: str) -> str | None:
        agents: list[str] = []
        at: str | None = span
        passed = 0
        while at is not None and (found := self._spans.get(at)) is not None and passed < _MOST:
            if found.kind == "scorer":
                return f"scorer:{found.name}"
            if found.kind == "agent":
                agents.append(found.name)
            at, passed = found.parent, passed + 1
        return agents[0] if len(agents) > 1 else None

    def tool_span(self, function: str) -> str | None:
        """The span of the tool that was begun last under this name; each is given once."""
        found = next((each for each in reversed(self._open_tools) if self._open_tools[each] == function), None)
        if found is not None:
            del self._open_tools[found]
        return found
