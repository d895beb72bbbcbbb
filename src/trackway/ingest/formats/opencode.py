"""opencode: sessions in its storage folder, what ``opencode export`` writes, and ``opencode run --format json``.

In the storage a session is one small file; its messages and their parts are files in folders beside it, found from
there. Sessions that a task was given to are inside the session that gave it, under their own name as the agent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agents import About, Sessions, folders, from_environ, listing, mapping, text
from trackway.ingest.formats._opencode_parts import Message, Messages
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, rest_of
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.schema.events import Context, Note, Parent, User
from trackway.schema.plain import text_of

_PARTS: Final = frozenset({
    "text", "reasoning", "tool", "file", "step-start", "step-finish", "snapshot", "patch", "agent", "compaction",
    "subtask", "retry",
})  # fmt: skip
_STREAM: Final = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use", "error"})
_DEEPEST: Final = 16


# --- what it is told by -------------------------------------------------------------------------------------------


def _detect(head: Head) -> Sign | None:
    whole = head.document
    if isinstance(whole.get("info"), dict) and isinstance(whole.get("messages"), list):
        first = next(iter(whole["messages"]), None)
        if _is_session(whole["info"]) and (first is None or {"info", "parts"} <= mapping(first).keys()):
            return Sign(0.95, "info of a session of opencode, and messages with info and parts")
        return None
    if len(head.objects) > 1 or "part" in whole:
        lines = [each for each in head.objects if _is_line(each)]
        return Sign(0.9, "lines with sessionID, timestamp and a part of opencode") if lines else None
    if _is_session(whole):
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


def _is_session(info: Mapping[str, Any]) -> bool:
    time = mapping(info.get("time"))
    named = isinstance(info.get("id"), str) and {"title", "version"} <= info.keys() and "created" in time
    placed = {"projectID", "directory"} & info.keys() or text(info.get("id")).startswith("ses")
    return bool(named and placed and "role" not in info)


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
    info: dict[str, Any] = {}
    for part in original.members("messages"):
        if part.key == "info":
            info = mapping(part.value)
            break
    about, messages = _begun(info, sessions, None)
    for part in original.members("messages"):
        if part.key != "messages":
            continue
        said = mapping(part.value)
        if not said:
            yield Trouble(Place(), f"message {part.number} is no object: kept with the file, and not read")
            continue
        parts = [each for each in listing(said.get("parts")) if isinstance(each, dict)]
        yield from _said(messages, Message(mapping(said.get("info")), parts), about)
    yield from _reverted(info, text(info.get("id")))


def _stored(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    info = original.value()
    if not isinstance(info, dict):
        raise original.refused("no session of opencode: not an object")
    storage = _Storage(original, text(info.get("id")))
    for name in ("session_diff", "todo"):  # opened, so that they are kept: what they say is in the calls
        original.near(2, name, f"{text(info.get('id'))}.json")
    about, messages = _begun(info, sessions, storage)
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
        yield from _said(messages, Message({"id": file.path.stem, **fields}, parts, is_open), about)
    yield from _reverted(info, messages.session)


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


def _said(messages: Messages, message: Message, about: About) -> Iterator[Entry]:
    if messages.agent is None and about.model is None:
        model = mapping(message.fields.get("model"))
        about.model = text(model.get("modelID")) or text(message.fields.get("modelID")) or None
    for entry in messages.entries(message):
        for event in entry.events:
            if isinstance(event, User) and event.agent is None:
                about.prompt(event.content)
        yield entry


def _reverted(info: dict[str, Any], session: str) -> Iterator[Entry]:
    """What was said after a message was taken back."""
    revert = mapping(info.get("revert"))
    if revert:
        to = text(revert.get("messageID"))
        detail = rest_of(revert, "diff")
        yield Entry(
            session, f"revert {to} {text(revert.get('partID'))}", [Context(op="rewind", detail=detail)], native=revert
        )


def _begun(info: dict[str, Any], sessions: Sessions, storage: _Storage | None) -> tuple[About, Messages]:
    """The session an episode is: this one, or the one that gave it its task, where that one is here, too."""
    own, parent = text(info.get("id")), text(info.get("parentID"))
    above = storage.above(parent) if parent and storage is not None else None
    session = own if above is None else text(above.get("id"))
    about = sessions.about(session)
    _tell(about, info if above is None else above)
    if above is not None and storage is not None:
        storage.begin(about, session)
        sessions.sub_agent(session, own, text(info.get("title")), info)
    elif parent:
        about.parent = Parent(episode=episode_id("opencode", parent, keeps_ids=False))
    return about, Messages(session, None if above is None else own)


def _tell(about: About, info: dict[str, Any]) -> None:
    about.native, about.title = info, text(info.get("title"))
    about.at = at_of(mapping(info.get("time")).get("created"))
    about.note(cwd=info.get("directory"), version=info.get("version"), project=info.get("projectID"))


class _Storage:
    """The folders around a session's file, in each of the layouts there have been."""

    def __init__(self, original: Original, session: str) -> None:
        self._original = original
        self._session = session
        self._loose: dict[str, list[Original]] | None = None

    def messages(self, session: str | None = None) -> list[tuple[int, str, Original]]:
        """The files of its messages by when they were made, then by name."""
        name = session or self._session
        files = self._original.all_near(2, "message", name, pattern="*.json")
        files = files or self._original.all_near(1, "message", name, pattern="*.json")
        return sorted(((_made(each), each.path.name, each) for each in files), key=lambda each: each[:2])

    def parts(self, message: str) -> list[Original]:
        """The files of a message's parts, by name, which is by when they were made."""
        near = self._original.all_near
        found = near(2, "part", message, pattern="*.json")
        found = found or near(1, "part", self._session, message, pattern="*.json")
        return found or self._by_message().get(message, [])

    def _by_message(self) -> dict[str, list[Original]]:
        """Parts that lie side by side in one folder, by the message each names."""
        if self._loose is None:
            self._loose = {}
            for each in self._original.all_near(2, "part", pattern="*.json"):
                self._loose.setdefault(text(_peek(each).get("messageID")), []).append(each)
        return self._loose

    def above(self, parent: str) -> dict[str, Any] | None:
        """The session at the top of those that gave tasks to one another; None where one of them is not here."""
        found: dict[str, Any] = {}
        for _ in range(_DEEPEST):
            if not parent:
                return found
            file = self._original.near(0, f"{parent}.json") or self._original.near(0, f"ses_{parent}.json")
            found = {} if file is None else _peek(file)
            if not _is_session(found):
                return None
            parent = text(found.get("parentID"))
        return None

    def begin(self, about: About, session: str) -> None:
        """What the session at the top begins with: read as it is when that one is read."""
        messages = Messages(session, None)
        for _, _, file in self.messages(session):
            fields = _peek(file)
            parts = [_peek(each) for each in self.parts(text(fields.get("id")))]
            for _ in _said(messages, Message(fields, parts), about):
                pass
            if about.task:
                return


def _peek(file: Original) -> dict[str, Any]:
    try:
        return mapping(file.value())
    except FileRefused:  # said where it is read
        return {}


def _made(file: Original) -> int:
    return at_of(mapping(_peek(file).get("time")).get("created"))


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
        messages = begun.setdefault(session, Messages(session, None))
        about = sessions.about(session)
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
