"""An episode as people read it: a header, then one line or block per event, labelled in the gutter.

Events are taken one at a time, so a running episode is shown as it grows. Steps are numbered as ``read.steps`` numbers
them, from 1, which is how the sentence about a crash names them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from trackway.cli._blocks import Blob, block, call, difference
from trackway.cli._print import Line, Span, line
from trackway.cli._state import standing
from trackway.cli._text import count, duration, moment, number
from trackway.read.tokens import tokens_of
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.episode import EpisodeSummary
from trackway.schema.view import dumps

if TYPE_CHECKING:
    from trackway.cli._at import Place

_MS = 1_000_000
_SHOWN_WHOLE = 20_000


def header(summary: EpisodeSummary, *, full: bool, utc: bool) -> Iterator[Line]:
    """What is said of an episode before its events."""
    for each in block(summary.task or "(no task)", full=full, text_style="title"):
        yield each._replace(gutter=0)
    yield line(Span(ids.short(summary.id), "tool"), Span(f"  {summary.id}", "dim"), label="episode")
    source = None if summary.source == "sdk" else summary.source
    named = (("", summary.agent), ("model ", summary.model), ("variant ", summary.variant), ("from ", source))
    if any(value for _, value in named):
        yield line(" · ".join(f"{name}{value}" for name, value in named if value), label="agent")
    if summary.tags:
        yield line(", ".join(summary.tags), label="tags")
    yield line(standing(summary), label="state")
    last = summary.ended_at or summary.last_at
    took = duration(None if last is None or summary.started_at is None else last - summary.started_at)
    yield line(moment(summary.started_at, utc=utc), Span(f" · {took}", "dim"), label="time")
    yield line(" · ".join(_sizes(summary)), label="size")
    yield from _remarks(summary, full=full)


def _sizes(summary: EpisodeSummary) -> Iterator[str]:
    yield count(summary.n_turns, "turn")
    yield count(summary.n_steps, "step")
    if summary.n_errors:
        yield count(summary.n_errors, "error")
    if summary.n_model_calls:
        yield count(summary.n_model_calls, "model call")
    yield count(summary.n_events, "event")


def _remarks(summary: EpisodeSummary, *, full: bool) -> Iterator[Line]:
    if summary.lost:
        yield line(Span(f"{count(summary.lost, 'event')} could not be kept: trackway doctor", "bad"), label="lost")
    if summary.capture != "full":
        yield line(Span(f"{summary.capture} only: lossy, texts were not kept", "warn"), label="capture")
    if summary.parent is not None:
        step = "" if summary.parent.step is None else f", step {summary.parent.step}"
        yield line(f"{summary.parent.episode}{step}", label="fork of")
    for each in summary.relations:
        there = Span(f"{each.relation.replace('_', ' ')} {ids.short(each.to)}")
        yield line(there, Span(f"  {each.to}", "dim"), label="related")
    if summary.metadata:
        yield from block(dumps(summary.metadata), full=full, label="metadata")


def _tokens(usage: dict[str, Any]) -> str:
    """The counts in the one shape that ``stats`` has too; as the provider named them where there are none."""
    found = tokens_of(usage)
    named = ("in", "input"), ("from cache", "cache_read"), ("to cache", "cache_write"), ("out", "output")
    counts = [(name, getattr(found, field)) for name, field in named] if found is not None else []
    if found is not None and not any(value is not None for _, value in counts):
        counts = [("total", found.total)]
    said = counts or [(name, each) for name, each in usage.items() if isinstance(each, int | float)]
    return ", ".join(f"{name} {value:,}" for name, value in said if value is not None)


class Transcript:
    """Events → lines, one event at a time."""

    def __init__(self, *, blob: Blob, full: bool, utc: bool) -> None:
        self._blob = blob
        self._full = full
        self._utc = utc
        self._steps = 0
        self._open: dict[tuple[str | None, str], deque[int]] = defaultdict(deque)
        self._last: int | None = None
        self._section: tuple[str | None, int] = (None, 0)
        self._model: str | None = None
        self._models: dict[str, kinds.ModelCall] = {}
        self._used: dict[str, str] = {}
        self._by_kind: dict[type[kinds.Event], Callable[[Any], Iterator[Line]]] = {
            kinds.EpisodeStart: self._start, kinds.User: self._user, kinds.AssistantThinking: self._thinking,
            kinds.AssistantText: self._text, kinds.AssistantToolCall: self._tool_call, kinds.ToolResult: self._result,
            kinds.ModelCall: self._model_call, kinds.ModelResult: self._model_result, kinds.Context: self._context,
            kinds.FileChange: self._file, kinds.TestRun: self._tests, kinds.Reward: self._reward,
            kinds.SecurityFlag: self._security, kinds.Verdict: self._verdict, kinds.Reflection: self._reflection,
            kinds.Note: self._note, kinds.Label: self._label, kinds.EpisodeEnd: self._end,
        }  # fmt: skip

    def lines(self, event: kinds.Event, mark: tuple[Line, ...] = ()) -> Iterator[Line]:
        """The lines of the next event, below a rule where a turn or a sub-agent begins."""
        section = event.agent, event.turn
        if section != self._section and event.turn + (event.agent is not None):
            self._section = section
            yield from self._rule(event)
        yield from mark
        yield from self._by_kind.get(type(event), self._unknown)(event)

    def around(self, place: Place, total: int) -> Iterator[Line]:
        """The lines of a place: the event that is meant, marked and whole unless it is huge, and those around it."""
        before, after = place.more(total)
        if before:
            yield line(Span(f"… {count(before, 'event')} before", "dim"))
        for nth, event in place.until_its_end():
            if place.is_before(nth):
                self._pass_over(event)
            elif nth != place.nth:
                yield from self.lines(event)
            else:
                said = getattr(event, "content", "") or getattr(event, "args", b"")
                usual, self._full = self._full, self._full or len(said) <= _SHOWN_WHOLE
                yield from self.lines(event, (Line((Span(f"▶ event {place.at}", "found"),), gutter=0),))
                self._full = usual
        if after:
            yield line(Span(f"… {count(after, 'event')} after", "dim"))

    def _pass_over(self, event: kinds.Event) -> None:
        """An event that is not shown: steps are counted on, and what comes later may refer to it."""
        if isinstance(event, (kinds.AssistantToolCall, kinds.ToolResult, kinds.ModelCall, kinds.EpisodeStart)):
            deque(self._by_kind[type(event)](event), maxlen=0)

    def _rule(self, event: kinds.Event) -> Iterator[Line]:
        words = [event.agent] if event.agent else []
        words += [f"turn {event.turn}"] if event.turn else []
        yield Line((), gutter=0)
        is_told = event.at or not ids.is_imported(event.writer)
        words += [moment(event.at, utc=self._utc)] if is_told else []
        yield Line((Span(f"── {' · '.join(words)} ──", "rule"),), gutter=0)

    def _block(self, text: str, label: str, style: str = "dim", text_style: str = "") -> Iterator[Line]:
        return block(text, full=self._full, label=label, style=style, text_style=text_style)

    def _start(self, event: kinds.EpisodeStart) -> Iterator[Line]:
        """The header is shown already; what it says of the model holds where a call names none."""
        self._model = event.header.model
        yield from ()

    def _user(self, event: kinds.User) -> Iterator[Line]:
        yield from self._block(event.content, event.actor if event.actor != "human" else "user", "user")

    def _thinking(self, event: kinds.AssistantThinking) -> Iterator[Line]:
        yield from self._block(event.content, "thinking", text_style="dim")

    def _text(self, event: kinds.AssistantText) -> Iterator[Line]:
        yield from self._block(event.content, "assistant", "said")

    # --- what is done -------------------------------------------------------------------------------------------

    def _tool_call(self, event: kinds.AssistantToolCall) -> Iterator[Line]:
        self._steps += 1
        self._open[event.agent, event.call_id].append(self._steps)
        self._last = self._steps
        yield from call(event.name, event.args, full=self._full, label=f"step {self._steps}")

    def _result(self, event: kinds.ToolResult) -> Iterator[Line]:
        waiting = self._open.get((event.agent, event.call_id))
        step = waiting.popleft() if waiting else None
        if waiting is not None and not waiting:
            del self._open[event.agent, event.call_id]
        failed = event.is_error or event.status not in ("ok", "error")
        words = [f"✗ {event.status if event.status != 'ok' else 'error'}" if failed else "✓"]
        words += [f"exit {event.exit_code}"] if event.exit_code is not None else []
        words += [duration(event.duration_ms * _MS)] if event.duration_ms is not None else []
        words += [] if step == self._last else [f"of step {step}" if step else f"of an unknown call {event.call_id}"]
        yield line(Span(" · ".join(words), "bad" if failed else "good"))
        self._last = None
        if event.content:
            yield from self._block(event.content, "")

    def _model_call(self, event: kinds.ModelCall) -> Iterator[Line]:
        self._models[event.id] = event
        if event.system is not None:
            yield from self._block(event.system if isinstance(event.system, str) else dumps(event.system), "system")

    def _model_result(self, event: kinds.ModelResult) -> Iterator[Line]:
        asked = self._models.get(event.id)
        used = "" if not event.usage else _tokens(event.usage)
        if self._used.get(event.id) == used and not event.error:  # an imported call that is told in several places
            return
        self._used[event.id] = used
        words = [event.model or (asked.model if asked else None) or self._model or "(unnamed)"]
        words += [f"attempt {asked.attempt}"] if asked and asked.attempt > 1 else []
        words += [duration(event.latency_ms * _MS)] if event.latency_ms is not None else []
        words += [event.finish_reason] if event.finish_reason else []
        words += [used + f" ({event.usage_from})" * (event.usage_from != "provider")] if used else []
        yield line(Span(" · ".join(word for word in words if word), "dim"), label="model")
        if event.error:
            yield from self._block(f"✗ {event.error}", "", text_style="bad")

    def _context(self, event: kinds.Context) -> Iterator[Line]:
        tools = f" · {count(len(event.tools), 'tool')}" if isinstance(event.tools, (list, tuple)) else ""
        yield line(Span(f"{event.op}{tools}", "dim"), label="context")
        for each in (event.system_prompt, event.text, None if event.detail is None else dumps(event.detail)):
            if each is not None:
                yield from self._block(each, "", text_style="dim")

    def _file(self, event: kinds.FileChange) -> Iterator[Line]:
        sizes = " → ".join("nothing" if each is None else f"{each.size:,}" for each in (event.before, event.after))
        name = event.path if event.new_path is None else f"{event.path} → {event.new_path}"
        yield line(
            f"{event.op} {name}", Span(f"  {sizes} bytes" + " (inferred)" * (not event.exact), "dim"), label="file"
        )
        yield from difference(event, blob=self._blob, full=self._full)

    # --- what is judged -----------------------------------------------------------------------------------------

    def _tests(self, event: kinds.TestRun) -> Iterator[Line]:
        counts = (
            ("passed", event.passed), ("failed", event.failed), ("errors", event.errors), ("skipped", event.skipped),
        )  # fmt: skip
        said = ", ".join(f"{number} {name}" for name, number in counts if number) or "none"
        rate = "" if event.pass_rate is None else f" ({event.pass_rate:.0%})"
        style = "bad" if event.failed or event.errors else "good"
        yield line(Span(said + rate, style), Span(f"  {event.command or ''}", "dim"), label="tests")

    def _reward(self, event: kinds.Reward) -> Iterator[Line]:
        value = "none" if event.value is None else number(event.value)
        scope = " for the episode" if event.scope == "episode" else ""
        yield line(f"{event.name} = {value}{scope}", Span(f"  {event.ended or ''}", "dim"), label="reward")

    def _security(self, event: kinds.SecurityFlag) -> Iterator[Line]:
        where = f" in {event.where}" if event.where else ""
        yield from self._block(f"{event.severity}: {event.rule}{where}: {event.evidence or ''}", "security", "bad")

    def _verdict(self, event: kinds.Verdict) -> Iterator[Line]:
        yield from self._block(f"{event.action} · {event.rule}: {event.text}", "guard", "warn", "warn")

    def _reflection(self, event: kinds.Reflection) -> Iterator[Line]:
        tried = f" (tried {event.times}×: {event.tried or event.signature})" if event.times else ""
        yield from self._block(f"{event.lesson}{tried}", "lesson", "warn")

    def _note(self, event: kinds.Note) -> Iterator[Line]:
        said = [each for each in (event.text, None if event.detail is None else dumps(event.detail)) if each]
        yield from self._block(": ".join([event.topic, *said]), "note")

    def _label(self, event: kinds.Label) -> Iterator[Line]:
        relation = None if event.relation is None else f"{event.relation.replace('_', ' ')} {ids.short(event.to or '')}"
        said = {"outcome": event.outcome, "score": event.score, "tag": event.tag, "": event.comment}
        words = [f"{name} {value}".strip() for name, value in said.items() if value is not None]
        words += [each for each in (relation, event.by and f"by {event.by}") if each]
        words.append(moment(event.at, utc=self._utc))
        yield from self._block(" · ".join(words), "label")

    def _end(self, event: kinds.EpisodeEnd) -> Iterator[Line]:
        words = [event.outcome or "no outcome", *([f"score {number(event.score)}"] if event.score is not None else [])]
        words += [each for each in (event.reason,) if each]
        yield Line((), gutter=0)
        yield from self._block(" · ".join(words), "end", "title")
        if event.error and event.error != event.reason:
            yield from self._block(event.error, "", text_style="bad")

    def _unknown(self, event: kinds.Event) -> Iterator[Line]:
        size = len(event.raw) if isinstance(event, kinds.Unknown) else 0
        yield line(Span(f"{event.kind}: a kind this version does not know, {size:,} bytes kept", "dim"), label="newer")
