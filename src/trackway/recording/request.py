"""A model call under way: ``done`` records what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from trackway.schema import events as kinds
from trackway.schema.plain import error_text, plain, text_of


class ModelRequest:
    """Returned by ``episode.model_call``. As a context manager it records an exception as the call's error."""

    def __init__(self, put: Callable[[type[kinds.Event], dict[str, Any]], bool], call_id: str) -> None:
        self._put = put
        self._started = time.perf_counter()
        self.id = call_id
        self.finished = False

    def done(
        self,
        *,
        usage: Mapping[str, Any] | Any = None,  # noqa: ANN401
        usage_from: str = "provider",
        latency_ms: float | None = None,
        finish_reason: str | None = None,
        error: str | BaseException | None = None,
        model: str | None = None,
        response: Any = None,  # noqa: ANN401
        token_ids: Any = None,  # noqa: ANN401
        logprobs: Any = None,  # noqa: ANN401
    ) -> None:
        """The answer is in, or will not come. ``usage_from`` says how the counts are known (provider, estimated)."""
        if latency_ms is None:
            latency_ms = (time.perf_counter() - self._started) * 1000
        counts = plain(usage)
        self.finished = True
        self._put(kinds.ModelResult, {
            "id": self.id, "call": self.id, "latency_ms": float(latency_ms), "usage_from": text_of(usage_from),
            "usage": counts if counts is None or isinstance(counts, dict) else {"value": counts},
            "finish_reason": None if finish_reason is None else text_of(finish_reason),
            "error": error_text(error) if isinstance(error, BaseException) else plain(error),
            "model": None if model is None else text_of(model), "response": plain(response),
            "token_ids": plain(token_ids), "logprobs": plain(logprobs),
        })  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if not self.finished:
            self.done(error=error)
