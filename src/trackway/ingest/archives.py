"""Files inside archives, each written to a folder of its own as a file that only its owner can read.

What an archive says is believed as far as it is checked: a name leads down and nowhere else, a link is never made or
followed, and what comes out is in proportion to what went in. An archive is unpacked whole before the first of its
files is given: a file may be read together with others that lie beside it, and one that is refused leaves nothing.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.errors import FileRefused
from trackway.ingest.head import Head
from trackway.ingest.original import Original
from trackway.ingest.source import Place, Trouble
from trackway.ingest.tars import BLOCK, Inner, Stream, is_tar, tar_members
from trackway.ingest.unpacking import PACKED, unpacking
from trackway.ingest.zips import MEMBERS, STARTS, opened, zip_members

SMALL: Final = 1 << 30
RATIO: Final = 200
"""An archive may become ``SMALL`` bytes, or this many times its own size, whichever is more: all in it together."""
DEPTH: Final = 2
"""Archives inside archives are unpacked this many levels down, out of the same allowance."""
_ROOM: Final = 4
"""Empty folders above what is unpacked: whoever looks beside a file, or above it, finds nothing of somebody else's."""
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_BROKEN: Final = (
    ValueError, OSError, EOFError, RecursionError, NotImplementedError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
)  # fmt: skip
_Members = Iterator[tuple[Inner, Iterator[bytes]]]


class Member(NamedTuple):
    """A file that was inside an archive: where it is now, what people are told, when it was last written, in ns."""

    path: Path
    name: str
    modified: int


class _TooMuch(ValueError):
    """More came out than the allowance: whatever archive it was in, the outermost is refused."""


class _Allowance:
    """What may come out of one archive and all that are in it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._most = max(SMALL, RATIO * size)
        self._bytes = 0
        self._members = 0

    def take(self, size: int) -> None:
        self._bytes += size
        self.expect(0)

    def expect(self, size: int) -> None:
        """Refuse what says by itself that it will be too much."""
        if self._bytes + size > self._most:
            raise _TooMuch(f"its {self._size:,} bytes become more than {self._most:,}")

    def member(self) -> None:
        self._members += 1
        if self._members > MEMBERS:
            raise _TooMuch(f"it has more than {MEMBERS:,} members")

    def stream(self, stream: Stream) -> Stream:
        """The same stream, as far as the allowance goes: what is read and not written costs time all the same."""
        return _Measured(stream, _Allowance(self._size))


class _Measured:
    """A stream that is charged for what is read from it."""

    def __init__(self, stream: Stream, allowance: _Allowance) -> None:
        self._stream = stream
        self._allowance = allowance

    def read(self, size: int = -1, /) -> bytes:
        found = self._stream.read(size)
        self._allowance.take(len(found))
        return found


def is_archive(head: Head) -> bool:
    """Whether a file is an archive of files: a zip that is no format of its own, or a tar, compressed or not."""
    if head.body.startswith(STARTS):
        return _is_stored(head) and not _is_eval(head.members)
    if is_tar(head.body):
        return True
    if head.path is None or not head.body.startswith(PACKED):
        return False
    with contextlib.suppress(*_BROKEN), head.path.open("rb") as file:
        return is_tar(unpacking(file).read(BLOCK))
    return False


def _is_stored(head: Head) -> bool:
    """Whether the file itself begins so, and not what it is when it is uncompressed."""
    if head.path is None:
        return True
    with contextlib.suppress(OSError), head.path.open("rb") as file:
        return file.read(4) == head.body[:4]
    return False


def _is_eval(names: list[str]) -> bool:
    """Whether a zip with these members is an Inspect log."""
    has_samples = any(each.startswith("samples/") for each in names)
    return "header.json" in names or (has_samples and any(each.startswith("_journal/") for each in names))


def unpacked(path: Path, into: Path, name: str | None = None) -> Iterator[Member | Trouble]:
    """Every file of an archive, written below ``into``, which stays the caller's; a link that is left out is trouble.

    An archive inside it that cannot be read is trouble too. Raises ``FileRefused`` before anything is given.
    """
    shown = name or str(path)
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    top = Path(tempfile.mkdtemp(dir=into))
    try:
        found = _Unpacked(top.joinpath(*["_"] * _ROOM), shown, _Allowance(path.stat().st_size))
        found.unpack(path)
    except BaseException as error:
        shutil.rmtree(top, ignore_errors=True)
        if not isinstance(error, _BROKEN):
            raise
        hint = "nothing of it was imported; unpack it yourself if you trust it"
        raise FileRefused(f"{shown}: {_why(error)}", hint=hint, path=shown) from error
    yield from found.members
    yield from found.troubles


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be unpacked: {error.strerror}"
    if isinstance(error, (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError)):
        return f"it is damaged or cut off: {error}"
    return str(error) or type(error).__name__


class _Unpacked:
    """One archive while it is unpacked into a folder of its own, and those inside it into theirs."""

    def __init__(self, folder: Path, shown: str, allowance: _Allowance, depth: int = 0) -> None:
        self.members: list[Member] = []
        self.troubles: list[Trouble] = []
        self._folder = folder
        self._shown = shown
        self._allowance = allowance
        self._depth = depth
        self._files: set[tuple[str, ...]] = set()
        self._links: set[tuple[str, ...]] = set()
        self._folders: set[tuple[str, ...]] = {()}
        folder.mkdir(mode=0o700, parents=True)

    def unpack(self, path: Path) -> None:
        """Everything in it; raises one of ``_BROKEN`` where it is not as it should be."""
        with path.open("rb") as file:
            start = file.read(BLOCK)
            file.seek(0)
            if start.startswith(STARTS):
                with opened(file) as archive:
                    self._allowance.expect(sum(each.file_size for each in archive.infolist()))
                    self._take(zip_members(archive))
            else:
                self._take(tar_members(self._allowance.stream(unpacking(file))))

    def _take(self, members: _Members) -> None:
        for inner, blocks in members:
            self._allowance.member()
            parts = self._placed(inner)
            if inner.kind == "folder":
                self._make(parts)
            elif inner.kind == "file":
                self._write(inner, parts, blocks)
            else:
                self._leave_out(inner, parts)

    def _placed(self, inner: Inner) -> tuple[str, ...]:
        """Where it goes, checked: below the folder, through no link, under a name that is not taken."""
        parts = _parts(inner.name)
        if any(parts[:depth] in self._links for depth in range(1, len(parts))):
            raise ValueError(f"{_said(inner.name)!r} goes through a link")
        if inner.kind != "folder" and not parts:
            raise ValueError("a file in it has no name")
        if parts in self._files or parts in self._links or (inner.kind != "folder" and parts in self._folders):
            raise ValueError(f"{_said(inner.name)!r} is in it twice")
        return parts

    def _make(self, parts: tuple[str, ...]) -> None:
        for depth in range(1, len(parts) + 1):
            each = parts[:depth]
            if each in self._folders:
                continue
            if each in self._files:
                raise ValueError(f"{'/'.join(each)!r} is both a file and a folder")
            self._allowance.member()
            self._folder.joinpath(*each).mkdir(mode=0o700)
            self._folders.add(each)

    def _write(self, inner: Inner, parts: tuple[str, ...], blocks: Iterator[bytes]) -> None:
        self._make(parts[:-1])
        self._files.add(parts)
        path, start = self._folder.joinpath(*parts), b""
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            for block in blocks:
                start = start or block[:BLOCK]
                self._allowance.take(len(block))
                file.write(block)
        os.utime(path, ns=(inner.modified, inner.modified))
        shown = f"{self._shown}!/{_said('/'.join(parts))}"
        if _may_be_archive(start) and is_archive(Original(path).head()):
            self._go_in(path, shown)
        else:
            self.members.append(Member(path, shown, inner.modified))

    def _go_in(self, path: Path, shown: str) -> None:
        """An archive in this one: what is in it instead of it; where it is refused, the others stay."""
        folder = path.with_name(path.name + "!")
        if self._depth == DEPTH:
            self._trouble(shown, f"an archive {DEPTH + 1} levels down is not unpacked")
        elif folder.exists():
            raise ValueError(f"{folder.name!r} is in it twice")
        else:
            inside = _Unpacked(folder, shown, self._allowance, self._depth + 1)
            try:
                inside.unpack(path)
            except _TooMuch:
                raise
            except _BROKEN as error:
                shutil.rmtree(folder)
                self._trouble(shown, _why(error))
            else:
                self.members += inside.members
                self.troubles += inside.troubles
        path.unlink()

    def _leave_out(self, inner: Inner, parts: tuple[str, ...]) -> None:
        if inner.kind == "special":
            raise ValueError(f"{_said(inner.name)!r} is a device or a pipe")
        if inner.kind == "hardlink":
            _parts(inner.link)
        self._links.add(parts)
        said = {"symlink": "a symbolic link", "hardlink": f"another name of {_said(inner.link)!r}"}
        self._trouble(
            f"{self._shown}!/{_said(inner.name)}", f"{said.get(inner.kind, 'a sparse file')}, which is left out"
        )

    def _trouble(self, shown: str, reason: str) -> None:
        self.troubles.append(Trouble(Place(), f"{shown}: {reason}"))


def _parts(name: str) -> tuple[str, ...]:
    """A name inside an archive as the steps down to it; raises ``ValueError`` where one leads anywhere else."""
    plain = name.replace("\\", "/")
    if plain.startswith("/") or _DRIVE.match(plain):
        raise ValueError(f"{_said(name)!r} is an absolute path")
    parts = tuple(each for each in plain.split("/") if each not in ("", "."))
    if ".." in parts:
        raise ValueError(f"{_said(name)!r} leads out of it")
    if "\0" in name:
        raise ValueError(f"{_said(name)!r} is no name of a file")
    return parts


def _said(name: str) -> str:
    """A name as text that can be printed in any encoding: bytes that are no text are marked."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _may_be_archive(start: bytes) -> bool:
    return start.startswith((*STARTS, *PACKED)) or is_tar(start)
