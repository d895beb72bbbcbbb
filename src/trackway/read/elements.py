"""An episode as the elements it is compared by: for each agent, one line of what it was told, thought, did and said.

An element is an event without what differs between any two recordings: envelope, ids, times, latency, usage. It has a
``key``, equal where the same happened; a ``loose`` key, equal where something of the same sort happened; and a model
call has the identity of what the model saw. Results of calls that were made at once stand in the order of the calls:
which came back first is time, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import EventRefused
from trackway.read.context import Standing
from trackway.read.identity import Contexts, digest
from trackway.read.order import name_of, ordered
from trackway.read.pairs import Open
from trackway.schema import events as kinds
from trackway.schema.canonical import signature
from trackway.schema.codec import tree_of
from trackway.schema.events import ENVELOPE, AssistantToolCall, Event, FileState, ModelCall, ToolResult


class Element(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that happened. ``index`` is its place in reading order, ``event`` its name (``writer:n``).

    ``step`` numbers calls and their results from 1, as ``steps`` does; of everything else it is the last step begun.
    """

    kind: str
    text: str
    index: int
    step: int
    turn: int = 0
    agent: str | None = None
    event: str = ""


class Asked(NamedTuple):
    """The identity of what a model saw."""

    system: bytes | None
    tools: bytes | None
    messages: bytes | None


class Point(NamedTuple):
    """An element and what it is compared by."""

    element: Element
    key: tuple[Hashable, ...]
    loose: Hashable
    asked: Asked | None


class Line:
    """What one agent went through; the lists run beside each other."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.keys: list[tuple[Hashable, ...]] = []
        self.loose: list[Hashable] = []
        self.asked: list[Asked | None] = []
        self.calls: dict[int, ModelCall] = {}

    def point(self, at: int) -> Point | None:
        """What stands at a place; None behind the last."""
        if at >= len(self.keys):
            return None
        return Point(self.elements[at], self.keys[at], self.loose[at], self.asked[at])


class Face(NamedTuple):
    """How an event is compared, and how it is shown."""

    key: tuple[Hashable, ...]
    loose: Hashable
    text: str


class Elements:
    """The lines of an episode, by agent, in the order in which the agents appeared."""

    def __init__(self, events: Iterable[Event], *, steps_only: bool = False) -> None:
        found = ordered(events)
        self.lines: dict[str | None, Line] = {}
        self.contexts = Contexts([] if steps_only else [each for each in found if isinstance(each, ModelCall)])
        self._standing = Standing()
        self._actions: dict[tuple[str | None, str], tuple[str, str]] = {}
        self._anyones: dict[str, tuple[str, str]] = {}
        self._kinds = _STEPS if steps_only else _FACES
        for each in found:
            if isinstance(each, AssistantToolCall):
                self.contexts.names(each.agent).calls.add(each.call_id)
        for index, step, event in _in_call_order(found):
            self._take(index, step, event)

    def _take(self, index: int, step: int, event: Event) -> None:
        self._standing.note(event)
        if isinstance(event, AssistantToolCall):
            found = event.name, signature(event.name, event.args)
            self._actions[event.agent, event.call_id] = self._anyones[event.call_id] = found
        make = self._kinds.get(type(event))
        face = None if make is None else make(self, event)
        if face is None:
            return
        line = self.lines.setdefault(event.agent, Line())
        if isinstance(event, ModelCall):
            line.calls[len(line.keys)] = event
        line.elements.append(
            Element(
                kind=event.kind, text=face.text, index=index, step=step, turn=event.turn, agent=event.agent,
                event=name_of(event),
            )
        )  # fmt: skip
        line.keys.append((event.kind, *face.key))
        line.loose.append((event.kind, face.loose))
        line.asked.append(self._asked(event) if isinstance(event, ModelCall) else None)

    def _asked(self, call: ModelCall) -> Asked:
        system = self._standing.of(call.agent, "system") if call.system is None else call.system
        tools = self._standing.of(call.agent, "tools") if call.tools is None else call.tools
        return Asked(self.contexts.part(system), self.contexts.part(tools), self.contexts.messages(call))

    def action(self, event: Event, call_id: str | None) -> tuple[str, str]:
        """Tool and signature of a call; of one that is not known its id says nothing."""
        own = self._actions.get((event.agent, call_id or ""))
        return own or self._anyones.get(call_id or "") or ("", "external" if call_id == "external" else "")

    def model(self, call: ModelCall) -> str | None:
        """The model that was asked."""
        found: str | None = call.model or self._standing.of(call.agent, "model")
        return found


def _in_call_order(events: list[Event]) -> Iterable[tuple[int, int, Event]]:
    """Place, step and event; results of calls that were made at once are put in the order of those calls."""
    open_calls = Open()
    found: list[tuple[int, int, Event]] = []
    groups: dict[int, list[int]] = {}
    group_of: list[int] = []
    current: dict[str | None, int] = {}
    for index, event in enumerate(events):
        step = len(open_calls.calls)
        if isinstance(event, AssistantToolCall):
            step = open_calls.call(event) + 1
            group_of.append(current.setdefault(event.agent, step))
        elif isinstance(event, ToolResult):
            current.pop(event.agent, None)
            place = open_calls.result(event)
            if place is not None:
                step = place + 1
                groups.setdefault(group_of[place], []).append(index)
        found.append((index, step, event))
    for places in groups.values():
        if len(places) > 1:
            for place, result in zip(
                places, sorted((found[at] for at in places), key=lambda each: each[1]), strict=True
            ):
                found[place] = result
    return found


# --- one for each kind ------------------------------------------------------------------------------------------------


def _said(_: Elements, event: Any) -> Face:  # noqa: ANN401  each of these takes the kind it is registered for
    return Face((event.content,), "", event.content)


def _user(_: Elements, event: kinds.User) -> Face:
    return Face((event.content, event.actor), "", event.content)


def _tool_call(of: Elements, event: AssistantToolCall) -> Face:
    text = f"{event.name} {event.args.decode('utf-8', 'backslashreplace')}"
    return Face(of.action(event, event.call_id), event.name, text)


def _tool_result(of: Elements, event: ToolResult) -> Face:
    tool, action = of.action(event, event.call_id)
    ended = "" if event.exit_code in (None, 0) else f" {event.exit_code}"
    text = f"{event.status}{ended}: {event.content}" if event.failed or ended else event.content
    return Face((action, event.content, event.is_error, event.status, event.exit_code), tool, text)


def _model_call(of: Elements, event: ModelCall) -> Face:
    model = of.model(event)
    return Face((model, of.contexts.part(event.parameters)), "", model or "")


def _model_result(_: Elements, event: kinds.ModelResult) -> Face | None:
    return None if event.error is None else Face((event.error,), "", event.error)


def _context(of: Elements, event: kinds.Context) -> Face:
    key = (event.op, event.system_prompt, of.contexts.part(event.tools), event.text, _digest(event.detail))
    return Face(key, event.op, event.system_prompt or event.text or event.op)


def _file_change(of: Elements, event: kinds.FileChange) -> Face:
    cause = of.action(event, event.cause)
    states = _state(event.before), _state(event.after)
    names = " → ".join(_short(each) for each in (event.before, event.after))
    return Face((event.op, event.path, event.new_path, *states, *cause), event.path, f"{event.op} {event.path} {names}")


def _test_run(_: Elements, event: kinds.TestRun) -> Face:
    counts = event.passed, event.failed, event.errors, event.skipped
    named = zip(counts, ("passed", "failed", "errors", "skipped"), strict=True)
    text = ", ".join(f"{count} {name}" for count, name in named if count)
    return Face((*counts, event.command, repr(event.pass_rate)), "", text)


def _reward(_: Elements, event: kinds.Reward) -> Face:
    key = (event.name, event.scope, repr(event.value), event.ended)
    return Face(key, (event.name, event.scope), f"{event.name} {event.value}")


def _security_flag(_: Elements, event: kinds.SecurityFlag) -> Face:
    return Face((event.rule, event.severity, event.where, event.evidence), event.rule, event.rule)


def _verdict(of: Elements, event: kinds.Verdict) -> Face:
    key = (event.rule, event.action, event.text, *of.action(event, event.call_id))
    return Face(key, event.rule, f"{event.action} {event.rule}: {event.text}")


def _reflection(_: Elements, event: kinds.Reflection) -> Face:
    key = (event.lesson, event.signature, event.tried, event.times, event.outcome)
    return Face(key, "", event.lesson)


def _note(_: Elements, event: kinds.Note) -> Face:
    text = event.topic if event.text is None else f"{event.topic}: {event.text}"
    return Face((event.topic, event.text, _digest(event.detail)), event.topic, text)


def _end(_: Elements, event: kinds.EpisodeEnd) -> Face:
    return Face((event.outcome, repr(event.score)), "", event.outcome or "")


def _unknown(_: Elements, event: kinds.Unknown) -> Face:
    try:
        tree = {name: each for name, each in tree_of(event.raw).items() if name not in ENVELOPE}
    except EventRefused:
        tree = {"raw": event.raw}
    return Face((_digest(tree),), "", event.name)


def _digest(value: Any) -> bytes | None:  # noqa: ANN401
    return None if value is None else digest(value)


def _short(state: FileState | None) -> str:
    return "nothing" if state is None else state.hash.partition(":")[2][:8]


def _state(state: FileState | None) -> tuple[str, int | None] | None:
    return None if state is None else (state.hash, state.mode)


_STEPS: Final[dict[type[Event], Callable[[Elements, Any], Face | None]]] = {
    AssistantToolCall: _tool_call,
    ToolResult: _tool_result,
}
_FACES: Final[dict[type[Event], Callable[[Elements, Any], Face | None]]] = {
    **_STEPS,
    kinds.User: _user,
    kinds.AssistantThinking: _said,
    kinds.AssistantText: _said,
    ModelCall: _model_call,
    kinds.ModelResult: _model_result,
    kinds.Context: _context,
    kinds.FileChange: _file_change,
    kinds.TestRun: _test_run,
    kinds.Reward: _reward,
    kinds.SecurityFlag: _security_flag,
    kinds.Verdict: _verdict,
    kinds.Reflection: _reflection,
    kinds.Note: _note,
    kinds.EpisodeEnd: _end,
    kinds.Unknown: _unknown,
}
"""The header says what was to be tried and labels what was thought of it later: neither happened in the episode."""
