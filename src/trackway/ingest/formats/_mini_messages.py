"""mini-swe-agent's messages → entries. Two generations, told apart message by message.

In 1.0 an action is the one fenced block in the assistant's text, and what came of it is the next user message. In 1.1
a message says its ``extra.actions``, and what came of them bears ``extra.returncode``, as a tool's or a user's message
or as a ``function_call_output``. An answer with no action, or too many, was run by nobody: it is text, and the harness
answers it. The last output, the submission, comes as the last user message (1.0) or the ``exit`` message (1.1).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._responses import Answer, ToolUse, answer_of, thoughts_in, uses_in
from trackway.ingest.making import args_of, at_of, is_only_text, left, text_in
from trackway.ingest.source import Entry
from trackway.ingest.values import listing, mapping, text, whole
from trackway.schema.events import AssistantToolCall, Context, Event, Note, ToolResult, User

_FENCE: Final = re.compile(r"```(?:bash|mswea_bash_command)(\s*\n)")
_CODE: Final = re.compile(r"\s*(?:<exception>.*?</exception>\s*)?<returncode>(-?\d{1,9})</returncode>", re.DOTALL)
_SAYS_TIMEOUT: Final = re.compile(r"The last command .{0,100000}? timed out and has been killed", re.DOTALL)
_REFUSED: Final = ("Command not executed.", "Commands not executed.")
_BY_PERSON: Final = ("Interrupted by user:", "The user added a new task:", *_REFUSED)
_NOT_RUN: Final = "action was not executed"
_MESSAGE: Final = ("role", "content", "tool_calls", "extra", "tool_call_id", "thinking_blocks", "reasoning_content")


class Messages:
    """One trajectory's messages as they are read: which calls wait for what came of them, by their order."""

    def __init__(self, session: str, timeout_template: str = "") -> None:
        self._session = session
        self._timeout = timeout_template.partition("{{")[0].strip()
        self._open: deque[str] = deque()
        self._is_person = False
        self._prompted = False

    def entry(self, i: int, message: dict[str, Any]) -> Entry:
        """What one message says."""
        extra = mapping(message.get("extra"))
        role = text(message.get("role")) or text(message.get("object")) or text(message.get("type"))
        at = at_of(extra.get("timestamp"))
        native = left(message, *_MESSAGE) if message.get("object") != "response" else {}
        if role in ("assistant", "response"):
            events = self._answered(i, message, extra, native)
        elif role in ("tool", "function_call_output"):
            events = list(self._result(message, extra, at, native))
        elif role == "user":
            events = self._told(i, message, extra, native)
        elif role == "exit":
            events = list(self._exit(message, extra, native))
        elif role == "system":
            events = [Context(op="set", system_prompt=text_in(message.get("content")), at=at)]
        else:
            events, native = [Note(topic=role or "message", at=at)], message
        return Entry(self._session, str(i), events, native=native or None)

    # --- what the model says ------------------------------------------------------------------------------------

    def _answered(self, i: int, message: dict[str, Any], extra: dict[str, Any], native: dict[str, Any]) -> list[Event]:
        raw = message if message.get("object") == "response" else extra.get("response")
        answer = answer_of(raw)
        said = text_in(message.get("content"))
        if answer is None:
            if raw is not None and raw is not message:
                native["response"] = raw
            answer = Answer("", said=said, thoughts=tuple(thoughts_in(message)), uses=tuple(uses_in(message)))
        elif answer.rest:
            native["response"] = answer.rest
        if raw is not message:
            answer = answer._replace(said=said)
        if not is_only_text(message.get("content")):
            native["content"] = message["content"]
        native |= left(extra, "response", "actions", "timestamp")
        answer = answer._replace(at=at_of(extra.get("timestamp")) or answer.at)
        call = f"model-{i}"
        events = [*answer.call(call), *answer.words(call)]
        uses = _uses(message, extra, answer, i)
        batch = i if len(uses) > 1 else None
        events += [
            AssistantToolCall(
                name=use.name, args=args_of(use.arguments), call_id=use.id, call=call, batch=batch, at=answer.at
            )
            for use in uses
        ]
        self._is_person = False
        self._open = deque(use.id for use in uses)
        return events

    # --- what it is told ----------------------------------------------------------------------------------------

    def _told(self, i: int, message: dict[str, Any], extra: dict[str, Any], native: dict[str, Any]) -> list[Event]:
        content = message.get("content")
        said, at = text_in(content), at_of(extra.get("timestamp"))
        if "returncode" in extra or "raw_output" in extra:
            return list(self._result(message, extra, at, native))
        if not is_only_text(content):
            native["content"] = content
        actions = listing(extra.get("actions"))
        if actions:  # a person's own command
            self._open, self._is_person = deque(f"call-{i}-{k + 1}" for k in range(len(actions))), True
            native |= extra
            return [User(content=said, at=at)]
        if extra.get("interrupt_type") is not None:
            return self._interrupted(i, said, extra, native)
        native |= extra
        if self._open and not self._is_new_task(said):
            return [self._seen(self._open.popleft(), said, at)]
        self._open.clear()
        is_person = self._prompted and said.startswith(_BY_PERSON)
        self._prompted = True
        return [User(content=said, actor="human" if is_person else "harness", at=at)]

    def _is_new_task(self, said: str) -> bool:
        return said.startswith("The user added a new task:")

    def _seen(self, name: str, said: str, at: int) -> ToolResult:
        """What came of a 1.0 action, told by nothing but its text."""
        code = _CODE.match(said)
        if code is not None:
            exit_code = int(code[1])
            failed = exit_code != 0
            return ToolResult(
                call_id=name,
                content=said,
                exit_code=exit_code,
                is_error=failed,
                status="error" if failed else "ok",
                at=at,
            )
        status = "ok"
        if said.startswith(_REFUSED):
            status = "denied"
        elif said.startswith("Interrupted by user:"):
            status = "interrupted"
        elif (self._timeout and said.startswith(self._timeout)) or _SAYS_TIMEOUT.match(said):
            status = "timeout"
        return ToolResult(call_id=name, content=said, status=status, is_error=status == "timeout", at=at)

    def _interrupted(self, i: int, said: str, extra: dict[str, Any], native: dict[str, Any]) -> list[Event]:
        """1.1: the harness breaks in. Of an answer it could not use, nothing else is in the file."""
        kind = text(extra.get("interrupt_type"))
        answer = answer_of(extra.get("response"))
        native |= left(extra, *(("response",) if answer else ()))
        events: list[Event] = []
        if answer is not None:
            call = f"model-{i}"
            native["response"] = {**answer.rest, "tool_calls": [list(each) for each in answer.uses]}
            events += [*answer.call(call, error=kind), *answer.words(call)]
        self._open.clear()
        actor = "human" if kind.startswith("User") else "harness"
        return [*events, User(content=said, actor=actor, at=at_of(extra.get("timestamp")))]

    def _result(
        self, message: dict[str, Any], extra: dict[str, Any], at: int, native: dict[str, Any]
    ) -> Iterator[Event]:
        """1.1: what came of an action, with its exit code."""
        name = text(message.get("tool_call_id")) or text(message.get("call_id"))
        content = message.get("output") if message.get("type") == "function_call_output" else message.get("content")
        if name in self._open:
            self._open.remove(name)
        elif not name:
            name = self._open.popleft() if self._open else "call-unknown"
        said, raw = text_in(content), extra.get("raw_output")
        for known in ("output", "call_id", "type"):
            native.pop(known, None)
        native |= left(extra, "returncode", "raw_output", "timestamp")
        code = whole(extra.get("returncode"))
        status = _status(extra, code)
        returned = raw if isinstance(raw, str) and raw not in said else None
        if not is_only_text(content):
            native["content"] = content
        if self._is_person:  # no call of the model's: it only sees what came of it
            yield Context(op="inject", text=said, detail={"exit_code": code, "status": status}, at=at)
            return
        yield ToolResult(
            call_id=name, content=said, exit_code=code, is_error=status in ("error", "timeout"), status=status,
            returned=returned, at=at,
        )  # fmt: skip

    def _exit(self, message: dict[str, Any], extra: dict[str, Any], native: dict[str, Any]) -> Iterator[Event]:
        """1.1: the end. A submission is the last command's output: its own, where no other command waits."""
        said, at = text_in(message.get("content")), at_of(extra.get("timestamp"))
        native |= extra
        if extra.get("exit_status") == "Submitted" and len(self._open) == 1:
            yield ToolResult(call_id=self._open.popleft(), content=said, at=at)
            return
        yield Note(topic="exit", text=said, at=at)


def _status(extra: dict[str, Any], code: int | None) -> str:
    trouble = text(extra.get("exception_info"))
    if trouble == _NOT_RUN:
        return "interrupted"
    if "Timeout" in text(extra.get("exception_type")):
        return "timeout"
    return "error" if trouble or code not in (0, None) else "ok"


def _uses(message: dict[str, Any], extra: dict[str, Any], answer: Answer, i: int) -> list[ToolUse]:
    """The actions the harness took from an answer, as the model wrote them where it wrote tool calls."""
    if "actions" not in extra:
        uses = list(answer.uses) or list(uses_in(message))
        if uses:
            return [each._replace(id=each.id or f"call-{i}-{k + 1}") for k, each in enumerate(uses)]
        found = list(_fenced(answer.said))
        return [ToolUse(f"call-{i}", "bash", {"command": found[0].strip()})] if len(found) == 1 else []
    written = {each.id: each for each in (*answer.uses, *uses_in(message))}
    taken: list[ToolUse] = []
    for k, each in enumerate(listing(extra["actions"])):
        action = mapping(each)
        name = text(action.get("tool_call_id"))
        arguments = left(action, "tool_call_id")
        taken.append(written.get(name) or ToolUse(name or f"call-{i}-{k + 1}", "bash", arguments))
    return taken


def _fenced(said: str) -> Iterator[str]:
    """The fenced commands, as mini-swe-agent's own expression finds them; not by it: it takes time in squares."""
    at = 0
    while (fence := _FENCE.search(said, at)) is not None:
        start = fence.end()
        end = said.find("\n```", start)
        if end < 0 and fence[1].count("\n") > 1:  # nothing but blank lines in it
            start = said.index("\n", fence.start(1)) + 1
            end = said.find("\n```", start - 1)
        if end < 0:
            return
        yield said[start:end]
        at = end + 4
