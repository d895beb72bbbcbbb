"""Where the bytes of a home and its store are: by part, by task, the largest episodes and the largest blobs.

Only lengths are asked for, which SQLite knows without reading what lies beyond a row's first page. A blob that several
episodes need is divided among them evenly, so that the figures of tasks and episodes add up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from trackway.schema import ids
from trackway.schema.canonical import name_of
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.sqlite import SqliteStore

TOP: Final = 5

_PAGES: Final = """
    SELECT page_count, freelist_count, page_size
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"""
_TOTALS: Final = """
    SELECT (SELECT coalesce(sum(length(body)), 0) FROM frames), (SELECT coalesce(sum(length(body)), 0) FROM tail),
        (SELECT coalesce(sum(length(body)), 0) FROM blobs) + (SELECT coalesce(sum(length(body)), 0) FROM chunks)"""
_FILES: Final = "SELECT coalesce(sum(length(body)), 0) FROM parts"
_HAS_FILES: Final = "SELECT 1 FROM sqlite_master WHERE name = 'parts'"
_COUNTS: Final = """
    SELECT count(*), coalesce(sum(n_events), 0), coalesce(sum(n_steps), 0), (SELECT count(*) FROM blobs)
    FROM episodes"""
_OF_BLOBS: Final = """
    SELECT blobs.id AS blob, coalesce(length(body), (SELECT sum(length(body)) FROM chunks WHERE blob = blobs.id), 0)
        AS bytes FROM blobs"""
_EPISODES: Final = f"""
    WITH sized AS ({_OF_BLOBS}), shares AS (
        SELECT sized.blob, bytes * 1.0 / count(*) AS share FROM sized JOIN blob_refs USING (blob) GROUP BY sized.blob
    ), parts (episode, bytes) AS (
        SELECT episode, sum(length(body)) FROM frames GROUP BY episode UNION ALL
        SELECT episode, sum(length(body)) FROM tail GROUP BY episode UNION ALL
        SELECT episode, sum(share) FROM blob_refs JOIN shares USING (blob) GROUP BY episode UNION ALL
        SELECT id, length(summary) FROM episodes
    )
    SELECT episode, cast(sum(bytes) AS INTEGER) AS bytes FROM parts GROUP BY episode"""  # noqa: S608  text from above
_BY_TASK: Final = f"""
    SELECT coalesce(task, ''), sum(bytes), count(*), sum(n_events) FROM ({_EPISODES}) JOIN episodes ON id = episode
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"""  # noqa: S608
_LARGEST: Final = f"""
    SELECT uuid, coalesce(task, ''), bytes, n_events FROM ({_EPISODES}) JOIN episodes ON id = episode
    ORDER BY bytes DESC, uuid LIMIT ?"""  # noqa: S608
_LARGEST_BLOBS: Final = f"""
    SELECT hash, size, bytes, (SELECT count(*) FROM blob_refs WHERE blob = blobs.id)
    FROM ({_OF_BLOBS}) JOIN blobs ON blobs.id = blob ORDER BY bytes DESC, hash LIMIT ?"""  # noqa: S608


class Part(NamedTuple):
    """Something that takes space."""

    name: str
    bytes: int


class TaskSpace(NamedTuple):
    """What the episodes of a task take."""

    task: str
    bytes: int
    episodes: int
    events: int


class EpisodeSpace(NamedTuple):
    """What an episode takes."""

    id: str
    task: str
    bytes: int
    events: int


class BlobSpace(NamedTuple):
    """A blob: how large its content is, what it takes compressed, and how many episodes need it."""

    name: str
    size: int
    bytes: int
    episodes: int


class Space(NamedTuple):
    """Where the bytes are. ``parts`` add up to ``total``."""

    total: int = 0
    parts: tuple[Part, ...] = ()
    episodes: int = 0
    events: int = 0
    steps: int = 0
    blobs: int = 0
    store: int = 0
    """What the store's content takes: its file without free pages."""

    tasks: tuple[TaskSpace, ...] = ()
    largest: tuple[EpisodeSpace, ...] = ()
    largest_blobs: tuple[BlobSpace, ...] = ()

    @property
    def bytes_per_event(self) -> float | None:
        """What an event takes, all in all."""
        return self.store / self.events if self.events else None

    @property
    def bytes_per_step(self) -> float | None:
        """What a step takes, all in all."""
        return self.store / self.steps if self.steps else None


def space(home: Home, store: Store, *, top: int = TOP) -> Space:
    """Look at the home and the store; ``top`` tasks, episodes and blobs are named."""
    if not isinstance(store, SqliteStore):
        return _summed(_home_parts(home, frozenset()))
    # Whoever looks makes the second of these, and it goes when nobody looks: it takes no space worth telling.
    wal, shm = (store.path.with_name(f"{store.path.name}-{each}") for each in ("wal", "shm"))
    others = _home_parts(home, frozenset(map(_real, (store.path, wal, shm))))
    with store.reading():
        pages = store._rows(_PAGES, ())  # noqa: SLF001  one subsystem, as below
        if not pages:
            return _summed(others)
        count, free, page = pages[0]
        used = (count - free) * page
        frames, tail, blobs = store._rows(_TOTALS, ())[0]  # noqa: SLF001
        files = store._rows(_FILES, ())[0][0] if store._rows(_HAS_FILES, ()) else 0  # noqa: SLF001
        rows = [store._rows(sql, (top,)) for sql in (_BY_TASK, _LARGEST, _LARGEST_BLOBS)]  # noqa: SLF001
        ((episodes, events, steps, n_blobs),) = store._rows(_COUNTS, ())  # noqa: SLF001
    # A page that is in the log and not in the file yet is counted with what it holds.
    log = max(0, _size(store.path) + _size(wal) - count * page)
    rest = used - frames - tail - blobs - files
    parts = [
        Part("frames", frames), Part("tail", tail), Part("blobs", blobs), Part("imported files", files),
        Part("rows and pages", rest),
        Part("free pages", free * page), Part("log", log), *others,
    ]  # fmt: skip
    return _summed(parts)._replace(
        episodes=episodes, events=events, steps=steps, blobs=n_blobs, store=used,
        tasks=tuple(TaskSpace(*each) for each in rows[0]),
        largest=tuple(EpisodeSpace(ids.from_bytes(uuid), *rest) for uuid, *rest in rows[1]),
        largest_blobs=tuple(BlobSpace(name_of(digest), *rest) for digest, *rest in rows[2]),
    )  # fmt: skip


def _summed(parts: Iterable[Part]) -> Space:
    found = tuple(parts)
    return Space(total=sum(each.bytes for each in found), parts=found)


def _home_parts(home: Home, but: frozenset[str]) -> list[Part]:
    """What lies in the home beside the store."""
    sizes = dict.fromkeys(("journals", "search", "quarantine", "other files"), 0)
    for folder, _, names in os.walk(home.path):
        inside = Path(folder).relative_to(home.path).parts[:1]
        part = inside[0] if inside and inside[0] in sizes else "other files"
        sizes[part] += sum(_size(path) for path in (Path(folder) / name for name in names) if _real(path) not in but)
    return [Part(name, size) for name, size in sizes.items()]


def _real(path: Path) -> str:
    return os.path.realpath(path)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:  # journals come and go
        return 0
