"""Seed 000's unit: a step as the agent reports it, after the fact. It is recorded as a tool call and its result."""

from __future__ import annotations

import msgspec


class ExecutionStep(msgspec.Struct, frozen=True):
    """What was done with which tool, how long it took, what it cost, and what came of it.

    >>> ExecutionStep("cargo", "build --all", 12_500, observation="Build successful, 0 warnings").success
    True
    """

    tool: str
    action: str
    latency_ms: int | float
    tokens: int | None = None
    success: bool = True
    observation: str = ""
