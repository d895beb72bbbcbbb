"""trackway, the flight recorder for AI agents: every step kept, on your machine, ready to be walked again.

Public names only, each imported when it is first used: ``import trackway`` does nothing and costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "record": "trackway.recording.api",
    "Recorder": "trackway.recording.recorder",
    "Episode": "trackway.recording.episode",
    "current": "trackway.recording.episode",
    "tool": "trackway.recording.tools",
    "open_store": "trackway.recording.settings",
    "Query": "trackway.store.base",
    "Event": "trackway.schema.events",
    "EpisodeSummary": "trackway.schema.episode",
    "ExecutionStep": "trackway.schema.execution_step",
    "FullTrace": "trackway.schema.trace",
    "TraceStep": "trackway.schema.trace",
    "FileDiff": "trackway.schema.trajectory",
    "TrajectoryRecord": "trackway.schema.trajectory",
    "TrajectoryStep": "trackway.schema.trajectory",
    "TrajectoryLogger": "trackway.recording.trajectory_logger",
    "Step": "trackway.read.steps",
    "steps": "trackway.read.steps",
    "trajectory": "trackway.read.trajectory",
    "usage": "trackway.read.usage",
    "context": "trackway.read.context",
    "difficulty": "trackway.read.difficulty",
    "compare": "trackway.read.compare",
    "timeline": "trackway.read.timeline",
    "trace": "trackway.read.trace",
    "TrackwayError": "trackway.errors",
}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604  the names are the table's keys

if TYPE_CHECKING:
    from trackway.errors import TrackwayError as TrackwayError
    from trackway.read.compare import compare as compare
    from trackway.read.context import context as context
    from trackway.read.difficulty import difficulty as difficulty
    from trackway.read.steps import Step as Step
    from trackway.read.steps import steps as steps
    from trackway.read.timeline import timeline as timeline
    from trackway.read.trace import trace as trace
    from trackway.read.trajectory import trajectory as trajectory
    from trackway.read.usage import usage as usage
    from trackway.recording.api import record as record
    from trackway.recording.episode import Episode as Episode
    from trackway.recording.episode import current as current
    from trackway.recording.recorder import Recorder as Recorder
    from trackway.recording.settings import open_store as open_store
    from trackway.recording.tools import tool as tool
    from trackway.recording.trajectory_logger import TrajectoryLogger as TrajectoryLogger
    from trackway.schema.episode import EpisodeSummary as EpisodeSummary
    from trackway.schema.events import Event as Event
    from trackway.schema.execution_step import ExecutionStep as ExecutionStep
    from trackway.schema.trace import FullTrace as FullTrace
    from trackway.schema.trace import TraceStep as TraceStep
    from trackway.schema.trajectory import FileDiff as FileDiff
    from trackway.schema.trajectory import TrajectoryRecord as TrajectoryRecord
    from trackway.schema.trajectory import TrajectoryStep as TrajectoryStep
    from trackway.store.base import Query as Query


def __getattr__(name: str) -> Any:  # noqa: ANN401
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'trackway' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
