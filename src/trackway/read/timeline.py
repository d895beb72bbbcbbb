"""timeline(events): one line per step: what was done to what, what it earned, how long it took."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trackway.read.order import ordered
from trackway.read.trajectory import taken_steps
from trackway.schema.events import Event


class TimelineStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line: seed 003's fields under their names, and whose step it was, in which turn."""

    step: int
    action: str
    path: str | None = None
    reward: float | None = None
    error: str | None = None
    duration_ms: float | None = None
    pass_rate: float | None = None
    security_flags: list[str] = []
    agent: str | None = None
    turn: int = 0


def timeline(events: Iterable[Event]) -> list[TimelineStep]:
    """The lines of an episode, in reading order, with the numbers and values of its trajectory."""
    return [
        TimelineStep(
            step=step.step_number, action=step.action_type, path=step.action_path, reward=step.reward,
            error=step.error, duration_ms=step.duration_ms, pass_rate=step.test_pass_rate,
            security_flags=step.security_flags, agent=pair.call.agent, turn=pair.call.turn,
        )
        for pair, step in taken_steps(ordered(events))
    ]  # fmt: skip
