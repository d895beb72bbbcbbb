"""The beginning of a file, made sense of as far as it goes: what a source looks at to say whether a file is its own.

A file cut off in the middle (and the head of a large one always is) still has a beginning: what is open is closed.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from trackway.ingest.decoding import text_of_bytes, value_of, values_of
from trackway.ingest.zips import opened

HEAD: Final = 1 << 18
_LINES: Final = 40
_MARKS: Final = re.compile(r'"(?:[^"\\]|\\(?:.|$))*+(?:"|$)|[{}\[\],]', re.DOTALL)
"""What structure is made of, with whole strings passed by."""


class Head:
    """The first ``HEAD`` bytes of a file, uncompressed, under its name."""

    def __init__(self, name: str, body: bytes, path: Path | None = None, *, is_whole: bool = False) -> None:
        self.name = name
        self.body = body
        self.path = path
        self.is_whole = is_whole

    @cached_property
    def lines(self) -> list[Any]:
        """The JSON values of the first lines, one or more a line; lines that are none are left out."""
        found: list[Any] = []
        lines = text_of_bytes(self.body).splitlines() if self.body else []
        for line in lines[:_LINES] if self.is_whole or len(lines) < 2 else lines[: min(_LINES, len(lines) - 1)]:
            with contextlib.suppress(ValueError, RecursionError):
                found += values_of(line.encode("utf-8", "surrogatepass"))
        return found

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """Those of them that are objects."""
        return [each for each in self.lines if isinstance(each, dict)]

    @cached_property
    def value(self) -> Any:  # noqa: ANN401  a JSON value is anything
        """The file as one JSON value, closed where the head ends; None where it is none, or is one value a line."""
        text = text_of_bytes(self.body).strip()
        if text[:1] not in ("{", "["):
            return None
        try:
            return value_of(text.encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            # A document over many lines has lines that are values, too: its first one is not.
            is_lines = len(self.lines) > 1 and not text.partition("\n")[0].rstrip().endswith((",", ":", "{", "["))
            return None if is_lines else closed(text)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The same, where it is an object; else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    @cached_property
    def members(self) -> list[str]:
        """The names inside, where the file is a zip archive."""
        if not self.body.startswith(b"PK"):
            return []
        try:
            with opened(self.path or io.BytesIO(self.body)) as archive:
                return archive.namelist()
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
            return []


def closed(text: str) -> Any:  # noqa: ANN401  a JSON value is anything
    """A JSON value that is cut off, with its last unfinished member left out and what is open closed; None if none.

    >>> closed('{"a": [1, 2, {"b": "c'), closed('{"a": 1, "b')
    ({'a': [1, 2, {}]}, {'a': 1})
    >>> closed('{"a": 1, "b": "x, y' + chr(92))
    {'a': 1}
    """
    opened: list[str] = []
    good = 0
    for mark in _MARKS.finditer(text):
        char = mark[0]
        if char in "{[":
            opened.append("}" if char == "{" else "]")
        elif char in "}]":
            if not opened or opened.pop() != char:
                return None
        elif char != ",":
            continue
        good = mark.start() if char == "," else mark.end()
    try:
        return json.loads(text[:good] + "".join(reversed(opened)))
    except (ValueError, RecursionError):
        return None
