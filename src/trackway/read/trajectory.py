"""trajectory(events): the steps of an episode with their rewards, in seed 003's form.

Every episode has one. What a step earned, changed, tested and set off is what was recorded between its call and the
next call of its agent; a file change goes to the call that is named as its cause. Contents of files are blobs, so a
``file_diff`` tells before and after by hash. A step that the TrajectoryLogger recorded carries its own exact form in
its result; then that is the step, field for field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import takewhile
from typing import Any, Final, NamedTuple

import msgspec

from trackway.read.action import action_of
from trackway.read.order import ordered
from trackway.read.pairs import Pair, pairs
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeEnd,
    EpisodeStart,
    Event,
    FileChange,
    Header,
    Label,
    Reward,
    SecurityFlag,
    TestRun,
)
from trackway.schema.trajectory import TrajectoryRecord, TrajectoryStep

EXACT: Final = "trajectory_step"
"""The key under which a result's ``returned`` holds a step's own form."""

_FIELDS: Final = frozenset(each.name for each in fields(TrajectoryStep))
_SECOND: Final = 1_000_000_000
_UNANSWERED: Final = "nothing came back"


class Taken(NamedTuple):
    """A step and the call and result it was read from."""

    pair: Pair
    step: TrajectoryStep


def trajectory(events: Iterable[Event]) -> TrajectoryRecord:
    """The whole episode, finished or not; ``final_score`` is None where nobody gave a score."""
    found = ordered(events)
    whole = _whole(found)
    whole.steps = [each.step for each in taken_steps(found)]
    early = _Around()
    for event in takewhile(lambda each: not isinstance(each, AssistantToolCall), found):
        early.take(event)
    if early.reward is not None:
        whole.metadata["reward_before_steps"] = early.reward
    whole.total_steps = whole.steps[-1].step_number if whole.steps else 0
    return whole


def _whole(events: list[Event]) -> TrajectoryRecord:
    """Everything but the steps. What is said later of outcome and score holds."""
    header, start, end = Header(task=""), events[0].at if events else 0, None
    said: dict[str, Any] = {}
    rewards: dict[str, float | None] = {}
    for event in events:
        if isinstance(event, EpisodeStart):
            header, start = event.header, event.at
        elif isinstance(event, EpisodeEnd):
            end = event.at
            said |= {
                name: value for name in ("outcome", "score", "reason") if (value := getattr(event, name)) is not None
            }
        elif isinstance(event, Label):
            said |= {name: value for name in ("outcome", "score") if (value := getattr(event, name)) is not None}
        elif isinstance(event, Reward) and event.scope == "episode":
            rewards[event.name] = event.value
    score = said.pop("score", None)
    return TrajectoryRecord(
        episode_id=header.id, task=header.task, variant_id=header.variant or "", start_time=start / _SECOND,
        end_time=None if end is None else end / _SECOND, final_score=score,
        metadata={**(header.metadata or {}), **said, **({"episode_rewards": rewards} if rewards else {})},
    )  # fmt: skip


class _Around:
    """What was recorded beside one call, until the next one of its agent."""

    __slots__ = ("changes", "ended", "flags", "pass_rate", "reward")

    def __init__(self) -> None:
        self.changes: list[FileChange] = []
        self.ended = False
        self.flags: list[str] = []
        self.pass_rate: float | None = None
        self.reward: float | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, Reward):
            if event.scope == "step" and event.value is not None:
                self.reward = (self.reward or 0) + event.value
            self.ended = self.ended or event.ended is not None
        elif isinstance(event, TestRun):
            rate = pass_rate(event)
            self.pass_rate = self.pass_rate if rate is None else rate
        elif isinstance(event, SecurityFlag):
            self.flags.append(event.rule)
        elif isinstance(event, FileChange):
            self.changes.append(event)


def pass_rate(tests: TestRun) -> float | None:
    """The part of the tests that passed: as given, else of those that were judged; None where none were."""
    judged = tests.passed + tests.failed + tests.errors
    if tests.pass_rate is not None or not judged:
        return tests.pass_rate
    return tests.passed / judged


def taken_steps(events: list[Event]) -> list[Taken]:
    """Each step in seed 003's form beside its call and result; the events are in reading order."""
    beside = _beside(events)
    over = any(isinstance(each, EpisodeEnd) for each in events)
    found: list[Taken] = []
    total = 0.0
    all_pairs = pairs(events)
    for number, (pair, around) in enumerate(zip(all_pairs, beside, strict=True), start=1):
        step = _own_form(pair)
        if step is None:
            total += around.reward or 0
            step = _step(number, pair, around)
            step.cumulative_reward = total
            step.done = around.ended or (over and number == len(all_pairs))
        else:
            total = step.cumulative_reward
        found.append(Taken(pair, step))
    return found


def _beside(events: list[Event]) -> list[_Around]:
    """What stands beside each call.

    What another voice than the caller's says (a harness, a scanner of the workspace) goes to the latest call of all.
    """
    anyone = _Around()  # for what came before there was a call
    found: list[_Around] = []
    latest: dict[str | None, _Around] = {}
    by_id: dict[tuple[str | None, str], _Around] = {}
    by_cause: dict[str, _Around] = {}
    for event in events:
        if isinstance(event, AssistantToolCall):
            anyone = latest[event.agent] = by_id[event.agent, event.call_id] = by_cause[event.call_id] = _Around()
            found.append(anyone)
        elif isinstance(event, FileChange) and event.cause is not None:
            cause = by_id.get((event.agent, event.cause)) or by_cause.get(event.cause)
            if cause is not None:
                cause.take(event)
        else:
            latest.get(event.agent, anyone).take(event)
    return found


def _own_form(pair: Pair) -> TrajectoryStep | None:
    """The step as a TrajectoryLogger was given it; None for every other episode."""
    returned = None if pair.result is None else pair.result.returned
    own = returned.get(EXACT) if isinstance(returned, dict) else None
    if not isinstance(own, dict) or not own.keys() <= _FIELDS:
        return None
    try:
        return TrajectoryStep(**own)
    except TypeError:  # a field without a default is missing: something else that has this name
        return None


def _step(number: int, pair: Pair, around: _Around) -> TrajectoryStep:
    call, result = pair
    action = action_of(call.args)
    return TrajectoryStep(
        step_number=number, timestamp=call.at / _SECOND, action_type=call.name, action_path=action.path,
        action_query=action.query, action_content=action.content,
        action_content_length=None if action.content is None else len(action.content),
        observation_snapshot={
            "content": None if result is None else result.content,
            "status": "missing" if result is None else result.status,
            "exit_code": None if result is None else result.exit_code,
        },
        reward=around.reward, cumulative_reward=0.0, done=False, error=_error(pair),
        file_diff=_file_diff(around.changes), test_pass_rate=around.pass_rate,
        duration_ms=None if result is None else result.duration_ms, security_flags=around.flags,
    )  # fmt: skip


def _error(pair: Pair) -> str | None:
    if pair.result is None:
        return _UNANSWERED
    return (pair.result.content or pair.result.status) if pair.failed else None


def _file_diff(changes: list[FileChange]) -> dict[str, Any] | None:
    """The first change a call made, the rest of them under ``others``."""
    told = [
        {
            "path": each.path, "op": each.op, "before": msgspec.to_builtins(each.before),
            "after": msgspec.to_builtins(each.after), **({"new_path": each.new_path} if each.new_path else {}),
        }
        for each in changes
    ]  # fmt: skip
    if len(told) > 1:
        told[0]["others"] = told[1:]
    return told[0] if told else None
