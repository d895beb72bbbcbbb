"""What Gemini CLI's tools gave back, and the files they changed.

A result with a ``fileDiff`` holds the file before and after, whole: such a change is exact. Without it, what a call
was asked to write is inferred once it went well. A content before that is not the one the session left behind says
that someone else changed the file in between: that is a change of its own, with the cause ``external``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from trackway.ingest.making import file_state, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Event, FileChange, ToolResult
from trackway.schema.plain import json_text

_STATUS: Final = {"error": "error", "cancelled": "interrupted"}
_KNOWN: Final = 32 << 20
"""Bytes of contents that are followed; the longest known are forgotten first."""


class Found(NamedTuple):
    """The text the model saw, whether it is one of failure, and the parts that are more than text."""

    content: str
    is_error: bool = False
    returned: Any = None


def found_in(result: Any, call_id: str) -> Found:  # noqa: ANN401  a text, a part, parts: whatever stands there
    """What a call's parts say; where they hold the results of others, too, only its own."""
    if isinstance(result, str):
        return Found(result)
    parts = [result] if isinstance(result, dict) else listing(result)
    answers = [
        mapping(each)["functionResponse"] for each in parts if isinstance(mapping(each).get("functionResponse"), dict)
    ]
    own = [each for each in answers if each.get("id") == call_id]
    said = [_answer(each) for each in own or answers]
    said += [Found(each["text"]) for each in parts if isinstance(mapping(each).get("text"), str)]
    others = [each for each in parts if not {"functionResponse", "text"} & mapping(each).keys()]
    others += [each for each in own or answers if each.get("parts")]
    return Found("\n".join(each.content for each in said), any(each.is_error for each in said), others or None)


def _answer(answer: dict[str, Any]) -> Found:
    response = answer.get("response")
    if isinstance(response, str):
        return Found(response)
    fields = mapping(response)
    if isinstance(fields.get("error"), str) and "output" not in fields:
        return Found(fields["error"], is_error=True)
    if isinstance(fields.get("output"), str):
        return Found(fields["output"])
    said = text_in(fields.get("output")) if "output" in fields else ""
    return Found(said or ("" if response is None else json_text(response).decode("utf-8", "replace")))


def result_of(call: dict[str, Any], call_id: str, at: int) -> ToolResult:
    """The result of a call, with the exit code that a shell's text ends with."""
    found = found_in(call.get("result"), call_id)
    exit_code = exit_code_of(found.content) if call.get("name") == "run_shell_command" else None
    status = _STATUS.get(text(call.get("status")), "error" if found.is_error or exit_code else "ok")
    return ToolResult(
        call_id=call_id, content=found.content, is_error=status == "error", exit_code=exit_code, status=status,
        returned=found.returned, at=at,
    )  # fmt: skip


def exit_code_of(said: str) -> int | None:
    """The exit code that a command's result names, in its own line near the end."""
    place = said.rfind("Exit Code: ")
    if place < 0:
        return None
    number = ""
    for char in said[place + 11 : place + 22]:
        if char not in "-0123456789":
            break
        number += char
    try:
        return int(number)
    except ValueError:
        return None


class Edits:
    """The contents one session has written, as far as they are known."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self._size = 0

    def made(self, call: dict[str, Any], result: ToolResult) -> tuple[list[Event], list[bytes]]:
        """The changes of a call that went well, and the contents they name."""
        contents: list[bytes] = []
        shown, args = mapping(call.get("resultDisplay")), mapping(call.get("args"))
        path = text(args.get("file_path")) or text(args.get("absolute_path")) or text(args.get("path"))
        if isinstance(shown.get("newContent"), str):
            changes = self._seen(shown, _path_of(shown, path), contents)
        elif path and call.get("name") in ("write_file", "replace", "edit"):
            changes = self._asked(args, path, contents, is_new="overwrote" not in result.content[:80])
        else:
            return [], []
        return [FileChange(at=result.at, **({"cause": result.call_id} | each)) for each in changes], contents

    def _seen(self, shown: dict[str, Any], path: str, contents: list[bytes]) -> Iterator[dict[str, Any]]:
        known, after = self._known.get(path), _bytes(shown["newContent"])
        before = _bytes(shown["originalContent"]) if isinstance(shown.get("originalContent"), str) else None
        if known is not None and known != (before or b""):
            yield self._change("modify", path, (known, before), contents, cause="external", exact=False)
        is_new = before is None or shown.get("isNewFile") is True or (before == b"" and known is None)
        yield self._change("create" if is_new else "modify", path, (None if is_new else before, after), contents)

    def _asked(
        self, args: dict[str, Any], path: str, contents: list[bytes], *, is_new: bool,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        before, after = self._known.get(path), None
        if isinstance(args.get("content"), str):
            after = _bytes(args["content"])
        elif before is not None:
            old, new = _bytes(text(args.get("old_string"))), _bytes(text(args.get("new_string")))
            if old and old in before:
                after = before.replace(old, new)
            else:
                yield self._change("modify", path, (before, None), contents, cause="external", exact=False)
                before = None
        op = "create" if is_new and after is not None and before is None else "modify"
        yield self._change(op, path, (before, after), contents, exact=False)

    def _change(
        self, op: str, path: str, content: tuple[bytes | None, bytes | None], contents: list[bytes], **more: Any,  # noqa: ANN401  fields of the change
    ) -> dict[str, Any]:  # fmt: skip
        contents.extend(each for each in content if each is not None)
        states = [None if each is None else file_state(each) for each in content]
        self._size -= len(self._known.pop(path, b""))
        if content[1] is not None:
            self._known[path] = content[1]
            self._size += len(content[1])
        while self._size > _KNOWN:
            self._size -= len(self._known.pop(next(iter(self._known))))
        return {"op": op, "path": path, "before": states[0], "after": states[1], **more}


def _path_of(shown: dict[str, Any], asked: str) -> str:
    """The file's path: what is shown may be its name alone."""
    whole, name = text(shown.get("filePath")), text(shown.get("fileName"))
    return whole or (asked if not name or PurePath(asked).name == name else name)


def _bytes(said: str) -> bytes:
    return said.encode("utf-8", "surrogatepass")
