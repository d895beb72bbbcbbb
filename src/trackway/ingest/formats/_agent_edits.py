"""File changes told by calls alone: what a tool was asked to write, once it says that it did.

Nobody looked at the disk, so every change is inferred. Contents are followed while they are known: a file that was
written whole and is then edited has a known content before and after. An edit that went well, although what it
replaced is not in the content that was known, says that someone else changed the file in between: that is a change
of its own, with the cause ``external``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._followed import Followed
from trackway.ingest.making import file_state
from trackway.schema.events import FileChange

_WRITES: Final = frozenset({"write", "writefile", "create", "createfile", "writetofile", "filewrite"})
_EDITS: Final = frozenset({
    "edit", "editfile", "replace", "multiedit", "strreplace", "strreplacefile", "strreplaceeditor", "searchreplace",
    "replacefilecontent", "multireplacefilecontent", "fileedit",
})  # fmt: skip
_DELETES: Final = frozenset({"delete", "deletefile", "removefile"})
_PATH: Final = ("path", "file_path", "filePath", "TargetFile", "target_file", "absolute_path", "filename")
_CONTENT: Final = ("content", "contents", "file_text", "CodeContent", "text")
_OLD: Final = ("oldText", "old_string", "oldString", "old_str", "old", "TargetContent")
_NEW: Final = ("newText", "new_string", "newString", "new_str", "new", "ReplacementContent")
_ALL: Final = ("replace_all", "replaceAll", "AllowMultiple")
_LISTS: Final = ("edits", "edit", "ReplacementChunks")
_KNOWN: Final = 16 << 20
"""Bytes of contents that are followed."""


class _Asked(NamedTuple):
    op: str
    path: str
    content: str | None
    edits: tuple[tuple[str, str, bool], ...]


class Edits:
    """The changes of one session: asked for by a call, made when its result says so."""

    def __init__(self) -> None:
        self._open: dict[str, _Asked] = {}
        self._known = Followed(_KNOWN)

    def call(self, call_id: str, name: str, args: object) -> None:
        """Take in a call; most have nothing to do with files."""
        asked = _asked(name, args) if isinstance(args, dict) else None
        if asked is not None:
            self._open[call_id] = asked

    def path(self, call_id: str) -> str:
        """The file that a call is about; empty where it is about none."""
        asked = self._open.get(call_id)
        return "" if asked is None else asked.path

    def result(
        self, call_id: str, *, ok: bool, at: int = 0, agent: str | None = None
    ) -> tuple[list[FileChange], list[bytes]]:
        """What a call changed, and the contents the changes name; nothing where it failed, or was about no file."""
        asked = self._open.pop(call_id, None)
        if asked is None or not ok:
            return [], []
        contents: list[bytes] = []
        changes = [
            FileChange(**each, at=at, agent=agent, exact=False) for each in self._changes(asked, call_id, contents)
        ]
        return changes, contents

    def _changes(self, asked: _Asked, cause: str, contents: list[bytes]) -> Iterator[dict[str, Any]]:
        before = self._known.get(asked.path)
        after = asked.content.encode("utf-8", "surrogatepass") if asked.content is not None else None
        if asked.op == "modify" and before is not None:
            after = _edited(before, asked.edits)
            if after is None and asked.edits:  # it went well all the same: the file was not what it had been
                yield {"op": "modify", "path": asked.path, "before": file_state(before), "cause": "external"}
                contents.append(before)
            before = before if after is not None else None
        contents.extend(each for each in (before, after) if each is not None)
        yield {
            "op": "modify" if asked.op == "create" and before is not None else asked.op, "path": asked.path,
            "before": None if before is None else file_state(before),
            "after": None if after is None else file_state(after), "cause": cause,
        }  # fmt: skip
        self._known.keep(asked.path, after)

    def seen(self, call_id: str, path: str, after: bytes) -> None:
        """A change that was told with its contents: nothing is inferred of the call, and the file is followed on."""
        self._open.pop(call_id, None)
        self._known.keep(path, after)


def _asked(name: str, args: Mapping[str, Any]) -> _Asked | None:
    tool = name.replace("_", "").replace("-", "").lower()
    path = _first(args, _PATH)
    if not path:
        return None
    content = _first(args, _CONTENT)
    if tool in _WRITES and content is not None:
        return _Asked("create", path, content, ())
    if tool in _DELETES:
        return _Asked("delete", path, None, ())
    return _Asked("modify", path, None, _edits(args)) if tool in _EDITS else None


def _edits(args: Mapping[str, Any]) -> tuple[tuple[str, str, bool], ...]:
    given = next((args[name] for name in _LISTS if isinstance(args.get(name), (list, dict))), None)
    many = given if isinstance(given, list) else [args if given is None else given]
    found = []
    for each in many:
        if isinstance(each, dict):
            old, new = _first(each, _OLD), _first(each, _NEW)
            if old is not None and new is not None:
                found.append((old, new, any(each.get(name) is True for name in _ALL)))
    return tuple(found)


def _edited(content: bytes, edits: tuple[tuple[str, str, bool], ...]) -> bytes | None:
    """The content after the edits; None where one of them does not fit, or none is known."""
    for old, new, everywhere in edits:
        was = old.encode("utf-8", "surrogatepass")
        if not was or was not in content:
            return None
        content = content.replace(was, new.encode("utf-8", "surrogatepass"), -1 if everywhere else 1)
    return content if edits else None


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), None)
