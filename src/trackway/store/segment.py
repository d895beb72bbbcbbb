"""One file of a journal being written: mapped, or appended to. Same bytes, same promises, one interface.

``put`` stores a whole record at ``offset`` and moves ``offset`` behind it; when it returns, a killed process keeps the
record. ``n`` counts the events so far, over all segments of the journal. ``settle`` finds the truth again after an
exception struck inside ``put``. Not thread-safe: the journal locks.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, Protocol

from xxhash import xxh3_64_intdigest

from trackway.store import record, system
from trackway.store.record import RECORD_HEADER, SEGMENT_HEADER, pack_header

SMALLEST: Final = 256 << 10
LARGEST: Final = 8 << 20
HIDDEN: Final = ".new"
"""How the name of a file ends that is being put back: a sealer that finds it by its own name finds all of it."""
_PADDING: Final = tuple(b"\0" * each for each in range(8))


class Segment(Protocol):
    """What the journal needs of a file it writes to."""

    path: Path
    size: int
    offset: int
    activation: int
    n: int
    unsettled: bool

    def activate(self, writer: str, activation: int, made_at: int) -> None:
        """Stamp the segment as the next one in use."""
        ...

    def put(self, meta: int, body: bytes) -> None:
        """Store one record."""
        ...

    def settle(self) -> record.Record | None:
        """After an exception inside ``put``: the record it left whole, now counted; None where it left none."""
        ...

    def cut(self, end: int) -> None:
        """Give back the room behind a place; nothing is put here any more."""
        ...

    def sync(self) -> None:
        """Return when all records are on the disk."""
        ...

    def rest(self) -> None:
        """Give memory back: nothing is put here any more, and until it is synced it may take a while."""
        ...

    def content(self) -> bytes:
        """All that was put into it, from its first byte on; the file need not have a name for that."""
        ...

    def is_in_place(self) -> bool:
        """Whether the file still has its name: anybody may remove it, or move its folder away."""
        ...

    def put_back(self) -> None:
        """Make the file anew where its name was, with all that was put into it."""
        ...

    def close(self) -> None:
        """Let go of the file; its bytes stay."""
        ...


class MappedSegment:
    """A preallocated file mapped into memory: a record costs two copies and no system call."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size = max(size, SMALLEST)
        self.offset = SEGMENT_HEADER
        self.activation = 0
        self.n = 0
        self.unsettled = False
        self._descriptor = system.create_file(path, size)
        try:
            self._map = system.map_file(self._descriptor, size)
        except BaseException as error:
            system.name_place(error, path.parent)
            os.close(self._descriptor)
            path.unlink(missing_ok=True)
            raise

    def activate(self, writer: str, activation: int, made_at: int) -> None:
        """Stamp the segment as the next one in use."""
        self._map[:SEGMENT_HEADER] = record.pack_segment_header(writer, activation, made_at)
        self.activation = activation

    def put(self, meta: int, body: bytes) -> None:
        """Store one record; the header after the body, so that whoever sees the one sees the other."""
        offset = self.offset
        start = offset + RECORD_HEADER
        end = start + len(body)
        header = pack_header(len(body), meta, xxh3_64_intdigest(body, (offset << 32) | meta))
        self.unsettled = True
        mapped = self._map
        mapped[start:end] = body
        mapped[offset:start] = header
        # No call stands between these three, so no signal handler runs between them either.
        self.offset = (end + 7) & ~7
        self.n += meta & record.EVENT
        self.unsettled = False

    def settle(self) -> record.Record | None:
        """After an exception inside ``put``: the record it left whole, now counted; None where it left none."""
        found = self._whole()
        if found is not None:
            self.offset, self.n = found.end, self.n + (found.meta & record.EVENT)  # no call between: see put
        self.unsettled = False
        return found

    def _whole(self) -> record.Record | None:
        length = int.from_bytes(self._map[self.offset : self.offset + 4], "little")
        if not length or self.offset + RECORD_HEADER + length > self.size:
            return None
        stretch = self._map[self.offset : self.offset + RECORD_HEADER + length]
        return record.record_at(stretch, 0, self.offset)

    def cut(self, end: int) -> None:
        """Give back the room behind a place; nothing is put here any more."""
        self.offset = self.size = end
        _shorten(self._descriptor, end)

    def sync(self) -> None:
        """Return when all records are on the disk."""
        system.sync(self._descriptor, self.path.parent)

    def rest(self) -> None:
        """Give memory back; the file stays open to be synced."""
        self._map.close()

    def content(self) -> bytes:
        """All that was put into it, from its first byte on; the file need not have a name for that."""
        return os.pread(self._descriptor, self.offset, 0)

    def is_in_place(self) -> bool:
        """Whether the file still has its name: anybody may remove it, or move its folder away."""
        return system.is_named(self._descriptor, self.path)

    def put_back(self) -> None:
        """Make the file anew where its name was, with all that was put into it."""
        held = self.content()
        hidden = _hidden(self.path)
        anew = MappedSegment(hidden, self.size)
        try:
            anew._map[: len(held)] = held
            hidden.rename(self.path)
        except BaseException:
            anew.close()
            hidden.unlink(missing_ok=True)
            raise
        self.close()
        self._descriptor, self._map = anew._descriptor, anew._map

    def close(self) -> None:
        """Let go of the file; its bytes stay. Twice is as good as once: the number may be another file's by then."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._map.close()
            os.close(descriptor)


class AppendedSegment:
    """A growing file: one write call per record, for where mapping or preallocation is not to be had."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = max(size, LARGEST)
        self.offset = SEGMENT_HEADER
        self.activation = 0
        self.n = 0
        self.unsettled = False
        self._descriptor = system.create_file(path)
        self._write = system.writer_that_keeps_the_gil()

    def activate(self, writer: str, activation: int, made_at: int) -> None:
        """Stamp the segment as the next one in use."""
        self._write_all(record.pack_segment_header(writer, activation, made_at))
        self.activation = activation

    def put(self, meta: int, body: bytes) -> None:
        """Store one record with one write."""
        offset = self.offset
        end = offset + RECORD_HEADER + len(body)
        header = pack_header(len(body), meta, xxh3_64_intdigest(body, (offset << 32) | meta))
        self.unsettled = True
        self._write_all(header + body + _PADDING[-end & 7])
        # No call stands between these three, so no signal handler runs between them either.
        self.offset = (end + 7) & ~7
        self.n += meta & record.EVENT
        self.unsettled = False

    def _write_all(self, body: bytes) -> None:
        try:
            done = self._write(self._descriptor, body)
            while done < len(body):
                done += self._write(self._descriptor, body[done:])
        except OSError as error:
            system.name_place(error, self.path.parent)
            raise

    def settle(self) -> record.Record | None:
        """After an exception inside ``put``: the record it left whole, now counted; a partial one is cut off."""
        end = os.fstat(self._descriptor).st_size
        written = os.pread(self._descriptor, end - self.offset, self.offset)
        found = record.record_at(written, 0, self.offset)
        if found is not None and found.end <= end:
            self.offset, self.n = found.end, self.n + (found.meta & record.EVENT)
        else:
            found = None
            os.ftruncate(self._descriptor, self.offset)
        os.lseek(self._descriptor, self.offset, os.SEEK_SET)
        self.unsettled = False
        return found

    def cut(self, end: int) -> None:
        """Give back the room behind a place; nothing is put here any more."""
        self.offset = self.size = end
        _shorten(self._descriptor, end)

    def sync(self) -> None:
        """Return when all records are on the disk."""
        system.sync(self._descriptor, self.path.parent)

    def rest(self) -> None:
        """There is no memory to give back."""

    def content(self) -> bytes:
        """All that was put into it, from its first byte on; the file need not have a name for that."""
        return os.pread(self._descriptor, self.offset, 0)

    def is_in_place(self) -> bool:
        """Whether the file still has its name: anybody may remove it, or move its folder away."""
        return system.is_named(self._descriptor, self.path)

    def put_back(self) -> None:
        """Make the file anew where its name was, with all that was put into it."""
        held = self.content()
        hidden = _hidden(self.path)
        anew = AppendedSegment(hidden, self.size)
        try:
            anew._write_all(held)
            hidden.rename(self.path)
        except BaseException:
            anew.close()
            hidden.unlink(missing_ok=True)
            raise
        self.close()
        self._descriptor = anew._descriptor

    def close(self) -> None:
        """Let go of the file; its bytes stay. Twice is as good as once: the number may be another file's by then."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _shorten(descriptor: int, end: int) -> None:
    """Where that is refused, or the file closed, the bytes stay: parts without an event, which nobody takes for one."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, end)


def _hidden(path: Path) -> Path:
    hidden = path.with_suffix(HIDDEN)
    hidden.unlink(missing_ok=True)
    return hidden
