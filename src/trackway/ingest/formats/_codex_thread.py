"""One Codex thread while its rollout is read: what is open, what is held, and how an entry of it is made.

An entry is known by what it is, the time of its line and the id it bears. All three are the same in a rollout that
was migrated from the legacy to the paginated shape, so that a session met in both is not said twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from trackway.ingest.formats._agents import About
from trackway.ingest.formats._codex_edits import Edits
from trackway.ingest.formats._codex_results import Ended
from trackway.ingest.formats._codex_tokens import ModelCalls
from trackway.ingest.formats._codex_twins import AGENT, ALL, USER, Held, Twins
from trackway.ingest.making import digest_of
from trackway.ingest.numbers import Numbers
from trackway.ingest.source import Entry, Place
from trackway.ingest.values import mapping, text
from trackway.schema.events import AssistantText, AssistantThinking, Event, Note, User

_ENVELOPE: Final = frozenset({"timestamp", "type", "payload"})
_OPEN: Final = 512
"""Calls whose end was told and whose output never came: more than these are said without it."""


class Thread:
    """A thread, and the line of it that is being read."""

    def __init__(self, session: str, about: About) -> None:
        self.session = session
        self.about = about
        self.model: str | None = None
        self.actor = "human"
        self.own_from = 0
        self.is_begun = False
        self.has_begun_saying = False
        self.has_items = False
        self.has_answers = False
        self.calls = ModelCalls()
        self.twins = Twins()
        self.edits = Edits()
        self.ended: dict[str, tuple[Ended, str, tuple[str, int, Place, dict[str, Any]]]] = {}
        self.open: set[str] = set()
        self.patches: dict[str, str] = {}
        self.patched: set[str] = set()
        self.unnamed: list[str] = []
        self.limits: Any = None
        self.last_text = ""
        self.when = ""
        self.at = 0
        self.place = Place()
        self.line: dict[str, Any] = {}
        self._met = Numbers()
        self._count = 0

    # --- making entries -----------------------------------------------------------------------------------------

    def entry(
        self, name: str, named: str, events: Sequence[Event], *, native: dict[str, Any] | None = None,
        contents: Sequence[bytes] = (),
    ) -> Entry:  # fmt: skip
        """What this line says: what it is, what it is named by, its events, and what has no home in them."""
        line = self.line
        if len(line) > len(_ENVELOPE) and "payload" in line:
            native = {**(native or {}), "line": {key: line[key] for key in line if key not in _ENVELOPE}}
        return Entry(self.session, self.key(name, named), events, self.place, None, native, contents)

    def key(self, name: str, named: str) -> str:
        """What an entry is known by. ``named`` tells apart what one line's time does not."""
        key = f"{name}:{self.when}:{named}"
        known = hash(key)
        again = (self._met.get(known) or 0) + 1
        self._met[known] = again
        return key if again == 1 else f"{key}#{again}"

    def note(self, topic: str, fields: dict[str, Any], *known: str, **more: Any) -> Entry:  # noqa: ANN401  fields of the note
        """A line that is worth a note; all of it is kept."""
        native = {key: each for key, each in fields.items() if key not in known and key != "type"}
        named = text(fields.get("call_id")) or text(fields.get("id")) or text(fields.get("event_id"))
        named = "" if "id" in known else named
        return self.entry(
            topic, named or self.named(fields), [Note(topic=topic, at=self.at, **more)], native=native or None
        )

    def named(self, said: object) -> str:
        """What tells a thing apart that has no id: nothing where its line has a time, else a digest of it."""
        return "" if self.when else digest_of(repr(said).encode("utf-8", "surrogatepass"))

    def number(self) -> int:
        """A number for what has no id."""
        self._count += 1
        return self._count

    # --- what is said -------------------------------------------------------------------------------------------

    def model_says(self) -> list[Event]:
        """The model call this line belongs to, where it begins here."""
        return self.calls.begin(self.when, self.model, self.at)

    def by_user(self, said: str) -> User:
        """A person's prompt, or that of the agent that started this one."""
        ordinal = self.line.get("ordinal")
        inherited = isinstance(ordinal, int) and ordinal < self.own_from
        self.about.prompt(said)
        return User(content=said, actor="human" if inherited else self.actor, at=self.at)

    # --- what is held -------------------------------------------------------------------------------------------

    def settle(self, kinds: Collection[str] = ALL) -> list[Entry]:
        """Say the events whose items will not come any more."""
        return [self._say(each) for each in self.twins.take(kinds)] if self.twins.held else []

    def hold_end(self, call_id: str, name: str, ended: Ended) -> list[Entry]:
        """Keep how a call ended for its output, which follows; a file that ends before that has not told it yet."""
        self.ended[call_id] = (ended, name, (self.when, self.at, self.place, self.line))
        return [self._say_end(next(iter(self.ended)))] if len(self.ended) > _OPEN else []

    def end_note(self, name: str, ended: Ended) -> Entry:
        """How a call ended, where its output was told before, or never is."""
        fields = ended.fields
        detail = {key: fields[key] for key in ("call_id", "exit_code", "status") if fields.get(key) is not None}
        return self.note(name, fields, *detail, "duration", detail=detail, duration_ms=ended.duration_ms)

    def finish_calls(self) -> list[Entry]:
        """Say the ends of calls whose output will not come any more: a turn is over."""
        return [self._say_end(each) for each in list(self.ended)] if self.ended else []

    def _say_end(self, call_id: str) -> Entry:
        ended, name, then = self.ended.pop(call_id)
        now = self.when, self.at, self.place, self.line
        self.when, self.at, self.place, self.line = then
        entry = self.end_note(name, ended)
        self.when, self.at, self.place, self.line = now
        return entry

    def _say(self, held: Held) -> Entry:
        now = self.when, self.at, self.place, self.line
        self.when, self.at, self.place, self.line = held.when, held.at, held.place, mapping(None)
        events: list[Event]
        if held.kind == USER:
            self.calls.close()
            events = [self.by_user(held.text)]
        else:
            kind = AssistantText if held.kind == AGENT else AssistantThinking
            events = self.model_says()
            events.append(kind(content=held.text, call=self.calls.id, at=self.at))
        entry = self.entry(f"{held.kind}_message", self.named(held.text), events, native=held.native)
        self.when, self.at, self.place, self.line = now
        return entry
