"""Compressed streams by what they begin with: gzip, zstd, bzip2, xz. What a header asks of memory is bounded."""

from __future__ import annotations

import lzma
from typing import IO, Final, cast

from trackway.ingest.tars import Stream

_GZIP, _ZSTD, _BZIP2, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0"
PACKED: Final = (_GZIP, _ZSTD, _BZIP2, _XZ)
_PIECE: Final = 1 << 20
_WINDOW: Final = 1 << 27


def unpacking(file: IO[bytes]) -> Stream:
    """The file from where it is, uncompressed if need be; what is broken raises what the library in question does."""
    at = file.tell()
    start = file.read(6)
    file.seek(at)
    if start.startswith(_GZIP):
        import gzip

        return gzip.GzipFile(fileobj=file)
    if start.startswith(_BZIP2):
        import bz2

        return bz2.BZ2File(file)
    if start.startswith(_ZSTD):
        return _Zstd(file)
    return _Xz(file) if start.startswith(_XZ) else file


class _Zstd:
    """Zstandard frames, one after the other; its errors are made ``ValueError``."""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(file, read_across_frames=True)
        self._reader = cast("Stream", reader)

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._reader.read(size)
        except self._error as error:
            raise ValueError(f"it is damaged: {error}") from error


class _Xz:
    """An xz stream. ``lzma.LZMAFile`` would take as much memory as the file asks for: up to 4 GB."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = self._new()

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * _WINDOW)

    def read(self, size: int = -1, /) -> bytes:
        while True:
            unread = b""
            if self._decoder.eof:  # another stream may follow, after zeros that fill up
                unread = (self._decoder.unused_data or self._file.read(_PIECE)).lstrip(b"\0")
                if not unread:
                    return b""
                self._decoder = self._new()
            elif self._decoder.needs_input:
                unread = self._file.read(_PIECE)
                if not unread:
                    raise EOFError("compressed bytes end before their end")
            found = self._decoder.decompress(unread, max_length=size)
            if found:
                return found
