"""What an action is about, read from its arguments: a path, a query, a content.

Tools name these differently; the first name that an argument bears decides, in the order given here.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from trackway.schema.plain import text_of

PATHS: Final = (
    "path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "absolute_path",
    "relative_path", "relative_workspace_path", "directory", "dir", "dir_path", "folder",
)  # fmt: skip
_QUERY: Final = (
    "query", "pattern", "regex", "q", "search", "search_term", "command", "cmd", "script", "url", "glob",
    "glob_pattern", "prompt", "question", "action",
)  # fmt: skip
_CONTENT: Final = (
    "content", "contents", "new_string", "new_str", "text", "file_text", "new_source", "insert_text", "code", "patch",
    "diff", "body", "input",
)  # fmt: skip


class Action(NamedTuple):
    """The three things most tools are told; None where this one was not."""

    path: str | None = None
    query: str | None = None
    content: str | None = None


def action_of(args: bytes) -> Action:
    """What the arguments say; nothing where they are no JSON object.

    >>> action_of(b'{"file_path": "a.py", "content": "x = 1"}')
    Action(path='a.py', query=None, content='x = 1')
    >>> action_of(b'{"command": ["bash", "-lc", "ls"]}').query
    'bash -lc ls'
    """
    try:
        found = json.loads(args)
    except (ValueError, RecursionError):
        return Action()
    if not isinstance(found, dict):
        return Action()
    return Action(_first(found, PATHS), _first(found, _QUERY), _first(found, _CONTENT))


def _first(args: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = args.get(name)
        if value is not None:
            words = isinstance(value, list) and all(isinstance(each, str) for each in value)
            return " ".join(value) if words else text_of(value)
    return None
