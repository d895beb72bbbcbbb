"""What Claude Code's file tools did to files, and what somebody else did to them in between.

A result of an edit holds the file as it was and the text that was put in place of another: the file as it became is
made of these two. The patch beside them is for the screen (tabs have become spaces in it); only its count of lines is
looked at, where the two readings of a deletion differ by a line break. What is not there is not made up.

Per path the last content that is known is remembered: a file that is different when it is met again was changed
outside the tools that are recorded here. That is drift, a change of its own with the cause ``external``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from trackway.ingest.making import file_state
from trackway.ingest.values import listing, mapping, text
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileChange, FileState

EXTERNAL: Final = "external"
_UNKNOWN: Final = "\ufffd"
_HELD: Final = 32 << 20
"""Bytes of files that were only read which are held, in case that one of them turns out to have changed."""


class Swap(NamedTuple):
    """A text that was put in place of another, once or wherever it stood."""

    old: str
    new: str
    everywhere: bool


class Edit(NamedTuple):
    """What a result says of a file: before and after, None where it does not say; the fields that hold these."""

    path: str
    op: str
    before: str | None
    after: str | None
    exact: bool
    held: tuple[str, ...] = ()


def edit_of(result: dict[str, Any]) -> Edit | None:
    """The change a tool's result tells of; None where it tells of none, or where it was held back unwritten."""
    if result.get("staged") is True:
        return None
    path = result.get("filePath")
    if isinstance(path, str) and path:
        if isinstance(result.get("oldString"), str) and isinstance(result.get("newString"), str):
            swap = Swap(result["oldString"], result["newString"], result.get("replaceAll") is True)
            return _replaced(result, path, [swap], "originalFile")
        if "originalFileContents" in result and isinstance(result.get("edits"), list):
            return _replaced(result, path, [_swap(each) for each in result["edits"]], "originalFileContents")
        if result.get("type") in ("create", "update") and isinstance(result.get("content"), str):
            return _written(result, path)
    notebook = result.get("notebook_path")
    if isinstance(notebook, str) and notebook and "new_source" in result and not result.get("error"):
        return _notebook(result, notebook)
    return None


def _swap(edit: object) -> Swap:
    fields = mapping(edit)
    return Swap(text(fields.get("old_string")), text(fields.get("new_string")), fields.get("replace_all") is True)


def _replaced(result: dict[str, Any], path: str, swaps: Sequence[Swap], field: str) -> Edit:
    before = result.get(field)
    if not isinstance(before, str):
        # Nothing can be put in place of an empty text but in a file that is new, or empty.
        new = swaps[0].new if len(swaps) == 1 and not swaps[0].old else None
        return Edit(path, "modify" if new is None else "create", None, new, new is not None and _is_whole(new))
    after = _after(before, swaps, result.get("structuredPatch"))
    if after is None:
        return Edit(path, "modify", before, None, exact=False, held=(field,))
    op = "create" if not before and swaps and not swaps[0].old else "modify"
    exact = _is_whole(before) and _is_whole(after)
    return Edit(path, op, None if op == "create" else before, after, exact, (field,))


def _written(result: dict[str, Any], path: str) -> Edit:
    before, after = result.get("originalFile"), result["content"]
    if result["type"] == "create":
        return Edit(path, "create", None, after, _is_whole(after), ("content",))
    if not isinstance(before, str):
        return Edit(path, "modify", None, after, exact=False, held=("content",))
    return Edit(path, "modify", before, after, _is_whole(before) and _is_whole(after), ("content", "originalFile"))


def _notebook(result: dict[str, Any], path: str) -> Edit:
    before, after = result.get("original_file"), result.get("updated_file")
    if isinstance(before, str) and isinstance(after, str):
        held = ("original_file", "updated_file")
        return Edit(path, "modify", before, after, _is_whole(before) and _is_whole(after), held)
    return Edit(path, "modify", None, None, exact=False)


def _after(before: str, swaps: Sequence[Swap], patch: object) -> str | None:
    """The file as it became; None where a text that was replaced is not there, or is there too often."""
    plain = _applied(before, swaps, joins=False)
    if not any(not each.new and each.old and not each.old.endswith("\n") for each in swaps):
        return plain
    # What is deleted up to the end of its line is deleted with the line break or without: the client has done both.
    joined = _applied(before, swaps, joins=True)
    if plain == joined or plain is None:
        return joined
    told = _more_lines(patch)
    fitting = [each for each in (plain, joined) if each is not None and _lines(each) - _lines(before) == told]
    return fitting[0] if len(fitting) == 1 else None


def _applied(content: str, swaps: Sequence[Swap], *, joins: bool) -> str | None:
    for old, new, everywhere in swaps:
        if not old:
            if content:
                return None
            content = new
            continue
        taken = old
        if joins and not new and not old.endswith("\n") and f"{old}\n" in content:
            taken = f"{old}\n"
        first = content.find(taken)
        if first < 0 or (not everywhere and content.count(old) > 1):
            return None
        content = content.replace(taken, new) if everywhere else content[:first] + new + content[first + len(taken) :]
    return content


def _lines(content: str) -> int:
    return content.count("\n") + (content[-1:] not in ("", "\n"))


def _more_lines(patch: object) -> int | None:
    """How many lines more there are after a patch; None where there is no patch."""
    lines = [line for hunk in listing(patch) for line in listing(mapping(hunk).get("lines")) if isinstance(line, str)]
    return sum((line[:1] == "+") - (line[:1] == "-") for line in lines) if lines else None


def _is_whole(content: str) -> bool:
    """Whether the bytes of a file are known by its text: what could not be decoded was replaced by a mark."""
    if content.isascii():
        return True
    try:
        content.encode()
    except UnicodeEncodeError:
        return False
    return _UNKNOWN not in content


class Changes(NamedTuple):
    """File changes, and the contents they name."""

    events: list[FileChange]
    contents: list[bytes]


class _Known(NamedTuple):
    """A file's content: told apart by ``name``, kept by its state; the bytes where no change has named them yet."""

    name: str
    state: FileState
    body: bytes | None


class Files:
    """The files of a session as they are known at a place in it."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._held = 0
        self._others: set[str] = set()
        self._left: set[str] = set()

    def edited(self, edit: Edit, call_id: str, **envelope: Any) -> Changes:  # noqa: ANN401  fields all events share
        """The change, and before it the one that somebody else made to the same file since it was last met."""
        changes = Changes([], [])
        before = after = None
        if edit.before is not None:
            body, before = self._met(edit.path, edit.before, changes, envelope)
            changes.contents.append(body)
        elif edit.op == "create":
            self._missed(edit.path, changes, envelope)
        self._forget(edit.path)
        if edit.after is not None:
            body = edit.after.encode("utf-8", "surrogatepass")
            after = file_state(body)
            changes.contents.append(body)
            self._known[edit.path] = _Known(_name(edit.after, after), after, None)
        changes.events.append(
            FileChange(
                op=edit.op, path=edit.path, before=before, after=after, cause=call_id, exact=edit.exact, **envelope
            )
        )
        return changes

    def read(self, file: dict[str, Any], **envelope: Any) -> Changes:  # noqa: ANN401
        """A file that was read whole: what is known of it from now on, and whether it is what it was."""
        changes = Changes([], [])
        path, content, start, lines = (file.get(name) for name in ("filePath", "content", "startLine", "numLines"))
        is_whole = start == 1 and isinstance(lines, int) and lines == file.get("totalLines")
        if is_whole and isinstance(path, str) and path and isinstance(content, str):
            body, state = self._met(path, content, changes, envelope)
            self._forget(path)
            held = None if changes.events else body
            if held is None or self._held + len(body) <= _HELD:
                self._held += len(held or b"")
                self._known[path] = _Known(_name(content, state), state, held)
        return changes

    def changed(self, path: str, **envelope: Any) -> list[FileChange]:  # noqa: ANN401
        """A change that the client itself noticed; none where a sub-agent may have made it, which tells of it then."""
        self._forget(path)
        if self._others or path in self._left:
            self._left.discard(path)
            return []
        return [FileChange(op="modify", path=path, cause=EXTERNAL, exact=False, **envelope)]

    def leave_to(self, agent: str, *, is_going_on: bool) -> None:
        """Sub-agents edit files as well, and say so elsewhere: what they may have touched is not known any more."""
        self._forget_all()
        if is_going_on:
            self._others.add(agent)

    def heard(self, notification: str) -> None:
        """Sub-agents in the background that a notification names have ended."""
        for each in [agent for agent in self._others if agent in notification]:
            self._others.discard(each)
            self._forget_all()

    def _met(self, path: str, content: str, changes: Changes, envelope: dict[str, Any]) -> tuple[bytes, FileState]:
        """The bytes of a file that is met, and their state; where it was another when it was last met: the drift."""
        body = content.encode("utf-8", "surrogatepass")
        state = file_state(body)
        known = self._known.get(path)
        if known is not None and not self._others and known.name != _name(content, state):
            changes.contents.extend([body] if known.body is None else [known.body, body])
            changes.events.append(
                FileChange(op="modify", path=path, before=known.state, after=state, cause=EXTERNAL, **envelope)
            )
        return body, state

    def _missed(self, path: str, changes: Changes, envelope: dict[str, Any]) -> None:
        """A file that is new, and that was there when it was last met, was taken away in between."""
        known = self._known.get(path)
        if known is not None and known.state.size and not self._others:
            changes.contents.extend([] if known.body is None else [known.body])
            changes.events.append(FileChange(op="delete", path=path, before=known.state, cause=EXTERNAL, **envelope))

    def _forget(self, path: str) -> None:
        known = self._known.pop(path, None)
        if known is not None and known.body is not None:
            self._held -= len(known.body)

    def _forget_all(self) -> None:
        self._left.update(self._known)
        self._known.clear()
        self._held = 0


def _name(content: str, state: FileState) -> str:
    """What a content is told apart by. Line ends do not count: the client shows a file with those it likes."""
    if "\r" not in content:
        return state.hash
    return hash_bytes(content.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))


def whole_file(value: object) -> dict[str, Any]:
    """The file that a result, or what is attached, shows as text: its path, content and lines; empty where none."""
    shown = mapping(value)
    return mapping(shown.get("file")) if shown.get("type") == "text" else {}
