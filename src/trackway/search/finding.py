"""A question answered: the index and its tail asked, hits grouped by episode, each with the piece of text that answers.

    query → tree → both asked → grouped → the events read from the store → the pieces cut out

An index that cannot be read is made anew, once, and that is said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trackway.errors import EpisodeNotFound, QueryRefused, SearchUnavailable, StoreDamaged, TrackwayError
from trackway.schema import ids
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import AssistantToolCall, ToolResult
from trackway.search.fresh import Fresh
from trackway.search.index import engine, unfit
from trackway.search.matching import Matching
from trackway.search.query import Node, parse, positive
from trackway.search.snippets import Cutter, Snippet
from trackway.search.tail import MOST
from trackway.search.texts import text_of
from trackway.search.writing import key_of
from trackway.store.listing import Facts, facts, facts_of, summary_of
from trackway.store.live import LiveStore
from trackway.store.progress import Progress, silent
from trackway.store.single import Singles

if TYPE_CHECKING:
    import tantivy

_FETCHED: Final = 100
_MOST_FETCHED: Final = 200_000


class Hit(NamedTuple):
    """An event that was found: its number in the episode, what it is, and the piece of it that answers."""

    seq: int
    kind: str
    at: int
    score: float
    tool: str | None
    error: bool | None
    snippet: Snippet


class Group(NamedTuple):
    """An episode that was found, its best hits in their order, and how many more there are at least."""

    episode: EpisodeSummary
    score: float
    hits: tuple[Hit, ...]
    more: int


class Found(NamedTuple):
    """An answer; ``more`` where further episodes match, ``notes`` where it may lack something, or took a rebuild."""

    groups: tuple[Group, ...]
    more: bool
    notes: tuple[str, ...]


class Asked(NamedTuple):
    """A question: ``newest`` first instead of the best; ``limit`` episodes (0: all), ``hits`` of each."""

    query: str
    newest: bool = False
    limit: int = 10
    hits: int = 3
    utc: bool = False


class _Raw(NamedTuple):
    rank: float
    at: int
    key: int
    seq: int
    address: tantivy.DocAddress | None


def find(live: LiveStore, asked: Asked, *, now: int, progress: Progress = silent, anew: bool = False) -> Found:
    """Everything that is recorded, running episodes included, asked for this; raises ``QueryRefused``.

    ``anew`` makes the index anew first.
    """
    node = parse(asked.query, now=now, utc=asked.utc)
    broken = "as was asked for" if anew else None
    try:
        return _Finding(live, asked, node, Fresh(live, progress, broken)).answer()
    except SearchUnavailable as error:  # once: made anew, it can be read, or nothing can be done
        return _Finding(live, asked, node, Fresh(live, progress, broken=error.why)).answer()


class _Finding:
    def __init__(self, live: LiveStore, asked: Asked, node: Node, fresh: Fresh) -> None:
        self._live = live
        self._asked = asked
        self._node = node
        self._words = positive(node)
        # What has nothing to be ranked by is best shown as it happened, the last first.
        self._newest = asked.newest or all(each.is_pattern for each in self._words)
        self._index = fresh.index
        self._tail = fresh.tail
        self._waiting = fresh.waiting
        self._notes = tuple(fresh.notes)
        self._events = Singles(live.store)
        self._cut = Cutter(self._words).snippet

    def answer(self) -> Found:
        """What was found."""
        query = Matching(self._facts, self._find).query(self._node)
        groups, more = self._grouped(query)
        return Found(tuple(groups), more, self._notes)

    # --- asking -------------------------------------------------------------------------------------------------

    def _grouped(self, query: tantivy.Query) -> tuple[list[Group], bool]:
        tail = self._raw_of_tail(query)
        wanted = self._asked.limit or _MOST_FETCHED
        fetched = max(_FETCHED, min(wanted, 1000) * 10)
        while True:
            raw, is_all = self._raw_of_index(query, fetched)
            by_episode = self._by_episode(tail, raw)
            if is_all or len(by_episode) > wanted or fetched >= _MOST_FETCHED:
                return self._shown(by_episode, wanted)
            fetched = min(fetched * 8, _MOST_FETCHED)

    def _raw_of_index(self, query: tantivy.Query, limit: int) -> tuple[list[_Raw], bool]:
        return ([], True) if self._index is None else self._asked_of(self._index, query, limit)

    def _raw_of_tail(self, query: tantivy.Query) -> list[_Raw]:
        if not len(self._tail):
            return []
        found, _ = self._asked_of(self._tail.searcher, query, MOST)
        return [each._replace(address=None) for each in found]

    def _asked_of(self, searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> tuple[list[_Raw], bool]:
        """The best or newest hits, and whether they are all."""
        try:
            with engine("it cannot be read"):
                hits = searcher.search(query, limit=limit, count=False, **self._order()).hits
                addresses = [address for _, address in hits]
                columns = [searcher.fast_field_values(name, addresses) for name in ("at", "key", "seq")] if hits else []
        except SearchUnavailable as error:
            if any(word.is_pattern for word in self._words) and "xpansion" in error.why:
                hint = "more letters in a pattern make it fit less"
                raise QueryRefused("a pattern fits too many words", hint=hint, why=error.why) from error
            raise
        found = [
            _Raw(0.0 if self._newest else float(score), int(at), int(key), int(seq), address)
            for (score, address), at, key, seq in zip(hits, *columns, strict=True)
            if key is not None and at is not None and seq is not None  # else what the index says of itself
        ]
        return found, len(hits) < limit

    def _order(self) -> dict[str, Any]:
        import tantivy

        return {"order_by_field": "at", "order": tantivy.Order.Desc} if self._newest else {}

    def _by_episode(self, tail: list[_Raw], raw: list[_Raw]) -> dict[int, list[_Raw]]:
        """Hits by episode, the best episode first, each with its best hit first.

        What is in memory only is ranked among few, which says little: the best of it counts as much as the best of all.
        """
        if not self._newest and tail and raw:
            scale = raw[0].rank / max(tail[0].rank, 1e-9)
            tail = [each._replace(rank=each.rank * scale) for each in tail]
        ours = {(each.key, each.seq) for each in tail}
        every = [*tail, *(each for each in raw if (each.key, each.seq) not in ours and self._is_current(each))]
        every.sort(key=lambda each: (each.at,) if self._newest else (each.rank, each.at), reverse=True)
        found: dict[int, list[_Raw]] = {}
        for each in every:
            found.setdefault(each.key, []).append(each)
        return found

    def _is_current(self, each: _Raw) -> bool:
        """Not one that was taken into memory anew, and does not match there any more."""
        return (each.key, each.seq) not in self._tail.entries

    # --- showing ------------------------------------------------------------------------------------------------

    def _shown(self, by_episode: dict[int, list[_Raw]], wanted: int) -> tuple[list[Group], bool]:
        groups: list[Group] = []
        for key, hits in by_episode.items():
            if len(groups) >= wanted:
                return groups, True
            with contextlib.suppress(EpisodeNotFound):  # pruned since it was indexed
                groups += self._group(key, hits)
        return groups, False

    def _group(self, key: int, hits: list[_Raw]) -> Iterator[Group]:
        name = self._name(key, hits[0])
        summary = summary_of(self._live, name, self._waiting)
        best = hits[: self._asked.hits or None]
        shown = tuple(self._hits(name, sorted(best, key=lambda each: each.seq)))
        if shown:
            yield Group(summary, hits[0].rank, shown, len(hits) - len(best))

    def _name(self, key: int, hit: _Raw) -> str:
        if key in self._tail.names:
            return self._tail.names[key]
        assert self._index is not None
        assert hit.address is not None
        with engine("it cannot be read"):
            name = str(self._index.doc(hit.address).get_first("episode"))
            if key_of(ids.to_bytes(name)) != key:
                raise unfit("what it says of an event does not agree")
        return name

    def _hits(self, name: str, hits: Iterable[_Raw]) -> Iterator[Hit]:
        for each in hits:
            entry = self._tail.entries.get((each.key, each.seq))
            if entry is not None:
                cut = self._cut(entry.text)
                yield Hit(each.seq, entry.kind, entry.at, each.rank, entry.tool, entry.error, cut)
                continue
            event = None
            with contextlib.suppress(StoreDamaged):
                event = self._events.at(name, each.seq)
            if event is None:  # another store was put in its place, or it cannot be read: said elsewhere
                continue
            tool = event.name if isinstance(event, AssistantToolCall) else None
            failed = event.failed if isinstance(event, ToolResult) else None
            yield Hit(each.seq, event.kind, event.at, each.rank, tool, failed, self._cut(text_of(event)))

    # --- of episodes --------------------------------------------------------------------------------------------

    def _facts(self) -> Iterator[Facts]:
        """What is stored, and running episodes as they stand now."""
        running = set(self._tail.names.values())
        stored = {ids.to_bytes(each) for each in running}
        yield from (each for each in facts(self._live.store) if each.id not in stored)
        for each in running:
            with contextlib.suppress(TrackwayError):
                yield facts_of(self._live.episode(each))

    def _find(self, ref: str) -> list[bytes]:
        return [ids.to_bytes(each) for each in self._live.find(ref.strip())]
