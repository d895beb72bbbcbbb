"""A journal whose files were taken away under the process that writes it: found out, and given a place again.

Whoever removes the home, or a folder in it, leaves us files without names: they live while we hold them, and would be
gone with us. Their bytes are written anew under the same writer's name and at the same offsets, so positions hold.
Where the home was moved instead, what it holds goes with it for whoever adopts it there, and recording begins anew at
the old place. Either way nothing is there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from trackway.errors import JournalRemoved
from trackway.schema.outside import is_thrown_in
from trackway.store import record, system
from trackway.store.claim import Claim, claim_again, write_card
from trackway.store.journal import Journal
from trackway.store.journal_files import Finished
from trackway.store.record import SEGMENT_HEADER, Position
from trackway.store.segment import Segment

_TRIES: Final = 20  # each costs little, and there may be several who sweep


class Restored(NamedTuple):
    """What was found and done; ``gone`` bytes were in files that nobody held any more."""

    moved: bool = False
    gone: int = 0

    def __str__(self) -> str:
        if self.moved:
            return "the home was moved away while recording: what it holds is sealed there, recording goes on here"
        lost = f"; {self.gone:,} bytes of events that waited to be sealed are gone with them" if self.gone else ""
        return f"the journal's files were removed while recording, and are put back{lost}"


def restore(journal: Journal) -> Restored | None:
    """Put back what was taken away; None where all is in place. A call that costs a look at each of four files."""
    if is_in_place(journal):
        return None
    with journal._sync_lock, journal.lock:  # noqa: SLF001  one subsystem, here and below
        if journal._busy or is_in_place(journal):  # noqa: SLF001  busy: a handler inside an append, or inside this
            return None
        # What a signal handler records from here on is queued: the file it would go into is about to be replaced.
        journal._busy = True  # noqa: SLF001
        try:
            return _restored(journal)
        finally:
            journal._busy = False  # noqa: SLF001
            journal._drain()  # noqa: SLF001


def _restored(journal: Journal) -> Restored | None:
    held = journal._claim  # noqa: SLF001
    assert held is not None
    # In this order: a lock that is removed between the two looks was not moved.
    if not system.is_named(held.descriptor, held.folder.lock) and system.has_a_name(held.descriptor):
        journal.release()
        return Restored(moved=True)
    try:
        return _all_put_back(journal, held)
    except OSError as error:
        if is_thrown_in(error):
            raise
        if _has_its_segments(journal):  # without a lock or a card they are sealed as well; the next look tries again
            return None
        raise JournalRemoved(
            f"the journal {held.folder.path} was removed while recording and cannot be put back: {error.strerror}",
            hint="make room for it there: what is not sealed goes when this process ends", path=held.folder.path,
        ) from error  # fmt: skip


def _all_put_back(journal: Journal, held: Claim) -> Restored:
    """The lock, then the segments, then the card: in the order of what is lost without them."""
    for left in reversed(range(_TRIES)):
        try:
            if not system.is_named(held.descriptor, held.folder.lock):
                journal._claim = held = claim_again(journal._home, journal.about(), held)  # noqa: SLF001
            found = Restored(gone=0 if _has_its_segments(journal) else _put_back(journal))
            if not system.is_there(held.folder.about):
                write_card(held, journal.about())
                _sync_anew(journal)
        except FileNotFoundError as error:  # whoever took us for dead is removing the folder in this moment
            if is_thrown_in(error) or not left:
                raise
        else:
            return found
    raise AssertionError


def unsealed(journal: Journal, sealed: Position) -> Iterator[bytes]:
    """The episode of each event behind a position, in files without names: what is lost if they are let go."""
    for each in journal._files():  # noqa: SLF001
        if each.activation >= max(sealed.activation, 1):
            start = sealed.offset if each.activation == sealed.activation else SEGMENT_HEADER
            for found in record.live_records(each.content()[start:], start):
                if found.type == record.EVENT:
                    yield found.episode


def is_in_place(journal: Journal) -> bool:
    """Whether every file that holds something unsealed has its name still, and those that say it is ours."""
    held = journal._claim  # noqa: SLF001
    if held is None:
        return True
    is_ours = system.is_named(held.descriptor, held.folder.lock) and system.is_there(held.folder.about)
    return is_ours and _has_its_segments(journal)


def _has_its_segments(journal: Journal) -> bool:
    needed = _needed(journal)
    held = {each.activation for each in needed}
    others = [each for each in journal._finished if each.activation not in held]  # noqa: SLF001
    return all(each.is_in_place() for each in needed) and all(system.is_there(each.path) for each in others)


def _needed(journal: Journal) -> list[Segment]:
    """The file that is written to, and those that wait to be sealed as far as we hold them."""
    waiting = {each.activation for each in journal._finished}  # noqa: SLF001
    return [
        each
        for each in journal._files()  # noqa: SLF001
        if each is journal._segment or each.activation in waiting  # noqa: SLF001
    ]


def _put_back(journal: Journal) -> int:
    """Every file we still hold; returns how much was in those that we do not."""
    if journal._prepared is not None:  # noqa: SLF001
        journal._prepared.close()  # noqa: SLF001
        journal._prepared.path.unlink(missing_ok=True)  # noqa: SLF001
        journal._prepared = None  # noqa: SLF001
    for each in _needed(journal):
        if not each.is_in_place():
            each.put_back()
            if each is not journal._segment:  # noqa: SLF001
                each.rest()
    there = [each for each in journal._finished if each.path.exists()]  # noqa: SLF001
    gone = [each for each in journal._finished if each not in there]  # noqa: SLF001
    journal._finished = there  # noqa: SLF001
    _sync_anew(journal)
    return sum(_size(each) for each in gone)


def _sync_anew(journal: Journal) -> None:
    """The next sync is of everything, names and all."""
    journal.dirty, journal._names_synced, journal._synced = True, False, record.START  # noqa: SLF001


def _size(finished: Finished) -> int:
    return finished.end - SEGMENT_HEADER
