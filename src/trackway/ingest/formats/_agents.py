"""What the readers of command-line agents share: how a session begins, and where a user has such files.

A session is called after its first prompt, and files say other things before it: those entries are held, a bounded
few, until the prompt is read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from msgspec.structs import replace

from trackway.ingest.making import task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import text
from trackway.schema.events import EpisodeStart, Header, Note, Parent

HELD: Final = 64
"""Entries that are held until the first prompt is read; after that the session begins without one."""


def objects(items: Iterable[Item | Trouble]) -> Iterator[Item | Trouble]:
    """The lines that are objects; another value by itself is trouble."""
    for item in items:
        if isinstance(item, Trouble) or isinstance(item.value, dict):
            yield item
        else:
            yield Trouble(item.place, "no object: kept with the file, and not read")


def set_aside(original: Original, file: Original | None) -> None:
    """A file that was looked into for a sub-agent's sake is a session by itself: it is not kept with the sub-agent."""
    if file is not None:
        original.companions.pop(file.path, None)


def elapsed(start: int, end: int) -> float | None:
    """Milliseconds between two times in nanoseconds; None where one is not known, or they go backwards."""
    return (end - start) / 1e6 if 0 < start <= end else None


def is_placeholder(usage: Mapping[str, Any]) -> bool:
    """Whether a usage counts nothing at all: what a client writes where no answer came."""
    return not any(each for each in usage.values() if isinstance(each, (int, float)))


def uuid_in(name: str) -> str:
    """The UUID that a name is; empty where it is none."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return ""


def homes_of(variable: str, usual: str, *inside: str) -> Callable[[Path, Mapping[str, str]], list[Path]]:
    """Where a user has a client's files: ``inside`` what a variable names, else the client's usual folder."""

    def homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
        top = from_environ(environ, variable, home) or home / usual
        return folders(*(top / each for each in inside))

    return homes


def folders(*candidates: Path | None) -> list[Path]:
    """Those of the folders that are there, each once."""
    found: list[Path] = []
    for each in candidates:
        if each is not None and each not in found and _is_folder(each):
            found.append(each)
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a folder that may not be looked into
        return False


def from_environ(environ: Mapping[str, str], name: str, home: Path) -> Path | None:
    """The folder a variable names; None where it names none."""
    said = environ.get(name, "").strip()
    if not said:
        return None
    return home / said[2:] if said.startswith("~/") else Path(said)


class About:
    """What is known of a session while its beginning is read."""

    def __init__(self) -> None:
        self.task = ""
        self.title = ""
        self.agent: str | None = None
        self.model: str | None = None
        self.at = 0
        self.parent: Parent | None = None
        self.metadata: dict[str, Any] = {}
        self.native: dict[str, Any] | None = None
        self.place: Place | None = None
        self.before: Entry | None = None
        """What a sub-agent's own file says first: it goes on with a session, and must not begin as that one does."""

    def prompt(self, said: str) -> None:
        """A prompt of a person: the first one names the episode."""
        if not self.task:
            self.task = task_of(said)

    def note(self, **fields: object) -> None:
        """Keep what is said of the session, where it is said at all, and was not said before."""
        for name, value in fields.items():
            if value not in (None, "", [], {}):
                self.metadata.setdefault(name, value)

    @property
    def name(self) -> str:
        """What the episode is called: its prompt, else its title, else the folder it was held in."""
        return self.task or task_of(self.title) or _last_name(text(self.metadata.get("cwd")))


def _last_name(folder: str) -> str:
    return (PureWindowsPath if "\\" in folder else PurePosixPath)(folder).name


class Sessions:
    """The sessions of a file, each with a beginning of its own."""

    def __init__(self, source: str, agent: str) -> None:
        self.source = source
        self.agent = agent
        self._about: dict[str, About] = {}

    def about(self, session: str) -> About:
        """What is known of a session so far."""
        found = self._about.get(session)
        if found is None:
            found = self._about[session] = About()
        return found

    def sub_agent(self, session: str, agent: str, said: str = "", native: dict[str, Any] | None = None) -> None:
        """The file is one of a sub-agent: it goes on with the session, and says so first."""
        note = Note(topic="subagent", text=said or None, detail={"id": agent}, agent=agent)
        self.about(session).before = Entry(session, f"subagent {agent}", [note], native=native)

    def opened(self, entries: Iterable[Entry | Trouble]) -> Iterator[Entry | Trouble]:
        """The entries, with each session's beginning before its first one; one that only began is an episode, too."""
        held: dict[str, list[Entry] | None] = {}
        for each in entries:
            if isinstance(each, Trouble):
                yield each
                continue
            waiting = held.setdefault(each.session, [])
            if waiting is None:
                yield each
                continue
            waiting.append(each)
            if len(waiting) >= HELD or self.about(each.session).task:
                held[each.session] = None
                yield from self._begun(each.session, waiting)
        for session, about in self._about.items():
            left = held.get(session, [])
            if left or (left is not None and about.native):
                yield from self._begun(session, left, is_tentative=not about.task)

    def _begun(self, session: str, waiting: Sequence[Entry], *, is_tentative: bool = False) -> Iterator[Entry]:
        about = self.about(session)
        header = Header(
            task=about.name or self.agent, agent=about.agent or self.agent, model=about.model,
            metadata=about.metadata or None, parent=about.parent, source=self.source, taps=("transcript",),
        )  # fmt: skip
        place = about.place or (waiting[0].place if waiting else Place())
        if about.before is not None:
            at = next((each.at for entry in waiting[:1] for each in entry.events if each.at), about.at)
            first = [replace(each, at=at) for each in about.before.events]
            yield about.before._replace(events=first)
        start = EpisodeStart(header=header, at=about.at)
        yield Entry(session, "start", [start], place, native=about.native, is_tentative=is_tentative)
        yield from waiting
