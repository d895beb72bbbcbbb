"""The folders around the file of a session of opencode, in each of the layouts there have been.

storage/session/<project>/<session>.json     message/<session>/<message>.json     part/<message>/<part>.json
project/<folder>/storage/session/info/…      session/message/<session>/…          session/part/<session>/<message>/…
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agents import About
from trackway.ingest.formats._opencode_parts import Message, Messages
from trackway.ingest.making import at_of
from trackway.ingest.original import Original
from trackway.ingest.values import mapping, text

_DEEPEST: Final = 16


def is_session(session: Mapping[str, Any]) -> bool:
    """Whether a value is what a session's file holds."""
    time = mapping(session.get("time"))
    named = isinstance(session.get("id"), str) and {"title", "version"} <= session.keys() and "created" in time
    placed = {"projectID", "directory"} & session.keys() or text(session.get("id")).startswith("ses")
    return bool(named and placed and "role" not in session)


class Storage:
    """The folders around a session's file, in each of the layouts there have been."""

    def __init__(self, original: Original, session: str) -> None:
        self._original = original
        self._session = session
        self._own = set(original.companions)
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
            if not is_session(found):
                return None
            parent = text(found.get("parentID"))
        return None

    def forget(self) -> None:
        """What was looked into of the session above is kept with that one, not with this."""
        for path in self._original.companions.keys() - self._own:
            del self._original.companions[path]
        self._loose = None

    def begin(self, about: About, session: str) -> None:
        """What the session at the top begins with: read as it is when that one is read."""
        messages = Messages(session, None, about)
        for _, _, file in self.messages(session):
            fields = _peek(file)
            parts = [_peek(each) for each in self.parts(text(fields.get("id")))]
            for _ in messages.entries(Message(fields, parts)):
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
