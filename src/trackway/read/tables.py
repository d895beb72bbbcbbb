"""The rows that ``stats`` is made of: what many episodes come to, in all and by name."""

from __future__ import annotations

import msgspec

from trackway.read.durations import Spread
from trackway.read.usage import Usage


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """All tries at one task: the mean ``score`` of the ``scored`` ones, and the mean sum of step rewards."""

    task: str
    episodes: int
    outcomes: dict[str, int]
    steps: int
    errors: int
    duration: Spread
    usage: Usage
    scored: int = 0
    score: float | None = None
    reward: float | None = None


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one tool; ``unanswered`` ones are errors too."""

    tool: str
    episodes: int
    calls: int
    errors: int
    unanswered: int
    duration: Spread


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one model."""

    model: str | None
    episodes: int
    calls: int
    errors: int
    latency: Spread
    usage: Usage


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call, the tool and its arguments the same: how many ``times`` in how many ``episodes``.

    ``again`` is how many of them were not the first in their episode; ``failed`` how many failed, ``alike`` how many of
    those failed in the one way in which it failed most. The arguments are in short; None where they were not kept.
    """

    tool: str | None
    args: str | None
    times: int
    episodes: int
    again: int
    failed: int
    alike: int


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """One file: how often it was edited, how often it was found changed from ``outside``, in how many episodes."""

    path: str
    edits: int
    outside: int
    episodes: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Everything counted, and the same by task, tool and model, the most used first.

    ``worked`` is milliseconds between one event and the next, what a person took to answer left out and no pause
    longer than ten minutes; ``first_at`` and ``last_at`` are None where no episode knows a time, ``untimed`` is how
    many do not. ``calls`` are those that were made again, ``n_calls`` says how many there are of those. ``files`` are
    the most edited of ``n_files``; ``unlisted`` more were too many in one episode to be kept by name. ``slots`` maps
    quarters of an hour since 1970 to events and milliseconds worked.
    """

    episodes: int
    events: int
    outcomes: dict[str, int]
    steps: int
    errors: int
    duration: Spread
    usage: Usage
    tasks: list[TaskRow]
    tools: list[ToolRow]
    models: list[ModelRow]
    turns: int = 0
    worked: int = 0
    first_at: int | None = None
    last_at: int | None = None
    untimed: int = 0
    agents: dict[str, int] = {}
    sources: dict[str, int] = {}
    calls: list[CallRow] = []
    files: list[FileRow] = []
    n_tasks: int = 0
    n_calls: int = 0
    n_files: int = 0
    unlisted: int = 0
    edits: int = 0
    outside: int = 0
    slots: dict[int, tuple[int, int]] = {}
