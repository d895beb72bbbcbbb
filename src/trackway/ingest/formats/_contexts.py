"""What each model call was given, where a file repeats it at every call: kept once, as the difference to the last one.

Only digests of the last call's messages are held. Equal bytes are equal messages; ``==`` is not asked, to which 1 is
True.
"""

from __future__ import annotations

from typing import Any

from xxhash import xxh3_128_digest

from trackway.schema.contexts import difference
from trackway.schema.events import ModelCall
from trackway.schema.plain import json_text


class Contexts:
    """The model calls of one agent, in order."""

    def __init__(self) -> None:
        self._base: str | None = None
        self._before: list[bytes] = []

    def call(self, name: str, messages: list[Any] | None, **fields: Any) -> ModelCall:  # noqa: ANN401  the event's own
        """The call with its messages, told by those of the one before; None where the file does not tell them."""
        if messages is None:
            return ModelCall(id=name, **fields)
        now = [xxh3_128_digest(json_text(each)) for each in messages]
        reuse, fresh = difference(self._before, now)
        base = self._base if reuse else None
        self._base, self._before = name, now
        return ModelCall(id=name, base=base, reuse=reuse, messages=tuple(messages[i] for i in fresh), **fields)
