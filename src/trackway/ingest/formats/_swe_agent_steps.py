"""SWE-agent's steps → entries: one model call, the action it wrote, and what came of it, which is an entry of its own.

What the model was given (``query``) is repeated at every step: it is kept as the difference to the step before. Before
1.1 ``messages`` held what the *next* call was given, but not where the model was asked to repeat itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trackway.ingest.formats._contexts import Contexts
from trackway.ingest.formats._responses import ToolUse, uses_in
from trackway.ingest.formats._swe_agent_history import History, Matched, shown
from trackway.ingest.making import args_of, is_only_text, left, text_in
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import listing, mapping, milliseconds, text
from trackway.schema.events import AssistantText, AssistantThinking, AssistantToolCall, Event, Note, ToolResult, User

_EXITS: Final = ("Exit due to ", "Exiting due to ")
_STEP: Final = (
    "action", "observation", "response", "thought", "execution_time", "query", "messages", "state", "reasoning_content",
)  # fmt: skip
_SAID: Final = ("role", "content", "thought", "action", "agent", "tool_calls", "message_type", "thinking_blocks")
_SEEN: Final = ("role", "content", "agent", "tool_call_ids", "message_type")


class Steps:
    """The steps of one trajectory as they are read."""

    def __init__(self, session: str, history: History, model: str | None) -> None:
        self._session = session
        self._history = history
        self._model = model
        self._contexts = Contexts()
        self._next: list[Any] | None = None

    def entries(self, trajectory: Iterable[tuple[int, Any]]) -> Iterator[Entry | Trouble]:
        """What was there before, the steps, and what the history has beside them."""
        for at, item in self._history.opening():
            yield self._shown(at, item)
        count = 0
        for i, step in trajectory:
            count += 1
            if isinstance(step, dict):
                yield from self._step(i, step)
            else:
                yield Trouble(Place(), f"step {i + 1} is no object")
        if count:
            for at, item in self._history.rest():
                said = text_in(item.get("content"))
                yield self._entry(f"history-{at}", [Note(topic="history", text=said)], left(item, "content"))
            return
        for i, found in enumerate(self._history.following()):
            yield from self._remembered(i, found)

    def _entry(self, key: str, events: list[Event], native: dict[str, Any] | None = None) -> Entry:
        return Entry(self._session, key, events, native=native or None)

    def _shown(self, at: int, item: dict[str, Any]) -> Entry:
        return self._entry(f"history-{at}", *shown(item))

    def _step(self, i: int, step: dict[str, Any]) -> Iterator[Entry]:
        if _is_exit(step):
            words = text(step.get("thought")) or text(step.get("response"))
            yield self._entry(f"step-{i}", [Note(topic="exit", text=words)], left(step, "thought", "query", "messages"))
            return
        found = self._history.match(step)
        for at, item in found.passed if found else ():
            yield self._shown(at, item)
        said = found.said if found else {}
        uses = _uses(step, said, i)
        native = left(step, *_STEP) | left(said, *_SAID)
        thought, response = text(step.get("thought")), text(step.get("response"))
        if thought and thought not in response:
            native["thought"] = thought
        yield self._entry(f"step-{i}", self._answer(i, step, said, uses), native)
        yield from self._result(i, step, found, uses)
        self._next = listing(step.get("messages")) or None if found else None

    def _answer(self, i: int, step: dict[str, Any], said: dict[str, Any], uses: list[ToolUse]) -> list[Event]:
        call = f"model-{i}"
        query = [each for each in listing(step.get("query")) if each]
        events: list[Event] = [self._contexts.call(call, query or self._next, model=self._model)]
        for content, state in _thoughts(step, said):
            events.append(AssistantThinking(content=content, state=state, call=call))
        words = text(step.get("response")) or text(step.get("thought"))
        if words:
            events.append(AssistantText(content=words, call=call))
        batch = i if len(uses) > 1 else None
        events += [
            AssistantToolCall(name=each.name, args=args_of(each.arguments), call_id=each.id, call=call, batch=batch)
            for each in uses
        ]
        return events

    def _result(self, i: int, step: dict[str, Any], found: Matched | None, uses: list[ToolUse]) -> Iterator[Entry]:
        observed = text(step.get("observation"))
        seen = found.seen if found else None
        # Blocked or malformed: it was never executed, and the model was asked again without a trace in its history.
        if not observed and found is None and not step.get("state") and self._history:
            return
        content = text_in(seen.get("content")) if seen else observed
        native = left(mapping(seen), *_SEEN)
        if seen and not is_only_text(seen.get("content")):
            native["content"] = seen["content"]
        if step.get("state"):
            native["state"] = step["state"]
        if not uses:
            yield self._entry(f"step-{i}/result", [User(content=content, actor="harness")], native)
            return
        result = ToolResult(
            call_id=_answered(seen, uses), content=content, returned=observed if observed != content else None,
            duration_ms=milliseconds(step.get("execution_time")),
        )  # fmt: skip
        yield self._entry(f"step-{i}/result", [result], native)

    def _remembered(self, i: int, found: Matched) -> Iterator[Entry]:
        """A step of a history that comes without a trajectory."""
        for at, item in found.passed:
            yield self._shown(at, item)
        if not found.said:
            return
        step = {"response": text_in(found.said.get("content")), **left(found.said, "role", "content")}
        uses = _uses(step, found.said, i)
        yield self._entry(f"step-{i}", self._answer(i, step, found.said, uses), left(found.said, *_SAID))
        if found.seen is not None:
            yield from self._result(i, {"observation": text_in(found.seen.get("content"))}, found, uses)


def _is_exit(step: dict[str, Any]) -> bool:
    """Whether a step is the harness's own words about why it stopped, and no model's."""
    action, response, thought = (text(step.get(name)) for name in ("action", "response", "thought"))
    if action.startswith("exit_"):  # before 1.0
        return not response
    return not action and thought == response and thought.startswith(_EXITS)


def _uses(step: dict[str, Any], said: dict[str, Any], i: int) -> list[ToolUse]:
    """The tool calls as the model wrote them, where it did; else the action as the command that it is."""
    uses = [each._replace(id=each.id or f"call-{i}") for each in uses_in(said)]
    action = text(step.get("action"))
    if not uses and action.strip():
        uses = [ToolUse(f"call-{i}", "bash", {"command": action})]
    return uses


def _answered(seen: dict[str, Any] | None, uses: list[ToolUse]) -> str:
    """Which call a result is of: the one it names, else the first."""
    named = [text(each) for each in listing(mapping(seen).get("tool_call_ids"))]
    return next((each.id for each in uses if each.id in named), uses[0].id)


def _thoughts(step: dict[str, Any], said: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    blocks = [mapping(each) for each in listing(said.get("thinking_blocks"))]
    for block in blocks:
        yield text(block.get("thinking")), left(block, "thinking") or None
    reasoning = text(step.get("reasoning_content"))
    if reasoning and reasoning not in [text(block.get("thinking")) for block in blocks]:
        yield reasoning, None
