"""One agent's view of an episode: the methods that record what it is told, thinks, does, sees and says."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from trackway.errors import BadSetting, EpisodeClosed
from trackway.recording.messages import ContextTracker
from trackway.recording.redact import Tally
from trackway.recording.remarks import Remarks, as_bytes
from trackway.recording.request import ModelRequest
from trackway.recording.settings import number
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.events import STATUSES
from trackway.schema.execution_step import ExecutionStep
from trackway.schema.plain import json_text, mapping_of, plain, text_of
from trackway.store import forks
from trackway.store.large import BIG, Payload, large_of

if TYPE_CHECKING:
    from trackway.recording.episode import Core

_ERRORS: Final = ("error", "timeout")


class Call:
    """A tool call that was recorded: hand it to ``tool_result``. Its text is the call id."""

    __slots__ = ("args", "call_id", "name", "started", "verdict")

    def __init__(self, call_id: str, name: str, args: Any = None, verdict: Any = None) -> None:  # noqa: ANN401
        self.call_id = call_id
        self.name = name
        self.args = args
        self.started = time.perf_counter()
        self.verdict = verdict

    def __str__(self) -> str:
        return self.call_id

    def __repr__(self) -> str:
        return f"Call({self.name!r}, {self.call_id!r})"


class AgentView(Remarks):
    """What an agent, or one of its sub-agents, records through."""

    def __init__(self, core: Core, *, name: str | None = None, turn: int = 0) -> None:
        self._core = core
        self._name = name
        self._turn = turn
        self._batch = core.first_batch
        self._in_batch = False
        self._open_call: str | None = None
        self._model_call: str | None = None
        self._context = ContextTracker()
        self._context_lock = forks.lock_of(self, "_context_lock")

    def _put(self, kind: type[kinds.Event], fields: dict[str, Any], payloads: tuple[Payload, ...] = ()) -> bool:
        """Fill in the envelope and append."""
        core = self._core
        if core.ended:
            raise EpisodeClosed(
                f"episode {ids.short(core.id)} has ended; this {kind.kind} came after",
                hint="label() may follow the end", episode=core.id,
            )  # fmt: skip
        fields["at"] = core.clock()
        if self._turn:
            fields["turn"] = self._turn
        if self._name is not None:
            fields["agent"] = self._name
        if core.plain:
            return core.recorder.put(core.raw, kind, fields, payloads)
        if core.guard is not None and kind not in (kinds.AssistantToolCall, kinds.ToolResult, kinds.Verdict):
            core.ask("observe", kind(**fields))
        return core.put(kind, fields, payloads)

    def _put_text(
        self,
        kind: type[kinds.Event],
        content: Any,  # noqa: ANN401
        fields: dict[str, Any],
        payloads: tuple[Payload, ...] = (),
    ) -> bool:
        if type(content) is not str and self._core.redactor is not None:
            # Hidden while it is a value: in its JSON a name stands beside its value only for whoever parses it.
            tally = Tally()
            content = self._core.redactor.value(plain(content), tally)
            if tally.counts:
                fields["redacted"] = dict(tally.counts)
        text = content if type(content) is str else text_of(content)
        fields["content"] = text
        return self._put(kind, fields, (*payloads, Payload(text, "content")) if len(text) >= BIG else payloads)

    # --- what is said -------------------------------------------------------------------------------------------

    def user(self, content: str, *, actor: str = "human") -> None:
        """Input from a person, a simulated one or the harness; it opens a turn."""
        self._turn += 1
        self._in_batch = False
        self._put_text(kinds.User, content, {} if actor == "human" else {"actor": text_of(actor)})

    def thinking(self, content: str, *, state: Mapping[str, Any] | None = None) -> None:
        """What the model thought; ``state`` is the provider's opaque part (signature, encrypted), kept verbatim."""
        fields = self._produced()
        if state is not None:
            fields["state"] = mapping_of(state)
        self._put_text(kinds.AssistantThinking, content, fields)

    def text(self, content: str) -> None:
        """What the model said."""
        self._put_text(kinds.AssistantText, content, self._produced())

    def _produced(self) -> dict[str, Any]:
        """What ties an event to the model call it came from. Fields at their default are left out of all of these."""
        return {} if self._model_call is None else {"call": self._model_call}

    # --- what is done -------------------------------------------------------------------------------------------

    def tool_call(self, name: str, args: Any = None, *, call_id: str | None = None, reported: bool = False) -> Call:  # noqa: ANN401
        """An action, before it happens. ``args``: a mapping, or the model's own JSON text or bytes, kept verbatim."""
        if not self._in_batch:
            self._batch += 1
            self._in_batch = True
        name = name if type(name) is str else text_of(name)
        raw = args_bytes(args)
        call_id = self._core.recorder.new_id("call") if call_id is None else text_of(call_id)
        self._open_call = call_id
        fields = self._produced()
        fields["name"], fields["args"], fields["call_id"], fields["batch"] = name, raw, call_id, self._batch
        if reported:
            fields["reported"] = True
        self._put(kinds.AssistantToolCall, fields, (Payload(raw, "args"),) if len(raw) >= BIG else ())
        if self._core.guard is None or reported:  # what is reported has happened: there is nothing to ask
            return Call(call_id, name, args)
        asked = {"call_id": call_id, "batch": self._batch, "agent": self._name}
        return Call(call_id, name, args, self._verdict(self._core.ask("before", name, args, **asked), call_id))

    def tool_result(  # noqa: C901  one branch for each field that may be left out
        self,
        call: Call | str,
        content: Any = "",  # noqa: ANN401
        *,
        is_error: bool = False,
        exit_code: int | None = None,
        status: str | None = None,
        returned: Any = None,  # noqa: ANN401
        duration_ms: float | None = None,
    ) -> Any:  # noqa: ANN401
        """What came of an action. ``content`` is what the model saw; with a guard its verdict is returned."""
        self._in_batch = False
        self._open_call = None
        if status is None:
            status = "error" if is_error else "ok"
        elif status not in STATUSES:
            raise BadSetting(f"status is {status!r}", hint=f"one of {', '.join(STATUSES)}", value=status)
        if duration_ms is None and isinstance(call, Call):
            duration_ms = (time.perf_counter() - call.started) * 1000
        if returned is None and not isinstance(content, (str, type(None))):
            made = plain(content)
            returned = None if isinstance(made, str) else made  # an exception, a path: its text says it all
        is_error = bool(is_error) or status in _ERRORS
        fields: dict[str, Any] = {"call_id": call.call_id if isinstance(call, Call) else text_of(call)}
        if is_error or status != "ok":
            fields["is_error"], fields["status"] = is_error, status
        if exit_code is not None:
            fields["exit_code"] = number("exit_code", exit_code, int)
        if duration_ms is not None:
            fields["duration_ms"] = (
                duration_ms if type(duration_ms) is int else number("duration_ms", duration_ms, float)
            )
        large: tuple[Payload, ...] = ()
        if returned is not None:
            fields["returned"] = plain(returned)
            large = large_of(fields, ("returned",))
        self._put_text(kinds.ToolResult, content, fields, large)
        if self._core.guard is None or not isinstance(call, Call):
            return None
        outcome = {"is_error": is_error, "exit_code": exit_code, "status": status}
        return self._verdict(self._core.ask("after", call.name, call.args, content, **outcome), call.call_id)

    def log_step(self, step: ExecutionStep) -> None:
        """A step as the agent reports it, after the fact (seed 000): a call marked as reported, and its result."""
        _check_step(step)
        latency, tokens = step.latency_ms, step.tokens
        call = self.tool_call(step.tool, {"action": step.action}, reported=True)
        if tokens is not None:
            usage = {"id": call.call_id, "usage": {"total_tokens": tokens}, "usage_from": "agent"}
            self._put(kinds.ModelResult, usage)
        self.tool_result(call, step.observation, is_error=not step.success, duration_ms=latency)

    def _verdict(self, verdict: Any, call_id: str) -> Any:  # noqa: ANN401
        if verdict is not None and getattr(verdict, "action", "allow") != "allow":
            self._put(kinds.Verdict, {
                "rule": text_of(getattr(verdict, "rule", "")), "action": text_of(verdict.action), "call_id": call_id,
                "text": text_of(getattr(verdict, "text", "")), "evidence": plain(getattr(verdict, "evidence", None)),
            })  # fmt: skip
        return verdict

    def model_call(
        self,
        *,
        model: str | None = None,
        messages: Iterable[Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        tools: Any = None,  # noqa: ANN401
        system: Any = None,  # noqa: ANN401
        attempt: int = 1,
    ) -> ModelRequest:
        """A request to a model, before it is sent; call ``done`` on what this returns. Only new messages are stored."""
        call_id = self._core.recorder.new_id("m")
        self._model_call, self._in_batch = call_id, False
        fields: dict[str, Any] = {"id": call_id}
        if model is not None:
            fields["model"] = model if type(model) is str else text_of(model)
        if attempt != 1:
            fields["attempt"] = number("attempt", attempt, int)
        if parameters is not None:
            fields["parameters"] = mapping_of(parameters)
        if tools is not None:
            fields["tools"] = plain(tools)
        if system is not None:
            fields["system"] = plain(system)
        if messages is None:
            self._put(kinds.ModelCall, fields)
        else:
            self._put_context(call_id, messages, fields)
        return ModelRequest(self._put, call_id)

    def _put_context(self, call_id: str, messages: Iterable[Any], fields: dict[str, Any]) -> None:
        """A call with its messages; the next one may refer to it only once it is recorded."""
        with self._context_lock:
            taken = self._context.look(messages, self._core.redactor)
            reuse, fields["messages"] = taken.difference
            if taken.redacted:
                fields["redacted"] = taken.redacted
            if reuse:
                fields["base"], fields["reuse"] = taken.base, reuse
            if self._put(kinds.ModelCall, fields, large_of(fields, ("messages",)) if taken.large else ()):
                self._context.commit(call_id, taken)

    def agent(self, name: str) -> AgentView:
        """A view for a sub-agent, the same one for the same name: same episode, turns and batches of its own."""
        full = text_of(name) if self._name is None else f"{self._name}/{text_of(name)}"
        return self._core.views.setdefault(full, AgentView(self._core, name=full))


def _check_step(step: ExecutionStep) -> None:
    """What is logged comes back equal, so it must be what it says it is; checked before anything is recorded."""
    if not isinstance(step, ExecutionStep):
        raise BadSetting(f"step is a {type(step).__name__}", hint="an ExecutionStep(tool, action, latency_ms)")
    kinds_of = {
        "tool": (str,), "action": (str,), "observation": (str,), "success": (bool,), "latency_ms": (int, float),
        "tokens": (int, type(None)),
    }  # fmt: skip
    for name, wanted in kinds_of.items():
        value = getattr(step, name)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            hint = f"{' or '.join(each.__name__ for each in wanted)}".replace("NoneType", "None")
            raise BadSetting(f"{name} of a step is a {type(value).__name__}", hint=hint, step=step)


def args_bytes(args: Any) -> bytes:  # noqa: ANN401
    """A call's arguments as the bytes that are kept: the model's own where given, else JSON of the mapping."""
    if type(args) is dict:
        return json_text(args)
    if args is None:
        return b"{}"
    if isinstance(args, (bytes, bytearray, memoryview)):
        return bytes(args)
    if isinstance(args, str):
        return as_bytes(args)
    return json_text(args)
