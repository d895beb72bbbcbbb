"""Reading journals: what is recorded and not sealed yet, of the living and of the dead.

Of a living writer everything up to the first incomplete record is true and the rest is not yet; "torn" is said of the
dead only. Whether a writer lives is asked before its files are read: one that died in between is read too modestly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trackway.store import record, system
from trackway.store.home import Home, JournalFolder
from trackway.store.journal import Finished
from trackway.store.record import SEGMENT_HEADER, Damage, Position, Record


class WriterFolder(NamedTuple):
    """A writer's journal as found on disk."""

    writer: str
    folder: JournalFolder
    about: dict[str, Any]
    alive: bool


class Piece(NamedTuple):
    """A stretch of a segment file."""

    activation: int
    path: Path
    start: int
    end: int


def writers(home: Home, store_key: str | None = None) -> list[WriterFolder]:
    """Every writer with a journal in the home, or those that record for one store."""
    found = []
    for name in home.writers():
        folder = home.journal(name)
        alive = system.is_locked(folder.lock)
        about = read_about(folder)
        if store_key is None or about.get("store") == store_key:
            found.append(WriterFolder(name, folder, about, alive))
    return found


def read_about(folder: JournalFolder) -> dict[str, Any]:
    """Who the writer says it is; empty where that is gone or damaged."""
    try:
        about = json.loads(folder.about.read_bytes())
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def segments(folder: JournalFolder) -> list[Finished]:
    """The segments that were taken into use, in the order of that."""
    found = []
    for path in folder.segments():
        try:
            with path.open("rb") as file:
                head = file.read(SEGMENT_HEADER)
            size = path.stat().st_size
        except OSError:  # sealed and unlinked in this moment: the store has it
            continue
        header = record.read_segment_header(head)
        if header is not None:
            found.append(Finished(header.activation, path, size))
        elif head.strip(b"\0"):  # a damaged stamp: files are made in the order in which they are used
            found.append(Finished(int(path.stem), path, size))
    return sorted(found)


def read(piece: Piece) -> bytes:
    """A segment file up to the end of the piece, so that offsets stay what they are; empty where it is gone."""
    try:
        with piece.path.open("rb") as file:
            return file.read(piece.end)
    except OSError:
        return b""


def live_tail(each: WriterFolder, sealed: Position) -> Iterator[Record]:
    """The whole records behind the sealed position, blob parts included."""
    for activation, path, size in segments(each.folder):
        if activation < sealed.activation:
            continue
        start = sealed.offset if activation == sealed.activation else SEGMENT_HEADER
        body = read(Piece(activation, path, start, size))
        if each.alive:
            yield from record.live_records(body, start)
        else:
            yield from (found for found in record.dead_records(body, start) if isinstance(found, Record))


def is_torn(segment: bytes, damage: Damage) -> bool:
    """Whether a dead writer was still at this record: never acknowledged, so nothing is lost with it."""
    length = int.from_bytes(segment[damage.start : damage.start + 4], "little")
    return not length or damage.start + record.RECORD_HEADER + length > len(segment)
