"""One turn as seed 001 writes it: ``FullTrace`` and its five kinds of step, in that exact JSON wire form.

These structs are the wire form and nothing else: no envelope, no field left out for having its default value. ``args``
is JSON text kept verbatim; arguments that are no JSON stand in ``args_text`` instead, so a line is always valid JSON.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from trackway.errors import EventRefused
from trackway.schema.plain import json_text, text_of
from trackway.schema.view import splice


class _Step(msgspec.Struct, frozen=True, tag_field="kind"):
    @property
    def kind(self) -> str:
        """The tag the step carries in JSON."""
        return str(self.__struct_config__.tag)


class UserStep(_Step, frozen=True, tag="user"):
    """Input that opened or extended the turn."""

    content: str


class ThinkingStep(_Step, frozen=True, tag="assistant_thinking"):
    """What the model thought."""

    content: str


class ToolCallStep(_Step, frozen=True, kw_only=True, tag="assistant_tool_call"):
    """An action the model asked for."""

    name: str
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    call_id: str
    args_text: str | msgspec.UnsetType = msgspec.UNSET

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCallStep) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        raw = self.args if isinstance(self.args, msgspec.UnsetType) else bytes(self.args)
        return self.name, raw, self.call_id, self.args_text

    @property
    def raw(self) -> bytes:
        """The arguments as the model wrote them, JSON or not."""
        if not isinstance(self.args_text, msgspec.UnsetType):
            return self.args_text.encode("utf-8", "surrogatepass")
        return b"" if isinstance(self.args, msgspec.UnsetType) else bytes(self.args)

    @property
    def arguments(self) -> Any:  # noqa: ANN401
        """The arguments as a value; None where they are no JSON."""
        return None if isinstance(self.args, msgspec.UnsetType) else msgspec.json.decode(bytes(self.args))


class ToolResultStep(_Step, frozen=True, tag="tool_result"):
    """What the model saw next."""

    call_id: str
    content: str
    is_error: bool


class TextStep(_Step, frozen=True, tag="assistant_text"):
    """What the model said."""

    content: str


TraceStep = UserStep | ThinkingStep | ToolCallStep | ToolResultStep | TextStep


def tool_call_step(name: str, args: bytes, call_id: str) -> ToolCallStep:
    """A tool call of arguments as they were recorded."""
    found = splice(args)
    if "args_base64" in found:  # no text at all: the trace has no other place for it than a lossy one
        found = {"args_text": args.decode("utf-8", "backslashreplace")}
    return ToolCallStep(name=name, call_id=call_id, **found)


class _Wire(msgspec.Struct):
    """The seed's order of fields."""

    trace_id: str
    timestamp: int
    model: str
    system_prompt: str
    tools_schema: Any
    steps: list[TraceStep]


def _now() -> int:
    """The one clock of this layer: the seed opens a trace now, and so does whoever writes ``FullTrace("t1")``."""
    return int(time.time())


class FullTrace(msgspec.Struct):
    """A whole turn: what was asked, thought, done, seen and said, in order; ``timestamp`` is Unix seconds, now."""

    trace_id: str
    model: str = ""
    system_prompt: str = ""
    tools_schema: Any = msgspec.field(default_factory=list)
    timestamp: int = msgspec.field(default_factory=_now)
    steps: list[TraceStep] = msgspec.field(default_factory=list)

    def push_user(self, content: str) -> None:
        """Append user input."""
        self.steps.append(UserStep(text_of(content)))

    def push_thinking(self, content: str) -> None:
        """Append thinking."""
        self.steps.append(ThinkingStep(text_of(content)))

    def push_tool_call(self, name: str, args: Any, call_id: str) -> None:  # noqa: ANN401
        """Append a tool call; ``args`` is a JSON value."""
        self.steps.append(tool_call_step(name, json_text(args), call_id))

    def push_tool_result(self, call_id: str, content: str, is_error: bool) -> None:  # noqa: FBT001  the seed's signature
        """Append a tool's result."""
        self.steps.append(ToolResultStep(text_of(call_id), text_of(content), bool(is_error)))

    def push_assistant_text(self, content: str) -> None:
        """Append the reply."""
        self.steps.append(TextStep(text_of(content)))

    def step_count(self) -> int:
        """How many steps there are."""
        return len(self.steps)

    def has_tool_calls(self) -> bool:
        """Whether anything was done, not only said."""
        return any(isinstance(each, ToolCallStep) for each in self.steps)

    def to_json(self) -> bytes:
        """One line of JSON, the seed's wire form."""
        wire = _Wire(*(getattr(self, name) for name in _Wire.__struct_fields__))
        try:
            return msgspec.json.encode(wire)
        except UnicodeEncodeError:  # lone surrogates: JSON has a spelling for them, msgspec has not
            return _escaped(wire)

    @classmethod
    def from_json(cls, line: bytes | str) -> FullTrace:
        """The trace of a line, args verbatim."""
        try:
            found = _read(cls, line)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise EventRefused(f"this is no trace: {error}", hint="one line of FullTrace.to_json()") from error
        found.steps = [_one_line(each) for each in found.steps]
        return found


def _read(cls: type[FullTrace], line: bytes | str) -> FullTrace:
    try:
        return msgspec.json.decode(line, type=cls)
    except msgspec.DecodeError:
        return _unescaped(cls, line)


def _one_line(step: TraceStep) -> TraceStep:
    """The step; arguments that were spread over lines stand as ``tool_call_step`` would write them."""
    if isinstance(step, ToolCallStep) and isinstance(step.args_text, msgspec.UnsetType) and b"\n" in step.raw:
        return tool_call_step(step.name, step.raw, step.call_id)
    return step


def _escaped(trace: _Wire) -> bytes:
    import json

    steps = []
    for each in trace.steps:
        fields = {name: getattr(each, name) for name in each.__struct_fields__}
        if isinstance(each, ToolCallStep):
            fields = {**fields, "args": each.arguments} if each.args is not msgspec.UNSET else fields
            fields = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
        steps.append({"kind": each.kind, **fields})
    whole = {name: getattr(trace, name) for name in trace.__struct_fields__} | {"steps": steps}
    return json.dumps(whole, separators=(",", ":")).encode()


def _unescaped(cls: type[FullTrace], line: bytes | str) -> FullTrace:
    import json

    whole = json.loads(line)
    for each in whole.get("steps", ()):
        if "args" in each:
            each["args"] = msgspec.Raw(json_text(each["args"]))
    return msgspec.convert(whole, cls)
