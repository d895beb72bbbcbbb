"""What an import did, as people and programs read it: a line a format, and every trouble with its file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from trackway.cli._print import Column, Screen, Span, flush, line, talk, write_json
from trackway.cli._size import size
from trackway.cli._text import count
from trackway.ingest.sources import source_of
from trackway.schema import ids

if TYPE_CHECKING:
    from trackway.ingest.discovery import Discovered
    from trackway.ingest.sources import Detected
    from trackway.ingest.storing import Imported
    from trackway.store.live import LiveStore

_TOLD: Final = 20
"""Troubles that are said one by one; the rest are counted, and are all in ``--json``."""
_QUIET: Final = frozenset({"unknown", "part", "unchanged", "archive", "empty"})


class _Row:
    """What came of one format."""

    def __init__(self) -> None:
        self.files = self.bytes = self.new = self.entries = self.events = self.warnings = self.unchanged = 0
        self.episodes: set[str] = set()

    def fields(self) -> dict[str, int]:
        return {
            "files": self.files, "bytes": self.bytes, "episodes": len(self.episodes), "new_episodes": self.new,
            "entries": self.entries, "events": self.events, "warnings": self.warnings, "unchanged": self.unchanged,
        }  # fmt: skip


class Report:
    """An import, counted as it goes."""

    def __init__(self, *, is_dry: bool = False) -> None:
        self._is_dry = is_dry
        self._rows: dict[str, _Row] = {}
        self._states: Counter[str] = Counter()
        self._files: list[Imported] = []
        self._said = self._unsaid = 0
        self.refused = 0

    def add(self, each: Imported) -> None:
        """Count a file."""
        self._states[each.state] += 1
        self.refused += each.state == "refused"
        if each.state != "unknown":
            self._files.append(each)
        if each.state in ("archive", "empty", "part", "unknown", "refused"):
            return
        row = self._rows.setdefault(each.source, _Row())
        row.files += 1
        row.bytes += each.size
        row.unchanged += each.state == "unchanged"
        row.new += each.new_episodes
        row.entries += each.entries
        row.events += each.events
        row.warnings += each.n_warnings
        row.episodes.update(each.episodes)

    def tell(self, each: Imported) -> None:
        """Say what was wrong with a file, while there is not too much of it."""
        for said in _troubles(each):
            if self._said < _TOLD:
                talk(said)
                self._said += 1
            else:
                self._unsaid += 1
        self._unsaid += each.n_warnings - len(each.warnings)

    def tell_now(self, each: Imported, *, as_json: bool) -> None:
        """Say at once what became of a file, for whoever watches."""
        if each.state in _QUIET or (each.state == "present" and not each.n_warnings):
            return
        if as_json:
            write_json(fields_of(each))
        else:
            for said in _troubles(each):
                talk(said)
            if each.state != "refused":
                named = Span(ids.short(each.episodes[0]) if each.episodes else "-", "tool")
                Screen().show([line(named, f"  {count(each.events, 'event')}  {each.file}", label=each.state)])
        flush()

    def derived(self, live: LiveStore) -> None:
        """What is derived of episodes, made now while somebody waits anyway: searching and counting are fast then."""
        from trackway.cli._derived import catch_up

        if any(row.events for row in self._rows.values()):
            catch_up(live)

    def write_json(self) -> None:
        """The whole report."""
        write_json({
            "dry_run": self._is_dry, "states": dict(self._states),
            "sources": {name: row.fields() for name, row in self._rows.items()},
            "files": [fields_of(each) for each in self._files],
        })  # fmt: skip

    def show(self) -> None:
        """The report as a table, and what comes next."""
        if self._unsaid:
            talk(f"… and {count(self._unsaid, 'more warning')}: --json tells all")
        screen = Screen()
        if self._rows:
            columns = [Column("FORMAT"), *(Column(each, right=True) for each in _TITLES)]
            screen.table(columns, [_cells(name, row) for name, row in sorted(self._rows.items())])
            screen.flush()
        for state, said in _SAID.items():
            if self._states[state]:
                one, more = said
                talk(f"{count(self._states[state], 'file')} {one if self._states[state] == 1 else more}")
        if self._is_dry:
            talk("nothing was stored: this was a dry run")
        elif any(row.new for row in self._rows.values()):
            talk("next: trackway ls, trackway search WORDS, trackway stats")
        elif not self._rows:
            talk("nothing was imported (hint: trackway import --detect FILE says what a file is taken for)")


_TITLES: Final = ("FILES", "SIZE", "EPISODES", "NEW", "EVENTS ADDED", "WARNINGS")
_SAID: Final = {
    "unknown": ("is nothing known, and was left alone", "are nothing known, and were left alone"),
    "empty": ("holds nothing that was said or done yet", "hold nothing that was said or done yet"),
    "pruned": tuple(f"{are} of episodes that were pruned here (--again brings them back)" for are in ("is", "are")),
    "refused": ("could not be imported", "could not be imported"),
}


def _cells(name: str, row: _Row) -> list[Span]:
    source = source_of(name)
    known = f"{len(row.episodes):,}" if row.episodes or not row.unchanged else "-"
    return [
        Span(source.title if source else name, "tool"), Span(f"{row.files:,}"), Span(size(row.bytes)), Span(known),
        Span(f"{row.new:,}"), Span(f"{row.events:,}"), Span(f"{row.warnings:,}", "warn" if row.warnings else "dim"),
    ]  # fmt: skip


def _troubles(each: Imported) -> Iterable[str]:
    """What was wrong with a file, each with its place."""
    if each.state == "refused":
        yield f"{each.error} (hint: {each.hint})" if each.hint else each.error
    for told in each.warnings:
        place = f", line {told.line}" if told.line else "" if told.offset is None else f", byte {told.offset:,}"
        yield f"{each.file}{place}: {told.reason}"


def fields_of(each: Imported) -> dict[str, Any]:
    """A file's report as JSON has it."""
    fields: dict[str, Any] = msgspec.to_builtins(each)
    return {name: value for name, value in fields.items() if value not in ("", ()) or name in ("episodes", "warnings")}


class Guess(NamedTuple):
    """What a file is taken for, the surest first; or why it cannot be told."""

    file: str
    found: list[Detected]
    trouble: str


def show_guesses(guesses: list[Guess], *, as_json: bool) -> None:
    """What each file is."""
    if as_json:
        write_json([_guess_fields(each) for each in guesses])
        return
    screen = Screen()
    for each in guesses:
        if not each.found:
            talk(f"{each.file}: {each.trouble or 'nothing known'}")
        for source, sign in each.found:
            part = " (a part of one)" if sign.is_part else ""
            said = f"{each.file}: {source.title}{part}, {sign.confidence:.0%} sure: {sign.reason}"
            screen.show([line(said, label=source.name)._replace(gutter=18)])
    screen.flush()


def _guess_fields(each: Guess) -> dict[str, Any]:
    found = [
        {"source": source.name, "title": source.title, "confidence": sign.confidence, "reason": sign.reason,
         "is_part": sign.is_part}
        for source, sign in each.found
    ]  # fmt: skip
    return {"file": each.file, "found": found, **({"error": each.trouble} if each.trouble else {})}


def show_discovered(found: list[Discovered]) -> None:
    """What there is, before anything of it is read."""
    screen = Screen()
    columns = [Column("FOUND"), Column("FILES", right=True), Column("SIZE", right=True), Column("IN", flexible=True)]
    rows = [
        [Span(each.source.title, "tool"), Span(f"{each.files:,}"), Span(size(each.bytes)),
         Span(", ".join(map(str, each.folders)), "dim")]
        for each in found
    ]  # fmt: skip
    screen.table(columns, rows)
    screen.flush()
