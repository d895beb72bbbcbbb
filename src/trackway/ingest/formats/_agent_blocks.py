"""Messages made of blocks as Anthropic has them (text, thinking, tool_use, tool_result) → events.

Clients keep them with small differences: names with ``-`` for ``_``, calls without an id. A call without an id gets one
by its place, and a result that answers no known id is the one of the oldest call that had none.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.making import args_of, is_only_text, rest_of, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    Note,
    ToolResult,
    User,
)

_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_CALLS: Final = frozenset({"tooluse", "toolcall"})
_INTERRUPTED: Final = ("[Request interrupted by user", "Tool execution was cancelled", "The user cancelled")


class Spoken(NamedTuple):
    """What a message becomes: its events, what of it has no home in them, the contents they name."""

    events: list[Event]
    left: list[Any]
    contents: list[bytes]


class Blocks:
    """The messages of one session; ``exited`` finds the exit code in what a tool says, where nothing else has it."""

    def __init__(self, agent: str | None = None, exited: re.Pattern[str] | None = None) -> None:
        self._agent = agent
        self._exited = exited
        self._edits = Edits()
        self._count = 0
        self._replies = 0
        self._named: set[str] = set()
        self._unnamed: deque[str] = deque()

    def answer(self, content: object, call: str, at: int) -> Spoken:
        """What a model said, in the call ``call``."""
        blocks = _blocks(content)
        self._replies += 1
        self._unnamed.clear()  # what the model did not wait for was not answered
        batch = self._replies if sum(_kind(each) in _CALLS for each in blocks) > 1 else None
        spoken = Spoken([], [], [])
        for block in blocks:
            self._said(block, spoken, call=call, at=at, batch=batch)
        return spoken

    def _said(self, block: dict[str, Any], spoken: Spoken, *, call: str, at: int, batch: int | None) -> None:
        kind, agent = _kind(block), self._agent
        if kind == "text":
            spoken.events.append(AssistantText(content=text(block.get("text")), call=call, at=at, agent=agent))
            rest = rest_of(block, "type", "text")
        elif kind in ("thinking", "redactedthinking"):
            state, rest = rest_of(block, "type", "thinking"), None
            thought = text(block.get("thinking"))
            spoken.events.append(AssistantThinking(content=thought, state=state, call=call, at=at, agent=agent))
        elif kind in _CALLS:
            given = block.get("input", block.get("arguments"))
            name, call_id = text(block.get("name")), self._id(text(block.get("id")))
            self._edits.call(call_id, name, given)
            spoken.events.append(
                AssistantToolCall(
                    name=name, args=args_of(given), call_id=call_id, call=call, batch=batch, at=at, agent=agent
                )
            )
            rest = rest_of(block, "type", "id", "name", "input")
        elif kind == "toolresult":
            rest = self._result(block, spoken, at)
        else:
            said = text(block.get("text")) or None
            spoken.events.append(
                Note(topic=text(block.get("type")) or "block", text=said, call=call, at=at, agent=agent)
            )
            rest = block
        if rest:
            spoken.left.append(rest)

    def _id(self, own: str) -> str:
        self._count += 1
        if own:
            self._named.add(own)
            return own
        made = f"call-{self._count}"
        self._unnamed.append(made)
        return made

    def prompt(self, content: object, at: int, actor: str = "human") -> Spoken:
        """What stands under the user's role: results of calls, words of a person, words that the client added."""
        spoken = Spoken([], [], [])
        typed: list[str] = []
        for block in _blocks(content):
            kind = _kind(block)
            if kind == "text":
                added, said = reminders(text(block.get("text")))
                spoken.events.extend(Context(op="inject", text=each, at=at, agent=self._agent) for each in added)
                typed += [said] if said or not added else []
                rest = rest_of(block, "type", "text")
            elif kind == "toolresult":
                rest = self._result(block, spoken, at)
            else:
                rest = block
            if rest:
                spoken.left.append(rest)
        if typed or not spoken.events:
            spoken.events.append(User(content="\n".join(typed), actor=actor, at=at, agent=self._agent))
        return spoken

    def _result(self, block: dict[str, Any], spoken: Spoken, at: int) -> dict[str, Any] | None:
        content = block.get("content")
        call_id = self._answered(text(block.get("tool_use_id")) or text(block.get("toolUseId")))
        failed = block.get("is_error") is True or block.get("isError") is True
        said = text_in(content)
        stopped = failed and said.startswith(_INTERRUPTED)
        status = "interrupted" if stopped else "error" if failed else "ok"
        code = self._exited.search(said) if self._exited is not None else None
        result = ToolResult(
            call_id=call_id, content=said, is_error=failed, status=status, at=at, agent=self._agent,
            exit_code=int(next(filter(None, code.groups()))) if code else None,
        )  # fmt: skip
        changes, contents = self._edits.result(call_id, ok=not failed, at=at, agent=self._agent)
        spoken.events.extend([result, *changes])
        spoken.contents.extend(contents)
        return rest_of(block, "type", "tool_use_id", "is_error", "isError", "content" if is_only_text(content) else "")

    def _answered(self, own: str) -> str:
        if own in self._named or not self._unnamed:
            return own
        return self._unnamed.popleft()


def reminders(said: str) -> tuple[list[str], str]:
    """What a client put before a person's words, and the words.

    >>> reminders("<system-reminder>be kind</system-reminder> hello")
    (['<system-reminder>be kind</system-reminder>'], 'hello')
    """
    found = []
    rest = said
    while rest.lstrip().startswith(_OPEN) and _CLOSE in rest:
        end = rest.index(_CLOSE) + len(_CLOSE)
        found.append(rest[:end].strip())
        rest = rest[end:].lstrip()
    return found, rest if found else said


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(_each(content))


def _each(content: object) -> Iterator[dict[str, Any]]:
    for each in listing(content) if not isinstance(content, dict) else [content]:
        if isinstance(each, dict):
            yield each
        elif isinstance(each, str):
            yield {"type": "text", "text": each}
        elif each is not None:
            yield {"type": "", "value": each}


def _kind(block: dict[str, Any]) -> str:
    return text(block.get("type")).replace("_", "").replace("-", "").lower()


def said_beside(left: list[Any], entry: dict[str, Any]) -> dict[str, Any] | None:
    """What an entry keeps: its own fields, and the blocks that have no home."""
    return {**entry, "blocks": left} if left else entry or None


def is_block_message(message: object, *kinds: str) -> bool:
    """Whether a message has blocks, one of them of these kinds where any are asked for."""
    blocks = [each for each in listing(mapping(message).get("content")) if isinstance(each, dict)]
    return bool(blocks) and (not kinds or any(_kind(each) in kinds for each in blocks))
