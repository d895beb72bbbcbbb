"""A tool's result in a Claude Code session: what the model saw, what the tool gave besides, what became of files.

The block under the user's role is what the model saw. ``toolUseResult`` beside it is the client's own: an object, a
text or a list. Of it is kept what the block does not say, and not the contents that file changes hold.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trackway.ingest.formats._claude_files import Edit, Files, edit_of, whole_file
from trackway.ingest.formats._claude_words import exit_code_of, status_of
from trackway.ingest.making import is_only_text, text_in
from trackway.ingest.values import mapping
from trackway.schema.events import Event, ToolResult

_SAID: Final = frozenset({"type", "tool_use_id", "content", "is_error"})


class Made(NamedTuple):
    """Events of an entry, and the contents of files that they name."""

    events: list[Event]
    contents: list[bytes]


def result_of(
    block: dict[str, Any], call_id: str, returned: Any, files: Files, *,  # noqa: ANN401  as in the file
    was_denied: bool, asked: Edit | None = None, **envelope: Any,  # noqa: ANN401  fields all events share
) -> tuple[Made, dict[str, Any]]:  # fmt: skip
    """The result that a block says, with ``returned`` beside it, and the changes of files; what has no event."""
    content = text_in(block.get("content"))
    is_error = block.get("is_error") is True
    made, left = Made([], []), {key: each for key, each in block.items() if key not in _SAID}
    if not is_only_text(block.get("content")):
        left["content"] = block["content"]
    result = mapping(returned)
    changes, held = _changes(result, call_id, files, made, envelope) if result and not is_error else ([], ())
    if asked is not None and not (changes or is_error or result.get("staged") or result.get("error")):
        done = files.edited(asked, call_id, **envelope)
        made.contents.extend(done.contents)
        changes = done.events
    made.events.append(
        ToolResult(
            call_id=call_id, content=content, is_error=is_error,
            exit_code=exit_code_of(content, is_error=is_error),
            status=status_of(content, returned, is_error=is_error, was_denied=was_denied),
            returned=_said_besides(returned, content, held), duration_ms=_duration(result), **envelope,
        )
    )  # fmt: skip
    made.events.extend(changes)
    return made, left


def _changes(
    result: dict[str, Any], call_id: str, files: Files, made: Made, envelope: dict[str, Any],
) -> tuple[list[Any], tuple[str, ...]]:  # fmt: skip
    """The changes of files, and the fields of the result that these hold."""
    agent = result.get("agentId")
    if isinstance(agent, str) and agent:
        files.leave_to(agent, is_going_on=result.get("isAsync") is True)
        return [], ()
    edit = edit_of(result)
    if edit is not None:
        changes = files.edited(edit, call_id, **envelope)
        made.contents.extend(changes.contents)
        return changes.events, edit.held
    shown = whole_file(result)
    if shown:
        changes = files.read(shown, **envelope)
        made.contents.extend(changes.contents)
        return changes.events, ()
    return [], ()


def _said_besides(returned: Any, content: str, held: tuple[str, ...]) -> Any:  # noqa: ANN401
    """What was returned, where it is more than the model saw; without what is kept as a file's content."""
    if isinstance(returned, str):
        return None if returned in (content, f"Error: {content}") else returned
    if isinstance(returned, dict):
        left = {key: each for key, each in returned.items() if key not in held and each != content}
        return left if any(left.values()) else None
    return returned or None


def _duration(result: dict[str, Any]) -> int | float | None:
    for name in ("durationMs", "totalDurationMs"):
        found = result.get(name)
        if isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < 2**53:
            return found
    return None
