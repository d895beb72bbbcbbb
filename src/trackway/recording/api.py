"""``record``: the one-line way in. One recorder per home and store serves the whole process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from trackway.recording.episode import Episode
from trackway.recording.shared import shared_recorder
from trackway.schema.events import Parent
from trackway.store.base import Store


def record(
    task: str,
    *,
    variant: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    system_prompt: str | None = None,
    tools: Any = None,  # noqa: ANN401
    tags: Iterable[str] = (),
    metadata: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | Store | None = None,
    capture: str = "full",
    guard: Any = None,  # noqa: ANN401
    redact: Any = None,  # noqa: ANN401
    parent: Parent | Episode | str | None = None,
) -> Episode:
    """Record one try at one task. Use it as ``with``: the episode ends with the block, whatever ends it.

    >>> import trackway
    >>> with trackway.record("fix the flaky test", agent="demo") as episode:
    ...     episode.user("the build is red")
    ...     call = episode.tool_call("bash", {"cmd": "pytest -q"})
    ...     _ = episode.tool_result(call, "2 failed", is_error=True, exit_code=1)
    ...     episode.end("failure")
    """
    return shared_recorder(home, store).start(
        task, variant=variant, agent=agent, model=model, system_prompt=system_prompt, tools=tools, tags=tags,
        metadata=metadata, capture=capture, guard=guard, redact=redact, parent=parent,
    )  # fmt: skip
