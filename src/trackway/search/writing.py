"""Writing into the index: documents in, documents out, and what it says of itself, in one commit.

Only while the lock is held. The engine writes with threads of its own and with bounded memory; what is not committed
when a process dies is as if it had never been added.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from trackway.errors import SearchUnavailable
from trackway.schema import ids
from trackway.search import state as states
from trackway.search.index import STATE, Place, engine, for_the_owner, made, opened, schema
from trackway.search.state import Known, State
from trackway.search.texts import Entry
from trackway.search.words import encodable, indexed
from trackway.store import system
from trackway.store.holding import held

if TYPE_CHECKING:
    import tantivy

_HEAP: Final = 48 << 20
_SMALL_HEAP: Final = 15 << 20
_SMALL: Final = 5_000
_LEAST, _MOST = -(2**63), 2**63 - 1


class Of(NamedTuple):
    """The episode that entries belong to."""

    id: str
    key: int
    agent: str | None
    source: str


def key_of(episode: bytes) -> int:
    """The end of an episode's id: what hits are grouped by."""
    return int.from_bytes(episode[8:], "big")


@cache
def _new() -> type[tantivy.Document]:
    import tantivy

    return tantivy.Document


def document(entry: Entry, of: Of) -> tantivy.Document:
    """An entry as the engine takes it."""
    found = _new()()
    text = found.add_text
    text("episode", of.id)
    found.add_unsigned("key", of.key)
    found.add_unsigned("seq", entry.seq)
    found.add_integer("at", max(_LEAST, min(entry.at, _MOST)))
    text("kind", entry.kind)
    for each in indexed(entry.text):
        text("text", each)
    for name, value in (("source", of.source), ("agent", of.agent), ("agent", entry.agent), ("tool", entry.tool)):
        if value:
            text(name, encodable(value))
    if entry.error is not None:
        found.add_boolean("error", entry.error)
    for path in entry.paths:
        text("path", encodable(path))
    return found


@contextlib.contextmanager
def holding(place: Place, patience: float) -> Iterator[bool]:
    """The lock of the index, ours inside; False where another has it for longer than we wait."""
    system.make_folder(place.lock.parent.parent)
    system.make_folder(place.lock.parent)
    with held(place.lock, patience) as got:
        yield got


class Writing:
    """One writer at work. Left without a commit, nothing has happened."""

    def __init__(self, place: Place, store_key: str, threads: int | None = None) -> None:
        self.place = place
        self.store_key = store_key
        self.rebuilt: str | None = None
        self._writer: tantivy.IndexWriter | None = None
        self._most = min(2, os.cpu_count() or 1) if threads is None else threads
        self._threads = 1
        try:
            index = opened(place)
            self.state = State() if index is None else states.load(index.searcher())
        except SearchUnavailable as error:
            index, self.state, self.rebuilt = None, State(), error.why
        self.index = made(place, store_key) if index is None else index

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and error is None:
            with engine("it cannot be put in order"):
                writer.wait_merging_threads()
                for_the_owner(self.place)

    def expect(self, events: int) -> None:
        """About how much is to come: the engine's threads are not worth starting for a few."""
        self._threads = 1 if events < _SMALL else self._most

    def _open(self) -> tantivy.IndexWriter:
        if self._writer is None:
            heap = _SMALL_HEAP if self._threads == 1 else _HEAP * self._threads
            with engine("it cannot be written to"):
                self._writer = self.index.writer(heap_size=heap, num_threads=self._threads)
        return self._writer

    def collect(self) -> None:
        """Remove the files that nothing refers to any more."""
        with engine("it cannot be written to"):
            self._open().garbage_collect_files()

    def start_over(self) -> None:
        """An empty index in place of this one."""
        self._writer = None  # which ends its threads, and lets go of the engine's own lock
        self.index, self.state = made(self.place, self.store_key), State()

    def add(self, entry: Entry, of: Of) -> None:
        """One more document."""
        (self._writer or self._open()).add_document(document(entry, of))

    def forget(self, episode: bytes, first: int = 0) -> None:
        """Take out what is there of an episode, from an event on."""
        import tantivy

        writer = self._open()
        with engine("it cannot be written to"):
            if not first:
                writer.delete_documents_by_term("episode", ids.from_bytes(episode))
                return
            of = tantivy.Query.term_query(schema(), "key", key_of(episode), index_option="basic")
            from_there = tantivy.Query.range_query(schema(), "seq", tantivy.FieldType.Unsigned, lower_bound=first)
            must = tantivy.Occur.Must
            writer.delete_documents_by_query(tantivy.Query.boolean_query([(must, of), (must, from_there)]))

    def commit(self, changes: dict[bytes, Known], *, file: int, together: bool = False) -> None:
        """Make what was added and taken out real, with what is known of these episodes from now on.

        ``together`` leaves no older document of what is known behind.
        """
        state, writer = self.state, self._open()
        state.changed(changes)
        state.file, state.number = file, state.number + 1
        told = changes
        with engine("it cannot be written to"):
            if together or state.is_scattered:
                writer.delete_documents_by_term("kind", STATE)
                told, state.documents = state.episodes, 0
            writer.add_document(states.document(state.number, file, told))
            writer.commit()
            state.documents += 1
        for_the_owner(self.place)
