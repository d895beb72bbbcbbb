"""A zip archive, opened with care: its list of members is counted before any of it is made into objects."""

from __future__ import annotations

import contextlib
import stat
import struct
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, cast

from trackway.ingest.tars import Inner, Kind

STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
MEMBERS: Final = 200_000
"""Members of an archive that is still read."""
_PIECE: Final = 1 << 20
_LIST: Final = 256 << 20
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
"""Not LZMA: a member may ask it for 4 GB of memory."""
_SPECIAL: Final = (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK)


@contextlib.contextmanager
def opened(file: Path | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """The archive; raises ``ValueError`` where it has too many members, else what ``zipfile`` raises."""
    with file.open("rb") if isinstance(file, Path) else contextlib.nullcontext(file) as stream:
        counted = cast("IO[bytes]", _Counted(stream))
        with zipfile.ZipFile(counted) as archive:
            yield archive


class _Counted:
    """A file whose parts are looked at before they are handed on: a list of members is read in one piece."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LIST:
            raise ValueError(f"its list of members is of {size:,} bytes")
        found = self._file.read(size)
        if found.count(b"PK\x01\x02") > MEMBERS:
            raise ValueError(f"it has more than {MEMBERS:,} members")
        return found


def zip_members(archive: zipfile.ZipFile) -> Iterator[tuple[Inner, Iterator[bytes]]]:
    """Each member, and its bytes; raises ``ValueError`` where one cannot be read, else what ``zipfile`` raises."""
    everything = archive.infolist()
    for each in everything:
        if each.flag_bits & _ENCRYPTED:
            raise ValueError(f"{each.filename!r} is encrypted")
        if each.compress_type not in _METHODS:
            raise ValueError(f"{each.filename!r} is compressed by method {each.compress_type}, which is not read")
    for each in everything:
        # The name as it stands there: zipfile cuts it where there is a NUL, which other programs do not.
        yield Inner(each.orig_filename, _kind(each), _modified(each)), _blocks(archive, each)


def _blocks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as file:
        while block := file.read(_PIECE):
            yield block


def _kind(member: zipfile.ZipInfo) -> Kind:
    mode = stat.S_IFMT(member.external_attr >> 16)
    if mode == stat.S_IFLNK:
        return "symlink"
    if mode in _SPECIAL:
        return "special"
    return "folder" if member.filename.endswith(("/", "\\")) else "file"


def _modified(member: zipfile.ZipInfo) -> int:
    """When it was last written: by the field that has a time zone, else as if the clock had shown UTC."""
    extra = member.extra
    while len(extra) >= 4:
        key, size = struct.unpack_from("<HH", extra)
        if key == 0x5455 and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            return max(int.from_bytes(extra[5:9], "little", signed=True), 0) * 1_000_000_000
        extra = extra[4 + size :]
    try:
        return int(datetime(*member.date_time, tzinfo=UTC).timestamp()) * 1_000_000_000
    except ValueError:
        return 0
