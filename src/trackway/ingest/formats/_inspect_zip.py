"""The bytes of a zip's member, piece by piece, also where it is compressed with zstd, which ``zipfile`` cannot read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

_ZSTD: Final = 93
_PIECE: Final = 1 << 20
_ENCRYPTED: Final = 0x1
_LOCAL: Final = struct.Struct("<4s22xHH")
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD)


def blocks_of(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a member holds, never more than it says; raises ``ValueError`` where it cannot be read or believed."""
    if member.flag_bits & _ENCRYPTED:
        raise ValueError("it is encrypted")
    if member.compress_type not in _METHODS:
        raise ValueError(f"it is compressed by method {member.compress_type}, which is not read")
    if member.compress_type != _ZSTD:
        with archive.open(member) as file:
            while block := file.read(_PIECE):
                yield block
        return
    size, checksum = 0, 0
    for block in _unzstd(path, member):
        size += len(block)
        if size > member.file_size:
            raise ValueError("it is larger than it says")
        checksum = zlib.crc32(block, checksum)
        yield block
    if checksum != member.CRC:
        raise ValueError("it is not what its checksum says")


class _Stored:
    """The bytes as they stand in the file, behind a header whose length only it tells; what a decompressor reads."""

    def __init__(self, file: BinaryIO, member: zipfile.ZipInfo) -> None:
        self._file = file
        self._left = member.compress_size
        file.seek(member.header_offset)
        header = file.read(_LOCAL.size)
        magic, name, extra = _LOCAL.unpack(header) if len(header) == _LOCAL.size else (b"", 0, 0)
        if magic != b"PK\x03\x04":
            raise ValueError("it is not where the list of members says")
        file.seek(name + extra, 1)

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return found


def _unzstd(path: Path, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """One frame after the other, as the writer cuts them; a piece at a time, whatever it unfolds into."""
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        with path.open("rb") as file:
            source = cast("IO[bytes]", _Stored(file, member))
            with unpacker.stream_reader(source, read_across_frames=True) as stream:
                while block := stream.read(_PIECE):
                    yield block
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
