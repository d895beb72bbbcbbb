"""One Codex trace bundle while its events are read: threads, requests, calls of tools, and the payloads beside them."""

from __future__ import annotations

from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats._agents import About
from trackway.ingest.formats._codex_edits import Edits
from trackway.ingest.formats._codex_items import is_harness
from trackway.ingest.making import Keys, digest_of, text_in
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Event, User

_LATEST: Final = 4
"""Requests of a thread that a later one may be told by."""


class Request:
    """A request as later ones need it: its messages, and what was answered."""

    def __init__(self, call: str, messages: list[Any], at: int) -> None:
        self.call = call
        self.messages = messages
        self.at = at
        self.response = ""
        self.answer: list[Any] = []


class Bundle:
    """The state of a bundle, and the event that is being read."""

    def __init__(self, original: Original, session: str, about: About) -> None:
        self.original = original
        self.session = session
        self.about = about
        self.root: str | None = None
        self.agents: dict[str, str] = {}
        self.requests: dict[str | None, list[Request]] = {}
        self.by_id: dict[str, tuple[Request, str | None]] = {}
        self.called: set[str] = set()
        self.started: dict[str, int] = {}
        self.runtime: dict[str, dict[str, Any]] = {}
        self.edits = Edits()
        self.keys = Keys()
        self.key = ""
        self.at = 0
        self.place = Place()
        self.agent: str | None = None
        self.troubles: list[Trouble] = []
        self._told: set[str] = set()

    def thread(self, named: object) -> None:
        """Whose event it is: the root thread's own, or a sub-agent's."""
        thread = text(named)
        if not thread or thread == self.root:
            self.agent = None
        else:
            self.agent = self.agents.get(thread, thread)

    def payload(self, ref: Any) -> Any:  # noqa: ANN401  a payload is any JSON value
        """What a reference leads to; None, and a trouble, where it leads nowhere."""
        path = text(mapping(ref).get("path"))
        if not path:
            return None
        found = self.original.near(0, *path.split("/"))
        if found is None:
            self.troubles.append(Trouble(self.place, f"{path} is not there"))
            return None
        try:
            return found.value()
        except FileRefused as error:
            self.troubles.append(Trouble(self.place, str(error)))
            return None

    def entry(self, events: list[Event], native: dict[str, Any] | None, contents: list[bytes] | None = None) -> Entry:
        """What this event says; it is known by its number."""
        return Entry(self.session, self.key, events, self.place, None, native or None, contents or ())

    # --- requests ---------------------------------------------------------------------------------------------------

    def request(self, call: str, messages: list[Any]) -> Request:
        """Keep a request for those that follow it."""
        made = Request(call, messages, self.at)
        latest = self.requests.setdefault(self.agent, [])
        latest.append(made)
        for old in latest[:-_LATEST]:
            old.messages, old.answer = [], []
        del latest[:-_LATEST]
        self.by_id[call] = (made, self.agent)
        return made

    def answered(self, call: str, response: str, items: list[Any]) -> Request | None:
        """Keep what was answered, and say to which request."""
        found, _ = self.by_id.pop(call, (None, None))
        if found is not None:
            found.response, found.answer = response, items
        return found

    def before(self, response: str) -> Request | None:
        """The request that this response answered."""
        latest = self.requests.get(self.agent, [])
        return next((each for each in latest if response and each.response == response), None)

    def prompts(self, messages: list[Any]) -> list[Event]:
        """What people wrote among messages that no request held before."""
        found: list[Event] = []
        for value in messages:
            message = mapping(value)
            if message.get("type", "message") != "message" or message.get("role") != "user":
                continue
            parts = [
                part for part in listing(message.get("content")) if not is_harness(text(mapping(part).get("text")))
            ]
            said = text_in(parts)
            named = text(message.get("id")) or digest_of(said.encode("utf-8", "surrogatepass"))
            if said and named not in self._told:
                self._told.add(named)
                actor = "human" if self.agent is None else "harness"
                if actor == "human":
                    self.about.prompt(said)
                found.append(User(content=said, actor=actor, agent=self.agent, at=self.at))
        return found
