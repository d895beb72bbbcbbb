"""What OpenHands V0 says of a file that was edited: sometimes the whole of it before and after, sometimes a fragment.

``old_content`` and ``new_content`` are the whole file where an LLM rewrote it, and where an observation has
``formatted_output_and_error`` (0.19 to 0.22). Later the editor's own arguments stand there, which are fragments, and
stand there even if nothing was replaced; what was done is told by ``diff`` alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trackway.ingest.making import file_state
from trackway.ingest.values import mapping, text
from trackway.schema.events import FileChange


class Edit(NamedTuple):
    """A change to a file, and the bytes it names."""

    change: FileChange
    contents: tuple[bytes, ...] = ()


def edit_of(event: dict[str, Any], args: dict[str, Any], call: str, agent: str | None) -> Edit | None:
    """The change an observation tells of; ``args`` are the action's. None where nothing was changed."""
    extras = mapping(event.get("extras"))
    path = text(extras.get("path")) or text(args.get("path"))
    kind = event.get("observation")
    if kind not in ("edit", "write") or not path or failed(event):
        return None
    who: dict[str, Any] = {"path": path, "cause": call, "agent": agent}
    if kind == "edit" and _is_whole(extras):
        return whole_edit(extras, who)
    created = args.get("file_text")
    if kind == "edit" and args.get("command") == "create" and isinstance(created, str):
        content = created.encode("utf-8", "surrogatepass")
        return Edit(FileChange(op="create", after=file_state(content), **who), (content,))
    if kind == "edit" and extras.get("diff") == "":
        return None
    return Edit(FileChange(op="create" if args.get("command") == "create" else "modify", exact=False, **who))


def _is_whole(extras: dict[str, Any]) -> bool:
    if extras.get("impl_source") == "oh_aci":
        return "formatted_output_and_error" in extras
    return "new_content" in extras


def whole_edit(told: dict[str, Any], who: dict[str, Any]) -> Edit | None:
    """A change of which the whole file is told; what is not is left out, and the change is not exact then."""
    old, new = told.get("old_content"), told.get("new_content")
    existed = told.get("prev_exist") is not False
    if not isinstance(new, str):
        return Edit(FileChange(op="modify", exact=False, **who))
    if existed and old == new:
        return None
    before = old.encode("utf-8", "surrogatepass") if existed and isinstance(old, str) else None
    after = new.encode("utf-8", "surrogatepass")
    change = FileChange(
        op="modify" if existed else "create", before=None if before is None else file_state(before),
        after=file_state(after), exact=not existed or before is not None, **who,
    )  # fmt: skip
    return Edit(change, (after,) if before is None else (before, after))


def failed(event: dict[str, Any]) -> bool:
    """Whether an observation is one of failure, as far as its words tell."""
    extras = mapping(event.get("extras"))
    seen = extras.get("formatted_output_and_error", event.get("content"))
    return event.get("observation") == "error" or extras.get("error") is True or text(seen).startswith("ERROR:\n")
