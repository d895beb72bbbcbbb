"""What the doctor looks at, one function per thing; each finding says what, where, and what to do.

A problem is something to act on. A note is worth knowing: a process that died, an episode without an end. Nothing is
changed unless ``fix`` is asked for, and then only what dead processes left behind is sealed.
"""

from __future__ import annotations

import itertools
import os
import platform
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from trackway.cli._files import files, from_the_future, gaps, is_ahead
from trackway.cli._journals import adopted, journals, kept_aside
from trackway.cli._options import version
from trackway.cli._place import FULL, home_place, store_place
from trackway.cli._text import count
from trackway.errors import BadSetting, StoreDamaged, StoreUnavailable, TrackwayError
from trackway.recording import settings, settings_file
from trackway.store import place as places
from trackway.store.base import Store
from trackway.store.checkup import checkup
from trackway.store.home import Home
from trackway.store.live import LiveStore, readable
from trackway.store.sqlite import SqliteStore

_PACKAGES: Final = ("msgspec", "zstandard", "blake3", "xxhash", "click", "rich")
_ANOTHER: Final = "name another: TRACKWAY_HOME"


class Finding(NamedTuple):
    """One thing that was looked at: ``ok``, ``note`` or ``problem``."""

    level: str
    what: str
    where: str = ""
    do: str = ""


def findings(home: str | None, store: str | None, *, fix: bool) -> Iterator[Finding]:
    """Everything there is to say, in the order in which things depend on each other."""
    yield _versions()
    try:
        place = settings.home_at(home)
        found = settings_file.load(place)
        found.prices()
    except BadSetting as error:  # where everything is depends on it
        yield Finding("problem", error.message, do=error.hint)
        return
    for path in found.files:
        yield Finding("ok", "settings are read from a file", str(path))
    yield from _environment(place)
    try:
        named = settings.store_for(store, place)
    except TrackwayError as error:
        yield _trouble(error)
        return
    there = _is_there(place)
    parts = [_folder(place)]
    if there:
        parts.append(_all(files(place, named)))
    if there or named.key != place.store_key:
        parts.append(_store(named, place))
    if there:
        parts.append(_all(adopted(place, named)) if fix else iter(()))
        parts += [_all(journals(place, named)), _all(kept_aside(place)), _all(gaps(named)), _episodes(place, named)]
    yield from _each(parts)


def _is_there(home: Home) -> bool:
    """Whether there is anything to be said of what is in the home; one that is not made yet has nothing wrong in it."""
    if not os.path.lexists(home.path):
        above = next(each for each in home.path.parents if os.path.exists(each))  # noqa: PTH110  never raises
        return above.is_dir() and os.access(above, os.X_OK)
    return home.path.is_dir() and os.access(home.path, os.R_OK | os.X_OK)


def _each(parts: Iterable[Iterator[Finding]]) -> Iterator[Finding]:
    """Every part, whatever became of those before: a store that cannot be read hides nothing of what lies beside it."""
    said: set[Finding] = set()
    for part in parts:
        try:
            yield from part
        except (TrackwayError, OSError) as error:
            finding = _trouble(error)
            if finding not in said:  # several parts ask the same store
                said.add(finding)
                yield finding


def _trouble(error: TrackwayError | OSError) -> Finding:
    if isinstance(error, OSError):
        do = "make room" if error.errno in FULL else "see its owner, its mode and its disk"
        return Finding("problem", str(error.strerror), str(error.filename), do)
    circular = isinstance(error, StoreUnavailable) and "trackway doctor" in error.hint
    hint = "see whether it is there, whose it is and its mode" if circular else error.hint
    return Finding("problem", error.message, do=hint)


def _all(found: Iterable[tuple[str, str, str, str]]) -> Iterator[Finding]:
    return itertools.starmap(Finding, found)


def _versions() -> Finding:
    found = [f"{name} {version(name) or '(not installed)'}" for name in _PACKAGES]
    ours = f"trackway {version('trackway') or '(not installed)'}, Python {platform.python_version()}"
    return Finding("ok", ours, f"{', '.join(found)}, SQLite {sqlite3.sqlite_version}")


def _environment(home: Home) -> Iterator[Finding]:
    if settings.is_disabled(home):
        do = "unset TRACKWAY_DISABLED, or see `disabled` in trackway.toml"
        yield Finding("note", "recording is switched off", do=do)
    try:
        kind = "mapped" if settings.maps(None, home) else "appended"
        yield Finding("ok", f"journals are {kind}")
    except TrackwayError as error:
        yield Finding("problem", error.message, "TRACKWAY_JOURNAL or journal in trackway.toml", error.hint)


def _folder(home: Home) -> Iterator[Finding]:
    where = str(home.path)
    try:
        mode = home.path.stat().st_mode
    except FileNotFoundError:
        yield _no_folder(home)
        return
    except OSError as error:
        yield Finding("problem", f"the home cannot be looked at: {error.strerror}", where, _ANOTHER)
        return
    if not stat.S_ISDIR(mode):
        yield Finding("problem", "the home is no folder", where, f"move it away, or {_ANOTHER}")
        return
    if not os.access(home.path, os.R_OK | os.X_OK):
        said = f"the home cannot be looked into (mode {mode & 0o777:03o})"
        yield Finding("problem", said, where, f"chmod 700 {where}, or {_ANOTHER}")
        return
    found = places.look_at(home.path)
    yield from _modes(home, mode, can_be_written=found.refused is None)
    yield from _all(home_place(home, found))


def _modes(home: Home, mode: int, *, can_be_written: bool) -> Iterator[Finding]:
    where = str(home.path)
    if os.statvfs(home.path).f_flag & os.ST_RDONLY:
        pass  # said below, and no mode would change it
    elif not os.access(home.path, os.W_OK | os.X_OK):
        yield Finding("problem", "the home cannot be written to", where, f"chmod u+wx {where}, or set TRACKWAY_HOME")
    elif mode & 0o077:
        yield Finding("problem", f"others may look into the home (mode {mode & 0o777:o})", where, f"chmod 700 {where}")
    else:
        yield Finding("ok", "the home is yours alone" + " and can be written to" * can_be_written, where)
    if home.key.exists() and home.key.stat().st_mode & 0o077:
        yield Finding("problem", "others may read the key of what was redacted", str(home.key), f"chmod 600 {home.key}")


def _no_folder(home: Home) -> Finding:
    if home.path.is_symlink():
        said = f"the home is a link that leads nowhere: {os.path.realpath(home.path)}"
        return Finding("problem", said, str(home.path), "make that folder, or remove the link")
    above = next(each for each in home.path.parents if each.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return Finding("ok", "no home folder yet; the first recording makes it", str(home.path))
    said = f"the home is not there and cannot be made: {above} cannot be written to"
    return Finding("problem", said, str(home.path), "set TRACKWAY_HOME to a folder of yours")


def _store(store: Store, home: Home) -> Iterator[Finding]:
    if not isinstance(store, SqliteStore):
        yield Finding("ok", "the store answers", f"{store.key}, newest: {store.find('last') or 'none'}")
        return
    yield from _all(store_place(store.path, home))
    where = str(store.path)
    found = checkup(store)
    if found is None:
        yield Finding("ok", "no store yet; the first recording makes it", where)
        return
    for said in found.problems:
        yield Finding(
            "problem", f"SQLite finds the file damaged: {said}", where, "copy the file away before anything else"
        )
    if not found.problems:
        held = f"{count(found.episodes, 'episode')}, {count(found.events, 'event')}, {count(found.blobs, 'blob')}"
        yield Finding("ok", f"the store is sound: format {found.version}, {held}", where)
    mode = store.path.stat().st_mode
    if mode & 0o077:
        yield Finding("problem", f"others may read the store (mode {mode & 0o777:o})", where, f"chmod 600 {where}")


def _episodes(home: Home, store: Store) -> Iterator[Finding]:
    states: Counter[str] = Counter()
    now, newest = time.time_ns(), 0
    damage: list[StoreDamaged] = []
    for summary in readable(LiveStore(home, store).episodes(), damage):
        states[summary.state or ""] += 1
        states["lossy"] += summary.lost > 0
        states["ahead"] += is_ahead(summary.last_at, now)
        newest = max(newest, summary.last_at or 0)
    yield from _all(from_the_future(newest, states["ahead"]))
    if states["crashed"]:
        said = f"{count(states['crashed'], 'episode')} without an end: the recording process is gone"
        yield Finding("note", said, do="trackway ls --state crashed")
    if states["running"]:
        yield Finding("ok", f"{count(states['running'], 'episode')} running", do="trackway ls --state running")
    if states["lossy"]:
        said = f"{count(states['lossy'], 'episode')} with events that could not be kept"
        yield Finding("note", said, do="trackway ls says how many were lost beside each")
    if damage:
        raise damage[0]
