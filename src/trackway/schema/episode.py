"""The summary of an episode: a fold over its events, so it can always be made again from them.

``running`` and ``crashed`` are facts about a process, not about events: whoever knows it fills in ``state``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trackway.schema.brief import Brief
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeEnd,
    EpisodeStart,
    Event,
    FileChange,
    Header,
    Label,
    ModelCall,
    Parent,
    ToolResult,
    Unknown,
)
from trackway.schema.ids import is_imported


class Relation(msgspec.Struct, frozen=True):
    """How an episode stands to another one: ``depends_on``, ``follows``, ``duplicates``, or any word of yours."""

    relation: str
    to: str


class EpisodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of an episode in one line.

    ``writers`` maps each writer to the last of its numbers counted here; ``labelled`` says when outcome and score were
    last given by a label. A label holds over the end, and a later one over an earlier one, in whatever order they come.
    """

    id: str
    task: str = ""
    task_key: str | None = None
    variant: str | None = None
    trial: int | None = None
    agent: str | None = None
    model: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[Any, Any] | None = None
    parent: Parent | None = None
    relations: tuple[Relation, ...] = ()
    source: str = ""
    capture: str = "full"
    redacts: bool = False
    outcome: str | None = None
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    state: str | None = None
    n_events: int = 0
    n_turns: int = 0
    n_steps: int = 0
    n_errors: int = 0
    n_model_calls: int = 0
    tools: tuple[str, ...] = ()
    writers: dict[str, int] = {}
    labelled: dict[str, int] = {}
    started_at: int | None = None
    ended_at: int | None = None
    last_at: int | None = None
    lost: int = 0


class Fold:
    """The summary while it grows; one pass over events, whole or in brief, no allocation per event."""

    def __init__(self, summary: EpisodeSummary) -> None:
        self.was = summary
        self.fields: dict[str, Any] = {}
        self.tags = dict.fromkeys(summary.tags)
        self.tools = dict.fromkeys(summary.tools)
        self.relations = dict.fromkeys(summary.relations)
        self.labelled = dict(summary.labelled)
        self.steps = self.errors = self.calls = 0
        self.changes: list[FileChange | Brief] = []
        self.by_kind: dict[str, Callable[[Any], None]] = {  # each takes the kind it stands beside
            EpisodeStart.kind: self._start, EpisodeEnd.kind: self._end, Label.kind: self._label,
            AssistantToolCall.kind: self._tool_call, ToolResult.kind: self._tool_result,
            ModelCall.kind: self._model_call, FileChange.kind: self.changes.append,
        }  # fmt: skip

    def _start(self, event: EpisodeStart) -> None:
        header: Header = event.header
        for name in (
            "task",
            "task_key",
            "variant",
            "trial",
            "agent",
            "metadata",
            "parent",
            "source",
            "capture",
            "redacts",
        ):
            self.fields[name] = getattr(header, name)
        self.fields["model"] = header.model or self.fields.get("model") or self.was.model
        self.tags.update(dict.fromkeys(header.tags))
        is_told = event.at or not is_imported(event.writer)  # a file may not tell when; a clock may say 1970
        self.fields["started_at"] = event.at if is_told else None

    def _end(self, event: EpisodeEnd) -> None:
        lost = self.fields.get("lost", self.was.lost) + event.lost
        self.fields.update(reason=event.reason, error=event.error, ended_at=event.at, lost=lost)
        for name in ("outcome", "score"):
            value = getattr(event, name)
            if value is not None and name not in self.labelled:
                self.fields[name] = value

    def _label(self, event: Label) -> None:
        for name in ("outcome", "score"):
            value = getattr(event, name)
            if value is not None and event.at >= self.labelled.get(name, event.at):
                self.fields[name], self.labelled[name] = value, event.at
        if event.tag is not None:
            self.tags[event.tag] = None
        if event.relation is not None and event.to is not None:
            self.relations[Relation(event.relation, event.to)] = None

    def _tool_call(self, event: AssistantToolCall) -> None:
        self.steps += 1
        self.tools[event.name] = None

    def _tool_result(self, event: ToolResult) -> None:
        self.errors += event.failed

    def _model_call(self, event: ModelCall) -> None:
        self.calls += 1
        if event.model and not (self.was.model or self.fields.get("model")):
            self.fields["model"] = event.model

    def take(self, events: Iterable[Event | Brief]) -> EpisodeSummary:
        """The summary with these events counted in."""
        was, noted, writers, label = self.was, self.by_kind.get, dict(self.was.writers), Label.kind
        count, turn, last = was.n_events, was.n_turns, was.last_at or 0
        for event in events:
            count += 1
            writers[event.writer] = event.n
            kind, at = event.kind, event.at
            if at > last and kind != label:  # what is said later does not make it last longer
                last = at
            if event.turn > turn and event.agent is None:
                turn = event.turn
            note = noted(kind)
            if note is not None and type(event) is not Unknown:  # which may bear a known name, its fields not fitting
                note(event)
        return msgspec.structs.replace(
            was, **self.fields, n_events=count, n_turns=turn, last_at=last or None, writers=writers,
            n_steps=was.n_steps + self.steps, n_errors=was.n_errors + self.errors,
            n_model_calls=was.n_model_calls + self.calls, tools=tuple(self.tools), tags=tuple(self.tags),
            relations=tuple(self.relations), labelled=self.labelled,
        )  # fmt: skip


def fold(summary: EpisodeSummary, events: Iterable[Event | Brief]) -> EpisodeSummary:
    """The summary with these events counted in; ``fold(EpisodeSummary(id=…), all_events)`` makes it from nothing."""
    return Fold(summary).take(events)
