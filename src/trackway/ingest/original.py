"""A file as it is read: its bytes up to the size it had when it was opened, as lines, as values, as parts of one value.

Nothing here holds more than one line or one part: files may be larger than memory. A file that is compressed is read
as what it was before; the bytes that are kept are those on the disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from trackway.errors import FileRefused
from trackway.ingest.decoding import encoding_of, lines_in, text_of_bytes, value_of, values_of
from trackway.ingest.gathering import shown
from trackway.ingest.head import HEAD, Head
from trackway.ingest.inflating import BLOCK, chained, recoded, ungzip, unzstd
from trackway.ingest.json_parts import parts
from trackway.ingest.source import Place, Trouble

LONGEST: Final = 64 << 20
"""Bytes of a line, or of a part of a document, that is still read; what is longer is kept with the file, unread."""
_WHOLE: Final = 32 << 20
_RATIO: Final = 2000
_SMALL: Final = 1 << 30
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
_COMPRESSED: Final = (_ZSTD, _GZIP)
_NAME: Final = 255
"""Bytes of a name that file systems take."""


class Item(NamedTuple):
    """A JSON value in a file of lines, where it stands, and the bytes of its line."""

    value: Any
    place: Place
    raw: bytes


class Part(NamedTuple):
    """A member of a document: its name, its value, and its number where it is one of a list."""

    key: str
    number: int | None
    value: Any


class Original:
    """One file on its way in. ``name`` is what people are told; ``modified`` is when it was last written, in ns."""

    def __init__(self, path: Path, name: str | None = None, size: int | None = None) -> None:
        self.path = path
        self.name = name or str(path)
        stat = path.stat()
        self.size = stat.st_size if size is None else size
        self.modified = stat.st_mtime_ns
        self.is_plain = True  # whether offsets are those on the disk: found out by reading it
        self._file, self._size = (stat.st_dev, stat.st_ino), stat.st_size
        self.companions: dict[Path, Original] = {}
        self.looked_at: list[Path] = []  # files and folders beside it, there or not: what it says hangs on them

    def opened(self) -> Iterator[Original]:
        """It, and what was opened beside it."""
        yield self
        yield from self.companions.values()

    def is_the_same(self) -> bool:
        """Whether it is still the file that was opened."""
        stat = self.path.stat()
        return (stat.st_dev, stat.st_ino) == self._file

    def is_as_it_was(self) -> bool:
        """Whether it is, and unchanged."""
        stat = self.path.stat()
        return self.is_the_same() and (stat.st_size, stat.st_mtime_ns) == (self._size, self.modified)

    # --- bytes --------------------------------------------------------------------------------------------------

    def raw_blocks(self) -> Iterator[bytes]:
        """The bytes on the disk, as far as they go with the size it had."""
        left = self.size
        with self.path.open("rb") as file:
            while left > 0 and (block := file.read(min(BLOCK, left))):
                left -= len(block)
                yield block

    def blocks(self) -> Iterator[bytes]:
        """The bytes it stands for: uncompressed, and in UTF-8 where a mark says that it is in something else."""
        blocks = self._uncompressed()
        first = next(blocks, b"")
        encoding = encoding_of(first)
        self.is_plain = self.is_plain and encoding is None and not first.startswith(b"\xef\xbb\xbf")
        everything: Iterable[bytes] = chained(first, blocks)
        if encoding is not None:
            everything = recoded(everything, encoding)
        elif first.startswith(b"\xef\xbb\xbf"):
            everything = chained(first[3:], blocks)
        yield from everything

    def _uncompressed(self) -> Iterator[bytes]:
        raw = self.raw_blocks()
        first = next(raw, b"")
        self.is_plain = not first.startswith(_COMPRESSED)
        if first.startswith(_ZSTD):
            yield from self._bounded(unzstd(chained(first, raw)))
        elif first.startswith(_GZIP):
            yield from self._bounded(ungzip(chained(first, raw)))
        else:
            yield from chained(first, raw)

    def _bounded(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """A file that grows out of all proportion is meant to do harm."""
        most, done = max(self.size * _RATIO, _SMALL), 0
        try:
            for block in blocks:
                done += len(block)
                if done > most:
                    said = f"{self.name}: {self.size:,} bytes become more than {most:,}"
                    raise FileRefused(said, hint="uncompress it yourself if you trust it", path=self.name)
                yield block
        except (OSError, EOFError, ValueError) as error:
            raise FileRefused(
                f"{self.name} is compressed, and cannot be read to its end: {error}", path=self.name
            ) from error

    def is_longer(self, than: int) -> bool:
        """Whether it stands for more bytes than that; one that is compressed must be read to tell."""
        if self.size > than or not next(self.raw_blocks(), b"").startswith(_COMPRESSED):
            return self.size > than
        done = 0
        return any((done := done + len(block)) > than for block in self.blocks())

    def head(self) -> Head:
        """Its beginning, for whoever says what it is."""
        body = b""
        with contextlib.suppress(FileRefused):
            for block in self.blocks():
                body += block
                if len(body) >= HEAD:
                    break
        return Head(self.name, body[:HEAD], self.path, is_whole=len(body) < HEAD)

    # --- lines --------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[tuple[Place, bytes | None]]:
        """Each line that is not blank, without its end; None for one that is too long to be read."""
        at = 0
        for number, (line, length) in enumerate(lines_in(self.blocks(), LONGEST), start=1):
            if line is None or (line and not line.isspace()):
                yield Place(at, number), line
            at += length

    def items(self) -> Iterator[Item | Trouble]:
        """The JSON values, line by line, more than one a line if need be; what is none is trouble, and is passed by.

        A file that is one value over many lines is that value.
        """
        troubled: list[Trouble] = []
        found = False
        for place, line in self.lines():
            if line is None:
                yield Trouble(place, f"a line of more than {LONGEST >> 20} MB is kept, and not read")
                continue
            try:
                values = values_of(line)
            except (ValueError, RecursionError) as error:
                troubled.append(Trouble(place, _why(line, error)))
                if found or len(troubled) > 64:  # then it is no single value over many lines
                    yield from troubled
                    troubled, found = [], True
                continue
            if len(values) > 1:
                yield Trouble(place, f"{len(values)} values on one line; each was read")
            if not found and troubled and all(isinstance(each, (dict, list)) for each in values):
                found = True
                yield from troubled
                troubled = []
            found = found or not troubled
            yield from (Item(each, place, line) for each in values)
        if troubled and not found and not self.is_longer(LONGEST):
            with contextlib.suppress(ValueError, RecursionError):
                whole = b"".join(self.blocks())
                yield Item(value_of(whole), Place(0, 1), whole)
                return
        yield from troubled

    # --- one document -------------------------------------------------------------------------------------------

    def value(self) -> Any:  # noqa: ANN401  a JSON value is anything
        """The whole file as one JSON value; raises ``FileRefused`` where it is none, or too large to be held."""
        if self.is_longer(LONGEST):
            raise FileRefused(f"{self.name} is one JSON value of more than {LONGEST >> 20} MB", path=self.name)
        whole = b"".join(self.blocks())
        try:
            return value_of(whole)
        except (ValueError, RecursionError) as error:
            raise self.refused(_why(whole, error)) from error

    def members(self, *split: str) -> Iterator[Part]:
        """The members of a document, in order; of those named in ``split``, each element of the list by itself.

        Of a document that is a list, each element has the key "". May be asked again: the file is read anew.
        """
        if not self.is_longer(_WHOLE):
            yield from _members(self.value(), split)
            return
        try:
            for key, number, raw in parts(self.blocks(), frozenset(split), LONGEST):
                yield Part(key, number, value_of(raw))
        except (ValueError, RecursionError) as error:
            raise self.refused(str(error)) from error

    def refused(self, reason: str) -> FileRefused:
        """An error that says which file, and why."""
        return FileRefused(f"{self.name}: {reason}", hint="nothing of it was imported", path=self.name)

    # --- what lies beside it ------------------------------------------------------------------------------------

    def near(self, up: int, *names: str) -> Original | None:
        """The file ``names`` lead to from the folder ``up`` levels above this file's; None where there is none.

        The names may come from inside a file: none of them may lead anywhere but down. What is opened so is kept too.
        """
        folder = self.path.parents[up] if up < len(self.path.parents) else self.path.parent
        if not all(_is_plain(each) for each in names):
            return None
        path = folder.joinpath(*names)
        if path in self.companions:
            return self.companions[path]
        self.looked_at.append(path)
        if not path.is_file() or not _is_below(path, folder):
            return None
        return self._companion(path)

    def all_near(self, up: int, *names: str, pattern: str) -> list[Original]:
        """The files of a folder beside it that match, by name."""
        folder = self.path.parents[up] if up < len(self.path.parents) else self.path.parent
        if not all(_is_plain(each) for each in names):
            return []
        self.looked_at.append(folder.joinpath(*names))
        found = sorted(folder.joinpath(*names).glob(pattern))
        return [
            self.companions.get(each) or self._companion(each)
            for each in found
            if each.is_file() and _is_below(each, folder)
        ]

    def _companion(self, path: Path) -> Original:
        beside = shown(os.path.relpath(path, self.path.parent))
        found = Original(path, os.path.normpath(str(Path(self.name).parent / beside)))
        self.companions[path] = found
        return found


def _members(value: Any, split: tuple[str, ...]) -> Iterator[Part]:  # noqa: ANN401
    if isinstance(value, list):
        yield from (Part("", i, each) for i, each in enumerate(value))
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in split and isinstance(each, list):
                yield from (Part(key, i, one) for i, one in enumerate(each))
            else:
                yield Part(key, None, each)


def _why(body: bytes, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = text_of_bytes(body[:4096]).strip()
    where = getattr(error, "pos", None)
    if text[:1] not in ("{", "["):
        return f"no JSON: {text[:40]!r}"
    ends = where is not None and where >= len(body) - 2
    return "cut off in the middle of a value" if ends or "Unterminated" in str(error) else f"no JSON: {error}"


def _is_plain(name: str) -> bool:
    """Whether a name that may come from inside a file can be that of a file in a folder, and of nothing else."""
    if not name or name in (".", "..") or any(each in name for each in ("/", "\\", "\0")):
        return False
    try:
        return len(os.fsencode(name)) <= _NAME
    except UnicodeEncodeError:
        return False


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
