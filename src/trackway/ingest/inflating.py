"""Blocks of a file as the blocks they stand for: uncompressed, in UTF-8, one at a time.

What is broken raises ``OSError``, ``EOFError`` or ``ValueError``, whatever the library in question does.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gzip import GzipFile

BLOCK: Final = 1 << 20
"""Bytes that are read at once."""


def chained(first: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks, with one before them that was looked at."""
    if first:
        yield first
    yield from blocks


def recoded(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """What is in another encoding, in UTF-8."""
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")


class _Stream(io.RawIOBase):
    """Blocks as a file: what decompressors read from."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  a writable buffer
        self._rest = self._rest or next(self._blocks, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _read_all(file: IO[bytes] | GzipFile) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def unzstd(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """What zstd made smaller, all frames of it."""
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        io.BufferedReader(_Stream(blocks)), read_across_frames=True
    )
    try:
        yield from _read_all(stream)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def ungzip(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """What gzip made smaller."""
    import gzip
    import zlib

    try:
        yield from _read_all(gzip.GzipFile(fileobj=io.BufferedReader(_Stream(blocks))))
    except zlib.error as error:
        raise ValueError(str(error)) from error
