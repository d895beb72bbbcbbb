"""What opencode's tools say of the files they change: some give the whole content before and after."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from trackway.ingest.making import file_state, rest_of
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import FileChange

_OPS: Final = {"add": "create", "delete": "delete", "move": "rename"}


def small(about: object) -> Any:  # noqa: ANN401  metadata is anything
    """What a tool gives beside its text, without the contents of files: those are in the file changes."""
    if not isinstance(about, dict):
        return about
    kept = {key: each for key, each in about.items() if key not in ("filediff", "files", "output")}
    for key in ("filediff", "files"):
        if key in about:
            kept[key] = [_without(each) for each in listing(about[key])] or _without(about[key])
    return kept or None


def _without(change: object) -> object:
    return rest_of(change, "before", "after") if isinstance(change, dict) else change


def exact(state: dict[str, Any], cause: str) -> tuple[list[FileChange], list[bytes]]:
    """The changes that a tool gives with the contents of the files before and after."""
    about = mapping(state.get("metadata"))
    told = [each for each in (about.get("filediff"), *listing(about.get("files"))) if isinstance(each, dict)]
    changes, contents = [], []
    for each in told:
        path = text(each.get("file")) or text(each.get("filePath"))
        before, after = (each[name].encode("utf-8", "surrogatepass") if isinstance(each.get(name), str) else None
                         for name in ("before", "after"))  # fmt: skip
        if not path or state.get("status") == "error" or before is None or after is None:
            continue
        op = _OPS.get(text(each.get("type")), "modify" if before or "type" in each else "create")
        changes.append(
            FileChange(
                op=op, path=path, new_path=text(each.get("movePath")) or None, cause=cause,
                before=None if op == "create" else file_state(before),
                after=None if op == "delete" else file_state(after),
            )
        )  # fmt: skip
        contents += [before, after]
    return changes, contents


def said_by(change: FileChange, agent: str | None, at: int) -> FileChange:
    """The change, as one of an agent's at a time."""
    return replace(change, agent=agent, at=at)
