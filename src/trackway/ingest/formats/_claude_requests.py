"""What Claude Code keeps of its requests: the system prompt and the tools as they were sent, once a shape.

A shape is written before the first request that has it, and named by its hash in every request after. The snapshot of a
prompt says the same before it is put together for the wire: it counts where no shape was ever written.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.making import is_only_text, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, Event, Note

SHAPE: Final = "api-request-shape"
REQUEST: Final = "api-request"
SNAPSHOT: Final = "prompt_snapshot"
_BETWEEN: Final = "\n\n"
"""What the client puts between the parts of its system prompt."""


class Requests:
    """The shapes a file has told of, and the one each agent's requests have now."""

    def __init__(self) -> None:
        self._shapes: dict[str, Context] = {}
        self._standing: dict[str | None, str] = {}

    def read(self, kind: str, native: dict[str, Any], *, at: int, agent: str | None) -> Event | None:
        """What an entry changes of the system prompt and the tools; None where it says nothing of them."""
        name = text(native.get("shapeHash"))
        if kind == SHAPE and isinstance(native.get("shape"), dict):
            shape = native.pop("shape")
            made = _set(shape.get("system"), shape.get("tools"), at=at, agent=agent)
            if left := _left(shape):
                native["shape"] = left
            self._shapes[name] = made
            self._standing[agent] = name
            return made
        before = self._standing.get(agent)
        if kind == REQUEST and name in self._shapes and name != before:
            shown = self._shapes[name]
            self._standing[agent] = name
            return Context(op="set", system_prompt=shown.system_prompt, tools=shown.tools, at=at, agent=agent)
        return None

    def snapshot(self, attachment: dict[str, Any], *, at: int, agent: str | None) -> Event:
        """A prompt before it is sent; a note where it is known how it was sent."""
        parts = attachment.get("systemPrompt")
        if agent in self._standing or not all(isinstance(each, str) for each in listing(parts)):
            return Note(topic=f"attachment.{SNAPSHOT}", detail=attachment, at=at, agent=agent)
        rest = {name: each for name, each in attachment.items() if name not in ("systemPrompt", "tools")}
        tools = attachment.get("tools")
        if isinstance(tools, list):
            tools = [mapping(each).get("schema") or each for each in tools]
        said = _BETWEEN.join(listing(parts)) or None
        return Context(op="set", system_prompt=said, tools=tools, detail=rest, at=at, agent=agent)


def _set(system: Any, tools: Any, *, at: int, agent: str | None) -> Context:  # noqa: ANN401  as in the file
    return Context(op="set", system_prompt=text_in(system) or None, tools=tools, at=at, agent=agent)


def _left(shape: dict[str, Any]) -> dict[str, Any]:
    """What of a shape has no field of its own."""
    known = ("tools", "system") if is_only_text(shape.get("system")) else ("tools",)
    return {name: each for name, each in shape.items() if name not in known}
