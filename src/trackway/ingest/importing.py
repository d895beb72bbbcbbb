"""Files → the store: read by as many processes as there are cores, stored by one, each file whole or not at all.

    gather → skip what has not changed → read into spools, side by side → one transaction a file: what is new of it

What an episode has already is told by the keys of its entries, so that a copy, a slice or a longer version of a file
adds only what is new. Killed anywhere, the store is sound and the same command goes on where it was.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from trackway.errors import EventRefused, FileRefused
from trackway.ingest.archives import is_archive, unpacked
from trackway.ingest.gathering import Candidate, Unreadable, may_be_archive
from trackway.ingest.original import Original
from trackway.ingest.packs import PACK, import_pack
from trackway.ingest.reading import Begun, Readers, SpoolFolder
from trackway.ingest.source import Trouble
from trackway.ingest.spool import Told
from trackway.ingest.state import KnownFile, State
from trackway.ingest.storing import Imported, Storing
from trackway.ingest.worker import NOTHING_KNOWN, Job
from trackway.store import system
from trackway.store.live import LiveStore


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to import: ``again`` reads what has not changed and brings back what was pruned; ``dry`` stores nothing."""

    again: bool = False
    dry: bool = False
    source: str | None = None
    workers: int = 0


DEFAULT = Options()
ARCHIVE: Final = "archive"


def import_files(
    live: LiveStore, found: Iterable[Candidate | Unreadable], options: Options = DEFAULT
) -> Iterator[Imported]:
    """Import them, in their order; what is wrong with one is in what is said of it, and does not stop the others."""
    with Importing(live, options) as importing:
        yield from importing.take(found)


class Importing:
    """One import under way."""

    def __init__(self, live: LiveStore, options: Options = DEFAULT) -> None:
        self._live = live
        self._options = options
        system.make_folder(live.home.path)  # before anything in it: only its owner may look inside
        self._state = State(live.home.imports, live.key)
        self._folder = SpoolFolder(live.home.imports)
        self._instead = State(self._folder.path / "dry", live.key) if options.dry else None
        self._storing = Storing(live, self._state, again=options.again, instead=self._instead)
        self._readers = Readers(options.workers or os.cpu_count() or 1)
        self._waiting: deque[tuple[Candidate | Unreadable, Begun | Imported]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.close()
        if self._instead is not None:
            self._instead.close()
        self._folder.close()
        self._state.close()

    def take(self, found: Iterable[Candidate | Unreadable]) -> Iterator[Imported]:
        """Import these; what became of each, in their order."""
        for each in found:
            known = self._unchanged(each)
            if known is not None:
                self._waiting.append((each, known))
            elif isinstance(each, Unreadable):
                said = Imported(file=each.name, state="refused", error=f"{each.name}: {each.reason}")
                self._waiting.append((each, said))
            elif may_be_archive(each.path) and is_archive(Original(each.path, each.name).head()):
                yield from self._finish(0)
                yield from self._archive(each)
            else:
                yield from self._begin(each)
        yield from self._finish(0)

    def _archive(self, archive: Candidate) -> Iterator[Imported]:
        folder = self._folder.name()
        warnings: list[Told] = []
        try:
            for each in unpacked(archive.path, folder, archive.name):
                if isinstance(each, Trouble):
                    warnings.append(Told(line=0, offset=None, reason=each.reason))
                    continue
                size = each.path.stat().st_size
                yield from self._begin(Candidate(each.path, each.name, size, each.modified))
            yield from self._finish(0)
        except FileRefused as error:
            yield Imported(file=archive.name, state="refused", error=error.message, hint=error.hint or "")
            return
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        told = tuple(warnings)
        yield Imported(file=archive.name, state=ARCHIVE, size=archive.size, warnings=told, n_warnings=len(told))
        if not self._options.dry:
            self._state.note(archive.name, KnownFile(archive.size, archive.modified, "", ARCHIVE), {})

    def _unchanged(self, each: Candidate | Unreadable) -> Imported | None:
        """What is said of a file that is as it was; it is not read again."""
        if self._options.again or isinstance(each, Unreadable):
            return None
        known = self._state.file(each.name)
        if known is None or not known.is_as_it_was(each.size, each.modified) or not self._is_here(each.name, known):
            return None
        state = "pruned" if known.gone else "unchanged"
        return Imported(file=each.name, state=state, source=known.source, size=each.size)

    def _is_here(self, name: str, known: KnownFile) -> bool:
        """Whether the store has what it should have of a file: another may have been put in its place."""
        if known.source == ARCHIVE:
            return all(self._is_here("", each) for each in self._state.inside(name))
        if known.gone:
            return self._storing.are_gone(known.gone)
        has = getattr(self._live.store, "has_original", None)
        return has is None or has(known.hash)

    def _begin(self, each: Candidate) -> Iterator[Imported]:
        """Have it read; gives what was finished meanwhile."""
        known = self._state.file(each.name)
        earlier = None if known is None or not known.hash else (known.size, known.hash)
        spool = os.fsencode(self._folder.name())
        job = Job(os.fsencode(each.path), each.name, spool, earlier, self._options.source)
        self._waiting.append((each, self._readers.begin(job, each.size)))
        yield from self._finish(self._readers.ahead)

    def _finish(self, but: int) -> Iterator[Imported]:
        while len(self._waiting) > but:
            each, begun = self._waiting.popleft()
            if isinstance(begun, Imported):
                yield begun
            elif isinstance(each, Candidate):
                yield self._finished(each, begun)

    def _finished(self, each: Candidate, begun: Begun) -> Imported:
        read = begun()
        if read.part_of:
            return Imported(file=each.name, state="part", source=read.part_of, size=each.size)
        if read.refused:
            is_known = each.is_named or NOTHING_KNOWN not in read.refused
            state = "refused" if is_known else "unknown"
            return Imported(file=each.name, state=state, size=each.size, error=read.refused, hint=read.hint)
        try:
            if read.source == PACK:
                return import_pack(self._live, self._storing, read, each)
            return self._storing.store(read, each.modified)
        except (ArithmeticError, EventRefused, LookupError, RecursionError, TypeError, ValueError) as error:
            said = f"{each.name}: the store cannot keep it: {error}"
            return Imported(file=each.name, state="refused", size=each.size, source=read.source, error=said)
        finally:
            Path(os.fsdecode(read.spool)).unlink(missing_ok=True)
