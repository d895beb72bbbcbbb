"""stats: many episodes counted together: per task, tool, model, call and file. Each is read once, or its digest taken.

What grows is the number of different names, and a few bytes a call: of durations and calls only numbers are kept
(``read.durations``, ``read.repeats``), so that a quantile is right to within 5 %. What a row costs to make is paid for
the rows that are asked for.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from trackway.read.counts import Digest, FileCount, ModelCount, ToolCount
from trackway.read.digest import digest_of, with_prices
from trackway.read.durations import Durations, Spread
from trackway.read.price import Price, Pricer
from trackway.read.repeated import Repeated
from trackway.read.repeats import Words
from trackway.read.spending import Group, Spending
from trackway.read.tables import CallRow, FileRow, ModelRow, Stats, TaskRow, ToolRow
from trackway.read.usage import ModelUsage, Usage
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import Event

__all__ = [
    "CallRow", "Counting", "Durations", "FileRow", "ModelRow", "Spread", "Stats", "TaskRow", "ToolRow",
]  # fmt: skip

_MS: Final = 1_000_000


class _Task:
    """All tries at one task."""

    __slots__ = (
        "episodes", "errors", "outcomes", "rewards", "scores", "spent", "steps", "took",
    )  # fmt: skip

    def __init__(self) -> None:
        self.episodes = self.steps = self.errors = 0
        self.outcomes: dict[str, int] = {}
        self.took: list[float | None] = []
        self.spent: list[Group] = []
        self.scores: list[float] = []
        self.rewards: list[float] = []

    def add(self, summary: EpisodeSummary, digest: Digest, outcome: str, took: float | None) -> None:
        self.episodes += 1
        self.steps += summary.n_steps
        self.errors += digest.errors
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.took.append(took)
        self.spent += digest.spent
        if summary.score is not None:
            self.scores.append(summary.score)
        if digest.reward is not None:
            self.rewards.append(digest.reward)

    def row(self, name: str, table: Mapping[str, Price] | None) -> TaskRow:
        durations = Durations()
        for each in self.took:
            durations.add(each)
        return TaskRow(
            task=name, episodes=self.episodes, outcomes=_ranked(self.outcomes), steps=self.steps, errors=self.errors,
            duration=durations.spread(), usage=Spending(self.spent).usage(table),
            scored=len(self.scores), score=_mean(self.scores), reward=_mean(self.rewards),
        )  # fmt: skip


class _Tool:
    """All calls of one tool."""

    __slots__ = ("calls", "durations", "episodes", "errors", "unanswered")

    def __init__(self) -> None:
        self.episodes = self.calls = self.errors = self.unanswered = 0
        self.durations = Durations()

    def add(self, count: ToolCount) -> None:
        self.episodes += 1
        self.calls += count.calls
        self.errors += count.errors
        self.unanswered += count.unanswered
        self.durations.join(count.sizes)

    def row(self, name: str) -> ToolRow:
        return ToolRow(
            tool=name, episodes=self.episodes, calls=self.calls, errors=self.errors, unanswered=self.unanswered,
            duration=self.durations.spread(),
        )  # fmt: skip


class _Model:
    """What one model answered, and in how many episodes it was called."""

    __slots__ = ("durations", "episodes", "errors")

    def __init__(self) -> None:
        self.episodes = self.errors = 0
        self.durations = Durations()

    def add(self, count: ModelCount) -> None:
        self.errors += count.errors
        self.durations.join(count.sizes)

    def row(self, name: str | None, spent: ModelUsage | None) -> ModelRow:
        told = {} if spent is None else {each: getattr(spent, each) for each in spent.__struct_fields__}
        told.pop("model", None)
        usage = Usage(**told)
        return ModelRow(
            model=name, episodes=self.episodes, calls=usage.calls, errors=self.errors,
            latency=self.durations.spread(), usage=usage,
        )  # fmt: skip


class Counting:
    """Takes episodes one by one; ``stats()`` says what they come to.

    ``prices`` put a cost on episodes that are read here; ``table`` is a table of them that holds over any other.
    """

    def __init__(self, prices: Pricer | None = None, table: Mapping[str, Price] | None = None) -> None:
        self._prices = prices
        self._table = table
        self._episodes = self._events = self._steps = self._errors = self._turns = self._worked = self._untimed = 0
        self._first: int | None = None
        self._last: int | None = None
        self._outcomes: Counter[str] = Counter()
        self._agents: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._durations = Durations()
        self._spending = Spending()
        self._tasks: dict[str, _Task] = {}
        self._tools: dict[str, _Tool] = {}
        self._models: dict[str | None, _Model] = {}
        self._files: dict[str, list[int]] = {}
        self._edits = self._outside = self._unlisted = 0
        self._slots: dict[int, list[int]] = {}
        self._repeated = Repeated()
        self._words: dict[str, Words] = {}

    def add(self, summary: EpisodeSummary, events: Iterable[Event]) -> None:
        """Count one episode."""
        digest, words = digest_of(summary, events)
        if self._prices is not None:
            digest = with_prices(digest, self._prices, "")
        self._words[summary.id] = words
        self.take(summary, digest)

    def take(self, summary: EpisodeSummary, digest: Digest) -> None:
        """Count one episode by its digest."""
        outcome, took = summary.outcome or summary.state or "ended", self._time(summary)
        self._episodes += 1
        self._events += summary.n_events
        self._steps += summary.n_steps
        self._errors += digest.errors
        self._turns += summary.n_turns
        self._worked += digest.worked
        self._outcomes[outcome] += 1
        if summary.agent:
            self._agents[summary.agent] += 1
        if summary.source:
            self._sources[summary.source] += 1
        self._durations.add(took)
        name = summary.task_key or summary.task
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = _Task()
        task.add(summary, digest, outcome, took)
        for each in digest.tools:
            tool = self._tools.get(each.name)
            if tool is None:
                tool = self._tools[each.name] = _Tool()
            tool.add(each)
        self._count_models(digest)
        self._count_files(digest.files)
        self._edits += digest.edits
        self._outside += digest.outside
        self._unlisted += digest.n_files - len(digest.files)
        self._repeated.add(summary.id, digest)
        for slot, events, worked in digest.slots:
            found = self._slots.setdefault(slot, [0, 0])
            found[0] += events
            found[1] += worked

    def _time(self, summary: EpisodeSummary) -> float | None:
        """How long it took, in milliseconds; None where it knows no times, as what comes from datasets."""
        started, last = summary.started_at or 0, summary.ended_at or summary.last_at or 0
        if started <= 0 or last <= 0:
            self._untimed += 1
            return None
        self._first = started if self._first is None else min(self._first, started)
        self._last = last if self._last is None else max(self._last, last)
        return (last - started) / _MS

    def _count_models(self, digest: Digest) -> None:
        models = self._models
        for each in digest.models:
            if each.model not in models:
                models[each.model] = _Model()
            models[each.model].add(each)
        for name in {each.model for each in digest.spent}:
            if name not in models:
                models[name] = _Model()
            models[name].episodes += 1
        for group in digest.spent:
            self._spending.add(group)

    def _count_files(self, files: list[FileCount]) -> None:
        for each in files:
            found = self._files.get(each.path)
            if found is None:
                self._files[each.path] = [each.edits, each.outside, 1]
            else:
                found[0] += each.edits
                found[1] += each.outside
                found[2] += 1

    def stats(
        self, *, tasks: int | None = None, names: int | None = None, words: Callable[[str], Words] | None = None
    ) -> Stats:
        """What was counted so far. So many tasks, and so many calls and files; ``words`` gives an episode's words."""
        usage = self._spending.usage(self._table)
        return Stats(
            episodes=self._episodes, events=self._events, outcomes=_ranked(self._outcomes), steps=self._steps,
            errors=self._errors, duration=self._durations.spread(), usage=usage, turns=self._turns,
            worked=self._worked, first_at=self._first, last_at=self._last, untimed=self._untimed,
            agents=_ranked(self._agents), sources=_ranked(self._sources),
            tasks=self._task_rows(tasks), n_tasks=len(self._tasks), tools=self._tool_rows(),
            models=self._model_rows(usage), calls=self._repeated.rows(names, words or self._words_of),
            n_calls=self._repeated.n_again, files=self._file_rows(names), n_files=len(self._files),
            unlisted=self._unlisted, edits=self._edits, outside=self._outside,
            slots={slot: (events, worked) for slot, (events, worked) in sorted(self._slots.items())},
        )  # fmt: skip

    def _words_of(self, episode: str) -> Words:
        return self._words.get(episode, {})

    def _task_rows(self, top: int | None) -> list[TaskRow]:
        ranked = _first(self._tasks, top, lambda name: (-self._tasks[name].episodes, name))
        return [self._tasks[name].row(name, self._table) for name in ranked]

    def _tool_rows(self) -> list[ToolRow]:
        rows = (each.row(name) for name, each in self._tools.items())
        return sorted(rows, key=lambda row: (-row.calls, row.tool))

    def _model_rows(self, usage: Usage) -> list[ModelRow]:
        spent = {each.model: each for each in usage.models}
        rows = (each.row(name, spent.get(name)) for name, each in self._models.items())
        return sorted(rows, key=lambda row: (-row.calls, row.model or ""))

    def _file_rows(self, top: int | None) -> list[FileRow]:
        files = self._files
        ranked = _first(files, top, lambda path: (-files[path][0], -files[path][1], path))
        return [
            FileRow(path=path, edits=files[path][0], outside=files[path][1], episodes=files[path][2]) for path in ranked
        ]


def _mean(numbers: list[float]) -> float | None:
    """The same in whatever order they come."""
    return sum(sorted(numbers)) / len(numbers) if numbers else None


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """The most first, whatever the order in which they were counted."""
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _first(names: Iterable[str], top: int | None, key: Callable[[str], tuple[int | str, ...]]) -> list[str]:
    return sorted(names, key=key) if top is None else heapq.nsmallest(top, names, key=key)
