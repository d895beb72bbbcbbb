"""A zstd file as the stream of what is in it: bounded at every step, and whole or refused.

Little is read at a time, so that a file made to burst unfolds to 32 MiB at most before somebody looks at it. A frame
that does not end, or is followed by something that is none, is said: reading on in silence would hide it.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, Final

import zstandard

from trackway.errors import PackRefused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How such a file begins."""

_PLAUSIBLE: Final = 1000
_HARMLESS: Final = 256 << 20
"""Beyond this much, a file that unfolds to more than a thousand times its size is made to burst."""
_STEP: Final = 1 << 10
"""At worst four bytes stand for 128 KiB."""


class Inflated(io.RawIOBase):
    """What ``file`` holds, decompressed as it is read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._compressed = b""
        self._waiting = memoryview(b"")
        self._read = self._unfolded = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Some bytes; none at the end of the last frame."""
        while not self._waiting:
            if not self._inflate():
                return 0
        into = memoryview(buffer).cast("B")
        count = min(len(into), len(self._waiting))
        into[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def _inflate(self) -> bool:
        """Look at a little more of the file; False at its end."""
        if not self._compressed:
            self._compressed = self._file.read(_STEP)
            self._read += len(self._compressed)
        if not self._compressed:
            if not self._frame.eof:
                raise PackRefused(f"{self._name} ends inside its compressed part: it is not whole", hint="get it again")
            return False
        if self._frame.eof:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            self._waiting = memoryview(self._frame.decompress(self._compressed))
        except zstandard.ZstdError as error:
            raise PackRefused(f"{self._name} does not decompress: {error}", hint="get it again") from error
        self._unfolded += len(self._waiting)
        if self._unfolded > max(_HARMLESS, self._read * _PLAUSIBLE):
            said = f"{self._name} unfolds to over {_PLAUSIBLE:,} times its size: no pack does"
            raise PackRefused(said, hint="unpack it with zstd yourself if you trust it")
        self._compressed = self._frame.unused_data if self._frame.eof else b""
        return True
