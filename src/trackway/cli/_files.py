"""What the doctor says of the rest of a home: locks that somebody sits on, the key, the lists, gaps, the clock.

Each finding is ``(level, what, where, do)``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trackway.cli._text import count, duration, moment
from trackway.errors import BadSetting
from trackway.recording.key import tokens_to_lift
from trackway.store.base import Store
from trackway.store.checkup import missing
from trackway.store.holding import holder_of
from trackway.store.home import Home
from trackway.store.sqlite import SqliteStore

Said = tuple[str, str, str, str]

_LONG: Final = 60 * 10**9
_AHEAD: Final = 3600 * 10**9
"""Clocks of machines differ by minutes; what lies an hour ahead was written by one that was wrong."""


def files(home: Home, store: Store) -> Iterator[Said]:
    """The small files that everything else rests on."""
    for folder, so in ((home.journals, "nothing can be recorded"), (home.quarantine, "nothing can be put aside")):
        if os.path.lexists(folder) and not folder.is_dir():
            yield "problem", f"{folder.name} is no folder: {so}", str(folder), "move it away; it is made when needed"
    for lock in locks_of(home, store):
        yield from _lock(lock)
    if home.key.exists():
        yield from _key(home)
    for each in (home.losses, home.receipts):
        yield from _list(each)


def locks_of(home: Home, store: Store) -> list[Path]:
    """The locks that whoever seals takes."""
    return [home.seal_lock, *([store.path.with_suffix(".lock")] if isinstance(store, SqliteStore) else [])]


def _lock(path: Path) -> Iterator[Said]:
    if path.is_dir():
        said = f"{path.name} is a folder, and nobody can seal"
        yield "problem", said, str(path), "move it away; what is recorded waits in journals"
        return
    holder = holder_of(path)
    if holder is None:
        return
    said = f"process {holder.pid} holds {path.name} since {moment(holder.since, utc=False)}"
    if holder.stopped:
        do = (
            f"kill -CONT {holder.pid} lets it go on, kill -9 {holder.pid} ends it; what others record waits in journals"
        )
        yield "problem", f"{said}; it is stopped, and nobody can seal", str(path), do
    elif time.time_ns() - holder.since > _LONG:
        do = f"see what process {holder.pid} does; what others record waits in journals"
        yield "note", f"{said}: for {duration(time.time_ns() - holder.since)}", str(path), do


def _key(home: Home) -> Iterator[Said]:
    try:
        tokens_to_lift(home)
    except BadSetting as error:
        yield "problem", error.message, str(home.key), error.hint
    except OSError as error:
        yield "problem", f"the key cannot be read: {error.strerror}", str(home.key), "see its owner and mode"


def _list(path: Path) -> Iterator[Said]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:  # missing, or said elsewhere
        return
    unreadable = sum(not _is_object(each) for each in lines)
    if unreadable:
        do = "nothing is lost by it; move the file away to be rid of this note"
        yield "note", f"{count(unreadable, 'line')} of {path.name} cannot be read", str(path), do


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def gaps(store: Store) -> Iterator[Said]:
    """Events that a journal numbered and the store never got, beyond what is told elsewhere."""
    if not isinstance(store, SqliteStore):
        return
    for writer, number in missing(store):
        said = f"{count(number, 'event')} of writer {writer} never reached the store"
        do = "some may be in quarantine; else the store was put back from an older copy while it recorded"
        yield "problem", said, str(store.path), do


def from_the_future(newest: int, times: int) -> Iterator[Said]:
    """Episodes that say they happened later than now."""
    if times:
        said = f"{count(times, 'episode')} from the future, up to {moment(newest, utc=False)}"
        yield "note", said, "", "see the clock (date); they are listed first, and prune by age spares them until then"


def is_ahead(at: int | None, now: int) -> bool:
    """Whether a time lies further ahead than clocks differ."""
    return at is not None and at > now + _AHEAD
