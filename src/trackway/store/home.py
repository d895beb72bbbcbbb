"""The local folder: where each thing is, and nothing else.

home/
  store.db            the default store
  derived.db          digests of episodes, for `stats`: derived, may be removed at any time
  store.lock          held while the store is created or migrated
  seal.lock           held while a journal is sealed; whoever holds it may adopt the journals of the dead
  journals/WRITER/    one folder per recording process: lock, writer.json, N.seg
  quarantine/         records that could not be sealed, with the reason beside each
  losses.jsonl        what could not be recorded at all, one line each time
  receipts.jsonl      what was pruned, one line a batch
  imports/            what was imported before: derived, droppable; and files on their way into the store
  search/             the full-text index of each store: derived, droppable
  redact.key          lifts the tokens that redaction left; nothing else can
  trackway.toml       settings
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_WRITER = re.compile(r"[0-9a-f]{16}")
_UNNAMED = ".new-"


class Home(NamedTuple):
    """Paths inside the home folder."""

    path: Path

    @property
    def store(self) -> Path:
        """The default store's file."""
        return self.path / "store.db"

    @property
    def store_key(self) -> str:
        """How journals name the default store."""
        return f"sqlite:{os.path.realpath(self.store)}"

    @property
    def derived(self) -> Path:
        """What is derived from episodes and kept for speed."""
        return self.path / "derived.db"

    @property
    def seal_lock(self) -> Path:
        """The lock of the sealer."""
        return self.path / "seal.lock"

    @property
    def journals(self) -> Path:
        """The folder of all journals."""
        return self.path / "journals"

    @property
    def quarantine(self) -> Path:
        """The folder of records that could not be sealed."""
        return self.path / "quarantine"

    @property
    def losses(self) -> Path:
        """The list of what could not be recorded."""
        return self.path / "losses.jsonl"

    @property
    def receipts(self) -> Path:
        """The list of what was pruned."""
        return self.path / "receipts.jsonl"

    @property
    def imports(self) -> Path:
        """The folder of what importing remembers."""
        return self.path / "imports"

    @property
    def search(self) -> Path:
        """The folder of full-text indexes, one folder a store."""
        return self.path / "search"

    @property
    def key(self) -> Path:
        """The key that lifts redaction tokens."""
        return self.path / "redact.key"

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.path / "trackway.toml"

    def journal(self, writer: str) -> JournalFolder:
        """The folder of one writer."""
        return JournalFolder(self.journals / writer)

    def unnamed(self, writer: str) -> JournalFolder:
        """The folder of a writer that has not locked it yet."""
        return JournalFolder(self.journals / f"{_UNNAMED}{writer}")

    def all_unnamed(self) -> list[JournalFolder]:
        """Every folder that never got its name: being made, or left by one that died making it."""
        return [JournalFolder(each) for each in self.journals.glob(f"{_UNNAMED}*")]

    def writers(self) -> list[str]:
        """Every writer that has a journal here, oldest name first."""
        try:
            names = [each.name for each in self.journals.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if _WRITER.fullmatch(name))


class JournalFolder(NamedTuple):
    """Paths inside one writer's folder."""

    path: Path

    @property
    def lock(self) -> Path:
        """Locked for as long as the writer lives."""
        return self.path / "lock"

    @property
    def about(self) -> Path:
        """Who the writer is, for display, and which store it records for."""
        return self.path / "writer.json"

    def segment(self, number: int) -> Path:
        """The file of a segment, by the order in which it was made."""
        return self.path / f"{number:06d}.seg"

    def segments(self) -> list[Path]:
        """Every segment file, in the order in which they were made."""
        try:
            return sorted(each for each in self.path.iterdir() if each.suffix == ".seg")
        except FileNotFoundError:
            return []
