"""OpenHands V1 events → entries. Each is one frozen thing with an id, a ``kind``, and where it hangs in the tree.

Actions of one response share its id: one model call, one batch. The arguments are the model's own text. What a call
cost is not in the events: it comes from the conversation's state, by response id, as an entry of its own, because the
state is written after the event. A kind nobody knows is a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from trackway.ingest.formats._openhands_v0_edits import Edit, whole_edit
from trackway.ingest.making import Keys, args_of, at_of, is_only_text, left, text_in
from trackway.ingest.source import Entry, Place, Trouble
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
from trackway.schema.plain import text_of

_BASE: Final = ("id", "timestamp", "source", "parent_id", "kind")
_ROOT: Final = "__root__"
_DONE: Final = {"completed": "ok", "failed": "error", "cancelled": "interrupted"}


class Events:
    """One conversation's events as they are read. ``usages`` are the tokens of calls, by response id."""

    def __init__(
        self, session: str, usages: Mapping[str, dict[str, Any]] | None = None, *, first: str = "human",
        later: str = "human",
    ) -> None:  # fmt: skip
        self._session = session
        self._usages = usages or {}
        self._actors = (first, later)
        self._prompted = False
        self._keys = Keys()
        self._calls: dict[str, int] = {}
        self._last = self._before = ""
        self._reported: set[str] = set()
        self._kinds = {
            "MessageEvent": self._message, "ActionEvent": self._action, "ObservationEvent": self._observed,
            "AgentErrorEvent": self._error, "UserRejectObservation": self._rejected,
            "SystemPromptEvent": self._system, "Condensation": self._condensed,
            "CondensationSummaryEvent": self._summary, "TokenEvent": self._tokens, "ACPToolCallEvent": self._acp,
            "HookExecutionEvent": self._hook,
        }  # fmt: skip

    def entries(self, events: Iterable[Any]) -> Iterator[Entry | Trouble]:
        """The entries of a conversation."""
        for i, event in enumerate(events):
            if isinstance(event, dict):
                yield from self.entry(i, event)
            else:
                yield Trouble(Place(), f"event {i + 1} is no object")

    def entry(self, i: int, event: dict[str, Any], place: Place | None = None) -> Iterator[Entry]:
        """What one event says; and the tokens of its call, where they are known."""
        kind = text(event.get("kind"))
        key = self._keys.of(text(event.get("id")) or f"at-{i}")
        parent: str | None = text(event.get("parent_id"))
        if parent in ("", _ROOT, self._before):  # the tokens of a call may stand between: they are no branch
            parent = None
        self._before = key
        native = left(event, *_BASE)
        made, edit = self._kinds.get(kind, self._noted)(event, at_of(event.get("timestamp")), native)
        yield Entry(
            self._session, key, made, place or Place(), parent=parent, native=native or None,
            contents=() if edit is None else edit.contents,
        )  # fmt: skip
        call = next((each.id for each in made if isinstance(each, ModelCall)), None)
        usage = None if call is None else self._usages.get(call)
        if usage is not None:
            result = ModelResult(id=call or "", usage=usage, model=text(usage.get("model")) or None)
            yield Entry(self._session, f"usage/{call}", [result], place or Place())

    # --- what the model says ------------------------------------------------------------------------------------

    def _begun(self, event: dict[str, Any], at: int) -> tuple[str | None, list[Event]]:
        """The model call behind an event, where it names one; begun once."""
        call = text(event.get("llm_response_id")) or None
        if call is None:
            return None, []
        self._last = call
        if call in self._calls:
            return call, []
        self._calls[call] = len(self._calls) + 1
        return call, [ModelCall(id=call, at=at)]

    def _action(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        call, events = self._begun(event, at)
        events += _thoughts(event, call, at)
        said = text_in(event.get("thought"))
        if said:
            events.append(AssistantText(content=said, call=call, at=at))
        written = mapping(event.get("tool_call"))
        function = mapping(written.get("function"))
        name = text(written.get("name")) or text(function.get("name")) or text(event.get("tool_name"))
        args = written.get("arguments", function.get("arguments", event.get("action")))
        events.append(
            AssistantToolCall(
                name=name, args=args_of(args), call_id=_call_id(event, "id"), call=call,
                batch=None if call is None else self._calls[call], at=at,
            )
        )  # fmt: skip
        _drop(native, "thought", "reasoning_content", "thinking_blocks", "responses_reasoning_item", "tool_call")
        _drop(native, "tool_call_id", "llm_response_id", "tool_name")
        rest = left(written, "id", "name", "arguments", "function")
        if rest:
            native["tool_call"] = rest
        if not is_only_text(_plain_blocks(event.get("thought"))):
            native["thought"] = event["thought"]
        return events, None

    def _message(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        message = mapping(event.get("llm_message"))
        said, added = text_in(message.get("content")), text_in(event.get("extended_content"))
        _drop(native, "llm_message", "extended_content")
        rest = left(message, "role", "content", "reasoning_content", "thinking_blocks", "responses_reasoning_item")
        if not is_only_text(_plain_blocks(message.get("content"))):
            rest["content"] = message["content"]
        if rest:
            native["llm_message"] = rest
        if message.get("role") == "assistant" or (event.get("source") == "agent" and message.get("role") != "user"):
            native.pop("llm_response_id", None)
            call, events = self._begun(event, at)
            events += _thoughts(message, call, at)
            events.append(AssistantText(content=said, call=call, at=at))
        elif message.get("role") == "system":
            events = [Context(op="inject", text=said, at=at)]
        else:
            actor = self._actors[self._prompted] if event.get("source") == "user" else "harness"
            self._prompted = True
            events = [User(content=said, actor=actor, at=at)]
        if added:
            events.append(Context(op="inject", text=added, at=at))
        return events, None

    def _condensed(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        last = self._last
        call, events = self._begun(event, at)
        self._last = last  # tokens that follow are the agent's
        detail = left(native, "summary", "llm_response_id")
        summary = text(event.get("summary")) or None
        events.append(Context(op="compact", text=summary, detail=detail or None, call=call, at=at))
        native.clear()
        return events, None

    def _tokens(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        """The token ids of the last answer, with its usage again: of several results of a call the last one counts."""
        ids = {name: event[name] for name in ("prompt_token_ids", "response_token_ids") if listing(event.get(name))}
        if not self._last or not ids:
            return self._noted(event, at, native)
        native.clear()
        return [ModelResult(id=self._last, token_ids=ids, usage=self._usages.get(self._last), at=at)], None

    # --- what it is shown ---------------------------------------------------------------------------------------

    def _system(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        tools = event.get("tools")
        events: list[Event] = [
            Context(op="set", system_prompt=text_in(event.get("system_prompt")), tools=listing(tools) or None, at=at)
        ]
        if added := text_in(event.get("dynamic_context")):
            events.append(Context(op="inject", text=added, at=at))
        _drop(native, "system_prompt", "tools", "dynamic_context")
        return events, None

    def _summary(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        native.pop("summary", None)
        return [Context(op="inject", text=text(event.get("summary")), at=at)], None

    def _hook(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        events, _ = self._noted(event, at, native)
        if added := text(event.get("additional_context")):
            events.append(Context(op="inject", text=added, at=at))
        return events, None

    def _noted(self, event: dict[str, Any], at: int, _: dict[str, Any]) -> tuple[list[Event], None]:
        said = text(event.get("detail")) or text(event.get("error")) or text(event.get("reason"))
        return [Note(topic=text(event.get("kind")) or "event", text=said or None, at=at)], None

    # --- what came of it ----------------------------------------------------------------------------------------

    def _observed(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], Edit | None]:
        observed = mapping(event.get("observation"))
        content = observed.get("content")
        name = _call_id(event, "action_id")
        code = _exit_code(observed)
        status = _status(observed, code)
        events: list[Event] = [
            ToolResult(
                call_id=name, content=text_in(content), exit_code=code, is_error=status in ("error", "timeout"),
                status=status, at=at,
            )
        ]  # fmt: skip
        edit = None
        if "new_content" in observed and observed.get("command") != "view" and status == "ok":
            edit = whole_edit(observed, {"path": text(observed.get("path")), "cause": name})
            events += [] if edit is None else [edit.change]
        if added := text_in(event.get("extended_content")):
            events.append(Context(op="inject", text=added, at=at))
        _drop(native, "observation", "extended_content", "tool_call_id")
        known = (
            "content",
            "is_error",
            "exit_code",
            *(("old_content", "new_content") if edit and edit.contents else ()),
        )
        rest = left(observed, *known)
        if not is_only_text(_plain_blocks(content)):
            rest["content"] = content
        if rest:
            native["observation"] = rest
        return events, edit

    def _error(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        _drop(native, "error", "tool_call_id")
        said, name = text(event.get("error")), _call_id(event, "action_id")
        return [ToolResult(call_id=name, content=said, is_error=True, status="error", at=at)], None

    def _rejected(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        _drop(native, "rejection_reason", "tool_call_id")
        said = text(event.get("rejection_reason"))
        return [ToolResult(call_id=_call_id(event, "action_id"), content=said, status="denied", at=at)], None

    def _acp(self, event: dict[str, Any], at: int, native: dict[str, Any]) -> tuple[list[Event], None]:
        """A call another agent made and reports, once when it begins and again as it goes on."""
        name = _call_id(event, "id")
        events: list[Event] = []
        if name not in self._reported:
            self._reported.add(name)
            tool = text(event.get("tool_kind")) or text(event.get("title"))
            args = args_of(event.get("raw_input"))
            events.append(AssistantToolCall(name=tool, args=args, call_id=name, reported=True, at=at))
        status = _DONE.get(text(event.get("status")))
        if status is None:
            return events or [Note(topic="ACPToolCallEvent", at=at)], None
        native.pop("raw_output", None)
        failed = status == "error" or event.get("is_error") is True
        events.append(
            ToolResult(
                call_id=name, content=text_of(event.get("raw_output")), is_error=failed,
                status="error" if failed else status, at=at,
            )
        )  # fmt: skip
        return events, None


def _call_id(event: dict[str, Any], otherwise: str) -> str:
    return text(event.get("tool_call_id")) or text(event.get(otherwise)) or "call-unknown"


def _drop(native: dict[str, Any], *names: str) -> None:
    for name in names:
        native.pop(name, None)


def _plain_blocks(content: Any) -> Any:  # noqa: ANN401  a message's content
    """Text blocks without their cache marks, which say nothing of the text."""
    if not isinstance(content, list):
        return content
    return [left(each, "cache_prompt") if isinstance(each, dict) else each for each in content]


def _thoughts(message: dict[str, Any], call: str | None, at: int) -> Iterator[Event]:
    """What the model thought: each block with what the provider wants back verbatim."""
    blocks = [mapping(each) for each in listing(message.get("thinking_blocks"))]
    written = [text(each.get("thinking")) for each in blocks]
    reasoning = text(message.get("reasoning_content"))
    item = mapping(message.get("responses_reasoning_item"))
    if (reasoning and reasoning not in (*written, "".join(written), "\n".join(written))) or item:
        yield AssistantThinking(content=reasoning, state=item or None, call=call, at=at)
    for each, words in zip(blocks, written, strict=True):
        yield AssistantThinking(content=words, state=left(each, "thinking") or None, call=call, at=at)


def _exit_code(observed: dict[str, Any]) -> int | None:
    """The exit code; -1 says that there is none yet."""
    told = (observed.get("exit_code"), mapping(observed.get("metadata")).get("exit_code"))
    return next((each for each in told if whole(each) is not None and each != -1), None)


def _status(observed: dict[str, Any], code: int | None) -> str:
    if observed.get("timeout") is True:
        return "timeout"
    return "error" if observed.get("is_error") is True or code not in (0, None) else "ok"
