"""steps(events): each action with what came of it. A step without a result is a step too, and says so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from trackway.read.order import ordered
from trackway.read.pairs import pairs
from trackway.schema.canonical import signature
from trackway.schema.events import AssistantToolCall, Event, ToolResult


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One action and its outcome; ``error`` is None where it was fine, ``status`` missing where nothing came back."""

    index: int
    turn: int
    agent: str | None
    tool: str
    args: bytes
    call_id: str
    observation: str | None = None
    error: str | None = None
    status: str = "missing"
    exit_code: int | None = None
    started_at: int = 0
    duration_ms: float | None = None
    batch: int | None = None
    call: str | None = None
    reported: bool = False

    @property
    def arguments(self) -> Any:  # noqa: ANN401  a JSON value is anything
        """The arguments as a value; None where they are no JSON."""
        try:
            return json.loads(self.args)
        except (ValueError, RecursionError):
            return None

    @property
    def signature(self) -> str:
        """The stable name of the action."""
        return signature(self.tool, self.args)


def steps(events: Iterable[Event]) -> list[Step]:
    """The steps of an episode, in reading order.

    Results are paired with calls by agent and call id; where an id repeats, the oldest unanswered call is meant.
    """
    return [_step(index, *pair) for index, pair in enumerate(pairs(ordered(events)))]


def _step(index: int, call: AssistantToolCall, result: ToolResult | None) -> Step:
    head = Step(
        index=index, turn=call.turn, agent=call.agent, tool=call.name, args=call.args, call_id=call.call_id,
        started_at=call.at, batch=call.batch, call=call.call, reported=call.reported,
    )  # fmt: skip
    if result is None:
        return head
    return msgspec.structs.replace(
        head, observation=result.content, status=result.status, exit_code=result.exit_code,
        duration_ms=result.duration_ms, error=(result.content or result.status) if result.failed else None,
    )  # fmt: skip
