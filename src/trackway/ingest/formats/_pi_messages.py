"""A message of pi → events: what each role says, and what of it has no home in an event.

Facts: pi's docs/message-types.md, and the tools' own texts. A bash tool says how it ended in its last line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import elapsed, is_placeholder
from trackway.ingest.making import args_of, at_of, is_only_text, rest_of, text_in
from trackway.ingest.values import listing, mapping, text, whole
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

_EXITED: Final = re.compile(r"Command exited with code (-?\d{1,9})\Z")
_TIMED_OUT: Final = re.compile(r"Command timed out after \S+ seconds\Z")


class Said(NamedTuple):
    """What a message becomes."""

    events: list[Event]
    native: dict[str, Any] | None = None
    contents: list[bytes] = []  # noqa: RUF012  never changed


class System:
    """The prompt and tools that stand: a system message adds to them, replaces sections by name, takes tools away."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._sections: dict[str, str] = {}
        self._tools: dict[str, Any] = {}

    def begin(self) -> None:
        """What follows is said in whole, not as a change."""
        self._content, self._sections, self._tools = [], {}, {}

    def take(self, message: dict[str, Any], at: int) -> Context:
        """What the model has been told from here on."""
        self._content += filter(None, [text_in(message.get("content"))])
        for name, value in mapping(message.get("sections")).items():
            if isinstance(value, str):
                self._sections[name] = value
            else:
                self._sections.pop(name, None)
        for gone in listing(message.get("toolsRemoved")):
            self._tools.pop(text(mapping(gone).get("name")), None)
        for tool in listing(message.get("toolsAdded")):
            self._tools[text(mapping(tool).get("name"))] = tool
        prompt = "\n\n".join(filter(None, [*self._content, *self._sections.values()]))
        return Context(op="set", system_prompt=prompt, tools=list(self._tools.values()) or None, at=at)


class Messages:
    """The messages of one session."""

    def __init__(self) -> None:
        self.system = System()
        self._edits = Edits()
        self._replies = 0

    def said(self, message: dict[str, Any], key: str, at: int, *, is_copied: bool = False) -> Said:
        """The events of a message, written at ``at``; what was copied was paid for in another session."""
        role = message.get("role")
        read = _ROLES.get(role) if isinstance(role, str) else None
        if read is None:
            return Said([Note(topic=f"message {text(role)}".rstrip(), at=at)], message)
        said = read(self, message, key, at)
        return said._replace(events=[_copied(each) for each in said.events]) if is_copied else said

    def _user(self, message: dict[str, Any], _key: str, at: int) -> Said:
        event = User(content=text_in(message.get("content")), at=at)
        return Said([event], _rest(message))

    def _system(self, message: dict[str, Any], _key: str, at: int) -> Said:
        return Said([self.system.take(message, at)], message)

    def _assistant(self, message: dict[str, Any], key: str, at: int) -> Said:
        begun = at_of(message.get("timestamp")) or at
        usage = mapping(message.get("usage"))
        events: list[Event] = [ModelCall(id=key, model=text(message.get("model")) or None, at=begun)]
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
        self._replies += 1
        several = sum(mapping(each).get("type") == "toolCall" for each in blocks) > 1
        left: list[Any] = []
        for block in blocks:
            events += self._block(block, key, at, batch=self._replies if several else None, left=left)
        finish, error = text(message.get("stopReason")) or None, text(message.get("errorMessage")) or None
        if usage or finish or error:
            result = ModelResult(
                id=key, usage=usage or None, finish_reason=finish, error=error,
                usage_from="placeholder" if usage and is_placeholder(usage) else "provider",
                model=text(message.get("responseModel")) or None, latency_ms=elapsed(begun, at), at=at,
            )  # fmt: skip
            events.append(result)
        native = rest_of(
            message, "role", "content", "usage", "stopReason", "errorMessage", "model", "responseModel", "timestamp"
        )
        if left or not isinstance(content, (list, str)):
            native = {**(native or {}), "content": left or content}
        return Said(events, native)

    def _block(self, block: Any, call: str, at: int, *, batch: int | None, left: list[Any]) -> Iterator[Event]:  # noqa: ANN401
        kind = mapping(block).get("type")
        if kind == "text":
            yield AssistantText(content=text(block.get("text")), call=call, at=at)
            known: tuple[str, ...] = ("type", "text")
        elif kind == "thinking":
            state = rest_of(block, "type", "thinking")
            yield AssistantThinking(content=text(block.get("thinking")), state=state, call=call, at=at)
            return
        elif kind == "toolCall":
            known = ("type", "id", "name", "arguments", "partialJson")
            args = block.get("arguments")
            # Of an answer that was cut off, the text as far as it came; ``arguments`` is what was made of it.
            written = block.get("partialJson") or args
            name, call_id = text(block.get("name")), text(block.get("id"))
            yield AssistantToolCall(name=name, args=args_of(written), call_id=call_id, call=call, batch=batch, at=at)
            self._edits.call(call_id, name, args)
        else:
            known = ()
        if rest := rest_of(mapping(block), *known) if known else block:
            left.append(rest)

    def _result(self, message: dict[str, Any], key: str, at: int) -> Said:
        call_id, failed = text(message.get("toolCallId")), message.get("isError") is True
        content, details = text_in(message.get("content")), message.get("details")
        code, status = _ending(content) if message.get("toolName") == "bash" and failed else (None, None)
        result = ToolResult(
            call_id=call_id, content=content, is_error=failed, exit_code=code,
            status=status or ("error" if failed else "ok"), returned=details or None, at=at,
        )  # fmt: skip
        changes, contents = self._edits.result(call_id, ok=not failed, at=at)
        usage = mapping(message.get("usage"))
        native = _rest(message, "toolCallId", "isError", "details", "usage" if usage else "")
        return Said([result, *changes, *spent(f"{key} tool", usage, None, at)], native, contents)

    def _shell(self, message: dict[str, Any], _key: str, at: int) -> Said:
        """A command of the user's own; the model is told of it unless it is marked as private."""
        if message.get("excludeFromContext") is True:
            return Said([Note(topic="bashExecution", text=text(message.get("command")), at=at)], message)
        return Said([Context(op="inject", text=_shell_text(message), at=at)], message)

    def _custom(self, message: dict[str, Any], _key: str, at: int) -> Said:
        return Said([Context(op="inject", text=text_in(message.get("content")), at=at)], _rest(message))

    def _summary(self, message: dict[str, Any], _key: str, at: int) -> Said:
        op = "rewind" if message.get("role") == "branchSummary" else "compact"
        return Said([Context(op=op, text=text(message.get("summary")), at=at)], rest_of(message, "summary"))


_ROLES: Final = {
    "user": Messages._user, "system": Messages._system, "assistant": Messages._assistant,  # noqa: SLF001  its own
    "toolResult": Messages._result, "bashExecution": Messages._shell, "custom": Messages._custom,  # noqa: SLF001
    "hookMessage": Messages._custom, "branchSummary": Messages._summary, "compactionSummary": Messages._summary,  # noqa: SLF001
}  # fmt: skip


def _copied(event: Event) -> Event:
    """The event; a usage that was counted in another session first says so."""
    if isinstance(event, ModelResult) and event.usage_from == "provider":
        return replace(event, usage_from="copied")
    return event


def spent(call: str, usage: dict[str, Any], model: str | None, at: int) -> Iterator[Event]:
    """Work of a model that is no answer in the conversation: a summary, a tool's own call."""
    if usage:
        yield ModelCall(id=call, model=model, at=at)
        yield ModelResult(id=call, usage=usage, at=at)


def _rest(message: dict[str, Any], *known: str) -> dict[str, Any] | None:
    """What a message of text has beside its text: blocks of other kinds are kept whole."""
    content = () if not is_only_text(message.get("content")) else ("content",)
    return rest_of(message, "role", "timestamp", *content, *known)


def _ending(content: str) -> tuple[int | None, str | None]:
    """How a command ended, by the last line of what its tool says."""
    last = content[-80:]
    if found := _EXITED.search(last):
        return int(found[1]), "error"
    if last.endswith("Command aborted"):
        return None, "interrupted"
    return None, "timeout" if _TIMED_OUT.search(last) else None


def _shell_text(message: dict[str, Any]) -> str:
    """What the model is told of a command of the user's own, in pi's words."""
    output, code = text(message.get("output")), whole(message.get("exitCode"))
    said = f"Ran `{text(message.get('command'))}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled") is True:
        said += "\n\n(command cancelled)"
    elif code:
        said += f"\n\nCommand exited with code {code}"
    if message.get("truncated") is True and message.get("fullOutputPath"):
        said += f"\n\n[Output truncated. Full output: {message['fullOutputPath']}]"
    return said
