"""A model call under way: ``done`` records what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from trackway.recording.settings import number
from trackway.schema import events as kinds
from trackway.schema.plain import error_text, mapping_of, plain, text_of


class ModelRequest:
    """Returned by ``episode.model_call``. As a context manager it records an exception as the call's error."""

    def __init__(self, put: Callable[[type[kinds.Event], dict[str, Any]], bool], call_id: str) -> None:
        self._put = put
        self._started = time.perf_counter()
        self.id = call_id
        self.finished = False

    def done(  # noqa: C901  one branch for each field that may be left out
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
        elif type(latency_ms) is not float:
            latency_ms = number("latency_ms", latency_ms, float)
        self.finished = True
        fields: dict[str, Any] = {"id": self.id, "call": self.id, "latency_ms": latency_ms}
        if usage_from != "provider":
            fields["usage_from"] = text_of(usage_from)
        if usage is not None:
            fields["usage"] = mapping_of(usage)
        if error is not None:
            fields["error"] = error_text(error) if isinstance(error, BaseException) else text_of(error)
        if finish_reason is not None:
            fields["finish_reason"] = text_of(finish_reason)
        if model is not None:
            fields["model"] = text_of(model)
        if response is not None:
            fields["response"] = plain(response)
        if token_ids is not None:
            fields["token_ids"] = plain(token_ids)
        if logprobs is not None:
            fields["logprobs"] = plain(logprobs)
        self._put(kinds.ModelResult, fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if not self.finished:
            self.done(error=error)
