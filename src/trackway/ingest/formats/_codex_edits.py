"""The files that Codex's ``apply_patch`` changed, exactly where the rollout holds enough.

What was added or deleted stands there whole. Of an update there is only a difference: with the content that the
session itself wrote before, and a difference that fits it to the letter, the content after is known. Where it does
not fit, someone else changed the file in between: that is a change of its own, with the cause ``external``. A patch
nothing is told of but its text and that it went well is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._followed import Followed
from trackway.ingest.making import file_state
from trackway.ingest.values import mapping, text
from trackway.schema.events import Event, FileChange

_KNOWN: Final = 32 << 20
"""Bytes of contents that are followed."""
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_DEEP: Final = 4
"""How deep a patch stands in arguments, at most: a command is a list in an object."""
_OPS: Final = {"*** Add File: ": "create", "*** Delete File: ": "delete", "*** Update File: ": "modify"}


class Edits:
    """The contents one thread has written, as far as they are known."""

    def __init__(self) -> None:
        self._known = Followed(_KNOWN)

    def applied(self, changes: Any, cause: str, at: int) -> tuple[list[Event], list[bytes]]:  # noqa: ANN401  whatever stands there
        """The changes that were made, and the contents they name."""
        events: list[Event] = []
        contents: list[bytes] = []
        for path, change in mapping(changes).items():
            kind, fields = _kind_of(mapping(change))
            made = self._change(path, kind, fields, contents)
            events += [FileChange(at=at, **({"cause": cause} | each)) for each in made]
        return events, contents

    def inferred(self, patch: str, cause: str, at: int) -> tuple[list[Event], list[bytes]]:
        """The changes a patch asked for, once it went well."""
        events: list[Event] = []
        contents: list[bytes] = []
        for op, path, new_path, lines in _files_of(patch):
            self._known.keep(path, None)
            after = None
            if op == "create":
                contents.append("".join(lines).encode("utf-8", "surrogatepass"))
                after = file_state(contents[-1])
            made = "rename" if new_path else op
            events.append(
                FileChange(op=made, path=path, new_path=new_path, after=after, cause=cause, exact=False, at=at)
            )
        return events, contents

    def _change(self, path: str, kind: str, fields: dict[str, Any], contents: list[bytes]) -> Iterator[dict[str, Any]]:
        known = self._known.get(path)
        content = fields.get("content")
        given = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else None
        if kind == "add" and given is not None:
            yield self._whole("modify" if known is not None else "create", path, known, given, contents)
        elif kind == "delete":
            if None not in (known, given) and known != given:
                yield self._whole("modify", path, known, given, contents, cause="external", exact=False)
            before = known if given is None else given
            yield self._whole("delete", path, before, None, contents, exact=given is not None)
        elif kind == "update":
            yield from self._update(path, fields, contents)

    def _update(self, path: str, fields: dict[str, Any], contents: list[bytes]) -> Iterator[dict[str, Any]]:
        known, moved = self._known.get(path), text(fields.get("move_path")) or None
        op = "rename" if moved else "modify"
        after = None if known is None else patched(known, text(fields.get("unified_diff")))
        if after is not None:
            yield self._whole(op, path, known, after, contents, new_path=moved)
        else:
            if known is not None:
                yield self._whole("modify", path, known, None, contents, cause="external", exact=False)
            yield {"op": op, "path": path, "new_path": moved, "exact": False}
            self._known.keep(path, None)
        if moved:
            self._known.keep(path, None)
            self._known.keep(moved, after)

    def _whole(
        self, op: str, path: str, before: bytes | None, after: bytes | None, contents: list[bytes], **more: Any,  # noqa: ANN401  fields of the change
    ) -> dict[str, Any]:  # fmt: skip
        contents.extend(each for each in (before, after) if each is not None)
        self._known.keep(path, after)
        return {
            "op": op, "path": path, "before": None if before is None else file_state(before),
            "after": None if after is None else file_state(after), **more,
        }  # fmt: skip


def _kind_of(change: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of a change: a field of it, or, in older rollouts, the name it stands under."""
    if isinstance(change.get("type"), str):
        return change["type"], change
    kind = next((name for name in ("add", "delete", "update") if name in change), "")
    return kind, mapping(change.get(kind))


def patched(before: bytes, diff: str) -> bytes | None:
    r"""The content after a unified difference; None where it does not fit to the letter.

    >>> patched(b"a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    b'a\nc\n'
    >>> patched(b"a\nx\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n") is None
    True
    """
    old = _lines(before.decode("utf-8", "surrogateescape"))
    new: list[str] = []
    at = 0
    hunks = _hunks(diff)
    for each in hunks:
        place = each.start - 1 if each.gone else each.start  # an empty side counts the line before it
        if place < at or old[place : place + len(each.gone)] != each.gone:
            return None
        new += old[at:place] + each.come
        at = place + len(each.gone)
    return "".join(new + old[at:]).encode("utf-8", "surrogateescape") if hunks else None


class _Hunk:
    """The line it begins at, the lines it takes, the lines it puts."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.gone: list[str] = []
        self.come: list[str] = []
        self._last: list[list[str]] = []

    def add(self, line: str) -> None:
        if line.startswith("\\"):
            for side in self._last:  # no newline at the end of the file
                side[-1] = side[-1].removesuffix("\n")
            return
        sign = line[0]
        self._last = [self.gone] if sign == "-" else [self.come] if sign == "+" else [self.gone, self.come]
        for side in self._last:
            side.append(line if line == "\n" else line[1:])  # an empty line may have lost its space


def _hunks(diff: str) -> list[_Hunk]:
    """The hunks of a difference; the names of the files above the first say nothing new."""
    found: list[_Hunk] = []
    for line in _lines(diff):
        head = _HUNK.match(line)
        if head:
            found.append(_Hunk(int(head[1])))
        elif found:
            found[-1].add(line)
    return found


def _lines(said: str) -> list[str]:
    """The lines with their ends; only a line feed ends one."""
    parts = said.split("\n")
    ended = [f"{each}\n" for each in parts[:-1]]
    return [*ended, parts[-1]] if parts[-1] else ended


def patch_in(value: Any, depth: int = 0) -> str | None:  # noqa: ANN401  arguments are any JSON value
    """The first patch among the texts of a call's arguments: given as it is, or put into a shell command."""
    if isinstance(value, str):
        start = value.find(_BEGIN)
        return value[start:] if start >= 0 else None
    if isinstance(value, (list, dict)) and depth < _DEEP:
        inner = value if isinstance(value, list) else value.values()
        return next((found for each in inner if (found := patch_in(each, depth + 1)) is not None), None)
    return None


def _files_of(patch: str) -> Iterator[tuple[str, str, str | None, list[str]]]:
    """Each file of a patch: what happens to it, its path, its new path, and the lines added."""
    found: tuple[str, str] | None = None
    moved: str | None = None
    added: list[str] = []
    for line in patch.split("\n"):
        head = next((each for each in _OPS if line.startswith(each)), None)
        if head or line.startswith(_END):
            if found:
                yield *found, moved, added
            found = (_OPS[head], line[len(head) :].strip()) if head else None
            moved, added = None, []
            if head is None:
                return
        elif line.startswith("*** Move to: "):
            moved = line[13:].strip() or None
        elif line.startswith("+"):
            added.append(line[1:] + "\n")
    if found:
        yield *found, moved, added
