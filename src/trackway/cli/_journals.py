"""What lies in the home beside the store: journals of the living and of the dead, records put aside, losses.

Each finding is ``(level, what, where, do)``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trackway.cli._files import locks_of
from trackway.cli._text import count, moment
from trackway.errors import StoreTrouble
from trackway.store import tail
from trackway.store.base import Store
from trackway.store.checkup import damaged
from trackway.store.holding import holder_of
from trackway.store.home import Home
from trackway.store.sealer import Sealer
from trackway.store.tail import Tail, WriterFolder

Said = tuple[str, str, str, str]


def journals(home: Home, store: Store) -> Iterator[Said]:
    """Who records here now, and what the dead left."""
    found = tail.writers(home)
    for each in found:
        newer = tail.newer_version(each.folder)
        if newer is not None:
            yield _newer(each, newer)
        elif each.alive:
            yield _living(each, store)
        else:
            yield _dead(each, store)
    if not found and (home.journals.is_dir() or not os.path.lexists(home.journals)):
        yield "ok", "no journals: everything recorded is sealed", str(home.journals), ""


def adopted(home: Home, store: Store) -> Iterator[Said]:
    """What the dead left, sealed now."""
    holders = [holder_of(each) for each in locks_of(home, store)]
    if any(each is not None and each.stopped for each in holders):
        return  # said of the lock, and to wait for it is in vain
    done = Sealer(home, store).adopt()
    if done.adopted:
        said = f"sealed {count(done.events, 'event')} from {count(done.adopted, 'journal')} of dead processes"
        yield "ok", said, str(home.journals), ""
    if done.torn:
        said = f"{count(done.torn, 'record')} dropped: being written when the process died, never acknowledged"
        yield "ok", said, str(home.journals), ""


def _living(each: WriterFolder, store: Store) -> Said:
    said, where = f"{_who(each)} is recording, {_waiting(each, store)}", str(each.folder.path)
    holder = holder_of(each.folder.lock)
    if holder is not None and holder.stopped:
        return "note", f"{said}; it is stopped", where, f"kill -CONT {holder.pid} lets it go on; all of it can be read"
    return "ok", said, where, ""


def _newer(each: WriterFolder, version: int) -> Said:
    said = f"{_who(each)} {'writes' if each.alive else 'left'} a journal of version {version}, newer than this trackway"
    do = "update trackway (pip install -U trackway): it is read and sealed then, and kept as it is until then"
    return "ok" if each.alive else "problem", said, str(each.folder.path), do


def _dead(each: WriterFolder, store: Store) -> Said:
    where, key = str(each.folder.path), each.about.get("store")
    if key is None:
        return "problem", "a journal does not say which store it is for", where, "keep the folder and report it"
    if key == store.key:
        return _left(each, store)
    said = f"{_who(each)} ended and left what it recorded for {key}"
    return "note", said, where, f"trackway doctor --fix --store {key}"


def _left(each: WriterFolder, store: Store) -> Said:
    said, where = f"{_who(each)} ended and left {_waiting(each, store)}", str(each.folder.path)
    do = "the next recording seals it, or now: trackway doctor --fix"
    try:
        stretches = damaged(each, store.position(each.writer))
    except StoreTrouble:  # said of the store
        return "note", said, where, "it is sealed once the store can be read"
    if not stretches:
        return "note", f"{said}; readers see it all", where, do
    seen = f"readers see all but {count(len(stretches), 'damaged piece')}"
    return "problem", f"{said}; {seen} ({sum(stretches):,} bytes)", where, f"{do}; what is damaged goes to quarantine"


def _who(each: WriterFolder) -> str:
    about = each.about
    since = about.get("started_at")
    started = moment(since, utc=False) if isinstance(since, int) else "?"
    return f"process {about.get('pid', '?')} on {about.get('host', '?')} (since {started})"


def _waiting(each: WriterFolder, store: Store) -> str:
    if each.about.get("store") != store.key:
        return f"for {each.about.get('store')}"
    left = Tail()
    try:
        left.advance(each, store.position(each.writer))
    except StoreTrouble:  # said of the store
        return "records of which the store cannot tell how many are sealed"
    sizes = [record.end - record.start for found in left.records.values() for _, record in found]
    return f"{count(len(sizes), 'record')} ({sum(sizes):,} bytes) not sealed yet"


def kept_aside(home: Home) -> Iterator[Said]:
    """Records that could not be sealed, and events that could not be recorded, by reason."""
    reasons = Counter(_reason(path) for path in sorted(home.quarantine.glob("*.json")))
    for reason, times in reasons.items():
        said = f"{count(times, 'record')} could not be sealed: {reason}"
        yield "problem", said, str(home.quarantine), "the bytes are kept there; report it, then move them away"
    lost: Counter[str] = Counter()
    for each in _losses(home.losses):
        lost[str(each.get("reason", "?"))] += each["lost"] if isinstance(each.get("lost"), int) else 1
    for reason, times in lost.items():
        said = f"{count(times, 'event')} could not be recorded: {reason}"
        yield "problem", said, str(home.losses), "once the cause is gone, delete the file"


def _reason(path: Path) -> str:
    try:
        return str(json.loads(path.read_bytes())["reason"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "no reason is written beside it"


def _losses(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return
    for each in lines:
        try:
            value = json.loads(each)
        except (ValueError, RecursionError):  # the disk may have filled in the middle of a line
            continue
        if isinstance(value, dict):
            yield value
