"""What stands in a Claude Code session besides what was said: attachments, system entries, titles, snapshots.

What is put before the model is ``context``; what is only shown, counted or remembered by the client is a note. An
entry of a type nobody knows is a note as well, with all of it kept.
"""

from __future__ import annotations

from typing import Any, Final

from trackway.ingest.formats._claude_files import Files, whole_file
from trackway.ingest.formats._claude_requests import SNAPSHOT, Requests
from trackway.ingest.formats._claude_results import Made
from trackway.ingest.formats._claude_words import OTHERS, SEEN, is_marked
from trackway.ingest.making import at_of, is_only_text, text_in
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, Event, Note, User

_TEXTS: Final = ("content", "summary", "customTitle", "aiTitle", "agentName", "lastPrompt", "title", "tag", "prUrl")
_SHOWN: Final = ("text", "content", "snippet", "prompt", "addedBlocks", "addedLines", "stdout")


def noted(kind: str, value: dict[str, Any], native: dict[str, Any], *, at: int, agent: str | None) -> Event:
    """An entry that nobody said; what goes into the event is taken out of ``native``."""
    subtype = value.get("subtype")
    if kind == "system":
        found = _system(subtype, value, native, at, agent)
        if found is not None:
            return found
    elif kind == "content-replacement":  # the model sees these in the place of results that stay in the file
        detail = {"type": kind, "replacements": native.pop("replacements", None)}
        return Context(op="compact", detail=detail, at=at, agent=agent)
    if kind == "progress":
        subtype = mapping(value.get("data")).get("type")
    topic = f"{kind}.{subtype}" if isinstance(subtype, str) and kind in ("system", "progress") else kind or "untyped"
    if kind == "system" and isinstance(subtype, str):
        native.pop("subtype")
    at = at or _time_of_snapshot(value)
    said = next((each for name in _TEXTS if (each := _take(native, name)) is not None), None)
    return Note(topic=topic, text=said, duration_ms=_duration(native), at=at, agent=agent)


def _system(subtype: Any, value: dict[str, Any], native: dict[str, Any], at: int, agent: str | None) -> Event | None:  # noqa: ANN401
    """The system entries that say what the model sees no longer."""
    if subtype == "microcompact_boundary":
        detail = native.pop("microcompactMetadata", None)
        return Context(op="compact", text=_take(native, "content"), detail=detail, at=at, agent=agent)
    if listing(value.get("retractedMessageUuids")):
        detail = {"retracted": native.pop("retractedMessageUuids")}
        return Context(op="rewind", text=_take(native, "content"), detail=detail, at=at, agent=agent)
    return None


def _take(native: dict[str, Any], name: str) -> str | None:
    return native.pop(name) if isinstance(native.get(name), str) else None


def _duration(native: dict[str, Any]) -> int | float | None:
    found = native.get("durationMs")
    if isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < 2**53:
        return native.pop("durationMs")  # type: ignore[no-any-return]  # a number, as was just seen
    return None


def _time_of_snapshot(value: dict[str, Any]) -> int:
    snapshot = value.get("snapshot")
    return at_of(snapshot.get("timestamp")) if isinstance(snapshot, dict) else 0


def attached(native: dict[str, Any], files: Files, requests: Requests, *, at: int, agent: str | None) -> Made:
    """What was put beside a prompt: for the model to see, a message that waited, or something for the client only."""
    attachment = native.pop("attachment")
    kind, made = text(attachment.get("type")), Made([], [])
    if kind == "queued_command":
        return Made([_queued(attachment, native, files, at, agent)], [])
    if kind == SNAPSHOT:
        return Made([requests.snapshot(attachment, at=at, agent=agent)], [])
    name, said = _shown(attachment)
    rest = {key: each for key, each in attachment.items() if key != name}
    rendered = _rendered(native)
    if rendered:
        said, rest = rendered, attachment
    elif kind not in SEEN or (kind == "hook_success" and not text(attachment.get("content"))):
        made.events.append(Note(topic=f"attachment.{kind}", text=said, detail=rest, at=at, agent=agent))
        return made
    made.events.append(Context(op="inject", text=said, detail=rest, at=at, agent=agent))
    if kind == "edited_text_file" and text(attachment.get("filename")):
        made.events.extend(files.changed(attachment["filename"], at=at, agent=agent))
    elif kind == "file":
        changes = files.read(whole_file(attachment.get("content")), at=at, agent=agent)
        made.events.extend(changes.events)
        made.contents.extend(changes.contents)
    return made


def _rendered(native: dict[str, Any]) -> str:
    """What an attachment became before the model: newer versions say so beside it. Then it was seen, of any kind."""
    parts = listing(native.get("rendered"))
    said = "\n".join(text_in(mapping(each).get("content")) for each in parts)
    if said and all(set(each) == {"content"} and is_only_text(each["content"]) for each in map(mapping, parts)):
        del native["rendered"]
    return said


def _queued(attachment: dict[str, Any], native: dict[str, Any], files: Files, at: int, agent: str | None) -> Event:
    """A message that was sent while the model was at work, and that it is given now."""
    prompt = attachment.get("prompt")
    said = text_in(prompt)
    native["attachment"] = {key: each for key, each in attachment.items() if key != "prompt" or not is_only_text(each)}
    origin = text(mapping(attachment.get("origin")).get("kind"))
    is_other = agent is not None or origin in OTHERS or is_marked(said) or attachment.get("isMeta") is True
    if is_other or attachment.get("commandMode") == "task-notification":
        files.heard(said)
        return User(content=said, actor="harness", at=at, agent=agent)
    return User(content=said, at=at, agent=agent)


def _shown(attachment: dict[str, Any]) -> tuple[str | None, str | None]:
    """The field that holds an attachment's text, and the text; None where it has none that is plain."""
    for name in _SHOWN:
        found = attachment.get(name)
        if isinstance(found, str) and found:
            return name, found
        if isinstance(found, list) and found and all(isinstance(each, str) for each in found):
            return name, "\n".join(found)
    return None, None


def told(block: object) -> str | None:
    """The text of a block; None where it is no text."""
    if isinstance(block, str):
        return block
    said = mapping(block).get("text") if mapping(block).get("type") == "text" else None
    return said if isinstance(said, str) else None
