"""difficulty(events): how hard an episode was, from what was done and what came of it. Seed 001's companion measure.

The weights are that measure's: errors count most. Its blind spots are not: calls that failed, were denied, timed out or
never came back count, texts are compared whole, each agent's streaks are its own, and an episode need not have ended,
or ended well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby
from typing import Any, Final

import msgspec

from trackway.read.order import ordered
from trackway.read.pairs import Pair, pairs
from trackway.schema.canonical import hash_value, signature
from trackway.schema.events import EpisodeStart, Event, Label, User

_WEIGHTS: Final = {
    "calls": (0.25, 20), "tools": (0.20, 6), "errors": (0.30, 5), "same_streak": (0.15, 3), "duration_s": (0.10, 120),
}  # fmt: skip
"""Each with what it is worth at most, and where it is worth that."""


class Difficulty(msgspec.Struct, frozen=True, kw_only=True):
    """The measure and what it is made of.

    ``errors`` are results that went wrong and calls without a result (``unanswered`` of them); ``same_streak`` and
    ``error_streak`` the longest row of one agent's equal, or failed, calls. ``signature`` names the kind of work: equal
    for tries at one task with the same tools, different for another task.
    """

    score: float = 0.0
    calls: int = 0
    tools: int = 0
    errors: int = 0
    unanswered: int = 0
    same_streak: int = 0
    error_streak: int = 0
    duration_s: float = 0.0
    signature: str = ""


def difficulty(events: Iterable[Event]) -> Difficulty:
    """How hard it was, from 0 to 1; works on an episode in any state.

    >>> from trackway.schema.events import AssistantToolCall
    >>> difficulty([AssistantToolCall(name="bash", args=b"{}", call_id="1")]).errors
    1
    """
    found = ordered(events)
    made = pairs(found)
    tools = sorted({each.call.name for each in made})
    agents: dict[str | None, list[Pair]] = {}
    for each in made:
        agents.setdefault(each.call.agent, []).append(each)
    counts: dict[str, Any] = {
        "calls": len(made),
        "tools": len(tools),
        "errors": sum(each.failed for each in made),
        "same_streak": max((_longest(map(_action, own)) for own in agents.values()), default=0),
        "duration_s": _seconds(found),
    }
    score = sum(worth * min(counts[name] / full, 1) for name, (worth, full) in _WEIGHTS.items())
    return Difficulty(
        score=round(score, 6), unanswered=sum(each.result is None for each in made),
        error_streak=max((_longest(each.failed or None for each in own) for own in agents.values()), default=0),
        signature=hash_value([_asked(found), tools]), **counts,
    )  # fmt: skip


def _action(pair: Pair) -> str:
    return signature(pair.call.name, pair.call.args)


def _longest(row: Iterable[Hashable | None]) -> int:
    """The length of the longest stretch of equal values; None is no value.

    >>> _longest(["a", "b", "b", None, None, None])
    2
    """
    return max((sum(1 for _ in group) for value, group in groupby(row) if value is not None), default=0)


def _seconds(events: list[Event]) -> float:
    """From the first event to the last, judgements given later left out."""
    times = [each.at for each in events if not isinstance(each, Label) and each.at]
    return (max(times) - min(times)) / 1_000_000_000 if times else 0.0


def _asked(events: list[Event]) -> str:
    """What was to be done: the task's key, its words, or the first input."""
    header = next((each.header for each in events if isinstance(each, EpisodeStart)), None)
    said = (header.task_key or header.task) if header is not None else ""
    return said or next((each.content for each in events if isinstance(each, User)), "")
