"""A Gemini CLI message's thoughts and content → events, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trackway.ingest.making import at_of, rest_of
from trackway.ingest.values import listing, text
from trackway.schema.events import AssistantText, AssistantThinking, Event, Note

Piece = tuple[str, str, Event, dict[str, Any] | None]
"""A part of a message: what it is, its words, its event, and what has no home in that."""


def thoughts_of(named: str, thoughts: Sequence[dict[str, Any]], at: int) -> Iterator[Piece]:
    """What a message's thoughts say, one by one."""
    for i, each in enumerate(thoughts):
        said = "\n".join(word for word in (text(each.get("subject")), text(each.get("description"))) if word)
        event = AssistantThinking(content=said, call=named, at=at_of(each.get("timestamp")) or at)
        yield f"thought-{i}", said, event, rest_of(each, "subject", "description", "timestamp")


def content_of(named: str, content: Any, at: int) -> Iterator[Piece]:  # noqa: ANN401  a text, a part, or parts
    """What a message says: thoughts among its parts by themselves, its text as one."""
    if isinstance(content, str):
        if content:
            yield "text", content, AssistantText(content=content, call=named, at=at), None
        return
    parts = parts_of(content)
    spoken = [each for each in parts if isinstance(each.get("text"), str)]
    for i, each in enumerate(each for each in spoken if each.get("thought") is True):
        state = rest_of(each, "text", "thought")
        yield (
            f"thinking-{i}",
            each["text"],
            AssistantThinking(content=each["text"], state=state, call=named, at=at),
            None,
        )
    said = "".join(each["text"] for each in spoken if each.get("thought") is not True)
    left = [each for each in parts if each.keys() != {"text"} and each.get("thought") is not True]
    native = {"content": left} if left else None
    if said:
        yield "text", said, AssistantText(content=said, call=named, at=at), native
    elif any("functionCall" not in each for each in left):
        yield "text", "", Note(topic="content", at=at), native


def parts_of(content: Any) -> list[dict[str, Any]]:  # noqa: ANN401  as above
    """A content as parts, whatever form it has."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [content]
    found: list[dict[str, Any]] = []
    for each in listing(content):
        found += [{"text": each}] if isinstance(each, str) else [each] if isinstance(each, dict) else []
    return found
