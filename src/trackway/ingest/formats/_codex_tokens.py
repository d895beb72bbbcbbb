"""Codex's model calls: they have no ids in a rollout, and their tokens come as running totals.

A call begins with the first thing a model says after something else was said to it, and is known by the time of that
line: a rollout that is written anew, with turns left out, keeps the times. Its usage is what the next total says more
than the last one. The same total told again, at the start of each turn, is no further call; nor is one behind a
``token_usage_record``, which tells a call's tokens before it. Tokens that no item belongs to, as of a compaction, are a
call of their own.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from trackway.ingest.making import Keys
from trackway.schema.events import Event, ModelCall, ModelResult


class ModelCalls:
    """The calls of one thread; ``id`` is the latest of them, ``batch`` is what the tools it calls share."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.batch: int | None = None
        self.is_open = False
        self._waits = False
        self._total: dict[str, Any] | None = None
        self._record: Any = None
        self._recorded = False
        self._names = Keys()

    def begin(self, when: str, model: str | None, at: int) -> list[Event]:
        """The call that an item belongs to, where it is the first of it."""
        if self.is_open:
            return []
        self.is_open = self._waits = True
        self.id = self._names.of(f"model-{when}" if when else "model")
        self.batch = crc32(self.id.encode("utf-8", "surrogatepass"))
        return [ModelCall(id=self.id, model=model, at=at)]

    def close(self) -> None:
        """Something else was said: what the model says next is another call."""
        self.is_open = False

    def is_news(self, total: object) -> bool:
        """Whether a sum is another than the last one."""
        return total is not None and total != self._total

    def counted(self, total: Any, last: Any, model: str | None, when: tuple[str, int]) -> list[Event] | None:  # noqa: ANN401  whatever stands where counts should
        """What ``token_count`` tells: nothing where it is the sum again, or of what records told one by one.

        None where it sums up calls that are not in the file: a migrated rollout has lost those that were rolled back.
        """
        total = total if isinstance(total, dict) else None
        last = last if isinstance(last, dict) else None
        if (total is None and last is None) or (total is not None and total == self._total):
            return []
        told = _added(self._total, total, last)
        is_gap = self._total is not None and last is not None and told != last and not self._waits
        self._total = total if total is not None else self._total
        if is_gap:
            return None
        if self._recorded:
            self._recorded = False
            return []
        return self._result(told, model, when)

    def recorded(self, total: Any, usage: Any, model: str | None, when: tuple[str, int]) -> list[Event]:  # noqa: ANN401  as above
        """What ``token_usage_record`` tells. It sums by itself, and from nothing again where a thread is resumed."""
        if not isinstance(usage, dict) or (isinstance(total, dict) and total == self._record):
            return []
        self._record = total
        self._recorded = True
        return self._result(usage, model, when)

    def _result(self, usage: dict[str, Any], model: str | None, when: tuple[str, int]) -> list[Event]:
        events: list[Event] = [] if self._waits else self.begin(when[0], model, when[1])
        self.is_open = self._waits = False
        assert self.id is not None  # begun here, or before
        events.append(ModelResult(id=self.id, usage=usage, model=model, at=when[1]))
        return events


def _added(before: dict[str, Any] | None, total: dict[str, Any] | None, last: dict[str, Any] | None) -> dict[str, Any]:
    """What the last call used: as it is told, unless totals that only grew say something else."""
    if before is None or total is None:
        return last if last is not None else dict(total or {})
    try:
        added = {name: count - before.get(name, 0) for name, count in total.items()}
        grown = min(added.values(), default=-1) >= 0
    except TypeError:  # no counts, some of them
        return last if last is not None else dict(total)
    # A thread resumed by an old client counts from nothing again: then what is told of the call itself holds.
    return added if grown and added != last else (last if last is not None else dict(total))
