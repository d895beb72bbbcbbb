"""One JSON value too large to hold, part by part: the members of an object, the elements of a list.

It looks for where values end and at nothing else; whoever gets a part parses it. Only one part is held at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trackway.ingest.decoding import value_of

_OUTSIDE: Final = re.compile(rb'["{}\[\],:]')
_INSIDE: Final = re.compile(rb'["\\]')
_OPEN: Final = frozenset(b"{[")
_CLOSE: Final = frozenset(b"}]")
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"'[0], b"\\"[0], b","[0], b":"[0]


class _Scan:
    """A buffer over blocks, the place reached in it, and how deep that is."""

    def __init__(self, blocks: Iterator[bytes], longest: int) -> None:
        self._blocks = blocks
        self._longest = longest
        self.buffer = b""
        self.at = 0
        self._inside = False

    def mark(self) -> int | None:
        """The next character that structure is made of, strings passed by; None at the end."""
        while True:
            found = (_INSIDE if self._inside else _OUTSIDE).search(self.buffer, self.at)
            if found is None:
                self.at = len(self.buffer)
            else:
                char = self.buffer[found.start()]
                if char == _BACKSLASH:
                    self.at = found.start() + 2
                    if self.at <= len(self.buffer):
                        continue
                    self.at = found.start()  # its other half comes with the next block
                else:
                    self.at = found.end()
                    if char != _QUOTE:
                        return char
                    self._inside = not self._inside
                    continue
            if not self._more():
                return None

    def _more(self) -> bool:
        if len(self.buffer) > self._longest:
            raise ValueError(f"a part of more than {self._longest >> 20} MB")
        block = next(self._blocks, b"")
        self.buffer += block
        return bool(block)

    def take(self) -> bytes:
        """What was passed since the last time, without the mark itself."""
        taken, self.buffer = self.buffer[: self.at - 1], self.buffer[self.at :]
        self.at = 0
        return taken


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
        if key in split and _peek(scan) == b"[":
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


def _peek(scan: _Scan) -> bytes:
    while not scan.buffer[scan.at :].strip():
        if not scan._more():  # noqa: SLF001  the two are one
            return b""
    return scan.buffer[scan.at :].lstrip()[:1]


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
    while (mark := scan.mark()) is not None:
        if mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            if depth == 0:
                return scan.take().strip(), mark
            depth -= 1
        elif mark == _COMMA and depth == 0:
            return scan.take().strip(), mark
    return b"", None
