"""opencode: sessions in its storage folder, what ``opencode export`` writes, and ``opencode run --format json``.

In the storage a session is one small file; its messages and their parts are files in folders beside it, found from
there. Sessions that a task was given to are inside the session that gave it, under their own name as the agent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agents import About, Sessions, folders, from_environ
from trackway.ingest.formats._opencode_parts import Message, Messages
from trackway.ingest.formats._opencode_storage import Storage, is_session
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, rest_of
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, Note, Parent
from trackway.schema.plain import text_of

_PARTS: Final = frozenset({
    "text", "reasoning", "tool", "file", "step-start", "step-finish", "snapshot", "patch", "agent", "compaction",
    "subtask", "retry",
})  # fmt: skip
_STREAM: Final = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use", "error"})


# --- what it is told by -------------------------------------------------------------------------------------------


def _detect(head: Head) -> Sign | None:
    whole = head.document
    if isinstance(whole.get("info"), dict) and isinstance(whole.get("messages"), list):
        first = next(iter(whole["messages"]), None)
        if is_session(whole["info"]) and (first is None or {"info", "parts"} <= mapping(first).keys()):
            return Sign(0.95, "info of a session of opencode, and messages with info and parts")
        return None
    if len(head.objects) > 1 or "part" in whole:
        lines = [each for each in head.objects if _is_line(each)]
        return Sign(0.9, "lines with sessionID, timestamp and a part of opencode") if lines else None
    if is_session(whole):
        return Sign(0.9, "a session of opencode: id, title, version, time, and where it was held")
    return _sign_of_part(whole)


def _sign_of_part(whole: Mapping[str, Any]) -> Sign | None:
    if whole.get("role") in ("user", "assistant") and {"id", "sessionID", "time"} <= whole.keys():
        return Sign(0.9, "a message of opencode: id, sessionID, role and time", is_part=True)
    if not isinstance(whole.get("type"), str) or not isinstance(whole.get("id"), str):
        return None
    if isinstance(whole.get("messageID"), str) and ("sessionID" in whole or whole["type"] in _PARTS):
        return Sign(0.9, "a part of a message of opencode: id, messageID and type", is_part=True)
    if (
        whole["type"] == "text"
        and set(whole) <= {"id", "type", "text", "time", "synthetic"}
        and "start" in mapping(whole.get("time"))
    ):
        return Sign(0.6, "a part of a message of opencode: id, type, text and time", is_part=True)
    return None


def _is_line(line: Mapping[str, Any]) -> bool:
    is_event = text(line.get("type")) in _STREAM and isinstance(line.get("sessionID"), str) and "timestamp" in line
    return is_event and (isinstance(line.get("part"), dict) or "error" in line)


# --- how it is read -----------------------------------------------------------------------------------------------


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("opencode", "opencode")
    head = original.head()
    if any(_is_line(each) for each in head.objects[:2]):
        return sessions.opened(_streamed(original, sessions))
    if "messages" in head.document and "info" in head.document:
        return sessions.opened(_exported(original, sessions))
    return sessions.opened(_stored(original, sessions))


def _exported(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    members = original.members("messages")
    head = next((mapping(each.value) for each in members if each.key == "info"), {})
    messages = _begun(head, sessions, None)
    try:
        for part in original.members("messages"):
            said = mapping(part.value)
            if part.key == "messages" and said:
                parts = [each for each in listing(said.get("parts")) if isinstance(each, dict)]
                yield from messages.entries(Message(mapping(said.get("info")), parts))
            elif part.key == "messages":
                yield Trouble(Place(), f"message {part.number} is no object: kept with the file, and not read")
    except FileRefused as error:  # far into a large file: what came before it is sound
        yield Trouble(Place(), str(error))
    yield from _reverted(head, messages)


def _stored(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    head = original.value()
    if not isinstance(head, dict):
        raise original.refused("no session of opencode: not an object")
    for name in ("session_diff", "todo"):  # opened, so that they are kept: what they say is in the calls
        original.near(2, name, f"{text(head.get('id'))}.json")
    storage = Storage(original, text(head.get("id")))
    messages = _begun(head, sessions, storage)
    files = list(storage.messages())
    for i, (_, _, file) in enumerate(files):
        fields = yield from _value(file)
        if fields is None:
            continue
        parts: list[dict[str, Any]] = []
        for each in storage.parts(text(fields.get("id"))):
            part = yield from _value(each)
            if part is not None:
                parts.append({"id": each.path.stem, **part})
        is_open = i == len(files) - 1 and "completed" not in mapping(fields.get("time"))
        yield from messages.entries(Message({"id": file.path.stem, **fields}, parts, is_open))
    yield from _reverted(head, messages)


def _value(file: Original) -> Generator[Trouble, None, dict[str, Any] | None]:
    try:
        found = file.value()
    except FileRefused as error:
        yield Trouble(Place(), str(error))
        return None
    if isinstance(found, dict):
        return found
    yield Trouble(Place(), f"{file.name}: no object: kept, and not read")
    return None


def _reverted(head: dict[str, Any], messages: Messages) -> Iterator[Entry]:
    """What was said after a message was taken back."""
    revert = mapping(head.get("revert"))
    if revert:
        event = Context(op="rewind", detail=rest_of(revert, "diff"), agent=messages.agent)
        key = f"revert {text(revert.get('messageID'))} {text(revert.get('partID'))}"
        yield Entry(messages.session, key, [event], native=revert)


def _begun(head: dict[str, Any], sessions: Sessions, storage: Storage | None) -> Messages:
    """The session an episode is: this one, or the one that gave it its task, where that one is here, too."""
    own, parent = text(head.get("id")), text(head.get("parentID"))
    above = storage.above(parent) if parent and storage is not None else None
    session = own if above is None else text(above.get("id"))
    about = sessions.about(session)
    _tell(about, head if above is None else above)
    if above is not None and storage is not None:
        storage.begin(about, session)
        storage.forget()
        sessions.sub_agent(session, own, text(head.get("title")), head)
    elif parent:
        about.parent = Parent(episode=episode_id("opencode", parent, keeps_ids=False))
    return Messages(session, None if above is None else own, about)


def _tell(about: About, head: dict[str, Any]) -> None:
    about.native, about.title = head, text(head.get("title"))
    about.at = at_of(mapping(head.get("time")).get("created"))
    about.note(cwd=head.get("directory"), version=head.get("version"), project=head.get("projectID"))


def _streamed(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    """Lines of parts: each is a part of the storage, under the key that it has there."""
    begun: dict[str, Messages] = {}
    told: set[str] = set()
    for item in original.items():
        if isinstance(item, Trouble):
            yield item
            continue
        line = mapping(item.value)
        session, part, at = text(line.get("sessionID")), mapping(line.get("part")), at_of(line.get("timestamp"))
        about = sessions.about(session)
        messages = begun.setdefault(session, Messages(session, None, about))
        about.at = about.at or at
        if not part:
            error = line.get("error")
            note = Note(topic=text(line.get("type")) or "opencode", text=text_of(error) if error else None, at=at)
            yield Entry(session, f"{line.get('type')} {line.get('timestamp')}", [note], item.place, native=line)
            continue
        message = text(part.get("messageID"))
        fields = {"id": message, "role": "assistant", "time": {"created": line.get("timestamp")}}
        entries = messages.entries(Message(fields, [part]))
        first = next(entries)
        if message not in told:
            told.add(message)
            yield first._replace(place=item.place)
        yield from (each._replace(place=item.place) for each in entries)


def _homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
    """The folders of the sessions alone: what else lies there is found from them, or is none of ours (keys, logs)."""
    top = (from_environ(environ, "XDG_DATA_HOME", home) or home / ".local" / "share") / "opencode"
    old = sorted((top / "project").glob("*/storage/session/info")) if (top / "project").is_dir() else []
    return folders(top / "storage" / "session", *old)


SOURCE = Source(
    name="opencode", title="opencode", detect=_detect, read=_read, homes=_homes,
    looked_for="a session with id, projectID, directory, title and time, its messages and parts in folders beside it",
)  # fmt: skip
