"""The readings of an episode as ``trackway show --as`` prints them: a table where one helps, else lines of JSON.

Each form reads events once and knows two things: its lines of JSON, and how it looks on a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trackway.cli import _print
from trackway.schema.view import dumps, event_fields, instant, splice

if TYPE_CHECKING:
    from trackway.read.steps import Step
    from trackway.read.timeline import TimelineStep
    from trackway.schema.events import Event

Events = Iterable["Event"]

_MS: Final = 1_000_000


class Form(NamedTuple):
    """One reading: the name of its list in JSON, its lines, and how it is shown."""

    plural: str
    lines: Callable[[Events], Iterable[str]]
    table: Callable[[Events], None] | None = None

    def show(self, events: Events) -> None:
        """Print it: the table, or a line each."""
        if self.table is not None:
            self.table(events)
            return
        for each in self.lines(events):
            _print.write_json_line(each)


def _events(events: Events) -> Iterator[str]:
    return (dumps(event_fields(each)) for each in events)


def _traces(events: Events) -> Iterator[str]:
    from trackway.read.trace import trace

    return (each.to_json().decode() for each in trace(events))


def _trajectory(events: Events) -> Iterator[str]:
    from trackway.read.trajectory import trajectory

    yield dumps(trajectory(events).to_dict())


def _contexts(events: Events) -> Iterator[str]:
    import msgspec

    from trackway.read.context import seen

    for each in seen(events):
        tree = msgspec.to_builtins(each, builtin_types=(bytes,))
        yield dumps({**tree, "at": instant(each.at)})


# --- tables -----------------------------------------------------------------------------------------------------


def _no_steps() -> None:
    _print.talk("this episode has no steps: no tool was called")


def _steps(events: Events) -> Iterator[str]:
    from trackway.read.steps import steps

    return (dumps(_step_fields(each)) for each in steps(events))


def _step_fields(step: Step) -> dict[str, Any]:
    fields = {name: getattr(step, name) for name in step.__struct_fields__ if name != "args"}
    return {**fields, **splice(step.args), "started_at": instant(step.started_at), "signature": step.signature}


def _steps_table(events: Events) -> None:
    from trackway.read.steps import steps

    found = steps(events)
    if not found:
        _no_steps()
        return
    columns = [
        _print.Column("STEP", right=True), _print.Column("TURN", right=True), _print.Column("TOOL"),
        _print.Column("ARGS", flexible=True), _print.Column("RESULT"), _print.Column("TIME", right=True),
        _print.Column("OBSERVATION", flexible=True),
    ]  # fmt: skip
    _print.Screen().table(columns, map(_step_row, found))


def _step_row(step: Step) -> list[_print.Span]:
    from trackway.cli._blocks import brief

    result = step.status if step.exit_code is None else f"{step.status} {step.exit_code}"
    style = "warn" if step.status == "missing" else "bad" if step.error is not None else "good"
    return [
        _print.Span(str(step.index + 1), "dim"),
        _print.Span(str(step.turn), "dim"),
        _print.Span(step.tool if step.agent is None else f"{step.agent}: {step.tool}", "tool"),
        _print.Span(brief(step.args)),
        _print.Span(result, style),
        _took(step.duration_ms),
        _print.Span(step.observation or "-"),
    ]


def _took(milliseconds: float | None) -> _print.Span:
    from trackway.cli._text import duration

    return _print.Span(duration(None if milliseconds is None else milliseconds * _MS), "dim")


def _timeline(events: Events) -> Iterator[str]:
    import msgspec

    from trackway.read.timeline import timeline

    return (dumps(msgspec.to_builtins(each)) for each in timeline(events))


def _timeline_table(events: Events) -> None:
    from trackway.read.timeline import timeline

    found = timeline(events)
    if not found:
        _no_steps()
        return
    columns = [
        _print.Column("STEP", right=True), _print.Column("ACTION"), _print.Column("PATH", flexible=True),
        _print.Column("REWARD", right=True), _print.Column("PASSED", right=True), _print.Column("TIME", right=True),
        _print.Column("WENT WRONG", flexible=True),
    ]  # fmt: skip
    _print.Screen().table(columns, map(_timeline_row, found))


def _timeline_row(step: TimelineStep) -> list[_print.Span]:
    from trackway.cli._text import number

    wrong = "; ".join([*([step.error] if step.error else []), *step.security_flags])
    return [
        _print.Span(str(step.step), "dim"),
        _print.Span(step.action if step.agent is None else f"{step.agent}: {step.action}", "tool"),
        _print.Span(step.path or "-"),
        _print.Span("-" if step.reward is None else number(step.reward), "bad" if (step.reward or 0) < 0 else ""),
        _print.Span("-" if step.pass_rate is None else f"{step.pass_rate:.0%}"),
        _took(step.duration_ms),
        _print.Span(wrong or "-", "bad" if wrong else "dim"),
    ]


FORMS: Final = {
    "events": Form("events", _events),
    "trace": Form("traces", _traces),
    "steps": Form("steps", _steps, _steps_table),
    "timeline": Form("timeline", _timeline, _timeline_table),
    "trajectory": Form("trajectories", _trajectory),
    "context": Form("contexts", _contexts),
}
