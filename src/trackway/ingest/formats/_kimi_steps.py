"""What both of Kimi's programs write into a session, as events: prompts, steps of a model, calls and results.

Lines have no ids of their own: an entry is known by its place in its file, after the agent whose file it is.
"""

from __future__ import annotations

from typing import Any

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import About
from trackway.ingest.making import Calls, args_of, is_only_text, rest_of, text_in
from trackway.ingest.values import mapping, text
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of


class Steps:
    """One agent's part of a session while its file is read."""

    def __init__(self, about: About, agent: str | None) -> None:
        self.about = about
        self.agent = agent
        self.model: str | None = None
        self.contents: list[bytes] = []
        self._calls = Calls()
        self._edits = Edits()
        self._used: dict[str, object] = {}
        self._call: str | None = None
        self._count = 0

    def user(self, content: object, at: int, *, is_person: bool = True) -> list[Event]:
        """Words under the user's role."""
        said = text_in(content)
        actor = "human" if is_person and self.agent is None else "harness"
        if actor == "human":
            self.about.prompt(said)
        return [User(content=said, actor=actor, at=at, agent=self.agent)]

    def inject(self, content: object, at: int) -> list[Event]:
        """Words that the client put in."""
        return [Context(op="inject", text=text_in(content), at=at, agent=self.agent)]

    def begin(self, call: str, at: int) -> list[Event]:
        """A model is asked."""
        self._count += 1
        self._call = call or f"step {self._count}"
        return list(self._calls.begin(self._call, self.model, at, self.agent))

    def part(self, part: dict[str, Any], at: int) -> list[Event]:
        """A piece of what it says."""
        kind = part.get("type")
        if kind == "think" or "think" in part:
            state = rest_of(part, "type", "think")
            return [
                AssistantThinking(
                    content=text(part.get("think")), state=state, call=self._call, at=at, agent=self.agent
                )
            ]
        if kind == "text":
            return [AssistantText(content=text(part.get("text")), call=self._call, at=at, agent=self.agent)]
        return [Note(topic=text(kind) or "part", at=at, agent=self.agent)]

    def call(self, call_id: str, name: str, args: object, at: int) -> list[Event]:
        """A tool is called."""
        self._edits.call(call_id, name, args)
        event = AssistantToolCall(
            name=name, args=args_of(args), call_id=call_id, call=self._call, at=at, agent=self.agent
        )
        return [event]

    def result(self, call_id: str, result: object, at: int) -> list[Event]:
        """What came of it: a text or parts for the model, and whether it went wrong."""
        fields = mapping(result)
        failed = fields.get("isError") is True or fields.get("is_error") is True
        output = fields.get("output", fields.get("content")) if fields else result
        said = text_in(output) if isinstance(output, (str, list)) else text_of(output)
        message = text(fields.get("message"))
        if message and message != said:  # what explains the output to the model stands before it
            said = f"{message}\n{said}" if said else message
        took = fields.get("durationMs")
        rest = rest_of(fields, "isError", "is_error", "durationMs", "output" if is_only_text(output) else "")
        changes, contents = self._edits.result(call_id, ok=not failed, at=at, agent=self.agent)
        self.contents += contents
        event = ToolResult(
            call_id=call_id, content=said, is_error=failed, status="error" if failed else "ok", returned=rest,
            duration_ms=took if isinstance(took, (int, float)) and not isinstance(took, bool) else None, at=at,
            agent=self.agent,
        )  # fmt: skip
        return [event, *changes]

    def end(self, usage: object, at: int, finish: str | None = None, call: str = "") -> list[Event]:
        """What a step took, said once or more: the same again says nothing new."""
        named = call or self._call
        if named is None:
            return self.spent(f"usage {at}", usage, self.model, at)
        if finish is None and usage == self._used.get(named):
            return []
        self._used[named] = usage
        return list(self._calls.result(named, usage, finish, at, self.agent, model=self.model))

    def spent(self, call: str, usage: object, model: str | None, at: int) -> list[Event]:
        """Work of a model outside of steps: a compaction."""
        if not isinstance(usage, dict) or not usage:
            return []
        return [
            ModelCall(id=call, model=model, at=at, agent=self.agent),
            ModelResult(id=call, usage=usage, at=at, agent=self.agent),
        ]

    def note(self, topic: str, at: int, said: str = "") -> list[Event]:
        """Anything else."""
        return [Note(topic=topic or "kimi", text=said or None, at=at, agent=self.agent)]
