"""Episodes read, one digest each: here, or by several processes where there is so much that it pays.

On Linux they are forked, so that they begin at once: only from a process that has a single thread. What is held at any
time is an episode in each, and a few digests on their way.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from trackway.errors import EpisodeNotFound, StoreDamaged
from trackway.read.digest import Row, digest_of, row_of, with_prices
from trackway.read.price import Price, by_table
from trackway.read.spending import models_with_prices
from trackway.read.tokens import Tokens
from trackway.recording.prices import by_package, prices_installed
from trackway.store.live import LiveStore
from trackway.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from concurrent.futures import Future

    from trackway.read.counts import Digest
    from trackway.schema.episode import EpisodeSummary
    from trackway.store.home import Home

Made = Row | StoreDamaged | None
"""A digest to be kept; why there is none; or None, where the episode was pruned meanwhile."""

_PAYS: Final = 20_000
"""Events; below that, processes cost more than they spare."""

_PIECE: Final = 2_000
_AHEAD: Final = 3
_START: Final = "fork" if sys.platform == "linux" else "spawn"
_ANY: Final = Tokens(input=0, output=0)


class Reader:
    """Makes digests, with costs by the installed prices for the models that the settings have no price of."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._ours = by_table(prices)
        self._priced_by = prices_installed()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._prices,)  # for a process that is not forked

    def priced(self, digest: Digest) -> Digest:
        """The digest with costs by the prices there are now; itself where it has them."""
        if digest.priced_by == self._priced_by:
            return digest
        if all(self._ours(model, _ANY, 0) is not None for model in models_with_prices(digest.spent)):
            return digest
        return with_prices(digest, by_package, self._priced_by)

    def read(self, live: LiveStore, summary: EpisodeSummary) -> Made:
        """The digest of one episode."""
        try:
            digest, words = digest_of(summary, live.events(summary.id))
        except EpisodeNotFound:
            return None
        except StoreDamaged as error:
            return error
        return row_of(summary.id, self.priced(digest), words)


def read_all(live: LiveStore, reader: Reader, summaries: list[EpisodeSummary]) -> Iterator[Made]:
    """The digests of these episodes, in any order."""
    left = summaries
    workers = _workers(live, summaries)
    if workers > 1:
        from concurrent.futures.process import BrokenProcessPool

        pieces = list(_pieces(summaries))
        try:
            for place, made in _apart(live, reader, pieces, workers):
                pieces[place] = []
                yield from made
        except (BrokenProcessPool, OSError):  # one of them was killed, or there can be none: the rest is read here
            pass
        left = [each for piece in pieces for each in piece]
    for each in left:
        yield reader.read(live, each)


def _workers(live: LiveStore, summaries: list[EpisodeSummary]) -> int:
    if sum(each.n_events for each in summaries) < _PAYS or not isinstance(live.store, SqliteStore):
        return 1
    if _START == "fork" and threading.active_count() > 1:
        return 1
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def _pieces(summaries: list[EpisodeSummary]) -> Iterator[list[EpisodeSummary]]:
    """Enough of them at a time to be worth sending."""
    piece: list[EpisodeSummary] = []
    size = 0
    for each in summaries:
        piece.append(each)
        size += each.n_events
        if size >= _PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


# --- apart ----------------------------------------------------------------------------------------------------------

_here: list[tuple[LiveStore, Reader]] = []
"""In a process that reads for another: with what."""


def _apart(
    live: LiveStore, reader: Reader, pieces: list[list[EpisodeSummary]], workers: int
) -> Iterator[tuple[int, list[Made]]]:
    """The place of each piece, and what came of it, as they are done; a few pieces are under way at a time."""
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

    path = live.store.path if isinstance(live.store, SqliteStore) else live.home.store
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context(_START), initializer=_begin, initargs=(live.home, path, reader)
    )
    under_way: dict[Future[list[Made]], int] = {}
    try:
        for place, piece in enumerate(pieces):
            under_way[pool.submit(_read, piece)] = place
            while len(under_way) >= workers + _AHEAD:
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield under_way.pop(done), done.result()
        while under_way:
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                yield under_way.pop(done), done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(home: Home, path: os.PathLike[str], reader: Reader) -> None:
    import signal
    from pathlib import Path

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us hears it, and ends us
    _here[:] = [(LiveStore(home, SqliteStore(Path(path))), reader)]


def _read(summaries: list[EpisodeSummary]) -> list[Made]:
    ((live, reader),) = _here
    return [reader.read(live, each) for each in summaries]
