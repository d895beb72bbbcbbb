"""One JSON value too large to hold, part by part: the members of an object, the elements of a list.

It looks for where values end and at nothing else; whoever gets a part parses it. Only one part is held at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trackway.ingest.decoding import value_of

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ANY: Final = re.compile(rb'(?:[^"{}\[\],:]++|' + _STRING + rb")*+([{}\[\],:])", re.DOTALL)
_DEEP: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+([{}\[\]])", re.DOTALL)
"""Up to the next character that structure is made of, strings passed by whole; inside a value only brackets matter."""
_OPEN: Final = frozenset(b"{[")
_CLOSE: Final = frozenset(b"}]")
_COMMA, _COLON = b","[0], b":"[0]


class _Scan:
    """A buffer over blocks, the place reached in it, and how deep that is."""

    def __init__(self, blocks: Iterator[bytes], longest: int) -> None:
        self._blocks = blocks
        self._longest = longest
        self._buffer = b""
        self._start = self._at = 0

    def mark(self, depth: int = 0) -> int | None:
        """The next character that structure is made of, in a value that is so deep; None at the end."""
        wanted = _DEEP if depth else _ANY
        while (found := wanted.match(self._buffer, self._at)) is None:
            if not self._more():
                return None
        self._at = found.end()
        return self._buffer[self._at - 1]

    def _more(self) -> bool:
        """Twice as much of what is not passed yet: it is looked at again from where it begins."""
        rest = self._buffer[self._start :]
        self._at, self._start = self._at - self._start, 0
        if len(rest) > self._longest:
            raise ValueError(f"a part of more than {self._longest >> 20} MB")
        found = [rest]
        size, wanted = 0, max(1, len(rest) - self._at)
        while size < wanted and (block := next(self._blocks, b"")):
            found.append(block)
            size += len(block)
        self._buffer = b"".join(found)
        return size > 0

    def take(self) -> bytes:
        """What was passed since the last time, without the mark itself."""
        taken = self._buffer[self._start : self._at - 1]
        self._start = self._at
        return taken

    def next_is(self, char: bytes) -> bool:
        """Whether the next character that is no space is this one."""
        while (found := _SPACE.match(self._buffer, self._at)) is None or found.end() == len(self._buffer):
            if not self._more():
                return False
        return self._buffer[found.end() : found.end() + 1] == char


_SPACE: Final = re.compile(rb"\s*+")


def parts(blocks: Iterator[bytes], split: frozenset[str], longest: int) -> Iterator[tuple[str, int | None, bytes]]:
    """The key, the number and the bytes of each part; raises ``ValueError`` where it is not one whole JSON value.

    >>> list(parts(iter([b'{"a": [1, {"b": 2', b'}], "c": "]"}']), frozenset({"a"}), 1 << 20))
    [('a', 0, b'1'), ('a', 1, b'{"b": 2}'), ('c', None, b'"]"')]
    """
    scan = _Scan(blocks, longest)
    first = scan.mark()
    if first not in _OPEN:
        raise ValueError("no JSON object or list")
    scan.take()
    if first == b"["[0]:
        yield from (("", i, raw) for i, raw in enumerate(_elements(scan)))
        return
    end: int | None = _COMMA
    while end == _COMMA:
        mark = scan.mark()
        if mark in _CLOSE and not scan.take().strip():
            return
        if mark != _COLON:
            raise ValueError("cut off in the middle of a value")
        key = str(value_of(scan.take()))
        if key in split and scan.next_is(b"["):
            scan.mark()
            scan.take()
            yield from ((key, i, raw) for i, raw in enumerate(_elements(scan)))
            end = scan.mark()
            scan.take()
        else:
            raw, end = _value(scan)
            yield key, None, raw
    if end not in _CLOSE:
        raise ValueError("cut off in the middle of a value")


def _elements(scan: _Scan) -> Iterator[bytes]:
    while True:
        raw, end = _value(scan)
        if raw:
            yield raw
        if end in _CLOSE:
            return
        if end != _COMMA:
            raise ValueError("cut off in the middle of a value")


def _value(scan: _Scan) -> tuple[bytes, int | None]:
    """The bytes of one value, and the mark behind it."""
    depth = 0
    while (mark := scan.mark(depth)) is not None:
        if mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            if depth == 0:
                return scan.take().strip(), mark
            depth -= 1
        elif mark == _COMMA and depth == 0:
            return scan.take().strip(), mark
    return b"", None
