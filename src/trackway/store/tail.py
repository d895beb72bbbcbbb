"""Reading journals: what is recorded and not sealed yet, of the living and of the dead.

Of a living writer everything up to the first incomplete record is true and the rest is not yet; "torn" is said of the
dead only. Whether a writer lives is asked before its files are read: one that died in between is read too modestly.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trackway.schema.outside import is_thrown_in
from trackway.schema.version import JOURNAL
from trackway.store import record, system
from trackway.store.home import Home, JournalFolder
from trackway.store.journal_files import Finished
from trackway.store.record import EPISODE, SEGMENT_HEADER, Position, Record


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
        alive = alive or _may_live(about)
        # A writer that lost its card (a power cut came before it reached the disk) meant the home's own store.
        if about.get("own", "store" not in about):  # wherever the home is by now
            about["store"] = home.store_key
        if store_key is None or about["store"] == store_key:
            found.append(WriterFolder(name, folder, about, alive))
    return found


def _may_live(about: dict[str, Any]) -> bool:
    """Whether one that could not lock its journal may be at work: unless its process is gone from this very machine."""
    pid = about.get("pid")
    is_gone = about.get("host") == system.host_name() and isinstance(pid, int) and not system.is_alive(pid)
    return about.get("locked") is False and not is_gone


def read_about(folder: JournalFolder) -> dict[str, Any]:
    """Who the writer says it is; empty where that is gone or damaged."""
    try:
        about = json.loads(folder.about.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        if is_thrown_in(error):
            raise
        return {}
    if not isinstance(about, dict) or not isinstance(about.get("store", ""), str):
        return {}
    return about


def segments(folder: JournalFolder, *, alive: bool = False) -> list[Finished]:
    """The segments that were taken into use, in the order of that; those of a newer journal version left out."""
    found: dict[int, Finished] = {}
    unstamped: list[Path] = []
    for path in folder.segments():
        try:
            header = _stamp(path)
            size = path.stat().st_size
            if header is None and not alive and _is_used(path):
                unstamped.append(path)
        except FileNotFoundError:  # sealed and unlinked in this moment: the store has it
            continue
        if header is not None and header.version <= JOURNAL:
            found[header.activation] = Finished(header.activation, path, size)
    for path in unstamped:
        activation = _missing(path, found)
        found[activation] = Finished(activation, path, path.stat().st_size)
    return sorted(found.values())


def _stamp(path: Path) -> record.SegmentHeader | None:
    with path.open("rb") as file:
        return record.read_segment_header(file.read(SEGMENT_HEADER))


def _is_used(path: Path) -> bool:
    """Whether there is anything in it: one that was only made ahead of need is all zeros."""
    with path.open("rb") as file:
        return any(part.strip(b"\0") for part in iter(lambda: file.read(1 << 20), b""))


def _missing(path: Path, found: dict[int, Finished]) -> int:
    """The activation of a segment whose stamp is damaged: they are dense, and files are made in about their order."""
    if not found:
        return int(path.stem)
    low, high = min(found), max(found)
    between = set(range(low, high)) - found.keys()
    if between:
        return min(between)
    is_first = low > 1 and all(path.name < each.path.name for each in found.values())
    return low - 1 if is_first else high + 1


def newer_version(folder: JournalFolder) -> int | None:
    """The journal version, where it is one that this trackway cannot read: such a journal is never touched."""
    versions = []
    for path in folder.segments():
        with contextlib.suppress(FileNotFoundError):
            versions += [header.version for header in [_stamp(path)] if header is not None]
    newest = max(versions, default=0)
    return newest if newest > JOURNAL else None


def read(piece: Piece) -> bytes:
    """The bytes of a piece, all of them: whoever seals must not take what cannot be read for what is not there."""
    body = _there(piece)
    if len(body) < piece.end - piece.start:
        raise OSError(errno.EIO, f"{piece.end - piece.start - len(body)} bytes are missing", str(piece.path))
    return body


def _there(piece: Piece) -> bytes:
    """As much of a piece as there is: a living writer cuts off a payload that found no room."""
    with piece.path.open("rb") as file:
        file.seek(piece.start)
        return file.read(piece.end - piece.start)


class Part(NamedTuple):
    """A part of a blob, left where it is: a reader does not hold what nobody asked for."""

    path: Path
    start: int
    end: int
    episode: bytes
    number: int
    last: bool
    place: int

    def read(self) -> bytes:
        """Its bytes; raises ``FileNotFoundError`` once it is sealed and gone from here."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            found = record.record_at(file.read(self.end - self.start), 0, self.start)
        if found is None or found.episode != self.episode:  # sealed, pruned, and overwritten since
            raise FileNotFoundError(errno.ENOENT, "no longer in the journal", str(self.path))
        return record.unpack_blob_part(found.body)[2]


class Tail:
    """One writer's records behind the sealed position, by episode; each call of ``advance`` reads only what is new."""

    def __init__(self) -> None:
        self.records: dict[bytes, list[tuple[Position, Record | Part]]] = {}
        self._read = record.START

    def advance(self, writer: WriterFolder, sealed: Position) -> None:
        """Drop what is sealed meanwhile and read on to the end, or to where a living writer is at work."""
        self._read = max(self._read, sealed)
        for episode, known in list(self.records.items()):
            if known[0][0] < sealed:
                self.records[episode] = [each for each in known if each[0] >= sealed]
                if not self.records[episode]:
                    del self.records[episode]
        for segment in segments(writer.folder, alive=writer.alive):
            if segment.activation >= self._read.activation:
                self._take(segment, alive=writer.alive)

    def _take(self, segment: Finished, *, alive: bool) -> None:
        activation, path, size, _ = segment
        start = self._read.offset if activation == self._read.activation else SEGMENT_HEADER
        if start >= size:  # read already, but for the padding that a dying writer did not come to
            return
        try:
            body = (_there if alive else read)(Piece(activation, path, start, size))
        except FileNotFoundError:  # sealed and unlinked in this moment: the store has it
            return
        found = (
            record.live_records(body, start) if alive else itertools.starmap(Record, record.scan(body, start).records)
        )
        for each in found:
            place, kept = Position(activation, each.start), _kept(path, each)
            self.records.setdefault(each.episode, []).append((place, kept))
            self._read = Position(activation, each.end)


def _kept(path: Path, each: Record) -> Record | Part:
    if each.type != record.BLOB_PART:
        return each
    number, last, _ = record.unpack_blob_part(each.whole[EPISODE : EPISODE + record.BLOB_HEADER])
    return Part(path, each.start, each.end, each.episode, number, last, each.flags)


def is_whole(parts: list[Part]) -> bool:
    """Whether these are all parts of a blob, none missing in between."""
    in_place = all(each.place in (0, record.part_number(i)) for i, each in enumerate(parts))
    return bool(parts) and parts[-1].last and in_place


class Tails:
    """The tails of all writers that record for one store, kept up to date by reading on."""

    def __init__(self, home: Home, store_key: str) -> None:
        self._home = home
        self._store_key = store_key
        self._known: dict[str, Tail] = {}
        self.alive: set[str] = set()

    def refresh(self, sealed: Callable[[str], Position]) -> None:
        """Look again; ``sealed`` tells how far a writer's journal is in the store by now."""
        found = writers(self._home, self._store_key)
        self.alive = {each.writer for each in found if each.alive}
        self._known = {each.writer: self._known.get(each.writer) or Tail() for each in found}
        for each in found:
            self._known[each.writer].advance(each, sealed(each.writer))

    def episodes(self) -> set[bytes]:
        """The episodes that have something in a tail."""
        return {episode for each in self._known.values() for episode in each.records}

    def of_the_living(self) -> set[bytes]:
        """The episodes that have something in the tail of a living writer."""
        return {episode for writer in self.alive & self._known.keys() for episode in self._known[writer].records}

    def with_bytes(self, wanted: bytes) -> list[Record]:
        """The records that have these bytes in them."""
        return [
            found
            for each in self._known.values()
            for records in each.records.values()
            for _, found in records
            if isinstance(found, Record) and wanted in found.whole
        ]

    def of(self, episode: bytes) -> Iterator[list[Record | Part]]:
        """The records of an episode, one list per writer; parts of blobs by where they are."""
        for each in self._known.values():
            if episode in each.records:
                yield [found for _, found in each.records[episode]]
