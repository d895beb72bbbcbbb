"""What a source is: it says whether a file is of its format, and reads one as entries. It writes nothing.

    detect(head) → Sign | None          read(original) → Entry, Entry, Trouble, Entry …

Reading is a pure function of the bytes, and steady under growth: what the first half of a file says is said again, the
same, at the beginning of what the whole file says. That is what makes a file that has grown add only what is new.

The rules every source keeps:

- An entry is one thing a file holds (a line, a message). Its ``key`` is what it is known by inside its session: the
  same key again is the same entry, wherever it is met, and is not added twice.
- What is in the file and has no field of its own in our events goes into ``native``, whole. An entry of a type nobody
  knows is a ``Note`` with all of it in ``native``.
- What is not in the file is not invented: no tools, no system prompt, no time (``at`` stays 0), no outcome.
- Events leave ``writer``, ``n``, ``turn``, ``parent``, ``native`` and ``seq`` alone: ``ingest.parse`` sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trackway.schema.events import Event

if TYPE_CHECKING:
    from trackway.ingest.head import Head
    from trackway.ingest.original import Original


class Sign(NamedTuple):
    """How sure a source is that a file is its own, from 0 to 1, and why. A part is read with the file it belongs to."""

    confidence: float
    reason: str
    is_part: bool = False


class Place(NamedTuple):
    """Where in a file: bytes from its start, and the line, counted from 1; 0 where lines say nothing."""

    offset: int | None = None
    line: int = 0


class Entry(NamedTuple):
    """One thing a file says, as events.

    ``session`` is the source's own name of the episode; empty for a file that is one episode and bears no name: it is
    known by its content then. ``parent`` is the key of the entry this one follows, where that is not the one before
    it. ``contents`` are the bytes that file changes among the events name by hash. A start is
    tentative where the file has ended before it told what the session is about: as long as no model has answered, there
    is no episode.
    """

    session: str
    key: str
    events: Sequence[Event]
    place: Place = Place()
    parent: str | None = None
    native: Mapping[str, Any] | None = None
    contents: Sequence[bytes] = ()
    is_tentative: bool = False


class Trouble(NamedTuple):
    """Something in a file that could not be made sense of: where, and why. Its bytes are kept with the file's."""

    place: Place
    reason: str


Read = Callable[["Original"], Iterator[Entry | Trouble]]


class Source(NamedTuple):
    """A format: its name in the store, its name for people, what it is told by, and how it is read.

    ``keeps_ids`` says that its sessions are named by UUIDs of their own: the episode has the same id then. ``homes``
    are the folders in which a user has such files, below the user's home.
    """

    name: str
    title: str
    detect: Callable[[Head], Sign | None]
    read: Read
    looked_for: str
    keeps_ids: bool = False
    homes: Callable[[Path, Mapping[str, str]], Sequence[Path]] | None = None
