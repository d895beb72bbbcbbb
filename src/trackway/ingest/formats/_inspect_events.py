"""One sample of an Inspect log → entries: its events in their order, then whatever messages no event told.

A model call repeats all that came before it: of its input only what is new becomes events, and the whole of it is kept
as the difference to the call before. What a tool gave comes behind all that happened inside the tool. The outermost
agent is the episode's own; one inside it, and each scorer, bears its name. Spans, steps and patches of the state are no
steps of an agent, and most of a log: they are kept beside the entry that follows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._inspect_calls import ModelCalls
from trackway.ingest.formats._inspect_files import Sample
from trackway.ingest.formats._inspect_spans import Spans
from trackway.ingest.formats._inspect_words import Attachments, result_of
from trackway.ingest.making import Keys, args_of, at_of, rest_of
from trackway.ingest.source import Entry
from trackway.ingest.values import number, part_of, text_at
from trackway.schema.events import AssistantToolCall, Context, Event, Note, Reward, User
from trackway.schema.plain import text_of

_ENVELOPE: Final = ("event", "timestamp", "uuid")
_TEXTS: Final = {"info": "data", "logger": "message", "error": "error", "sample_limit": "message", "sandbox": "cmd"}
"""Where events that are notes say something in words."""
_QUIET: Final = frozenset(("span_begin", "span_end", "step", "state", "store", "sample_init"))
BEFORE: Final = "before"
"""Where an entry keeps the quiet events that came before it."""
_DEEPEST: Final = 20
SCORES: Final = {"C": 1.0, "I": 0.0, "P": 0.5}


class Transcript:
    """One sample on its way."""

    def __init__(self, session: str, sample: Sample) -> None:
        self._session = session
        self._sample = sample
        self._keys = Keys()
        self._spans = Spans()
        self._attachments = Attachments(sample.attachments)
        self._calls = ModelCalls(self._attachments, sample.pool, sample.calls)
        self._held: dict[str, list[Entry]] = {}
        self.quiet: list[Any] = []

    def entries(self) -> Iterator[Entry]:
        """All of it, in order; ``quiet`` is what nothing followed."""
        for i, event in enumerate(self._sample.events()):
            yield from map(self._whole, self._event(event, f"e{i}", 0))
        for held in self._held.values():
            yield from map(self._whole, held)
        for i, message in enumerate(self._sample.messages()):
            said = self._calls.late(message)
            if said is not None:
                yield Entry(self._session, self._keys.of(f"m{i}"), said.events, native=said.rest)

    def _whole(self, entry: Entry) -> Entry:
        """The entry, with what came before it and is quiet."""
        if not self.quiet:
            return entry
        before, self.quiet = self.quiet, []
        return entry._replace(native={**(entry.native or {}), BEFORE: before})

    def _event(self, event: Any, place: str, depth: int) -> Iterator[Entry]:  # noqa: ANN401  whatever stands there
        if not isinstance(event, dict):
            yield Entry(self._session, self._keys.of(place), [Note(topic="event", detail=event)])
            return
        kind = event.get("event")
        key = self._keys.of(text_at(event, "uuid") or place)
        self._spans.note(event)
        agent = self._spans.agent_of(event.get("span_id"))
        at = at_of(event.get("timestamp"))
        inner = event.get("events")
        if isinstance(inner, list) and depth < _DEEPEST:  # older logs: what happened inside stands inside
            for i, each in enumerate(inner):
                yield from self._event(each, f"{key}.{i}", depth + 1)
        if kind == "model":
            said = self._calls.model(event, key, at, agent)
            yield Entry(self._session, key, said.events, native=said.rest)
        elif kind == "tool":
            yield from self._tool(event, key, at, agent)
        else:
            if kind == "span_end":
                yield from self._held.pop(text_of(event.get("id")), ())
            if isinstance(kind, str) and kind in _QUIET:
                self.quiet.append(event)
                return
            rest = rest_of(event, *_ENVELOPE, "events" if isinstance(inner, list) else "event")
            yield Entry(self._session, key, self._other(event, at, agent), native=rest)

    # --- tools --------------------------------------------------------------------------------------------------

    def _tool(self, event: dict[str, Any], key: str, at: int, agent: str | None) -> Iterator[Entry]:
        call_id = text_of(event.get("id")) or key
        found: list[Event] = []
        owner = self._calls.asked_by(call_id)
        if owner is None:  # no model asked: a solver called the tool itself, or the call is not in the log
            owner = (agent,)
            name, args = text_of(event.get("function")), args_of(event.get("arguments"))
            found.append(AssistantToolCall(name=name, args=args, call_id=call_id, at=at, agent=agent))
        if not event.get("pending"):
            seconds = number(event.get("working_time"))
            took = None if seconds is None else seconds * 1000
            ended = at_of(event.get("completed")) or at
            result = self._attachments.whole(event.get("result"))
            error = self._attachments.whole(event.get("error"))
            found.append(result_of(call_id, result, error, at=ended, agent=owner[0], duration_ms=took))
            self._calls.answered(call_id)
        told = ("id", "function", "result", "completed", "working_time", "error", "events", "arguments", "type")
        entry = Entry(self._session, key, found, native=_said(rest_of(event, *_ENVELOPE, *told)))
        span = self._spans.tool_span(text_of(event.get("function")))
        if span is None:
            yield entry
        else:
            self._held.setdefault(span, []).append(entry)

    # --- all else -----------------------------------------------------------------------------------------------

    def _other(self, event: dict[str, Any], at: int, agent: str | None) -> list[Event]:
        kind = event.get("event")
        if kind == "compaction":
            return [Context(op="compact", detail=rest_of(event, *_ENVELOPE), at=at, agent=agent)]
        if kind == "input":
            return [User(content=text_of(event.get("input")), at=at, agent=agent)]
        if kind == "score" and event.get("intermediate") is True:
            value = score_of(part_of(event, "score").get("value"))
            return [Reward(value=value, name=text_at(event, "scorer") or "score", scope="step", at=at, agent=agent)]
        said = event.get(_TEXTS.get(text_of(kind), "name"))
        said = said if isinstance(said, str) else text_at(said, "message")
        text = None if said is None else self._attachments.text(said)
        return [Note(topic=text_of(kind) or "event", text=text, at=at, agent=agent)]


def score_of(value: Any) -> float | None:  # noqa: ANN401
    """A score as a number: correct is 1, incorrect 0, partially 0.5; no answer is no number."""
    if isinstance(value, str):
        try:
            return SCORES.get(value) if value in ("C", "I", "P", "N") else number(float(value))
        except ValueError:
            return {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}.get(value.lower())
    return number(value)


def _said(rest: dict[str, Any] | None) -> dict[str, Any] | None:
    found = {key: each for key, each in (rest or {}).items() if each is not None}
    return found or None
