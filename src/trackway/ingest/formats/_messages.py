"""Messages as chat interfaces have them → events: roles, content as text or blocks, calls and what came of them.

    system, developer → context     user → user     assistant → thinking, text, calls     tool, function → results

One ``Chat`` reads one conversation in order and looks at nothing that is still to come. It knows what OpenAI and those
who copied it write, and Anthropic's blocks; a role nobody knows is a note. What has no field of its own is handed back
as the rest of the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._message_parts import asked_of, id_of, rest_of_message, text_shown, thought_of
from trackway.ingest.formats._tags import Asked, answer_name, answers, pieces
from trackway.ingest.making import args_of
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
from trackway.schema.plain import text_of

ROLES: Final = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user",
    "assistant": "assistant", "model": "assistant", "ai": "assistant",
    "tool": "tool", "function": "tool", "ipython": "tool", "tool_response": "tool", "environment": "tool",
}  # fmt: skip
"""What each role comes to."""


class Said(NamedTuple):
    """A message as events, and what of it has no place in them."""

    events: list[Event]
    rest: dict[str, Any] | None


class Pending:
    """The calls that wait for results; where a file gives a call no id it gets one by its place.

    A result without an id is of the calls asked for last: what an earlier answer asked for and never got is not it.
    """

    def __init__(self) -> None:
        self._count = 0
        self._answering = False
        self._waiting: list[tuple[str, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def asked(self, name: str, call_id: Any = None) -> str:  # noqa: ANN401  what stands where an id should
        """The id of a call: its own, or one by its place."""
        self._count += 1
        if self._answering:
            self._waiting.clear()
            self._answering = False
        known = text_of(call_id) if call_id not in (None, "") else f"call-{self._count}"
        self._waiting.append((known, name))
        return known

    def answered(self, call_id: Any = None, name: Any = None) -> str:  # noqa: ANN401
        """The id a result has: its own; else that of the oldest call of the tool it names, else of the oldest."""
        self._answering = True
        if call_id not in (None, ""):
            known = text_of(call_id)
            at = next((i for i, each in enumerate(self._waiting) if each[0] == known), None)
            if at is not None:
                del self._waiting[at]
            return known
        if not self._waiting:
            return ""
        at = next((i for i, each in enumerate(self._waiting) if each[1] == name), 0)
        return self._waiting.pop(at)[0]


class Chat:
    """One conversation on its way. ``actor`` is who speaks as the user; ``agent`` stands on every event."""

    def __init__(self, *, actor: str = "human", agent: str | None = None, tags: bool = True) -> None:
        self.pending = Pending()
        self._actor = actor
        self._agent = agent
        self._tags = tags
        self._batch = 0
        self._began = False
        self._acted = False

    def message(self, message: Any, *, at: int = 0, call: str | None = None) -> Said:  # noqa: ANN401  a value in a file
        """One message; ``call`` is the model call that gave it, where one is known."""
        if not isinstance(message, dict):
            return Said([Note(topic="message", detail=message, at=at)], None)
        role = message.get("role")
        kind = ROLES.get(role) if isinstance(role, str) else None
        if kind == "assistant":
            events = self.assistant(message, at=at, call=call)
        elif kind == "user":
            events = self.user(message.get("content"), at=at)
        elif kind == "tool":
            events = self._tool(message, at)
        elif kind == "system":
            events = [self.system(text_shown(message.get("content")), at=at)]
        else:
            return Said([Note(topic=role if isinstance(role, str) and role else "message", at=at)], message)
        return Said(events, rest_of_message(message, kind))

    # --- what is put in -----------------------------------------------------------------------------------------

    def system(self, text: str, *, at: int = 0) -> Context:
        """The system prompt where nothing came before it; later on, something put in."""
        began, self._began = self._began, True
        if began:
            return Context(op="inject", text=text, detail={"role": "system"}, at=at, agent=self._agent)
        return Context(op="set", system_prompt=text, at=at, agent=self._agent)

    def user(self, content: Any, *, at: int = 0) -> list[Event]:  # noqa: ANN401
        """What a user says; results that stand in it come first."""
        self._began = True
        found: list[Event] = []
        left = content
        if isinstance(content, list):
            results = [each for each in content if isinstance(each, dict) and each.get("type") == "tool_result"]
            if results:
                found += [self._result_block(each, at) for each in results]
                left = [each for each in content if not any(each is one for one in results)]
                if not left:
                    return found
        text = text_shown(left)
        if self._tags and len(self.pending) and (inside := answers(text)) is not None:
            return [*found, *self._answers(inside, at)]
        # What ReAct feeds back stands where a user's words do; nobody said it.
        harness = self._acted and text.startswith("Observation")
        self._acted = False
        actor = "harness" if harness else self._actor
        return [*found, User(content=text, actor=actor, at=at, agent=self._agent)]

    # --- what a model says --------------------------------------------------------------------------------------

    def assistant(self, message: dict[str, Any], *, at: int = 0, call: str | None = None) -> list[Event]:
        """What a model thought, said and asked for, in this order; blocks in their own."""
        self._began = True
        found: list[Event] = self._thoughts(message, at, call)
        content = message.get("content")
        if isinstance(content, list):
            found += self._blocks(content, at, call)
        elif content not in (None, ""):
            found += self.text(text_shown(content), at=at, call=call)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            found.append(AssistantText(content=refusal, at=at, call=call, agent=self._agent))
        found += self._calls(message, at, call)
        return self._batched(found) or [AssistantText(content="", at=at, call=call, agent=self._agent)]

    def text(self, text: str, *, at: int = 0, call: str | None = None) -> list[Event]:
        """A model's text, with the thoughts and calls that stand in it by the convention of tags."""
        if not self._tags or ("<" not in text and "Action:" not in text):
            self._acted = False
            return [AssistantText(content=text, at=at, call=call, agent=self._agent)]
        self._acted = text.startswith("Action:") or "\nAction:" in text
        found: list[Event] = []
        for each in pieces(text):
            if each.kind == "think":
                found.append(AssistantThinking(content=each.text, at=at, call=call, agent=self._agent))
            elif each.kind == "call":
                found += [self.ask(one, at=at, call=call) for one in each.calls]
            else:
                found.append(AssistantText(content=each.text, at=at, call=call, agent=self._agent))
        return found

    def asks(self, calls: Iterable[Asked], *, at: int = 0) -> list[Event]:
        """Calls of one answer."""
        return self._batched([self.ask(each, at=at) for each in calls])

    def ask(self, asked: Asked, *, at: int = 0, call: str | None = None) -> AssistantToolCall:
        """One call."""
        call_id = self.pending.asked(asked.name, asked.call_id)
        return AssistantToolCall(
            name=asked.name, args=asked.args, call_id=call_id, at=at, call=call, agent=self._agent
        )  # fmt: skip

    def _thoughts(self, message: dict[str, Any], at: int, call: str | None) -> list[Event]:
        blocks = message.get("thinking_blocks")
        if isinstance(blocks, list) and blocks:
            return self._blocks(blocks, at, call)
        for key in ("reasoning_content", "reasoning"):
            text = message.get(key)
            if isinstance(text, str) and text:
                return [AssistantThinking(content=text, at=at, call=call, agent=self._agent)]
        return []

    def _blocks(self, blocks: list[Any], at: int, call: str | None) -> list[Event]:
        found: list[Event] = []
        for each in blocks:
            if isinstance(each, str):
                found += self.text(each, at=at, call=call)
            elif isinstance(each, dict):
                found += self._block(each, at, call)
        return found

    def _block(self, block: dict[str, Any], at: int, call: str | None) -> list[Event]:
        kind = block.get("type")
        if kind in ("thinking", "redacted_thinking", "reasoning"):
            return [thought_of(block, at, call, self._agent)]
        if kind == "tool_use":
            name = text_of(block.get("name"))
            return [self.ask(Asked(name, args_of(block.get("input")), id_of(block.get("id")), None), at=at, call=call)]
        text = block.get("text") if kind != "refusal" else block.get("refusal")
        return self.text(text, at=at, call=call) if isinstance(text, str) else []

    def _calls(self, message: dict[str, Any], at: int, call: str | None) -> list[Event]:
        calls = message.get("tool_calls")
        found: list[Event] = []
        if isinstance(calls, list):
            found = [self.ask(asked_of(each), at=at, call=call) for each in calls if isinstance(each, dict)]
        old = message.get("function_call")
        if isinstance(old, dict):
            found.append(self.ask(asked_of({"function": old}), at=at, call=call))
        return found

    def _batched(self, found: list[Event]) -> list[Event]:
        """Calls of one answer, where there are several, bear the same number."""
        calls = [each for each in found if type(each) is AssistantToolCall]
        if len(calls) < 2:
            return found
        self._batch += 1
        from msgspec.structs import replace

        return [replace(each, batch=self._batch) if type(each) is AssistantToolCall else each for each in found]

    # --- what came of it ----------------------------------------------------------------------------------------

    def result(
        self, content: str, call_id: Any = None, *, name: Any = None, is_error: bool = False, at: int = 0,  # noqa: ANN401
    ) -> ToolResult:  # fmt: skip
        """What came of a call: of the one it names, else of the oldest that waits."""
        self._began = True
        return ToolResult(
            call_id=self.pending.answered(call_id, name), content=content, is_error=is_error,
            status="error" if is_error else "ok", at=at, agent=self._agent,
        )  # fmt: skip

    def results(self, text: str, *, at: int = 0) -> list[Event]:
        """A turn of results: what stands between tags, each by itself; else the whole text as one."""
        inside = answers(text) if self._tags and "<tool_response>" in text else None
        return [self.result(text, at=at)] if inside is None else self._answers(inside, at)

    def _answers(self, inside: list[str], at: int) -> list[Event]:
        return [self.result(each, name=answer_name(each) if len(self.pending) > 1 else None, at=at) for each in inside]

    def _tool(self, message: dict[str, Any], at: int) -> list[Event]:
        content, call_id, name = message.get("content"), message.get("tool_call_id"), message.get("name")
        text = text_shown(content)
        if call_id in (None, "") and isinstance(content, str) and "<tool_response>" in content:
            return self.results(text, at=at)
        error = message.get("is_error") or message.get("error") or message.get("status") == "error"
        if not text and isinstance(message.get("error"), str):
            text = message["error"]
        return [self.result(text, call_id, name=name, is_error=bool(error), at=at)]

    def _result_block(self, block: dict[str, Any], at: int) -> ToolResult:
        return self.result(
            text_shown(block.get("content")), block.get("tool_use_id"), is_error=block.get("is_error") is True, at=at
        )
