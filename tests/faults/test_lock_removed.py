"""A living writer whose lock or card is removed: others take it for dead, and nothing is lost or out of order for it.

Without its lock a journal is adopted while its writer goes on. The adopter is a recorder in a process of its own.
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import compared, is_sound, nobody_seals, play, said_in
from trackway.cli import main
from trackway.schema import ids
from trackway.schema.events import FileChange
from trackway.store.large import FileContent, Payload
from trackway.store.restore import restore

ROUNDS, EACH = 4, 20
OLD = 22
ALL = list(range(ROUNDS * EACH))
_ADOPT = "import sys, trackway; recorder = trackway.Recorder(sys.argv[1]); recorder.flush(); recorder.close()"


def say(episode, numbers):
    """Say the numbers."""
    for each in numbers:
        episode.user(str(each))


def heard(home, episode):
    """The numbers that are read back."""
    with trackway.open_store(home=home) as store:
        return [int(each) for each in said_in(store, episode)]


def another_records(home):
    """A process that opens the home, adopts whom it takes for dead, and ends."""
    subprocess.run([sys.executable, "-c", _ADOPT, str(home)], check=True)


def remove(home, name):
    """One file of the living writer's journal."""
    for each in home.glob(f"journals/*/{name}"):
        each.unlink()


def without_a_lock(folder, journal, watched):
    """Others come by again and again while the lock is gone; ``watched``: the keeper is at work meanwhile."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    episode = recorder.start("goes on")
    if not watched:
        recorder._keeper.stop()
    for i in range(ROUNDS):
        remove(home, "lock")
        say(episode, ALL[i * EACH : (i + 1) * EACH])
        another_records(home)
    episode.end("success")
    recorder.close()
    doctor = CliRunner().invoke(main, ["doctor", "--fix", "--home", str(home)])
    with trackway.open_store(home=home) as store:
        sound = is_sound(store)
    return {
        "heard": heard(home, episode.id), "lost": episode.lost, "sound": sound, "doctor": doctor.exit_code,
        "left": len(list((home / "journals").iterdir())),
    }  # fmt: skip


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("lock removed", "others adopt the living writer: all it wrote and writes is kept, once, in order")
def test_a_living_writer_that_is_adopted(tmp_path, tell, journal, watched):
    """What an adopter seals ends behind the last event it saw, so the writer's next ones are not skipped."""
    found = play(without_a_lock, tmp_path, journal=journal, watched=watched).value
    tell(**compared(ALL, found["heard"]))

    assert found["heard"] == ALL
    assert (found["lost"], found["left"], found["sound"], found["doctor"]) == (0, 0, True, 0)


class Watched(FileContent):
    """A file's content, and somebody who comes by when half of it is in the journal."""

    def __init__(self, path, then):
        super().__init__(path)
        self._then = then

    def parts(self):
        """Its bytes."""
        [(part, _)] = super().parts()
        yield part[: len(part) // 2], False
        self._then()
        yield part[len(part) // 2 :], True


def adopted_inside_a_payload(folder, journal):
    """The journal is adopted between two parts of a payload."""
    home, file = folder / "home", folder / "file"
    file.write_bytes(b"x" * 100_000)
    recorder = trackway.Recorder(home, journal=journal)
    episode = recorder.start("large")
    recorder._keeper.stop()
    say(episode, [0])

    def taken_for_dead():
        remove(home, "lock")
        another_records(home)

    fields = {"at": 0, "path": "file", "op": "create"}
    recorder.put(ids.to_bytes(episode.id), FileChange, fields, (Payload(Watched(file, taken_for_dead), "after"),))
    say(episode, [1])
    episode.end("success")
    recorder.close()
    with trackway.open_store(home=home) as store:
        [change] = [each for each in store.events(episode.id) if each.kind == "file_change"]
        kept = sum(map(len, store.blob(change.after.hash)))
        sound = is_sound(store)
    return {"heard": heard(home, episode.id), "kept": kept, "lost": episode.lost, "sound": sound}


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("lock removed", "and adopted in the middle of a payload: it is kept whole")
def test_a_living_writer_that_is_adopted_inside_a_payload(tmp_path, journal):
    """Parts without their event are left where they are: the event may come."""
    found = play(adopted_inside_a_payload, tmp_path, journal=journal).value

    assert found == {"heard": [0, 1], "kept": 100_000, "lost": 0, "sound": True}


def without_a_card(folder, journal):
    """The card goes; then segments are finished, synced and sealed."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    episode = recorder.start("nameless")
    recorder.flush()
    recorder._keeper.stop()
    remove(home, "writer.json")
    say(episode, ALL)
    for _ in range(12):
        episode.text("x" * 900_000)
    recorder._journal.sync()  # what the keeper does, before it has looked for the card
    recorder.flush()
    [card] = home.glob("journals/*/writer.json")
    said = json.loads(card.read_text())
    flushed = heard(home, episode.id)
    recorder.close()
    return {"flushed": flushed, "said": said, "own": os.getpid(), "left": len(list((home / "journals").iterdir()))}


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("card removed", "syncing and sealing go on, and the card is written again")
def test_a_writer_that_lost_its_card(tmp_path, journal):
    """A file that only says whose the journal is holds up nothing; it is the same card as before."""
    played = play(without_a_card, tmp_path, journal=journal)
    found = played.value

    assert found["flushed"] == ALL
    assert (found["said"]["pid"], found["said"]["locked"], found["said"]["journal"]) == (found["own"], True, journal)
    assert found["left"] == 0
    assert [each for each in played.lines() if "put back" not in each] == []


def no_room_for_a_card(folder):
    """Something is in the card's way that cannot be replaced."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    episode = recorder.start("nameless")
    recorder.flush()
    remove(home, "writer.json")
    [journal] = home.glob("journals/*")
    (journal / "writer.json").symlink_to(folder / "nowhere" / "card")
    say(episode, ALL)
    recorder.flush()
    flushed = heard(home, episode.id)
    episode.end("success")
    recorder.close()
    return {"flushed": flushed, "lost": episode.lost}


@pytest.mark.promise("card removed", "and it cannot be written again: all else goes on")
def test_a_card_that_cannot_be_written(tmp_path):
    """Nothing is counted as lost, nothing waits, for the want of a card."""
    found = play(no_room_for_a_card, tmp_path).value

    assert found == {"flushed": ALL, "lost": 0}


def recorded_while_put_back(folder, journal):
    """A handler records at each moment of putting the journal back: a profiler sends the signal at every call."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    episode = recorder.start("interrupted")
    recorder._keeper.stop()
    numbers = iter(range(10_000))
    said, empty = [], []

    def record(*_):
        empty.extend(each.name for each in home.glob("journals/*/*.seg") if not each.read_bytes().strip(b"\0"))
        said.append(next(numbers))
        episode.user(str(said[-1]))

    def interrupt(frame, event, _argument):
        is_ours = frame.f_code.co_filename.endswith(("restore.py", "segment.py", "claim.py"))
        is_put = "put" in (frame.f_code.co_name, frame.f_back.f_code.co_name)  # each of those would call for more
        if is_ours and not is_put and event in ("call", "return"):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGUSR1)
            sys.setprofile(interrupt)

    signal.signal(signal.SIGUSR1, record)
    with nobody_seals(home):
        record()
        with recorder._journal.lock:
            shutil.rmtree(home)
    sys.setprofile(interrupt)
    restore(recorder._journal)
    sys.setprofile(None)
    recorder.flush()
    recorder.close()
    return {"said": said, "heard": heard(home, episode.id), "lost": episode.lost, "empty": empty}


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("home removed", "a signal handler records while it is put back: kept, in order")
def test_a_handler_that_records_while_the_journal_is_put_back(tmp_path, tell, journal):
    """What it records is written into the file that is put back, never into the one that is let go."""
    found = play(recorded_while_put_back, tmp_path, journal=journal).value
    tell(**compared(found["said"], found["heard"]))

    assert len(found["said"]) > 10
    assert found["heard"] == found["said"]
    assert found["lost"] == 0
    assert found["empty"] == []  # a sealer that finds it in that moment would take it for sealed


def without_an_old_segment(folder):
    """Sealing is held up for longer than finished files are held; then the oldest one is removed."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    with nobody_seals(home):
        episode = recorder.start("held up")
        say(episode, ALL)
        while recorder._journal._activations < OLD:
            episode.text("x" * 7_000_000)
            recorder._journal.sync()
        min(home.glob("journals/*/*.seg")).unlink()
        say(episode, ALL)
    recorder.flush()
    recorder.close()
    doctor = CliRunner().invoke(main, ["doctor", "--home", str(home)])
    return {"heard": heard(home, episode.id), "doctor": doctor.output}


@pytest.mark.promise("journal removed", "a file nobody holds any more: said and counted by doctor, the rest is sealed")
def test_an_old_segment_that_is_removed(tmp_path):
    """What is gone for good does not hold up what is there."""
    played = play(without_an_old_segment, tmp_path)

    assert played.value["heard"] == ALL
    assert sum("bytes of events that waited to be sealed are gone" in each for each in played.lines()) == 1
    assert len(played.lines()) == 1
    assert f"{len(ALL) + 1} events of writer" in played.value["doctor"]
