"""stats: many episodes counted together: per task, per tool, per model. One pass, an episode at a time.

What grows is the number of different names, never the number of events: of durations only counts by size are kept, in
steps of 5 %, so a quantile is right to within that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from trackway.read.order import in_order
from trackway.read.pairs import Waiting
from trackway.read.price import Pricer
from trackway.read.usage import Usage, together, usage
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeStart,
    Event,
    ModelCall,
    ModelResult,
    Reward,
    ToolResult,
)

_STEP: Final = math.log(1.05)
_MS: Final = 1_000_000


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of time, in milliseconds: how many were told, their sum, the middle, and what few exceed."""

    n: int = 0
    total: float = 0.0
    p50: float | None = None
    p95: float | None = None


class Durations:
    """Lengths of time, counted by size."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._total = 0.0
        self._least, self._most = math.inf, 0.0

    def add(self, milliseconds: float | None) -> None:
        """Count one; None was not told."""
        if milliseconds is not None and math.isfinite(milliseconds):
            self._total += milliseconds
            self._least, self._most = min(self._least, milliseconds), max(self._most, milliseconds)
            self._counts[round(math.log(max(milliseconds, 1e-3)) / _STEP)] += 1

    def spread(self) -> Spread:
        """Their sum and quantiles."""
        return Spread(n=self._counts.total(), total=self._total, p50=self._at(0.5), p95=self._at(0.95))

    def _at(self, share: float) -> float | None:
        left = share * self._counts.total()
        for size in sorted(self._counts):
            left -= self._counts[size]
            if left <= 0:
                return min(max(math.exp(size * _STEP), self._least), self._most)
        return None


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """All tries at one task: the mean ``score`` of the ``scored`` ones, and the mean sum of step rewards."""

    task: str
    episodes: int
    outcomes: dict[str, int]
    steps: int
    errors: int
    duration: Spread
    usage: Usage
    scored: int = 0
    score: float | None = None
    reward: float | None = None


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one tool; ``unanswered`` ones are errors too."""

    tool: str
    episodes: int
    calls: int
    errors: int
    unanswered: int
    duration: Spread


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one model."""

    model: str | None
    episodes: int
    calls: int
    errors: int
    latency: Spread
    usage: Usage


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Everything counted, and the same by task, tool and model, the most used first."""

    episodes: int
    events: int
    outcomes: dict[str, int]
    steps: int
    errors: int
    duration: Spread
    usage: Usage
    tasks: list[TaskRow]
    tools: list[ToolRow]
    models: list[ModelRow]


class _Group:
    """What is counted under one name."""

    def __init__(self) -> None:
        self.episodes = self.events = self.calls = self.steps = self.errors = self.unanswered = self.scored = 0
        self.outcomes: Counter[str] = Counter()
        self.durations = Durations()
        self.usage = Usage()
        self.score = 0.0
        self.reward = 0.0
        self.rewarded = 0

    def spend(self, spent: Usage) -> None:
        """Add what one episode spent; a running sum, so that nothing per episode is kept."""
        self.usage = together((self.usage, spent))


class _Heard:
    """What one episode has told so far, and the calls of tools that wait for their results."""

    def __init__(self) -> None:
        self.tools: set[str] = set()
        self.rewards: list[float] = []
        self.of_models: list[Event] = []  # what a call used is known once all was heard of it
        self._waiting = Waiting()
        self._calls: dict[int, str] = {}

    def take(self, event: Event) -> tuple[str, ToolResult] | None:
        """The tool, where this is what came of a call of one."""
        if isinstance(event, AssistantToolCall):
            self.tools.add(event.name)
            self._calls[self._waiting.call(event)] = event.name
        elif isinstance(event, ToolResult):
            place = self._waiting.result(event)
            return None if place is None else (self._calls.pop(place), event)
        elif isinstance(event, (EpisodeStart, ModelCall, ModelResult)):
            self.of_models.append(event)
        elif isinstance(event, Reward) and event.scope == "step" and event.value is not None:
            self.rewards.append(event.value)
        return None

    def unanswered(self) -> list[str]:
        """The tools of the calls that nothing came back from."""
        return list(self._calls.values())


class Counting:
    """Takes episodes one by one; ``stats()`` says what they come to."""

    def __init__(self, prices: Pricer | None = None) -> None:
        self._prices = prices
        self._whole = _Group()
        self._tasks: dict[str, _Group] = {}
        self._tools: dict[str, _Group] = {}
        self._models: dict[str | None, _Group] = {}

    def add(self, summary: EpisodeSummary, events: Iterable[Event]) -> None:
        """Count one episode."""
        task = self._tasks.setdefault(summary.task_key or summary.task, _Group())
        heard, above = _Heard(), (self._whole, task)
        for event in in_order(map(_light, events), summary.writers):
            answered = heard.take(event)
            if answered is not None:
                self._count_call(*answered, above)
        for name in heard.unanswered():
            self._count_call(name, None, above)
        for name in heard.tools:
            self._tools[name].episodes += 1
        if heard.rewards:
            task.rewarded += 1
            task.reward += sum(heard.rewards)
        spent = usage(heard.of_models, self._prices)
        for group in above:
            _episode(group, summary, spent)
        self._count_models(heard.of_models, spent)

    def _count_call(self, name: str, result: ToolResult | None, above: tuple[_Group, ...]) -> None:
        tool = self._tools.setdefault(name, _Group())
        tool.calls += 1
        tool.unanswered += result is None
        tool.durations.add(None if result is None else result.duration_ms)
        for group in (tool, *above):
            group.errors += result is None or result.failed

    def _count_models(self, events: list[Event], spent: Usage) -> None:
        named: dict[str, str | None] = {}
        usual: str | None = None
        for event in events:
            if isinstance(event, EpisodeStart):
                usual = event.header.model
            elif isinstance(event, ModelCall):
                named[event.id] = event.model
            elif isinstance(event, ModelResult):
                model = self._models.setdefault(event.model or named.get(event.id) or usual, _Group())
                model.durations.add(event.latency_ms)
                model.errors += event.error is not None
        for each in spent.models:
            model = self._models.setdefault(each.model, _Group())
            model.episodes += 1
            model.calls += each.calls
            model.spend(Usage(**{name: getattr(each, name) for name in each.__struct_fields__ if name != "model"}))

    def stats(self) -> Stats:
        """What was counted so far."""
        whole = self._whole
        return Stats(
            episodes=whole.episodes, events=whole.events, outcomes=dict(whole.outcomes), steps=whole.steps,
            errors=whole.errors, duration=whole.durations.spread(), usage=whole.usage,
            tasks=sorted(map(_task, self._tasks, self._tasks.values()), key=lambda row: (-row.episodes, row.task)),
            tools=sorted(map(_tool, self._tools, self._tools.values()), key=lambda row: (-row.calls, row.tool)),
            models=sorted(
                map(_model, self._models, self._models.values()), key=lambda row: (-row.calls, row.model or "")
            ),
        )  # fmt: skip


def _episode(group: _Group, summary: EpisodeSummary, spent: Usage) -> None:
    group.episodes += 1
    group.events += summary.n_events
    group.steps += summary.n_steps
    group.outcomes[summary.outcome or summary.state or "ended"] += 1
    group.spend(spent)
    last = summary.ended_at or summary.last_at
    if summary.started_at is not None and last is not None:
        group.durations.add((last - summary.started_at) / _MS)
    if summary.score is not None:
        group.scored += 1
        group.score += summary.score


def _task(name: str, group: _Group) -> TaskRow:
    score = group.score / group.scored if group.scored else None
    return TaskRow(
        task=name, episodes=group.episodes, outcomes=dict(group.outcomes), steps=group.steps, errors=group.errors,
        duration=group.durations.spread(), usage=group.usage, scored=group.scored, score=score,
        reward=group.reward / group.rewarded if group.rewarded else None,
    )  # fmt: skip


def _tool(name: str, group: _Group) -> ToolRow:
    return ToolRow(
        tool=name, episodes=group.episodes, calls=group.calls, errors=group.errors, unanswered=group.unanswered,
        duration=group.durations.spread(),
    )  # fmt: skip


def _model(name: str | None, group: _Group) -> ModelRow:
    return ModelRow(
        model=name, episodes=group.episodes, calls=group.calls, errors=group.errors,
        latency=group.durations.spread(), usage=group.usage,
    )  # fmt: skip


def _light(event: Event) -> Event:
    """The event without what is not counted: an episode is held to be put in order, its texts need not be."""
    if isinstance(event, (EpisodeStart, Reward)):
        return event
    if isinstance(event, ModelResult):
        return msgspec.structs.replace(event, response=None, token_ids=None, logprobs=None)
    if isinstance(event, ToolResult):
        return msgspec.structs.replace(event, content="", returned=None)
    if isinstance(event, AssistantToolCall):
        return msgspec.structs.replace(event, args=b"")
    if isinstance(event, ModelCall):
        return msgspec.structs.replace(event, messages=None, system=None, tools=None, parameters=None)
    return Event(writer=event.writer, n=event.n, at=event.at, parent=event.parent)
