"""What a store is: a narrow protocol, the values that cross it, and the one rule of exactly-once.

A batch is sealed whole or not at all, and the position it was read up to is kept with it: reading a journal again from
the stored position can neither lose a record nor bring one twice. Everything a store answers is derived from events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from trackway.errors import BadSetting, EventRefused
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import OUTCOMES, Event
from trackway.store.originals import Incoming
from trackway.store.record import START, Position, RawRecord

SORTS: Final = ("started_at", "ended_at", "task", "score", "n_events", "n_steps")


class Batch(NamedTuple):
    """Records of one writer, in order, between two positions in its journal.

    Without a writer (imported episodes) there is no position to keep; the files they came from may be, with them.
    ``is_whole`` says that little more of its episodes will come: nothing of them waits to be put with more.
    """

    records: Iterable[RawRecord]
    writer: str = ""
    about: dict[str, Any] | None = None
    start: Position = START
    position: Position | None = None
    originals: Iterable[Incoming] = ()
    is_whole: bool = False


class Dropped(NamedTuple):
    """What was deleted: the episodes that were there, their events, the blobs nobody else needs, the bytes of both."""

    ids: tuple[str, ...] = ()
    events: int = 0
    blobs: int = 0
    bytes: int = 0


def late(episode_id: str) -> EventRefused:
    """Why an event of a dropped episode is refused; its bytes go to quarantine."""
    return EventRefused(f"episode {episode_id} was pruned before this came", episode=episode_id)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which episodes: every filter given must hold. ``task`` is a substring in any case; times are UTC nanoseconds.

    A ``datetime`` will do for a time.
    """

    task: str | None = None
    variant: str | None = None
    agent: str | None = None
    model: str | None = None
    outcome: str | None = None
    tool: str | None = None
    tag: str | None = None
    since: Any = None
    until: Any = None
    sort: str = "started_at"
    newest_first: bool = True
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            value = getattr(self, name)
            if isinstance(value, datetime):
                msgspec.structs.force_setattr(self, name, int(value.timestamp() * 1_000_000) * 1000)
            elif value is not None and type(value) is not int:
                raise BadSetting(f"{name} is {value!r}", hint="UTC nanoseconds, or a datetime", value=value)
        if self.sort not in SORTS:
            raise BadSetting(f"sort is {self.sort!r}", hint=f"one of {', '.join(SORTS)}", value=self.sort)
        if self.outcome not in (None, "none", *OUTCOMES):
            hint = f"one of {', '.join(OUTCOMES)}, or none where nobody said one"
            raise BadSetting(f"outcome is {self.outcome!r}", hint=hint, value=self.outcome)
        if self.limit is not None and self.limit < 0:
            raise BadSetting(f"limit is {self.limit}", hint="a number from 0 on, or None for all", value=self.limit)

    def takes(self, summary: EpisodeSummary) -> bool:
        """Whether the summary passes every filter."""
        wanted = {
            "variant": self.variant, "agent": self.agent, "model": self.model,
            "outcome": None if self.outcome == "none" else self.outcome,
        }  # fmt: skip
        started = summary.started_at
        return (
            all(each is None or getattr(summary, name) == each for name, each in wanted.items())
            and (self.outcome != "none" or summary.outcome is None)
            and (self.task is None or self.task.casefold() in summary.task.casefold())
            and (self.tool is None or self.tool in summary.tools)
            and (self.tag is None or self.tag in summary.tags)
            and (self.since is None or (started is not None and started >= self.since))
            and (self.until is None or (started is not None and started < self.until))
        )

    def ordered(self, summaries: list[EpisodeSummary]) -> list[EpisodeSummary]:
        """Sorted as asked, cut to the limit; what has no value stands last."""
        has = [each for each in summaries if getattr(each, self.sort) is not None]
        has.sort(key=lambda each: (getattr(each, self.sort), each.id), reverse=self.newest_first)
        has += [each for each in summaries if getattr(each, self.sort) is None]
        return has if self.limit is None else has[: self.limit]


ALL: Final = Query()


class Store(Protocol):
    """Where episodes live. Every implementation passes ``trackway.testing.StoreContract``."""

    key: str
    """Names the place, the same in every process, without secrets: a journal says with it where it belongs."""

    def seal(self, batch: Batch) -> int:
        """Store the batch and its position in one transaction; returns the number of events. All or nothing."""
        ...

    def position(self, writer: str) -> Position:
        """How far this writer's journal is sealed."""
        ...

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries that match, in the order asked for."""
        ...

    def find(self, ref: str) -> list[str]:
        """The ids that a whole id, prefix, suffix or ``last`` names; at most a few."""
        ...

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary; raises ``EpisodeNotFound``."""
        ...

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events with a ``seq`` beyond ``after``, in that order, read piece by piece."""
        ...

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob's bytes, piece by piece; raises ``BlobNotFound``."""
        ...

    def drop(self, episode_ids: Iterable[str]) -> Dropped:
        """Delete episodes and the blobs nobody else needs, in one transaction; ids that are not there are passed over.

        Positions stay, so that no journal is sealed again. An event that comes after is refused, unless it comes with
        the episode's start: then the episode begins anew.
        """
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
