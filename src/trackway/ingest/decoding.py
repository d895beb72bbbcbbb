"""Bytes → JSON values, whatever they are like: fast where they are as they should be, patient where they are not.

The fast parser refuses lone surrogates, NaN and numbers out of range; the slow one takes them. Two objects with
nothing between them are two. Bytes that are not UTF-8 are read in the encoding they show, else one a character.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

_decode: Final = msgspec.json.Decoder().decode
_slow: Final = json.JSONDecoder(strict=False)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


def value_of(body: bytes) -> Any:  # noqa: ANN401  a JSON value is anything
    """The one JSON value of these bytes; raises ``ValueError`` (or ``RecursionError``) where they are none."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return json.loads(text_of_bytes(body), strict=False)


def values_of(body: bytes) -> list[Any]:
    """The JSON values of a line: one, or several with nothing between them; raises where it is none."""
    try:
        return [_decode(body)]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    text = text_of_bytes(body).strip()
    found: list[Any] = []
    at = 0
    while at < len(text):
        value, at = _slow.raw_decode(text, at)
        found.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def lines_in(blocks: Iterable[bytes], longest: int) -> Iterator[tuple[bytes | None, int]]:
    """Each line without its end, and its length with it; None instead of one that is longer than it may be."""
    rest: list[bytes] = []  # of the line that has not ended yet
    held = passed_by = 0
    for block in blocks:
        start, *lines = block.split(b"\n")
        rest.append(start)
        held += len(start)
        if lines:
            yield None if passed_by else b"".join(rest), passed_by + held + 1
            rest = [lines.pop()]
            held, passed_by = len(rest[0]), 0
            yield from ((line, len(line) + 1) for line in lines)
        if held > longest:
            rest, held, passed_by = [], 0, passed_by + held
    if held or passed_by:
        yield None if passed_by else b"".join(rest), passed_by + held


def encoding_of(start: bytes) -> str | None:
    """The encoding a file's mark says, where it has one and it is not UTF-8."""
    for mark, name in _MARKS:
        if start.startswith(mark):
            return None if name == "utf-8" else name
    return None


def text_of_bytes(body: bytes) -> str:
    """The text of bytes: UTF-8, with or without a mark; UTF-16 and UTF-32 by theirs; else Latin-1, a byte a letter."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode("utf-8-sig" if name == "utf-8" else name, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        if error.end >= len(body) - 3 and error.reason == "unexpected end of data":
            return body[: error.start].decode()
        return body.decode("latin-1")
