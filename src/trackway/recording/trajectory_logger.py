"""Seed 003's logger under its own names, on the recorder: durable, unbounded, and as many at once as there are loggers.

A step becomes the events everything else reads (call, file change, tests, flags, result, reward), and its own exact
form goes along with the result, so what comes back is what was given, field for field. Where the seed drops a step
without a word (no episode was started), this raises.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from trackway.errors import BadSetting, EpisodeClosed
from trackway.read.timeline import timeline
from trackway.read.trajectory import EXACT, trajectory
from trackway.recording.episode import Episode
from trackway.recording.settings import number
from trackway.recording.shared import shared_recorder
from trackway.schema.events import TRAJECTORY_LOGGER as SOURCE
from trackway.schema.plain import json_text, text_of
from trackway.schema.trajectory import FileDiff, TrajectoryRecord, TrajectoryStep
from trackway.store.base import Query, Store
from trackway.store.live import LiveStore


class TrajectoryLogger:
    """Records the trajectories of an environment, one episode after another.

    >>> import trackway
    >>> logger = trackway.TrajectoryLogger()
    >>> _ = logger.start_episode("task1", "variant_3")
    >>> logger.record_step(1, "read_file", "src/a.py", None, None, reward=0.05, duration_ms=3.1)
    >>> logger.end_episode(final_score=0.75)
    >>> logger.get_trajectory()["final_score"]
    0.75
    """

    def __init__(
        self, home: str | os.PathLike[str] | None = None, store: str | os.PathLike[str] | Store | None = None
    ) -> None:
        self._recorder = shared_recorder(home, store)
        self._live = LiveStore(self._recorder.home, self._recorder.store)
        self._episode: Episode | None = None
        self._earned = 0.0

    # --- recording ----------------------------------------------------------------------------------------------

    def start_episode(self, task: str, variant_id: str, **header: Any) -> str:  # noqa: ANN401
        """Begin an episode and return its id; one of this logger that has not ended is left as abandoned.

        ``header`` is what ``Recorder.start`` takes beside: agent, model, tags, metadata, seed, redact and so on.
        """
        if self._episode is not None and not self._episode.ended:
            self._episode.end("abandoned", reason="another episode was started")
        self._episode = self._recorder.start(task, variant=variant_id, source=SOURCE, **header)
        self._earned = 0.0
        return self._episode.id

    def record_step(  # noqa: PLR0917  the seed's signature
        self,
        step_number: int,
        action_type: str,
        action_path: str | None = None,
        action_query: str | None = None,
        action_content_length: int | None = None,
        reward: float | None = None,
        cumulative_reward: float | None = None,
        done: bool = False,  # noqa: FBT001, FBT002  the seed's signature
        error: str | None = None,
        file_diff: FileDiff | None = None,
        test_pass_rate: float | None = None,
        duration_ms: float | None = None,
        observation_compact: Mapping[str, Any] | None = None,
        security_flags: Iterable[str] | None = None,
        *,
        action_content: str | None = None,
    ) -> None:
        """Record one step; ``action_content`` is what was written, taken from the diff where it is not given."""
        episode = self._open_episode()
        given = {"reward": reward, "test_pass_rate": test_pass_rate, "duration_ms": duration_ms,
                 "cumulative_reward": cumulative_reward}  # fmt: skip
        _check(given, file_diff, observation_compact)  # all of it before any of it is recorded
        self._earned += reward or 0
        if action_content is None and file_diff is not None:
            action_content = file_diff.after
        flags = [security_flags] if isinstance(security_flags, str) else list(security_flags or ())
        self._put(episode, TrajectoryStep(
            step_number=step_number, timestamp=time.time(), action_type=action_type, action_path=action_path,
            action_query=action_query, action_content_length=action_content_length, action_content=action_content,
            observation_snapshot=dict(observation_compact or {}), reward=reward, done=done, error=error,
            cumulative_reward=self._earned if cumulative_reward is None else cumulative_reward,
            file_diff=None if file_diff is None else asdict(file_diff), test_pass_rate=test_pass_rate,
            duration_ms=duration_ms, security_flags=[text_of(each) for each in flags],
        ))  # fmt: skip

    def _put(self, episode: Episode, step: TrajectoryStep) -> None:
        args = {"path": step.action_path, "query": step.action_query, "content": step.action_content}
        given = {name: each for name, each in args.items() if each is not None}
        call = episode.tool_call(step.action_type, given, reported=True)
        if step.file_diff is not None:
            diff = step.file_diff
            episode.file_change(diff["path"], before=diff["before"], after=diff["after"])
        if step.test_pass_rate is not None:
            episode.test_run(pass_rate=step.test_pass_rate)
        for flag in step.security_flags:
            episode.security_flag(flag)
        seen = step.error if step.error is not None else json_text(step.observation_snapshot).decode()
        episode.tool_result(
            call, seen, is_error=step.error is not None, duration_ms=step.duration_ms,
            returned={EXACT: asdict(step)},
        )  # fmt: skip
        episode.reward(step.reward, ended="terminated" if step.done else None)

    def end_episode(self, final_score: float | None, *, outcome: str | None = None) -> None:
        """End the episode with its score; the outcome is only what you say it is."""
        self._open_episode().end(outcome, score=final_score)

    def _open_episode(self) -> Episode:
        if self._episode is None:
            raise BadSetting("no episode was started with this logger", hint="start_episode(task, variant_id) first")
        if self._episode.ended:
            raise EpisodeClosed("the episode has ended", hint="start_episode(task, variant_id) begins the next one")
        return self._episode

    # --- reading ------------------------------------------------------------------------------------------------

    def get_trajectory(self, episode_id: str | None = None) -> dict[str, Any] | None:
        """The trajectory of an episode, else of this logger's latest, else of the latest in the store."""
        found = self._record(episode_id)
        return None if found is None else found.to_dict()

    def get_replay_actions(self, episode_id: str | None = None) -> list[dict[str, Any]]:
        """The actions in order, with everything needed to take them again: path, query and content."""
        found = self._record(episode_id)
        return [] if found is None else [_action(each) for each in found.steps]

    def get_step_timeline(self, episode_id: str | None = None) -> list[dict[str, Any]]:
        """One line per step: what was done, what it earned, what went wrong."""
        name = self._named(episode_id)
        return [] if name is None else [msgspec.to_builtins(each) for each in timeline(self._live.events(name))]

    def get_history_summary(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Every episode of the store that was logged this way and is over, the oldest first; the last ``limit``."""
        if limit is not None and number("limit", limit, int) < 0:
            raise BadSetting(f"limit is {limit}", hint="a number from 0 on, or None for all")
        over = (each for each in self._live.episodes() if each.source == SOURCE and each.ended_at is not None)
        newest = itertools.islice(over, limit)
        return [
            {
                "episode_id": each.id, "task": each.task, "variant_id": each.variant or "", "final_score": each.score,
                "total_steps": each.n_steps, "duration_seconds": _seconds(each.started_at, each.ended_at),
                "outcome": each.outcome,
            }
            for each in reversed(list(newest))
        ]  # fmt: skip

    def _record(self, episode_id: str | None) -> TrajectoryRecord | None:
        name = self._named(episode_id)
        return None if name is None else trajectory(self._live.events(name))

    def _named(self, episode_id: str | None) -> str | None:
        if episode_id is not None:
            return self._live.resolve(episode_id)
        if self._episode is not None:
            return self._episode.id
        newest = (each.id for each in self._live.episodes(Query()) if each.source == SOURCE)
        return next(newest, None)


def _check(numbers: dict[str, Any], file_diff: Any, observation: Any) -> None:  # noqa: ANN401
    for name, value in numbers.items():
        if value is not None and (isinstance(value, str) or not math.isfinite(number(name, value, float))):
            raise BadSetting(f"{name} is a {type(value).__name__}", hint="a finite number, or None", value=value)
    if file_diff is not None and not isinstance(file_diff, FileDiff):
        raise BadSetting(f"file_diff is a {type(file_diff).__name__}", hint="a FileDiff(path, before, after, …)")
    if observation is not None and not isinstance(observation, Mapping):
        raise BadSetting(f"observation_compact is a {type(observation).__name__}", hint="a mapping")


def _action(step: TrajectoryStep) -> dict[str, Any]:
    given = {"path": step.action_path, "query": step.action_query, "content": step.action_content}
    return {"action_type": step.action_type, **{name: each for name, each in given.items() if each is not None}}


def _seconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else round((end - start) / 1e9, 2)
