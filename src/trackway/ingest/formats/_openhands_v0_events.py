"""OpenHands V0 events → entries. An action is what somebody did, an observation what came of it, by its ``cause``.

An action of the agent's carries the model's whole response, and so does its observation: the call is said once, by the
response's id. Actions of people and of the environment are no steps. Between a delegation and what came of it, the
other agent acts. Old files have neither ids nor sources: there an observation is of the action before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._openhands_v0_edits import edit_of, failed
from trackway.ingest.formats._responses import Answer, answer_of
from trackway.ingest.making import Keys, args_of, at_of, left, text_in
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import listing, mapping, text, whole
from trackway.schema.events import AssistantText, AssistantToolCall, Context, Event, ModelCall, Note, ToolResult, User

_ENVELOPE: Final = (
    "id", "timestamp", "source", "message", "cause", "action", "observation", "tool_call_metadata", "llm_metrics",
    "args", "content", "extras", "success", "timeout",
)  # fmt: skip
_FLAT: Final = tuple(each for each in _ENVELOPE if each != "content")
_NO_STEP: Final = frozenset({
    "start", "null", "pause", "resume", "stop", "change_agent_state", "push", "send_pr", "recall",
    "condensation_request", "loop_recovery",
})  # fmt: skip


class _Open(NamedTuple):
    """An action that waits for what comes of it."""

    call: str
    agent: str | None
    args: dict[str, Any]
    is_step: bool = True


class Events:
    """One stream of events as it is read; ``user`` is who speaks as the user after the first message."""

    def __init__(self, session: str, *, first: str = "human", later: str = "human") -> None:
        self._session = session
        self._actors = (first, later)
        self._keys = Keys()
        self._calls: dict[str, int] = {}
        self._open: dict[int, _Open] = {}
        self._last: _Open | None = None
        self._agents: list[str] = []
        self._delegated = False
        self._prompted = False

    @property
    def _agent(self) -> str | None:
        return self._agents[-1] if self._agents else None

    def entries(self, history: Iterable[Any]) -> Iterator[Entry | Trouble]:
        """The entries of a stream; pairs of an action and its observation count as two events."""
        for i, event in enumerate(_flat(history)):
            if isinstance(event, dict) and isinstance(event.get("action"), str):
                yield self._action(i, event)
            elif isinstance(event, dict) and isinstance(event.get("observation"), str):
                yield self._observation(i, event)
            elif isinstance(event, dict):
                yield Entry(self._session, self._key(i, event), [Note(topic="event")], native=event)
            else:
                yield Trouble(Place(), f"event {i + 1} is no object")

    def _key(self, i: int, event: dict[str, Any]) -> str:
        name = event.get("id")
        return self._keys.of(f"at-{i}" if whole(name) is None or name == -1 else str(name))

    # --- actions ------------------------------------------------------------------------------------------------

    def _action(self, i: int, event: dict[str, Any]) -> Entry:
        key, kind = self._key(i, event), event["action"]
        args = mapping(event.get("args")) if "args" in event else left(event, *_FLAT)
        source = event.get("source") or ("agent" if kind != "message" or self._prompted else "user")
        at = at_of(event.get("timestamp"))
        native = {**left(event, *_ENVELOPE)} if "args" in event else {}
        native |= left({name: event.get(name) for name in ("timeout", "llm_metrics")})
        said = text(event.get("message"))
        if said and said not in (args.get("content"), args.get("thought")):
            native["message"] = said
        if kind == "message":
            events = self._message(key, source, args, event, at)
            native |= left(args, "content")
        elif kind == "system":
            tools = listing(args.get("tools")) or None
            events = [Context(op="set", system_prompt=text(args.get("content")), tools=tools, at=at, agent=self._agent)]
            native |= left(args, "content", "tools")
            native.pop("message", None)
        elif kind == "condensation":
            detail = left(args, "summary", "thought")
            summary = text(args.get("summary")) or None
            events = [Context(op="compact", text=summary, detail=detail or None, at=at, agent=self._agent)]
        elif kind in _NO_STEP or source == "environment" or (source == "user" and kind in ("finish", "reject")):
            events = [Note(topic=kind, detail=args or None, at=at, agent=self._agent)]
        elif source == "user":
            words = next((text(args[name]) for name in ("command", "code", "path", "url") if args.get(name)), kind)
            events = [User(content=words, at=at, agent=self._agent)]
            native["args"] = args
            self._waits(event, _Open("", self._agent, args, is_step=False))
        else:
            events = self._call(key, event, args, at, native)
        return Entry(self._session, key, events, native=native or None)

    def _message(self, key: str, source: object, args: dict[str, Any], event: dict[str, Any], at: int) -> list[Event]:
        said = text_in(args.get("content"))
        if source == "agent":
            call = None
            events: list[Event] = []
            if event.get("llm_metrics"):  # it was called; of the answer only the words are here
                call = f"model-{key}"
                events.append(ModelCall(id=call, at=at, agent=self._agent))
            return [*events, AssistantText(content=said, call=call, at=at, agent=self._agent)]
        actor = self._actors[self._prompted]
        if self._delegated or source == "environment":  # the task one agent gives another
            actor = "harness"
        self._delegated, self._prompted = False, True
        return [User(content=said, actor=actor, at=at, agent=self._agent)]

    def _call(
        self, key: str, event: dict[str, Any], args: dict[str, Any], at: int, native: dict[str, Any]
    ) -> list[Event]:
        told = mapping(event.get("tool_call_metadata"))
        answer = answer_of(told.get("model_response"))
        name = text(told.get("tool_call_id")) or f"call-{key}"
        thought = text(args.get("thought"))
        events: list[Event] = []
        call, batch, written = None, None, None
        if answer is not None:
            call = answer.id or f"model-{key}"
            # A response's own time is of another clock than the events', which is the machine's local one.
            events += self._answered(call, answer._replace(at=at), native)
            written = next((each.arguments for each in answer.uses if each.id == name), None)
            count = whole(told.get("total_calls_in_response")) or len(answer.uses)
            batch = self._calls[call] if count > 1 else None
            native["args"] = {k: v for k, v in args.items() if k != "thought" or v != answer.said}
            native |= left(told, "function_name", "tool_call_id", "model_response", "total_calls_in_response")
        elif told:
            native["tool_call_metadata"] = told
        if answer is None and thought and event["action"] != "think":
            events.append(AssistantText(content=thought, at=at, agent=self._agent))
            args = {k: v for k, v in args.items() if k != "thought"}
        if answer is None and event.get("llm_metrics"):
            call = f"model-{key}"
            events.insert(0, ModelCall(id=call, at=at, agent=self._agent))
        events.append(
            AssistantToolCall(
                name=text(told.get("function_name")) or event["action"],
                args=args_of(args if written is None else written),
                call_id=name, call=call, batch=batch, at=at, agent=self._agent,
            )
        )  # fmt: skip
        self._waits(event, _Open(name, self._agent, args))
        if event["action"] == "delegate":
            self._agents.append(text(args.get("agent")) or "delegate")
            self._delegated = True
        return events

    def _answered(self, call: str, answer: Answer, native: dict[str, Any]) -> Iterator[Event]:
        """The model call, its words and its tokens: once, however many actions it wrote."""
        if call in self._calls:
            return
        self._calls[call] = len(self._calls) + 1
        if answer.rest:
            native["response"] = answer.rest
        yield from answer.call(call, self._agent)
        yield from answer.words(call, self._agent)

    def _waits(self, event: dict[str, Any], what: _Open) -> None:
        number = whole(event.get("id"))
        if number is None or number == -1:
            self._last = what
        else:
            self._open[number] = what

    # --- observations -------------------------------------------------------------------------------------------

    def _observation(self, i: int, event: dict[str, Any]) -> Entry:
        key, kind, at = self._key(i, event), event["observation"], at_of(event.get("timestamp"))
        native = left(event, *_ENVELOPE)
        if kind == "delegate" and self._agents:
            self._agents.pop()
        of = self._answers(event)
        told = mapping(event.get("tool_call_metadata"))
        response = mapping(told.get("model_response"))
        if told and text(response.get("id")) not in self._calls:
            native["tool_call_metadata"] = told
        if of is None and text(told.get("tool_call_id")):  # its action is not in this file
            of = _Open(told["tool_call_id"], self._agent, {})
        extras = mapping(event.get("extras"))
        content = text_in(event.get("content"))
        if of is not None and of.is_step:
            return self._result(key, event, of, native)
        native |= {"extras": extras} if extras else {}
        who: dict[str, Any] = {"at": at, "agent": self._agent}
        if of is not None or kind in ("recall", "error", "user_rejected"):
            native.pop("extras", None)
            events: list[Event] = [Context(op="inject", text=content, detail=extras or None, **who)]
        elif kind == "condense":
            events = [Context(op="compact", text=content, **who)]
        else:
            events = [Note(topic=kind, text=content or None, **who)]
        return Entry(self._session, key, events, native=native or None)

    def _answers(self, event: dict[str, Any]) -> _Open | None:
        """The action an observation is of."""
        cause = whole(event.get("cause"))
        if cause is not None:
            return self._open.pop(cause, None)
        if whole(event.get("id")) not in (None, -1):
            return None
        found, self._last = self._last, None
        return found

    def _result(self, key: str, event: dict[str, Any], of: _Open, native: dict[str, Any]) -> Entry:
        edit = edit_of(event, of.args, of.call, of.agent)
        extras = dict(mapping(event.get("extras")))
        content = seen = text_in(event.get("content"))
        if isinstance(extras.get("formatted_output_and_error"), str):
            seen = extras.pop("formatted_output_and_error")
        code = _exit_code(event, extras)
        status = _status(event, extras, code)
        if edit is not None and edit.contents:
            extras.pop("old_content", None)
            extras.pop("new_content", None)
        if extras:
            native["extras"] = extras
        native.pop("exit_code", None)
        result = ToolResult(
            call_id=of.call, content=seen, exit_code=code, is_error=status in ("error", "timeout"), status=status,
            returned=content if content != seen else None, at=at_of(event.get("timestamp")), agent=of.agent,
        )  # fmt: skip
        events: list[Event] = [result] if edit is None else [result, edit.change]
        contents = () if edit is None else edit.contents
        return Entry(self._session, key, events, native=native or None, contents=contents)


def _exit_code(event: dict[str, Any], extras: dict[str, Any]) -> int | None:
    """The exit code; -1 says that there is none yet."""
    told = (mapping(extras.get("metadata")).get("exit_code"), extras.get("exit_code"), event.get("exit_code"))
    return next((each for each in told if whole(each) is not None and each != -1), None)


def _status(event: dict[str, Any], extras: dict[str, Any], code: int | None) -> str:
    if event["observation"] == "user_rejected":
        return "denied"
    if "timed out" in text(mapping(extras.get("metadata")).get("suffix")):
        return "timeout"
    return "error" if failed(event) or code not in (0, None) else "ok"


def _flat(history: Iterable[Any]) -> Iterator[Any]:
    for each in history:
        if isinstance(each, list):
            yield from each
        else:
            yield each
