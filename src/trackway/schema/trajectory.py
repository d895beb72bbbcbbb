"""A trajectory as seed 003 writes it: steps with rewards, and what each did to a file, in that exact shape.

``final_score`` is None, and not 0, where nobody gave a score: an unfinished try is not a failed one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class FileDiff:
    """A file before and after; ``before`` is None where it was created."""

    path: str
    before: str | None
    after: str
    chars_changed: int


@dataclass
class TrajectoryStep:
    """One action, what was seen after it, and what it earned."""

    step_number: int
    timestamp: float
    action_type: str
    action_path: str | None
    action_query: str | None
    action_content_length: int | None
    observation_snapshot: dict[str, Any]
    reward: float | None
    cumulative_reward: float
    done: bool
    error: str | None
    file_diff: dict[str, Any] | None
    test_pass_rate: float | None
    duration_ms: float | None
    security_flags: list[str] = field(default_factory=list)
    action_content: str | None = None


@dataclass
class TrajectoryRecord:
    """A whole episode: everything needed for replay and analysis. Times are Unix seconds."""

    episode_id: str
    task: str
    variant_id: str
    start_time: float
    end_time: float | None = None
    steps: list[TrajectoryStep] = field(default_factory=list)
    final_score: float | None = None
    total_steps: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A mapping ready for JSON, in the seed's shape."""
        ended = self.end_time
        return {
            "episode_id": self.episode_id,
            "task": self.task,
            "variant_id": self.variant_id,
            "start_time": self.start_time,
            "end_time": ended,
            "duration_seconds": None if ended is None else round(ended - self.start_time, 2),
            "steps": [asdict(each) for each in self.steps],
            "final_score": self.final_score,
            "total_steps": self.total_steps,
            "metadata": self.metadata,
        }
