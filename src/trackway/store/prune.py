"""Episodes go for good, in batches, with a receipt.

    adopt what the dead left → choose → for each batch: hold seal.lock, look again, write "dropping", drop, write
    "dropped" → overwrite what journals and quarantine still hold → return the space → write "done"

A batch is one transaction. Killed anywhere, the store is sound, and the receipt tells: ids under "dropping" without a
"dropped" behind them are those of one batch that may or may not have gone; the store knows. What a living process has
not sealed is looked for under the lock, so nothing is taken while events of it are on their way; one that is recorded
later is refused by the store and put into quarantine.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from trackway.errors import EpisodeNotFound
from trackway.schema import ids
from trackway.store import derived, erase
from trackway.store.choice import Criteria, Going, Weight, choose
from trackway.store.live import LiveStore
from trackway.store.progress import Progress, silent
from trackway.store.receipts import Receipts
from trackway.store.sealer import Sealer
from trackway.store.sqlite import SqliteStore

_BATCH: Final = 100
_BATCH_BYTES: Final = 8 << 20
_GIVE_WAY: Final = 0.005
FAILPOINTS: Final = ("prune:begun", "prune:dropping", "prune:dropped", "prune:erased", "prune:returned")
"""Where a test may kill the process."""


class Size(msgspec.Struct, frozen=True):
    """Bytes of the store's file and of its log."""

    store: int
    wal: int


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did; the same is in ``receipts.jsonl``.

    ``whole`` says that the file was written anew, ``log_emptied`` that nothing old is in its log, ``finished`` which
    earlier prunes were interrupted and have been brought to their end.
    """

    prune: str
    store: str
    criteria: dict[str, Any]
    ids: tuple[str, ...] = ()
    events: int = 0
    blobs: int = 0
    bytes: int = 0
    spared: dict[str, int] = {}
    before: Size | None = None
    after: Size | None = None
    journal_records: int = 0
    quarantined: int = 0
    whole: bool = False
    log_emptied: bool = False
    finished: tuple[str, ...] = ()


class _Pruning:
    """One prune under way."""

    def __init__(self, live: LiveStore, criteria: Criteria, now: int, failpoint: Callable[[str], None]) -> None:
        self.live = live
        self.criteria = criteria
        self.failpoint = failpoint
        self.receipts = Receipts(live.home, live.key, now)
        self.before = _size(live)
        self.gone: list[str] = []
        self.unfinished = self.receipts.unfinished()
        self.finished: list[str] = []
        self.weight = Weight()
        self.spared: Counter[str] = Counter()
        self.records = self.quarantined = 0
        self.freed = erase.Freed(whole=False, log_emptied=False)

    def drop(self, going: tuple[Going, ...], progress: Progress) -> bool:
        """All of them, batch by batch; whether any went."""
        done, before = 0, len(self.gone)
        for batch in _batches(going):
            progress("dropping episodes", done, len(going))
            with erase.holding(self.live.home):
                self._drop(batch)
            done += len(batch)
            threading.Event().wait(_GIVE_WAY)  # whoever waits to seal is first
        progress("dropping episodes", done, len(going))
        return len(self.gone) > before

    def _drop(self, batch: list[Going]) -> None:
        waiting = self.live._look()  # noqa: SLF001  of the living and, by now, perhaps of the dead: one subsystem
        chosen = [each.id for each in batch if self._may_go(each.id, waiting)]
        if not chosen:
            return
        self.receipts.write("dropping", ids=chosen)
        self.failpoint("prune:dropping")
        done = self.live.drop(chosen)
        self.failpoint("prune:dropped")
        weight = Weight(done.events, done.blobs, done.bytes)
        self.receipts.write("dropped", episodes=len(done.ids), **weight._asdict())
        self.gone += done.ids
        self.weight = self.weight.plus(weight)

    def _may_go(self, episode_id: str, waiting: set[str]) -> bool:
        """Whether what was true when it was chosen still is: it may have been tagged, resumed or pruned since."""
        try:
            summary = self.live._with_state(self.live.store.episode(episode_id))  # noqa: SLF001
        except EpisodeNotFound:
            return False
        why = self.criteria.spares(summary, waiting)
        if why is not None:
            self.spared[why] += 1
        return why is None and self.criteria.looks_at(summary)

    def clear(self, progress: Progress, *, whole: bool | None) -> None:
        """Overwrite what is left of them, and return the space."""
        episodes = {ids.to_bytes(each) for each in self.gone}
        if self.unfinished and isinstance(self.live.store, SqliteStore):  # somebody was killed before this point
            episodes |= self.live.store.dropped()
        with erase.holding(self.live.home):
            self.records += erase.erase_in_journals(self.live.home, self.live.store, episodes)
            self.quarantined += erase.remove_quarantined(self.live.home, episodes)
        derived.purge(self.live.home, self.live.key, [ids.from_bytes(each) for each in episodes])
        self.failpoint("prune:erased")
        if isinstance(self.live.store, SqliteStore):
            self.freed = erase.give_back(self.live.home, self.live.store, progress, whole=whole)
        self.failpoint("prune:returned")
        if self.unfinished:
            self.receipts.write("finished", of=self.unfinished)
            self.finished, self.unfinished = self.unfinished, []

    def receipt(self) -> Receipt:
        """What was done."""
        return Receipt(
            prune=self.receipts.name, store=self.live.key, criteria=self.criteria.described(), ids=tuple(self.gone),
            **self.weight._asdict(), spared=dict(self.spared), before=self.before, after=_size(self.live),
            journal_records=self.records, quarantined=self.quarantined, **self.freed._asdict(),
            finished=tuple(self.finished),
        )  # fmt: skip


def prune(
    live: LiveStore,
    criteria: Criteria,
    *,
    now: int,
    whole: bool | None = None,
    progress: Progress = silent,
    failpoint: Callable[[str], None] = lambda _name: None,
) -> Receipt:
    """Delete what the criteria say, for good; ``whole`` writes the file anew, by default where it is small enough."""
    criteria.check()
    Sealer(live.home, live.store).adopt()
    pruning = _Pruning(live, criteria, now, failpoint)
    plan = choose(live, criteria, now)
    pruning.spared.update(plan.spared)
    if not plan.going:
        if pruning.unfinished:
            pruning.clear(progress, whole=whole)
        return pruning.receipt()
    planned = {"episodes": len(plan.going), **plan.total._asdict()}
    size = msgspec.to_builtins(pruning.before)
    pruning.receipts.write("begun", criteria=criteria.described(), planned=planned, before=size)
    failpoint("prune:begun")
    try:
        # Pages hold more than what is counted: where a size is the limit, look again whether it is kept.
        while pruning.drop(plan.going, progress):
            pruning.clear(progress, whole=whole)
            if criteria.limits.size is None:
                break
            plan = choose(live, criteria, now)
        receipt = pruning.receipt()
        pruning.receipts.write("done", **_in_short(receipt))
    except BaseException as error:
        with contextlib.suppress(OSError):  # the disk may be what is full; what stopped it is said either way
            pruning.receipts.write("stopped", episodes=len(pruning.gone), why=f"{type(error).__name__}: {error}")
        raise
    return receipt


def _in_short(receipt: Receipt) -> dict[str, Any]:
    """The receipt without what the lines before have said."""
    said: dict[str, Any] = msgspec.to_builtins(receipt)
    return {"episodes": len(receipt.ids)} | {
        name: each for name, each in said.items() if name not in ("prune", "store", "criteria", "ids")
    }


def _batches(going: tuple[Going, ...]) -> Iterator[list[Going]]:
    """Few enough at a time that a sealer hardly waits."""
    batch: list[Going] = []
    size = 0
    for each in going:
        batch.append(each)
        size += each.weight.bytes
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(live: LiveStore) -> Size | None:
    if not isinstance(live.store, SqliteStore):
        return None
    path = live.store.path
    files = (path, path.with_name(f"{path.name}-wal"))
    return Size(*(each.stat().st_size if each.exists() else 0 for each in files))
