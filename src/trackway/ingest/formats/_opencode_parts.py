"""A message of opencode and its parts → entries. A part is a file of its own, and is rewritten while it grows.

So what is said of a part must stay true: a call and its result are two entries, the second once there is a result. A
text that is still being written is known by what it says so far; when it is done it is said in whole, by its own id.

Facts: anomalyco/opencode, packages/opencode/src/session/message-v2.ts, and the tools' metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import About, elapsed, is_placeholder
from trackway.ingest.formats._opencode_files import exact, said_by, small
from trackway.ingest.making import args_of, at_of, digest_of, rest_of
from trackway.ingest.source import Entry
from trackway.ingest.values import mapping, text, whole
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

_OPEN: Final = ("pending", "running")
_INVALID: Final = "invalid"
"""The tool that the client calls in place of one that is not there, or that could not be called so."""
_STOPPED: Final = (
    ("The user rejected", "denied"),
    ("The user has specified a rule", "denied"),
    ("Tool execution aborted", "interrupted"),
)
_PART: Final = ("id", "sessionID", "messageID", "type")


class Message(NamedTuple):
    """A message, the parts it is made of, and whether it may still grow."""

    fields: dict[str, Any]
    parts: Iterable[dict[str, Any]]
    is_open: bool = False


class Messages:
    """The messages of one session, said by one agent."""

    def __init__(self, session: str, agent: str | None, about: About) -> None:
        self.session = session
        self.agent = agent
        self.about = about
        self.edits = Edits()
        self.replies = 0

    def entries(self, message: Message) -> Iterator[Entry]:
        """What a message says, and each of its parts."""
        if self.agent is None and self.about.model is None:
            self.about.model = _model(message.fields)
        if message.fields.get("role") == "assistant":
            return self._answer(message)
        return self._prompt(message)

    def entry(self, key: str, events: Iterable[Event], native: dict[str, Any] | None = None) -> Entry:
        """An entry of the session."""
        return Entry(self.session, key, list(events), native=native)

    # --- what a user says ---------------------------------------------------------------------------------------

    def _prompt(self, message: Message) -> Iterator[Entry]:
        fields, parts = message.fields, list(message.parts)
        at = at_of(mapping(fields.get("time")).get("created"))
        said = [text(each.get("text")) for each in parts if _is_typed(each)]
        summary = mapping(fields.get("summary"))
        if not parts:  # of an old message nothing else is left
            said = [text(summary.get("body")) or text(summary.get("title"))]
        events: list[Event] = []
        if fields.get("system"):
            events.append(Context(op="set", system_prompt=text_of(fields["system"]), at=at, agent=self.agent))
        if fields.get("role") != "user":
            events.append(Note(topic=f"message {text(fields.get('role'))}".rstrip(), at=at, agent=self.agent))
        elif said or not parts:
            if self.agent is None:
                self.about.prompt("\n".join(said))
            events.append(User(content="\n".join(said), at=at, agent=self.agent, actor=self._actor))
        events = events or [Note(topic="user", at=at, agent=self.agent)]
        yield self.entry(text(fields.get("id")), events, fields)
        for part in parts:
            if not (_is_typed(part) and set(part) <= {*_PART, "text", "time"}):
                yield self.entry(text(part.get("id")), [self._beside(part, at)], rest_of(part, "sessionID"))

    @property
    def _actor(self) -> str:
        """A sub-agent is asked by the agent that called it."""
        return "human" if self.agent is None else "harness"

    def _beside(self, part: dict[str, Any], at: int) -> Event:
        kind = text(part.get("type"))
        if kind == "text" and not _is_typed(part) and part.get("ignored") is not True:
            return Context(op="inject", text=text(part.get("text")), at=at, agent=self.agent)
        if kind == "file":
            return Context(op="inject", text=text(part.get("filename")) or None, at=at, agent=self.agent)
        return Note(topic=kind or "part", text=text(part.get("prompt")) or None, at=at, agent=self.agent)

    # --- what a model says --------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> Iterator[Entry]:
        fields = message.fields
        parts = list(message.parts)
        turn = _Answer(self, fields, _calls_by_step(parts), is_open=message.is_open)
        call = ModelCall(id=turn.call, model=turn.model, at=turn.at, agent=self.agent)
        native = rest_of(fields, "role", "sessionID", "modelID", "tokens", "cost", "finish", "error")
        yield self.entry(turn.call, [call], native)
        for part in parts:
            yield from turn.part(part)
        yield from turn.end()


class _Answer:
    """One answer of a model while its parts are read."""

    def __init__(self, messages: Messages, fields: dict[str, Any], calls: list[int], *, is_open: bool) -> None:
        self._messages = messages
        self._fields = fields
        self._agent = messages.agent
        self._calls = calls
        self._is_open = is_open
        self.call = text(fields.get("id"))
        self.at = at_of(mapping(fields.get("time")).get("created"))
        self.model = _model(fields)
        self._id = self.call
        self._steps = 0
        messages.replies += 1
        self._finished = False
        self._waiting: list[tuple[int, Entry]] = []

    def part(self, part: dict[str, Any]) -> Iterator[Entry]:
        """What a part says; results come in the order in which they came in."""
        kind = text(part.get("type"))
        if kind != "tool":
            yield from self._results()
        yield from _KINDS.get(kind, _Answer._other)(self, part)

    def end(self) -> Iterator[Entry]:
        """What is left, and how it ended, where no step said so."""
        yield from self._results()
        tokens, error = mapping(self._fields.get("tokens")), self._fields.get("error")
        done = at_of(mapping(self._fields.get("time")).get("completed"))
        if error or (not self._finished and (done or not self._is_open) and (tokens or self._fields.get("finish"))):
            said = mapping(mapping(error).get("data")).get("message") or mapping(error).get("name") or error
            usage = None if self._finished else _usage(tokens, self._fields.get("cost"))
            result = ModelResult(
                id=self.call, usage=usage, usage_from=_known(usage), agent=self._agent, at=done or self.at,
                finish_reason=text(self._fields.get("finish")) or None, error=text_of(said) or None if error else None,
                latency_ms=elapsed(self.at, done),
            )  # fmt: skip
            yield self._entry(f"{self._id} end", [result], {"error": error} if error else None)

    def _entry(self, key: str, events: Iterable[Event], native: dict[str, Any] | None = None) -> Entry:
        return self._messages.entry(key, events, native)

    def _results(self) -> Iterator[Entry]:
        yield from (entry for _, entry in sorted(self._waiting, key=lambda each: each[0]))
        self._waiting = []

    def _text(self, part: dict[str, Any]) -> Iterator[Entry]:
        at, said = self._time(part), text(part.get("text"))
        event: Event = AssistantText(content=said, call=self.call, at=at, agent=self._agent)
        if self._fields.get("summary") is True:
            event = Context(op="compact", text=said, call=self.call, at=at, agent=self._agent)
        elif part.get("synthetic") is True:
            event = Context(op="inject", text=said, call=self.call, at=at, agent=self._agent)
        yield self._entry(self._key(part), [event], rest_of(part, *_PART, "text", "time"))

    def _thought(self, part: dict[str, Any]) -> Iterator[Entry]:
        state = part.get("metadata") if isinstance(part.get("metadata"), dict) else None
        said, at = text(part.get("text")), self._time(part)
        event = AssistantThinking(content=said, state=state, call=self.call, at=at, agent=self._agent)
        yield self._entry(self._key(part), [event], rest_of(part, *_PART, "text", "time", "metadata" if state else ""))

    def _key(self, part: dict[str, Any]) -> str:
        """The part's id; of one that may still grow, what it says is part of its name."""
        time, own = mapping(part.get("time")), text(part.get("id"))
        if not self._is_open or "start" not in time or "end" in time:
            return own
        return f"{own} {digest_of(text(part.get('text')).encode('utf-8', 'surrogatepass'))}"

    def _tool(self, part: dict[str, Any]) -> Iterator[Entry]:
        state, call_id, name = mapping(part.get("state")), text(part.get("callID")), text(part.get("tool"))
        time = mapping(state.get("time"))
        start, end = at_of(time.get("start")) or self.at, at_of(time.get("end"))
        given = state.get("input")
        args = state.get("raw") if state.get("status") == "pending" and state.get("raw") else given
        batch = self._messages.replies if self._calls[self._steps] > 1 else None
        call = AssistantToolCall(
            name=name, args=args_of(args), call_id=call_id, call=self.call, batch=batch, at=start, agent=self._agent
        )
        yield self._entry(text(part.get("id")), [call], rest_of(part, *_PART, "callID", "tool", "state"))
        edits = self._messages.edits
        edits.call(call_id, name, given)
        if state.get("status") in _OPEN or not ({"output", "error"} & state.keys()):
            return
        result = self._result(state, name, call_id, elapsed(start, end), end or start)
        changes, contents = exact(state, call_id)
        guessed, known = edits.result(call_id, ok=not result.failed)
        if not changes:
            changes, contents = guessed, known
        native = rest_of(state, "input", "output", "error", "metadata", "status", "raw")
        events = [result, *(said_by(each, self._agent, result.at) for each in changes)]
        entry = self._entry(f"{text(part.get('id'))} result", events, native)._replace(contents=contents)
        self._waiting.append((result.at, entry))

    def _result(self, state: dict[str, Any], name: str, call_id: str, took: float | None, at: int) -> ToolResult:
        about, is_broken = state.get("metadata"), state.get("status") == "error"
        said = text_of(state.get("error") if is_broken else state.get("output"))
        exit_code = whole(mapping(about).get("exit"))
        failed = is_broken or bool(exit_code) or name == _INVALID
        status = next((each for begins, each in _STOPPED if said.startswith(begins)), "error") if failed else "ok"
        return ToolResult(
            call_id=call_id, content=said, is_error=failed, status=status, exit_code=exit_code, returned=small(about),
            duration_ms=took, at=at, agent=self._agent,
        )  # fmt: skip

    def _step(self, part: dict[str, Any]) -> Iterator[Entry]:
        self._steps += 1
        self._messages.replies += 1
        native = rest_of(part, *_PART)
        if self._steps == 1:
            yield self._entry(text(part.get("id")), [Note(topic="step-start", at=self.at, agent=self._agent)], native)
            return
        self.call = f"{self._id} {self._steps}"
        event = ModelCall(id=self.call, model=self.model, at=self.at, agent=self._agent)
        yield self._entry(text(part.get("id")), [event], native)

    def _finish(self, part: dict[str, Any]) -> Iterator[Entry]:
        self._finished = True
        usage = _usage(mapping(part.get("tokens")), part.get("cost"))
        done = at_of(mapping(self._fields.get("time")).get("completed")) or self.at
        event = ModelResult(
            id=self.call, usage=usage, usage_from=_known(usage), at=done,
            finish_reason=text(part.get("reason")) or None,
            latency_ms=elapsed(self.at, done) if self._steps < 2 else None, agent=self._agent,
        )  # fmt: skip
        yield self._entry(text(part.get("id")), [event], rest_of(part, *_PART, "tokens", "cost", "reason"))

    def _other(self, part: dict[str, Any]) -> Iterator[Entry]:
        kind = text(part.get("type")) or "part"
        event: Event = Note(topic=kind, at=self._time(part), agent=self._agent)
        if kind == "file":
            name = text(part.get("filename")) or None
            event = Context(op="inject", text=name, at=self._time(part), agent=self._agent)
        yield self._entry(text(part.get("id")), [event], rest_of(part, "sessionID"))

    def _time(self, part: dict[str, Any]) -> int:
        time = mapping(part.get("time"))
        return at_of(time.get("end")) or at_of(time.get("start")) or at_of(time.get("created")) or self.at


_KINDS: Final[dict[str, Callable[[_Answer, dict[str, Any]], Iterator[Entry]]]] = {
    "text": _Answer._text, "reasoning": _Answer._thought, "tool": _Answer._tool,  # noqa: SLF001  its own
    "step-start": _Answer._step, "step-finish": _Answer._finish,  # noqa: SLF001
}  # fmt: skip


def _model(fields: dict[str, Any]) -> str | None:
    return text(fields.get("modelID")) or text(mapping(fields.get("model")).get("modelID")) or None


def _calls_by_step(parts: list[dict[str, Any]]) -> list[int]:
    """How many calls each step of an answer has; those before its first step first."""
    counts = [0]
    for each in parts:
        if each.get("type") == "step-start":
            counts.append(0)
        counts[-1] += each.get("type") == "tool"
    return counts


def _is_typed(part: dict[str, Any]) -> bool:
    """Whether a person wrote it."""
    return part.get("type") == "text" and part.get("synthetic") is not True and part.get("ignored") is not True


def _usage(tokens: dict[str, Any], cost: object) -> dict[str, Any] | None:
    return ({**tokens, "cost": cost} if cost is not None else tokens) if tokens else None


def _known(usage: dict[str, Any] | None) -> str:
    return "placeholder" if usage and is_placeholder({**usage, **mapping(usage.get("cache"))}) else "provider"
