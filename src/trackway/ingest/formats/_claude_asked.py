"""Edits of Claude Code whose results do not tell what became of which file: those of sub-agents, of old notebooks.

What was asked for is what was done then. It is inferred, never exact: nobody says what stood in the file before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trackway.ingest.formats._claude_files import Edit
from trackway.ingest.values import text

_WRITES: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_CREATED: Final = "File created"


class Asked:
    """The edits that were asked for and not answered yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def call(self, call_id: str, name: str, given: Any) -> None:  # noqa: ANN401  a call's input as it is in the file
        """A tool was called."""
        if name in _WRITES and isinstance(given, dict):
            self._waiting[call_id] = (name, given)

    def answered(self, call_id: str, said: str) -> Edit | None:
        """The edit that a result which says no more than ``said`` is of; None where it is of none."""
        name, given = self._waiting.pop(call_id, ("", {}))
        path = text(given.get("notebook_path") if name == "NotebookEdit" else given.get("file_path"))
        if not path:
            return None
        whole = given.get("content") if name == "Write" else None
        if name == "Edit" and given.get("old_string") == "":
            whole = given.get("new_string")  # nothing can be put in place of nothing but in a file that is new
        after = whole if isinstance(whole, str) else None
        is_new = said.startswith(_CREATED) or (name == "Edit" and after is not None)
        return Edit(path, "create" if is_new else "modify", None, after, exact=False)
