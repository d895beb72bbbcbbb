"""Gemini CLI: the sessions below ``~/.gemini/tmp/<project>/chats``, as one document or as a log of lines.

A document is ``{sessionId, projectHash, startTime, lastUpdated, messages}``, written anew as it grows. A log begins
with the same without messages; each further line is a message, ``{"$set": …}`` for what changed in the session, or
``{"$rewindTo": id}``. A message of an id that was there before replaces it (``_gemini_chat``). What was taken back
stays an episode's own: it is what was tried. A chat that was saved by hand is ``{history: [{role, parts}]}``.

The invariant: a part of a message has the same key in a document, in the log it was migrated to, and in any longer
version of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.decoding import text_of_bytes, value_of
from trackway.ingest.formats._agents import Sessions, folders, objects
from trackway.ingest.formats._gemini_chat import Chat
from trackway.ingest.head import Head, closed
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text

NAME: Final = "gemini_cli"
_ROLES: Final = ("user", "model", "gemini")
_KINDS: Final = ("user", "gemini", "info", "error", "warning")


# --- telling --------------------------------------------------------------------------------------------------------


def detect(head: Head) -> Sign | None:
    """A session's id and its project's hash, with messages of Gemini's kinds; or a history of roles and parts."""
    document = _document_of(head)
    if document is None:
        first = head.objects[0] if head.objects else {}
        if _is_session(first) and (len(head.objects) == 1 or any(_is_line(each) for each in head.objects[1:])):
            return Sign(0.95, "a first line with sessionId and projectHash, then messages by id")
        if any(_is_line(each) and each.get("type") == "gemini" for each in head.objects):
            return Sign(0.6, "lines with an id and the type gemini")
        return None
    if _is_session(document) and "messages" in document:
        return Sign(0.95, "an object with sessionId, projectHash and messages")
    messages = [mapping(each) for each in listing(document.get("messages"))]
    if text(document.get("sessionId")) and any(text(each.get("type")) == "gemini" for each in messages):
        return Sign(0.9, "an object with sessionId and messages of the type gemini")
    history = [mapping(each) for each in listing(document.get("history"))]
    if history and all(each.get("role") in _ROLES and "parts" in each for each in history[:8]):
        return Sign(0.7, "an object with a history of roles and parts")
    return None


def _document_of(head: Head) -> dict[str, Any] | None:
    """The file as one object; None where it is one a line."""
    first = head.body.lstrip().split(b"\n", 1)[0]
    try:
        value = value_of(first)
    except (ValueError, RecursionError):
        # An object over many lines, some of which may well be values by themselves.
        found = closed(text_of_bytes(head.body).strip()) if first.startswith(b"{") else None
        return found if isinstance(found, dict) else None
    is_whole = isinstance(value, dict) and ("messages" in value or "history" in value)
    return value if is_whole else None


def _is_session(value: dict[str, Any]) -> bool:
    return bool(text(value.get("sessionId"))) and bool(text(value.get("projectHash")))


def _is_line(value: dict[str, Any]) -> bool:
    return "$set" in value or "$rewindTo" in value or ("id" in value and value.get("type") in _KINDS)


def homes(home: Path, environ: Mapping[str, str]) -> list[Path]:  # noqa: ARG001  no variable names its place
    """Where Gemini CLI keeps its chats."""
    return folders(home / ".gemini" / "tmp")


# --- reading --------------------------------------------------------------------------------------------------------


def read(original: Original) -> Iterator[Entry | Trouble]:
    """The entries of a session."""
    sessions = Sessions(NAME, "gemini")
    is_document = _document_of(original.head()) is not None
    return sessions.opened(_document(original, sessions) if is_document else _lines(original, sessions))


def _document(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    meta: dict[str, Any] = {}
    chat: Chat | None = None
    try:
        for key, number, value in original.members("messages", "history"):
            if number is None:
                meta[key] = value
                continue
            if chat is None:
                if "sessionId" not in meta:  # it stands behind its messages, if anywhere
                    meta = {
                        part.key: part.value for part in original.members("messages", "history") if part.number is None
                    }
                chat = _begun(meta, sessions)
            yield from chat.message(value)
    except FileRefused as error:
        if chat is None:
            raise
        yield Trouble(Place(), str(error))  # a large one, cut off: what came before is told
    chat = chat or _begun(meta, sessions)
    yield from chat.change({name: meta[name] for name in ("summary",) if name in meta})


def _begun(meta: dict[str, Any], sessions: Sessions) -> Chat:
    session = text(meta.get("sessionId"))
    chat = Chat(session, sessions.about(session))
    chat.begin(meta)
    return chat


def _lines(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    chats: dict[str, Chat] = {}
    chat: Chat | None = None
    for each in objects(original.items()):
        if isinstance(each, Trouble):
            yield each
            continue
        value = each.value
        session = text(value.get("sessionId"))
        if chat is None or (session and session != chat.session):
            chat = chats.get(session) or _begun(value if session else {}, sessions)
            chats[session] = chat
        chat.place = each.place
        yield from _line(chat, value)


def _line(chat: Chat, value: dict[str, Any]) -> Iterator[Entry]:
    if isinstance(value.get("$rewindTo"), str):
        yield from chat.rewind(value["$rewindTo"])
    elif "$set" in value:
        yield from chat.change(mapping(value["$set"]))
    elif text(value.get("id")) or "type" in value or "role" in value:
        yield from chat.message(value)
    elif text(value.get("sessionId")):
        chat.begin(value)
        yield from chat.change({name: value[name] for name in ("messages", "summary") if name in value})
    else:
        yield from chat.change({"line": value})


SOURCE: Final = Source(
    name=NAME,
    title="Gemini CLI",
    detect=detect,
    read=read,
    looked_for="sessionId and projectHash with messages, as one object or line by line with $set and $rewindTo",
    keeps_ids=True,
    homes=homes,
)
