"""A model's answer as a provider gave it, kept raw in a file: what it says, and what of it has no home in an event.

Two shapes occur: a chat completion (``choices[0].message``) and a Responses object (``output`` items).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trackway.ingest.making import at_of, left, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import AssistantText, AssistantThinking, Event, ModelCall, ModelResult


class ToolUse(NamedTuple):
    """A tool call as the model wrote it: ``arguments`` is its own text where the provider gives that."""

    id: str
    name: str
    arguments: Any


class Answer(NamedTuple):
    """What one response says."""

    id: str
    model: str | None = None
    at: int = 0
    usage: dict[str, Any] | None = None
    finish: str | None = None
    said: str = ""
    thoughts: tuple[tuple[str, dict[str, Any] | None], ...] = ()
    uses: tuple[ToolUse, ...] = ()
    rest: Mapping[str, Any] = {}

    def call(self, name: str, agent: str | None = None, *, error: str | None = None) -> Iterator[Event]:
        """The model call, and what came of it, known by ``name``."""
        yield ModelCall(id=name, model=self.model, at=self.at, agent=agent)
        if self.usage is not None or self.finish is not None or error is not None:
            yield ModelResult(
                id=name,
                usage=self.usage,
                finish_reason=self.finish,
                model=self.model,
                at=self.at,
                agent=agent,
                error=error,
            )

    def words(self, name: str, agent: str | None = None) -> Iterator[Event]:
        """What it thought and said."""
        for content, state in self.thoughts:
            yield AssistantThinking(content=content, state=state, call=name, at=self.at, agent=agent)
        if self.said:
            yield AssistantText(content=self.said, call=name, at=self.at, agent=agent)


def answer_of(response: Any) -> Answer | None:  # noqa: ANN401  whatever stands where a response should
    """What a raw response says; None where it is none."""
    if not isinstance(response, dict):
        return None
    if isinstance(response.get("output"), list):
        return _of_items(response)
    return _of_choices(response) if isinstance(response.get("choices"), list) else None


def _of_choices(response: dict[str, Any]) -> Answer:
    choices = response["choices"]
    choice = mapping(choices[0] if choices else None)
    message = mapping(choice.get("message"))
    rest = left(response, "id", "model", "usage", "created", "object", "choices")
    beside = left(choice, "message", "finish_reason", "index")
    beside |= left(message, "role", "content", "tool_calls", *_THOUGHT)
    if beside:
        rest["choice"] = beside
    if len(choices) > 1:
        rest["choices"] = choices[1:]
    return Answer(
        text(response.get("id")), text(response.get("model")) or None, at_of(response.get("created")),
        _usage(response), text(choice.get("finish_reason")) or None, text_in(message.get("content")),
        tuple(thoughts_in(message)), tuple(uses_in(message)), rest,
    )  # fmt: skip


_THOUGHT = ("reasoning", "reasoning_content", "reasoning_details", "thinking_blocks")


def thoughts_in(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """The reasoning in an assistant message, with what the provider wants back verbatim."""
    content = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    state = {name: message[name] for name in ("reasoning_details", "thinking_blocks") if listing(message.get(name))}
    if content or state:
        yield content, state or None


def uses_in(message: dict[str, Any]) -> Iterator[ToolUse]:
    """The tool calls of an assistant message."""
    for each in listing(message.get("tool_calls")):
        use = mapping(each)
        function = mapping(use.get("function"))
        name = text(function.get("name")) or text(use.get("name"))
        if name or use.get("id"):
            yield ToolUse(text(use.get("id")), name, function.get("arguments", use.get("arguments")))


def _usage(response: dict[str, Any]) -> dict[str, Any] | None:
    usage = response.get("usage")
    return usage if isinstance(usage, dict) and usage else None


def _of_items(response: dict[str, Any]) -> Answer:
    said: list[str] = []
    thoughts: list[tuple[str, dict[str, Any] | None]] = []
    uses: list[ToolUse] = []
    others: list[Any] = []
    for each in response["output"]:
        item = mapping(each)
        kind = item.get("type")
        if kind == "message":
            said.append(text_in(item.get("content")))
        elif kind == "reasoning":
            thoughts.append((text_in(item.get("content") or item.get("summary")), left(item, "type") or None))
        elif kind == "function_call":
            name = text(item.get("call_id")) or text(item.get("id"))
            uses.append(ToolUse(name, text(item.get("name")), item.get("arguments")))
        else:
            others.append(each)
    rest = left(response, "id", "model", "usage", "created_at", "object", "output", "status", "extra")
    if others:
        rest["output"] = others
    return Answer(
        text(response.get("id")), text(response.get("model")) or None, at_of(response.get("created_at")),
        _usage(response), text(response.get("status")) or None, "\n".join(filter(None, said)), tuple(thoughts),
        tuple(uses), rest,
    )  # fmt: skip
