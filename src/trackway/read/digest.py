"""What `stats` needs of an episode, small, made in one pass, and added to that of others without reading it again.

    counting.take(summary, digest_of(summary, events)) == counting.add(summary, events)

How an episode ended, when, and how long it took are in its summary; everything else that is counted is here. Times are
counted where there are any: an event of a dataset that knows none has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from trackway.read.counts import SLOT, VERSION, Digest, FileCount, ModelCount, ToolCount, encoded
from trackway.read.durations import Durations
from trackway.read.order import in_order
from trackway.read.pairs import Waiting
from trackway.read.price import Pricer
from trackway.read.repeats import LONG, Repeats, Words, number_of, way_of
from trackway.read.spending import groups_of, priced
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeStart,
    Event,
    FileChange,
    Label,
    ModelCall,
    ModelResult,
    Reward,
    ToolResult,
    User,
)

PAUSE: Final = 600_000_000_000
"""What passes between two events is time worked, up to ten minutes."""

_MS: Final = 1_000_000
_MOST: Final = 2**63
_FILES: Final = 256
_NUMBER: Final = 8


class Row(NamedTuple):
    """A digest to be kept: of which episode, at how many events, in which version; the words apart, where they are."""

    episode: str
    n_events: int
    version: int
    body: bytes
    words: bytes | None


def digest_of(summary: EpisodeSummary, events: Iterable[Event]) -> tuple[Digest, Words]:
    """The digest of an episode, and the words of its calls. The events are all of them, in the order of the store."""
    reading = _Reading(summary)
    for event in in_order(map(_light, events), summary.writers):
        reading.take(event)
    return reading.digest(), reading.repeats.words()


def with_prices(digest: Digest, prices: Pricer, priced_by: str) -> Digest:
    """The digest with costs by these prices, which ``priced_by`` names."""
    return replace(digest, spent=priced(digest.spent, prices), priced_by=priced_by)


def row_of(episode: str, digest: Digest, words: Words | None) -> Row:
    """A digest ready to be kept."""
    return Row(episode, digest.events, VERSION, encoded(digest), None if words is None else encoded(words))


class _Tool:
    __slots__ = ("calls", "durations", "errors", "unanswered")

    def __init__(self) -> None:
        self.calls = self.errors = self.unanswered = 0
        self.durations = Durations()


class _Model:
    __slots__ = ("durations", "errors")

    def __init__(self) -> None:
        self.errors = 0
        self.durations = Durations()


class _Reading:
    """One episode, as far as it was read."""

    def __init__(self, summary: EpisodeSummary) -> None:
        self.repeats = Repeats()
        self._cwd = _folder(summary)
        self._events = 0
        self._clock = _Clock()
        self._rewards: list[float] = []
        self._waiting = Waiting()
        self._open: dict[int, tuple[str, int]] = {}
        self._tools: dict[str, _Tool] = {}
        self._of_models: list[Event] = []  # what a call used is known once all was heard of it
        self._files: dict[str, list[int]] = {}
        self._by_kind: dict[type[Event], Callable[[Any], None]] = {  # each takes the kind it stands beside
            AssistantToolCall: self._call, ToolResult: self._result, FileChange: self._change, Reward: self._reward,
            EpisodeStart: self._of_models.append, ModelCall: self._of_models.append,
            ModelResult: self._of_models.append,
        }  # fmt: skip

    def take(self, event: Event) -> None:
        """The next event, in reading order and without its texts."""
        self._events += 1
        kind = type(event)
        if kind is not Label:  # what is said later does not make it last longer
            self._clock.tick(event.at, asked=kind is User and event.actor == "human")  # type: ignore[attr-defined]  # a User's
        note = self._by_kind.get(kind)
        if note is not None:
            note(event)

    def _call(self, event: AssistantToolCall) -> None:
        number = int.from_bytes(event.args[:_NUMBER], "little")
        self.repeats.call(number, event.name, event.args[_NUMBER:])
        self._open[self._waiting.call(event)] = event.name, number

    def _result(self, event: ToolResult) -> None:
        place = self._waiting.result(event)
        if place is not None:
            self._answered(*self._open.pop(place), event)

    def _change(self, event: FileChange) -> None:
        count = self._files.setdefault(_in_folder(event.path, self._cwd), [0, 0])
        count[event.cause == "external"] += 1

    def _reward(self, event: Reward) -> None:
        if event.scope == "step" and event.value is not None:
            self._rewards.append(event.value)

    def _answered(self, name: str, number: int, result: ToolResult | None) -> None:
        tool = self._tools.setdefault(name, _Tool())
        tool.calls += 1
        if result is None:
            tool.unanswered += 1
        else:
            tool.durations.add(result.duration_ms)
        if result is None or result.failed:
            tool.errors += 1
            self.repeats.failure(number, way_of(None) if result is None else int(result.content, 16))

    def digest(self) -> Digest:
        """What was counted, once all was read."""
        for name, number in self._open.values():
            self._answered(name, number, None)
        most_changed = sorted(self._files.items(), key=lambda each: (-sum(each[1]), each[0]))[:_FILES]
        return Digest(
            events=self._events, errors=sum(each.errors for each in self._tools.values()),
            reward=sum(self._rewards) if self._rewards else None,
            worked=self._clock.worked // _MS, slots=self._clock.slots(),
            tools=[
                ToolCount(name, each.calls, each.errors, each.unanswered, each.durations.sizes())
                for name, each in self._tools.items()
            ],
            models=self._models(), spent=groups_of(self._of_models),
            different=self.repeats.different(), again=self.repeats.again(), ways=self.repeats.ways(),
            untold=self.repeats.untold,
            files=[FileCount(path, *counts) for path, counts in most_changed], n_files=len(self._files),
            edits=sum(each[0] for each in self._files.values()), outside=sum(each[1] for each in self._files.values()),
        )  # fmt: skip

    def _models(self) -> list[ModelCount]:
        named: dict[str, str | None] = {}
        usual: str | None = None
        found: dict[str | None, _Model] = {}
        for event in self._of_models:
            if isinstance(event, EpisodeStart):
                usual = event.header.model
            elif isinstance(event, ModelCall):
                named[event.id] = event.model
            elif isinstance(event, ModelResult):
                model = found.setdefault(event.model or named.get(event.id) or usual, _Model())
                model.durations.add(event.latency_ms)
                model.errors += event.error is not None
        return [ModelCount(name, each.errors, each.durations.sizes()) for name, each in found.items()]


class _Clock:
    """When something happened, and how long was worked: what a person took to answer is left out, and long pauses."""

    def __init__(self) -> None:
        self.worked = 0
        self._last = 0
        self._slots: dict[int, list[int]] = {}

    def tick(self, at: int, *, asked: bool) -> None:
        if not 0 < at < _MOST:
            return
        slot = self._slots.setdefault(at // SLOT, [0, 0])
        slot[0] += 1
        if at > self._last:  # several at once work in the same time, and clocks go backwards
            gap = 0 if asked or not self._last else min(at - self._last, PAUSE)
            self.worked += gap
            slot[1] += gap
            self._last = at

    def slots(self) -> list[tuple[int, int, int]]:
        return [(slot, events, worked // _MS) for slot, (events, worked) in sorted(self._slots.items())]


def _folder(summary: EpisodeSummary) -> str | None:
    found: Any = (summary.metadata or {}).get("cwd")
    return found.rstrip("/") if isinstance(found, str) and found else None


def _in_folder(path: str, folder: str | None) -> str:
    """Two projects have a file of the same name: where it is told in which folder it was, that is part of it."""
    if folder is None or path.startswith(("/", "~", "\\")) or path[1:2] == ":":
        return path
    return f"{folder}/{path.removeprefix('./')}"


# --- without texts --------------------------------------------------------------------------------------------------


def _light(event: Event) -> Event:
    """The event without what is not counted: an episode is held to be put in order, its texts need not be."""
    make = _LIGHT.get(type(event))
    return Event(writer=event.writer, n=event.n, at=event.at, parent=event.parent) if make is None else make(event)


def _light_result(event: ToolResult) -> Event:
    way = f"{way_of(event):x}" if event.failed else ""
    return replace(event, content=way, returned=None, native=None)


def _light_call(event: AssistantToolCall) -> Event:
    number = number_of(event.name, event.args).to_bytes(_NUMBER, "little")
    return replace(event, args=number + event.args[: LONG + 1], native=None)


_LIGHT: Final[dict[type[Event], Callable[[Any], Event]]] = {
    ToolResult: _light_result,
    AssistantToolCall: _light_call,
    ModelResult: lambda event: replace(event, response=None, token_ids=None, logprobs=None, native=None),
    ModelCall: lambda event: replace(event, messages=None, system=None, tools=None, parameters=None, native=None),
    User: lambda event: replace(event, content="", native=None),
    EpisodeStart: lambda event: event,
    Reward: lambda event: event,
    FileChange: lambda event: event,
    Label: lambda event: event,
}
