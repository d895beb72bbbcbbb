"""ATIF steps → entries: an agent step is one model call with its tool calls; what came back is an entry of its own.

So a step that is written before its observation is there gains one later, and is not said twice. Steps copied from an
earlier document are context here: nothing of them was sampled, called or answered in this one. An embedded sub-agent
stands where the step that refers to it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

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

_ARRAYS = ("prompt_token_ids", "completion_token_ids", "logprobs", "extra")
_STEP = (
    "step_id", "timestamp", "source", "message", "model_name", "reasoning_content", "tool_calls", "observation",
    "metrics",
)  # fmt: skip
_INPUT = ("step_id", "timestamp", "source", "message", "observation")
"""What an input step says in its events; tool calls and metrics have no place in one, and are kept beside it."""
_DOCUMENT = ("steps", "subagent_trajectories")
_DEEPEST = 32


class Steps:
    """The steps of one trajectory; ``agent`` is None for the one a document is about."""

    def __init__(self, session: str, about: dict[str, Any], subagents: Iterable[Any], agent: str | None = None) -> None:
        self._session = session
        self._agent = agent
        self._prefix = "" if agent is None else f"{agent}/"
        self._told = mapping(about.get("agent"))
        self._model = text(self._told.get("model_name")) or None
        self._about = about
        self._keys = Keys()
        self._instructed = False
        self._batches = 0
        self._subagents: dict[str, dict[str, Any]] = {}
        for i, each in enumerate(subagents):
            if isinstance(each, dict):
                self._subagents.setdefault(text(each.get("trajectory_id")) or f"subagent-{i + 1}", each)

    def entries(self, steps: Iterable[tuple[int, Any]]) -> Iterator[Entry | Trouble]:
        """Everything the trajectory says; sub-agents no step refers to come last."""
        yield from self._beginning()
        for i, step in steps:
            if isinstance(step, dict):
                yield from self._step(i, step)
            else:
                yield Trouble(Place(), f"step {i + 1} is no object")
        while self._subagents:
            yield from self._subagent(next(iter(self._subagents)))

    def _beginning(self) -> Iterator[Entry]:
        tools = self._told.get("tool_definitions")
        if self._agent is not None:
            about = left(self._about, *_DOCUMENT)
            name = text(self._told.get("name")) or None
            yield self._entry("start", [Note(topic="subagent", text=name, agent=self._agent)], about)
        if listing(tools):
            yield self._entry("tools", [Context(op="set", tools=tools, agent=self._agent)])

    def _entry(self, key: str, events: list[Event], native: dict[str, Any] | None = None) -> Entry:
        return Entry(self._session, f"{self._prefix}{key}", events, native=native or None)

    def _step(self, i: int, step: dict[str, Any]) -> Iterator[Entry | Trouble]:
        number = step.get("step_id")
        key = self._keys.of(f"step-{text(number) or (i + 1 if whole(number) is None else number)}")
        at = at_of(step.get("timestamp"))
        native = left(step, *_STEP)
        if not is_only_text(step.get("message")):
            native["message"] = step["message"]
        if step.get("is_copied_context") is True:
            yield self._copied(key, step, at)
            return
        source = step.get("source")
        if source == "agent":
            yield self._acted(key, step, at, native)
        else:
            yield self._entry(key, [self._input(source, step, at)], {**native, **left(step, *_INPUT)})
        results = listing(mapping(step.get("observation")).get("results"))
        for name in _referred(results):
            if name in self._subagents:
                yield from self._subagent(name)
        if results:
            yield self._entry(f"{key}/results", *self._results(results, step, at))

    def _copied(self, key: str, step: dict[str, Any], at: int) -> Entry:
        detail = {"copied": True, "source": text(step.get("source"))}
        said = text_in(step.get("message"))
        return self._entry(key, [Context(op="inject", text=said, detail=detail, at=at, agent=self._agent)], step)

    def _input(self, source: object, step: dict[str, Any], at: int) -> Event:
        said = text_in(step.get("message"))
        if source == "user":  # to a sub-agent the agent speaks as one
            return User(content=said, actor="human" if self._agent is None else "harness", at=at, agent=self._agent)
        if source != "system":
            return Note(topic=text(source) or "step", text=said, at=at, agent=self._agent)
        if self._instructed:
            return Context(op="inject", text=said, at=at, agent=self._agent)
        self._instructed = True
        return Context(op="set", system_prompt=said, at=at, agent=self._agent)

    def _acted(self, key: str, step: dict[str, Any], at: int, native: dict[str, Any]) -> Entry:
        events: list[Event] = []
        call = None if step.get("llm_call_count") == 0 else f"{self._prefix}{key}"
        who: dict[str, Any] = {"at": at, "agent": self._agent, "call": call}
        if call is not None:
            events += self._model_call(call, step, at)
        reasoning, said = text(step.get("reasoning_content")), text_in(step.get("message"))
        if reasoning:
            events.append(AssistantThinking(content=reasoning, **who))
        if said:
            events.append(AssistantText(content=said, **who))
        uses = _uses(step, key)
        self._batches += len(uses) > 1
        batch = self._batches if len(uses) > 1 else None
        for name, use in uses:
            args = args_of(use.get("arguments"))
            events.append(
                AssistantToolCall(name=text(use.get("function_name")), args=args, call_id=name, batch=batch, **who)
            )
        extras = [_call_extra(use) for _, use in uses]
        if any(extras):
            native["tool_calls"] = extras
        return self._entry(key, events or [Note(topic="step", at=at, agent=self._agent)], native)

    def _model_call(self, call: str, step: dict[str, Any], at: int) -> Iterator[Event]:
        model = text(step.get("model_name")) or self._model
        yield ModelCall(id=call, model=model, at=at, agent=self._agent)
        metrics = mapping(step.get("metrics"))
        usage = {**mapping(metrics.get("extra")), **left(metrics, *_ARRAYS)}
        finish = text(mapping(step.get("extra")).get("stop_reason")) or None
        ids = {name: metrics[name] for name in _ARRAYS[:2] if listing(metrics.get(name))}
        logprobs = metrics.get("logprobs")
        if usage or finish or ids or logprobs:
            yield ModelResult(
                id=call, usage=usage or None, finish_reason=finish, token_ids=ids or None, logprobs=logprobs, at=at,
                agent=self._agent,
            )  # fmt: skip

    def _results(self, results: list[Any], step: dict[str, Any], at: int) -> tuple[list[Event], dict[str, Any] | None]:
        calls = [mapping(each).get("tool_call_id") for each in listing(step.get("tool_calls"))]
        only = text(calls[0]) if len(calls) == 1 else ""
        events: list[Event] = []
        rest: list[dict[str, Any]] = []
        for each in results:
            result = mapping(each)
            name = text(result.get("source_call_id")) or only
            extra = mapping(result.get("extra"))
            content = result.get("content")
            said, shown = text_in(content), None if is_only_text(content) else content
            if name:
                failed = extra.get("tool_result_is_error") is True or extra.get("is_error") is True
                events.append(
                    ToolResult(
                        call_id=name, content=said, is_error=failed, status="error" if failed else "ok",
                        returned=shown, at=at, agent=self._agent,
                    )
                )  # fmt: skip
            else:
                events.append(Context(op="inject", text=said, detail=shown, at=at, agent=self._agent))
            rest.append(left(result, "source_call_id", "content") if isinstance(each, dict) else {"result": each})
        return events, {"results": rest} if any(rest) else None

    def _subagent(self, name: str) -> Iterator[Entry | Trouble]:
        about = self._subagents.pop(name)
        if self._prefix.count("/") >= _DEEPEST:
            yield self._entry(f"{name}/start", [Note(topic="subagent", agent=self._agent)], about)
            return
        steps = listing(about.get("steps"))
        inner = Steps(self._session, about, listing(about.get("subagent_trajectories")), f"{self._prefix}{name}")
        yield from inner.entries(enumerate(steps))


def _uses(step: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    uses = [mapping(each) for each in listing(step.get("tool_calls"))]
    return [(text(use.get("tool_call_id")) or f"call-{key}-{i + 1}", use) for i, use in enumerate(uses)]


def _call_extra(use: dict[str, Any]) -> dict[str, Any]:
    """What a call says beside its arguments; those are often there twice."""
    rest = left(use, "tool_call_id", "function_name", "arguments", "extra")
    extra = mapping(use.get("extra"))
    if extra.get("raw_arguments") == use.get("arguments"):
        extra = left(extra, "raw_arguments")
    if extra:
        rest["extra"] = extra
    return rest


def _referred(results: list[Any]) -> Iterator[str]:
    for each in results:
        for reference in listing(mapping(each).get("subagent_trajectory_ref")):
            if name := text(mapping(reference).get("trajectory_id")):
                yield name
