"""A tar archive as a stream: one header at a time, in bounded memory, and no end but its own.

The standard library's reader holds whatever a header brings, however much that is, and takes a broken header for the
end. Archives that were cut off, or made to do harm, are made of just that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, Protocol

BLOCK: Final = 512
_NOTHING: Final = bytes(BLOCK)
_PIECE: Final = 1 << 20
_LONGEST: Final = 1 << 20
"""Bytes that a header may bring along: names, times."""
_MOST: Final = 1 << 62
_NS: Final = 1_000_000_000

Kind = Literal["file", "folder", "symlink", "hardlink", "special", "sparse"]
_KINDS: Final[dict[bytes, Kind]] = {
    b"1": "hardlink", b"2": "symlink", b"3": "special", b"4": "special", b"5": "folder", b"6": "special",
    b"D": "folder", b"S": "sparse",
}  # fmt: skip


class Stream(Protocol):
    """What is read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to that many bytes; none at the end."""
        ...


class Inner(NamedTuple):
    """What an archive says of one of its members; ``modified`` in ns, 0 where it does not say."""

    name: str
    kind: Kind
    modified: int
    link: str = ""


def is_tar(start: bytes) -> bool:
    """Whether these bytes begin with the header of a tar archive: its checksum is right."""
    header = start[:BLOCK]
    try:
        return len(header) == BLOCK and header[:1] != b"\0" and _is_sound(header)
    except ValueError:
        return False


def tar_members(stream: Stream) -> Iterator[tuple[Inner, Iterator[bytes]]]:
    """Each member, and its bytes, which can be had before the next is asked for; raises ``ValueError`` where broken."""
    told: dict[str, str] = {}
    while (header := _exactly(stream, BLOCK)) != _NOTHING:
        if not _is_sound(header):
            raise ValueError("a header is damaged")
        size, kind = _number(header[124:136]), header[156:157]
        if kind in b"xXgLK":
            said = _said(kind, _exactly(stream, size, _LONGEST))
            _skip(stream, -size % BLOCK)
            told |= said if kind != b"g" else {}  # what is said of all members is said about the archive, not them
            continue
        if kind == b"M":
            raise ValueError("it is a part of an archive in several volumes")
        size = _number(told["size"].encode(), 10) if "size" in told else size
        if not 0 <= size < _MOST:
            raise ValueError("a header is damaged")
        content = _Content(stream, 0 if kind in b"123456" else size)
        if kind != b"V":
            yield _inner(header, kind, told), content.blocks()
        content.skip()
        told = {}


def _inner(header: bytes, kind: bytes, told: dict[str, str]) -> Inner:
    name, link = _text(header[:100]), _text(header[157:257])
    if header[257:263] == b"ustar\0" and header[345:346] != b"\0":
        name = f"{_text(header[345:500])}/{name}"
    name, link = told.get("path", name), told.get("linkpath", link)
    is_sparse = any(each.startswith("GNU.sparse.") for each in told)
    known: Kind = "sparse" if is_sparse else _KINDS.get(kind, "folder" if name.endswith("/") else "file")
    return Inner(name, known, _modified(header, told), link)


def _modified(header: bytes, told: dict[str, str]) -> int:
    whole, _, part = told.get("mtime", "").partition(".")
    try:
        seconds = _number(whole.encode(), 10) if whole else _number(header[136:148])
        at = seconds * _NS + _number(part[:9].ljust(9, "0").encode(), 10)
    except ValueError:
        return 0
    return at if 0 < at < 1 << 63 else 0


def _said(kind: bytes, body: bytes) -> dict[str, str]:
    """What a header before a member's own says of it: a long name, or records of a length, a key and a value."""
    if kind in b"LK":
        return {"path" if kind == b"L" else "linkpath": _text(body)}
    found, at = {}, 0
    while at < len(body):
        blank = body.find(b" ", at, at + 20)
        length = _number(body[at:blank], 10) if blank > 0 else 0
        key, sign, value = body[blank + 1 : at + length].rstrip(b"\n").partition(b"=")
        if not sign or at + length > len(body):
            raise ValueError("a header is damaged")
        found[_text(key)] = _text(value)
        at += length
    return found


class _Content:
    """The bytes of one member, and how many of them are still to come."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self._left = size
        self._padding = -size % BLOCK

    def blocks(self) -> Iterator[bytes]:
        while self._left:
            block = self._stream.read(min(self._left, _PIECE))
            if not block:
                raise ValueError("it is cut off")
            self._left -= len(block)
            yield block

    def skip(self) -> None:
        _skip(self._stream, self._left + self._padding)
        self._left = 0


def _exactly(stream: Stream, size: int, most: int = BLOCK) -> bytes:
    if not 0 <= size <= most:
        raise ValueError(f"a header brings {size:,} bytes")
    found = b""
    while len(found) < size:
        block = stream.read(size - len(found))
        if not block:
            raise ValueError("it is cut off")
        found += block
    return found


def _skip(stream: Stream, size: int) -> None:
    while size:
        block = stream.read(min(size, _PIECE))
        if not block:
            raise ValueError("it is cut off")
        size -= len(block)


def _number(field: bytes, base: int = 8) -> int:
    """Octal digits; where the first bit is set, the bytes themselves are the number."""
    if field[:1] >= b"\x80":
        return int.from_bytes(field, "big", signed=True) + (1 << (8 * len(field) - 1) if field[0] == 0x80 else 0)
    text = field.split(b"\0", 1)[0].strip()
    if text.strip(b"0123456789"[:base]) or len(text) > 24:
        raise ValueError("a header is damaged")
    return int(text or b"0", base)


def _is_sound(header: bytes) -> bool:
    """Whether its checksum is right; some programs took bytes for signed when they made it."""
    rest = header[:148] + header[156:]
    off = sum(rest) + 8 * ord(" ") - _number(header[148:156])
    return off == 0 or off == 256 * sum(each > 127 for each in rest)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
