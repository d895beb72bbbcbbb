"""Records that the store refuses, and events that the store never got: put aside, told, and in nobody's way."""

import shutil
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import command
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note
from trackway.store.base import Batch
from trackway.store.sqlite import SqliteStore


class Counting(SqliteStore):
    """The store itself, and how often it was asked to seal."""

    batches = 0

    def seal(self, batch: Batch) -> int:
        """Count, then seal."""
        self.batches += 1
        return super().seal(batch)


def without_keeper(home: Path) -> Recorder:
    """A recorder that seals when it is told to."""
    recorder = Recorder(home, store=Counting(home / "store.db"))
    recorder._wake = recorder._journal._wake = lambda: None
    return recorder


def notes(home: Path, episode: str) -> list[int]:
    """The numbers of its notes."""
    with trackway.open_store(home=home) as store:
        return [int(each.topic) for each in store.events(episode) if isinstance(each, Note)]


@pytest.mark.promise("refused record", "a late event among thousands: put aside alone, the others go in together")
def test_a_late_event_is_put_aside_alone(home: Path, tell) -> None:
    """The batch is halved around it, so one record costs a handful of transactions, not one for each of the others."""
    recorder = without_keeper(home)
    pruned = recorder.start("pruned")
    pruned.end("success")
    recorder.flush()
    SqliteStore(home / "store.db").drop([pruned.id])
    pruned._core.ended = False  # a thread that goes on after the end
    episode = recorder.start("other")
    for i in range(1000):
        episode.note(str(i))
        if i in (0, 500, 999):
            pruned.note("late")
    before = recorder.store.batches
    recorder.close()
    batches = recorder.store.batches - before

    assert notes(home, episode.id) == list(range(1000))
    assert len(list((home / "quarantine").glob("*.json"))) == 3
    assert batches < 80
    tell(events=1001, refused=3, transactions=batches)


@pytest.mark.promise("older copy", "put in the store's place beside a living recorder: doctor counts what it lacks")
def test_a_hole_is_told(home: Path, tmp_path: Path) -> None:
    """What was sealed after the copy was made is in no journal any more: that is said, not passed over."""
    recorder = without_keeper(home)
    episode = recorder.start("t")
    for i in range(10):
        episode.note(str(i))
    recorder.flush()
    assert command("backup", tmp_path / "copy.db")[0] == 0
    for i in range(10, 3000):  # enough to fill segments, so that the sealed ones are unlinked
        episode.note(str(i), "x" * 300)
    recorder.flush()
    for each in home.glob("store.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy.db", home / "store.db")
    for i in range(3000, 3010):
        episode.note(str(i))
    episode.end("success")
    recorder.close()

    found = notes(home, episode.id)
    assert found == sorted(set(found))
    assert {*range(10), *range(3000, 3010)} <= set(found)
    code, said = command("doctor")
    lacking = 3010 - len(found)
    assert lacking > 0
    assert (code, f"{lacking:,} events of writer" in " ".join(said.split())) == (1, True), said


@pytest.mark.promise("older copy", "beside a journal it has all of: nothing doubles, nothing is missing")
def test_a_copy_that_is_whole(home: Path, tmp_path: Path) -> None:
    """Positions go with a backup: what is still in a journal is sealed once."""
    recorder = without_keeper(home)
    episode = recorder.start("t")
    for i in range(10):
        episode.note(str(i))
    assert command("backup", tmp_path / "copy.db")[0] == 0
    for i in range(10, 20):
        episode.note(str(i))
    recorder.flush()
    for each in home.glob("store.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy.db", home / "store.db")
    for i in range(20, 30):
        episode.note(str(i))
    episode.end("success")
    recorder.close()
    assert notes(home, episode.id) == list(range(30))
    assert command("doctor")[0] == 0
