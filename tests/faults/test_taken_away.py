"""Files that are removed, moved, replaced, cut off or overwritten under a living recorder.

The recorder is a process like any other; what is done to its files is done from outside it, or as if from outside.
"""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import compared, handles, is_sound, nobody_seals, play, said_in
from trackway.cli import main

HALF = 200
ALL = list(range(2 * HALF))


def say(episode, numbers):
    """Say the numbers."""
    for each in numbers:
        episode.user(str(each))


def heard(home, episode):
    """The numbers that are read back."""
    with trackway.open_store(home=home) as store:
        return [int(each) for each in said_in(store, episode)]


def remove_home(home):
    """What `rm -rf` does."""
    shutil.rmtree(home)


def remove_journals(home):
    """All journals, the living one's too."""
    shutil.rmtree(home / "journals")


def remove_segments(home):
    """The journal's files, not its folder nor its lock."""
    for each in home.glob("journals/*/*.seg"):
        each.unlink()


def remove_lock_and_segments(home):
    """All but the folder and its card."""
    remove_segments(home)
    remove_lock(home)


def remove_lock(home):
    """What says that the writer lives."""
    for each in home.glob("journals/*/lock"):
        each.unlink()


def remove_card(home):
    """What says whose the journal is."""
    for each in home.glob("journals/*/writer.json"):
        each.unlink()


_ALL = (remove_home, remove_journals, remove_segments, remove_lock_and_segments, remove_lock, remove_card)
REMOVALS = {each.__name__: each for each in _ALL}


def under_a_living_recorder(folder, removal, journal, ack, rolled):
    """Record, take the files away, go on recording, close."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal, ack=ack)
    with nobody_seals(home):
        episode = recorder.start("goes on")
        say(episode, range(HALF))
        if rolled:
            episode.text("x" * 700_000)
        before = handles()
        with recorder._journal.lock:  # in one moment: a folder that fills again while it is removed cannot be
            REMOVALS[removal](home)
        say(episode, range(HALF, 2 * HALF))
    episode.end("success")
    recorder.flush()
    leaked = handles() - before
    recorder.close()
    with trackway.open_store(home=home) as store:
        sound = is_sound(store)
    left = list((home / "journals").iterdir())
    return {"heard": heard(home, episode.id), "lost": episode.lost, "sound": sound, "left": len(left), "leaked": leaked}


@pytest.mark.parametrize("rolled", [False, True], ids=["one segment", "two segments"])
@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.promise(
    "home removed", "rm -rf under a live recorder: what was not sealed yet and all that follows is kept"
)
def test_a_journal_that_is_removed(tmp_path, tell, removal, journal, rolled):
    """Every event that was acknowledged and not sealed, before or after, is in the store at the end, once."""
    played = play(under_a_living_recorder, tmp_path, removal=removal, journal=journal, ack="process", rolled=rolled)
    found = played.value
    tell(**compared(ALL, found["heard"]))

    assert found["heard"] == ALL
    assert (found["lost"], found["left"], found["sound"]) == (0, 0, True)
    assert found["leaked"] < 6  # the store was opened meanwhile
    assert [each for each in played.lines() if "put back" in each] == played.lines()
    assert len(played.lines()) == 1


@pytest.mark.promise(
    "home removed", "with ack='disk': the file that was synced has a name again before the call returns"
)
def test_a_journal_that_is_removed_while_each_event_is_synced(tmp_path):
    """What was promised to be on the disk is in a file somebody can find, at every moment."""
    home = tmp_path / "home"
    recorder = trackway.Recorder(home, ack="disk")
    episode = recorder.start("durable")
    with nobody_seals(home):
        say(episode, range(5))
        shutil.rmtree(home)
        for each in range(5, 10):
            episode.user(str(each))
            assert heard(home, episode.id)[-1] == each
    recorder.close()
    assert heard(home, episode.id) == list(range(10))


def cannot_be_put_back(folder):
    """A file takes the home's place, so that nothing can be made there again."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    with nobody_seals(home):
        episode = recorder.start("nowhere")
        say(episode, range(HALF))
        shutil.rmtree(home)
        home.write_text("in the way")
        say(episode, range(HALF, 2 * HALF))
    recorder.close()
    return {"lost": episode.lost}


@pytest.mark.promise("home removed", "and nothing can be made in its place: all that was not sealed is counted as lost")
def test_a_journal_that_cannot_be_put_back(tmp_path):
    """One line says that it was removed and cannot be put back, another counts every event."""
    said = play(cannot_be_put_back, tmp_path).lines()

    assert sum("cannot be put back" in each and str(tmp_path / "home") in each for each in said) == 2
    assert sum(f"{2 * HALF + 1} events of episode" in each for each in said) == 1
    assert len(said) == 2


def home_moved(folder):
    """The home is given another name under a living recorder."""
    home, other = folder / "home", folder / "other"
    recorder = trackway.Recorder(home)
    with nobody_seals(home):
        episode = recorder.start("on the way")
        say(episode, range(HALF))
        home.rename(other)
    recorder.flush()
    say(episode, range(HALF, 2 * HALF))
    episode.end()
    recorder.close()
    before = heard(other, episode.id)
    with trackway.Recorder(other) as later:
        later.flush()
    left = [str(each) for each in (other / "journals").iterdir()]
    return {"there": heard(other, episode.id), "before": before, "here": heard(home, episode.id), "left": left}


@pytest.mark.promise(
    "home moved", "what it held goes with it and is sealed there; what follows is kept at the old place"
)
def test_a_home_that_is_moved(tmp_path, tell):
    """Nothing is lost and nothing is there twice: each half is in one of the two homes."""
    played = play(home_moved, tmp_path)
    found = played.value
    tell(**compared(ALL, found["there"] + found["here"]))

    assert found["before"] == found["there"] == list(range(HALF))
    assert found["here"] == list(range(HALF, 2 * HALF))
    assert found["left"] == []
    assert sum("the home was moved" in each for each in played.lines()) == 1


def link_retargeted(folder):
    """The home is a link, and leads elsewhere while recording."""
    home, old, new = folder / "home", folder / "old", folder / "new"
    old.mkdir()
    new.mkdir()
    home.symlink_to(old)
    recorder = trackway.Recorder(home)
    with nobody_seals(home):
        episode = recorder.start("linked")
        say(episode, range(HALF))
        doctor = CliRunner().invoke(main, ["doctor", "--home", str(home)]).output
        home.unlink()
        home.symlink_to(new)
        say(episode, range(HALF, 2 * HALF))
    recorder.close()
    with trackway.Recorder(home) as later:
        later.start("next").end()
    return {
        "old": heard(old, episode.id), "new": [each.task for each in trackway.open_store(home=new).episodes()],
        "doctor": doctor, "left": [str(each) for each in (old / "journals").iterdir()],
    }  # fmt: skip


@pytest.mark.promise(
    "symlinked home", "works; led elsewhere meanwhile, a recorder goes on where it began, the next one there"
)
def test_a_linked_home_that_leads_elsewhere(tmp_path):
    """All of the episode is in one place, and doctor says where the link leads."""
    found = play(link_retargeted, tmp_path).value

    assert found["old"] == ALL
    assert found["new"] == ["next"]
    assert found["left"] == []
    assert f"the home is a link and leads to {tmp_path / 'old'}" in found["doctor"]


# --- the store ------------------------------------------------------------------------------------------------------


def store_taken(folder, how):
    """The store's file goes, or another takes its place, under a living recorder."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    episode = recorder.start("stored")
    say(episode, range(HALF))
    recorder.flush()
    copy = folder / "copy.db"
    assert CliRunner().invoke(main, ["backup", str(copy), "--home", str(home)]).exit_code == 0
    if how == "restored":
        copy.replace(home / "store.db")
    else:
        (home / "store.db").unlink()
    for each in home.glob("store.db-*"):
        each.unlink()
    say(episode, range(HALF, 2 * HALF))
    recorder.flush()
    flushed = heard(home, episode.id)
    episode.end("success")
    recorder.close()
    with trackway.open_store(home=home) as store:
        sound = is_sound(store)
    return {"heard": heard(home, episode.id), "flushed": flushed, "sound": sound, "lost": episode.lost}


@pytest.mark.parametrize("how", ["removed", "restored"])
@pytest.mark.promise("store removed", "or replaced under a live recorder: all that is recorded after it is kept, once")
def test_a_store_that_is_taken_away(tmp_path, tell, how):
    """Nothing is sealed into a file without a name; one line says that the store went."""
    played = play(store_taken, tmp_path, how=how)
    found = played.value
    since = list(range(HALF, 2 * HALF))
    tell(**compared(since, [each for each in found["heard"] if each >= HALF]))

    assert found["flushed"] == found["heard"]
    assert found["heard"][-HALF:] == since
    assert len(found["heard"]) == len(set(found["heard"]))
    if how == "restored":
        assert found["heard"] == ALL
    assert found["sound"]
    assert sum("was removed or replaced" in each for each in played.lines()) == 1


# --- the journal's bytes --------------------------------------------------------------------------------------------

CUT = 4096 * 2


def truncated(folder, journal):
    """The segment is cut off under the recorder, which goes on."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    with nobody_seals(home):
        episode = recorder.start("cut off")
        say(episode, range(HALF))
        (folder / "episode").write_text(episode.id)
        [segment] = home.glob("journals/*/*.seg")
        os.truncate(segment, CUT)
        say(episode, range(HALF, 2 * HALF))
    episode.end("success")
    recorder.close()
    doctor = CliRunner().invoke(main, ["doctor", "--home", str(home)])
    return {"heard": heard(home, episode.id), "doctor": [doctor.exit_code, doctor.output]}


@pytest.mark.promise(
    "journal truncated", "under the map: the kernel kills the agent (SIGBUS); all before the cut is kept"
)
def test_a_mapped_journal_that_is_cut_off(tmp_path, tell):
    """No program survives a store into a page that was taken from it; what lies before the cut is adopted whole."""
    played = play(truncated, tmp_path, journal="mmap")
    assert played.code == -signal.SIGBUS
    home, episode = tmp_path / "home", (tmp_path / "episode").read_text()
    with trackway.Recorder(home) as recorder:
        recorder.flush()
    found = heard(home, episode)
    tell(**compared(found, found))

    assert found == list(range(len(found)))
    assert len(found) > CUT // 150
    assert list((home / "journals").iterdir()) == []


@pytest.mark.promise(
    "journal truncated", "with appended journals: the agent goes on, all but the cut is kept, doctor says so"
)
def test_an_appended_journal_that_is_cut_off(tmp_path, tell):
    """What was cut out cannot come back: it is reported as put aside, and everything around it is sealed."""
    played = play(truncated, tmp_path, journal="append")
    found = played.value["heard"]
    tell(**compared([each for each in ALL if each >= HALF], [each for each in found if each >= HALF]))

    whole = [each for each in found if each < HALF]
    assert whole == list(range(len(whole)))
    assert len(whole) > CUT // 150
    assert found[len(whole) :] == list(range(HALF, 2 * HALF))
    assert played.value["doctor"][0] == 1
    assert "could not be sealed" in played.value["doctor"][1]
    assert sum("put aside" in each for each in played.lines()) == 1


def overwritten(folder, journal):
    """Another process writes garbage into the middle of the segment."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    with nobody_seals(home):
        episode = recorder.start("overwritten")
        say(episode, range(HALF))
        [segment] = home.glob("journals/*/*.seg")
        with segment.open("r+b") as file:
            file.seek(CUT)
            file.write(b"\xa5" * 300)
        say(episode, range(HALF, 2 * HALF))
    episode.end("success")
    recorder.close()
    doctor = CliRunner().invoke(main, ["doctor", "--home", str(home)])
    aside = [json.loads(each.read_text()) for each in (home / "quarantine").glob("*.json")]
    return {"heard": heard(home, episode.id), "doctor": [doctor.exit_code, doctor.output], "aside": len(aside)}


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("journal overwritten", "under the map: the records hit are put aside, all others are sealed")
def test_a_journal_that_is_overwritten(tmp_path, tell, journal):
    """Three hundred bytes of garbage cost the few records they hit, and nothing wrong is shown."""
    played = play(overwritten, tmp_path, journal=journal)
    found = played.value["heard"]
    missing = sorted(set(ALL) - set(found))
    tell(overwritten=len(missing), others_missing=len([each for each in missing if each >= HALF]))

    assert found == sorted(set(found))
    assert 0 < len(missing) < 6
    assert missing == list(range(missing[0], missing[0] + len(missing)))
    assert played.value["aside"] == 1
    assert played.value["doctor"][0] == 1
    assert sum("put aside" in each for each in played.lines()) == 1


def test_the_folder_of_a_dead_writer_is_found_after_a_move(tmp_path):
    """A journal for the home's own store is for the store of wherever the home is now."""
    home, other = tmp_path / "home", tmp_path / "other"
    recorder = trackway.Recorder(home)
    episode = recorder.start("left behind")
    say(episode, range(3))
    recorder._journal.release()
    home.rename(other)

    assert heard(other, episode.id) == [0, 1, 2]
    recorder._keeper.stop()
    assert Path(other, "journals").is_dir()
