"""Disk full, wherever something is written: nothing stored is lost, what finds no room is counted, and it goes on.

Each scene is played on a disk of a few megabytes, in memory, that really fills up.
"""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import trackway
from tests.faults.filling import FILLING, command, files, heard, on, say
from tests.faults.places import (
    compared,
    fill,
    full,
    handles,
    is_sound,
    nobody_seals,
)
from trackway.errors import StoreUnavailable

GOLDEN = Path(__file__).parents[1] / "golden"


# --- append and fallocate -------------------------------------------------------------------------------------------


def journal_fills_up(folder, journal):
    """Record until nothing goes in any more, make room, go on."""
    home = folder / "home"
    elsewhere = Path(os.environ["HOME"]) / "store.db"
    before = handles()
    recorder = trackway.Recorder(home, journal=journal, store=elsewhere)
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    with nobody_seals(home):
        episode = recorder.start("fills the disk")
        kept = say(episode, range(FILLING))
    lost = episode.lost
    opened = handles() - before
    ballast.unlink()
    recorder.flush()
    kept += say(episode, range(FILLING, FILLING + 100))
    episode.end("success")
    recorder.close()
    with trackway.open_store(recorder.store, home=home) as store:
        summary = store.episode(episode.id)
        ending = [each.lost for each in store.events(episode.id) if each.kind == "episode_end"]
    listed = command("ls", "--home", home, "--store", recorder.store.key)[1]
    said = [json.loads(each) for each in (home / "losses.jsonl").read_text().splitlines()]
    return {
        "kept": kept, "heard": heard(home, episode, recorder.store), "lost": lost, "summary": summary.lost,
        "ending": ending, "handles": opened, "listed": listed, "losses": [each["lost"] for each in said],
        "reasons": [each["reason"] for each in said], "after": len([each for each in kept if each >= FILLING]),
    }  # fmt: skip


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise(
    "disk full", "while appending: what was acknowledged is kept, every other event is counted as lost"
)
def test_a_journal_that_fills_the_disk(tmp_path, tell, journal):
    """Events find no room one after the other: counted everywhere, none acknowledged is missing, no handle leaks."""
    found = on("3m", journal_fills_up, tmp_path, journal=journal)
    value = found.value
    tell(**compared(value["kept"], value["heard"]), counted_lost=value["lost"])

    assert value["heard"] == value["kept"]
    assert value["lost"] > 0
    assert value["lost"] == value["summary"] == value["ending"][0] == sum(value["losses"])
    assert f"{value['lost']} lost" in value["listed"]
    assert all("No space left on device" in each and str(tmp_path) in each for each in value["reasons"])
    assert value["after"] == 100
    assert value["handles"] < 12
    assert sum("could not be recorded" in each for each in found.lines()) == len(value["losses"])


def no_room_at_all(folder, journal):
    """The very first file finds no room; then there is some."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal)
    with full(folder):
        episode = recorder.start("nowhere")
        say(episode, range(200), "")
        lost = episode.lost
        before = handles()
        say(episode, range(200, 400), "")
        leaked = handles() - before
    kept = say(episode, range(400, 500), "")
    recorder.close()
    return {"kept": kept, "heard": heard(home, episode), "lost": lost, "leaked": leaked, "left": files(home)}


@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("disk full", "before the first event: counted as lost, and recording begins once there is room")
def test_no_room_for_a_first_segment(tmp_path, journal):
    """Each event tries anew, leaves nothing half made behind, and the first one that fits is kept."""
    found = on("3m", no_room_at_all, tmp_path, journal=journal)

    assert found.value["lost"] == 201
    assert found.value["heard"] == found.value["kept"] == list(range(400, 500))
    assert found.value["leaked"] == 0
    assert found.value["left"] == ["losses.jsonl", "seal.lock", "store.db", "store.lock"]
    assert sum("could not be recorded" in each for each in found.lines()) == 1


def payload_without_room(folder, journal, leave, kind):
    """A payload larger than the room there is, twice; then small events, with no room made for them."""
    home = folder / "home"
    large = Path(os.environ["HOME"]) / "large.bin"
    large.write_bytes(os.urandom(40 << 20))
    recorder = trackway.Recorder(home, journal=journal)
    episode = recorder.start("too large")
    kept = say(episode, range(10))
    recorder.flush()
    ballast = fill(folder, leave=leave)
    for _ in range(2):
        if kind == "file":
            episode.file_change("x", after=large)
        else:
            episode.tool_result("c", large.read_bytes().hex())
    lost = episode.lost
    kept += say(episode, range(10, 60))
    recorder.flush()
    left = shutil.disk_usage(folder).free
    episode.end()
    recorder.close()
    with trackway.open_store(home=home) as store:
        chunks = store.store._rows("SELECT count(*) FROM chunks", ())
        sound = is_sound(store)
    ballast.unlink()
    large.unlink()
    return {
        "kept": kept, "heard": heard(home, episode), "lost": lost, "free": left, "chunks": chunks[0][0],
        "sound": sound, "left": list((home / "journals").iterdir()) != [],
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["file", "text"])
@pytest.mark.parametrize("leave", [6 << 20, 14 << 20, 30 << 20])
@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.promise("disk full", "inside a large payload: its room is given back, what follows is kept and sealed")
def test_a_payload_that_finds_no_room(tmp_path, journal, leave, kind):
    """However far it came: its event alone is lost, and nobody has to make room for what it left behind."""
    found = on("40m", payload_without_room, tmp_path, journal=journal, leave=leave, kind=kind).value

    assert found["lost"] == 2
    assert found["heard"] == found["kept"] == list(range(60))
    assert (found["chunks"], found["sound"], found["left"]) == (0, True, False)


def first_record_without_room(folder, store):
    """A segment is begun and has room for its stamp, not for the record it was begun for."""
    recorder = trackway.Recorder(folder / "home", journal="append", store=store)
    episode = recorder.start("one page")
    kept = say(episode, range(9), "y" * 900_000)
    recorder.flush()
    with full(folder, leave=12 << 10):
        kept += say(episode, range(9, 10), "y" * 1_000_000)
        segment = recorder._journal._segment
        place = [segment.activation, segment.offset]
        recorder.flush()
    recorder.close()
    return {"kept": kept, "heard": heard(folder / "home", episode, store), "place": place, "left": files(folder)}


@pytest.mark.promise(
    "disk full", "at the first record of a segment: a flush returns, the journal goes when it is closed"
)
def test_a_segment_that_holds_nothing_but_its_stamp(tmp_path, tmp_path_factory):
    """Nobody waits for the start of an empty segment to be sealed: there is nothing there to seal."""
    store = tmp_path_factory.mktemp("elsewhere") / "store.db"
    found = on("24m", first_record_without_room, tmp_path, store=str(store)).value

    assert found["place"] == [2, 64]
    assert found["heard"] == found["kept"] == list(range(9))
    assert not [each for each in found["left"] if each.endswith(".seg")]


# --- seal, checkpoint, migrate --------------------------------------------------------------------------------------


def store_fills_up(folder, elsewhere, closed):
    """The store's disk is full while its journal's is not; then there is room again, in this process or the next."""
    elsewhere = Path(elsewhere)
    recorder = trackway.Recorder(elsewhere, store=folder / "store.db")
    found, kept, episode = {}, [], None
    if closed != "never opened":
        episode = recorder.start("waits")
        kept = say(episode, range(10))
        recorder.flush()
    with full(folder):
        episode = episode or recorder.start("waits")
        kept += say(episode, range(len(kept), 300))
        try:
            recorder.flush()
        except StoreUnavailable as error:
            found["flush"] = str(error)
        found["meanwhile"] = heard(elsewhere, episode, folder / "store.db")
        found["doctor"] = command("doctor", "--home", elsewhere, "--store", folder / "store.db")
        if closed == "while full":
            episode.end("success")
            recorder.close()
    if closed == "while full":
        recorder = trackway.Recorder(elsewhere, store=folder / "store.db")
    recorder.flush()
    recorder.close()
    with trackway.open_store(folder / "store.db", home=elsewhere) as store:
        found["sound"] = is_sound(store)
    found["left"] = files(elsewhere / "journals")
    return found | {"kept": kept, "heard": heard(elsewhere, episode, folder / "store.db"), "lost": episode.lost}


@pytest.mark.parametrize("closed", ["never opened", "with room", "while full"])
@pytest.mark.promise(
    "disk full", "while sealing: all stays in the journal, is read there, and is sealed once there is room"
)
def test_a_store_that_finds_no_room(tmp_path, tmp_path_factory, tell, closed):
    """Nothing is lost, nothing is there twice; flush and doctor say that the disk is full, and where."""
    elsewhere = tmp_path_factory.mktemp("journals") / "home"
    found = on("16m", store_fills_up, tmp_path, elsewhere=str(elsewhere), closed=closed).value
    tell(**compared(found["kept"], found["heard"]))

    assert str(tmp_path / "store.db") in found["flush"]
    assert "make room" in found["flush"]
    assert found["heard"] == found["kept"] == found["meanwhile"] == list(range(300))
    assert (found["lost"], found["left"], found["sound"]) == (0, [], True)
    code, said = found["doctor"]
    assert (code, "left on the disk of the store" in said) == (1, True), said


def full_at_the_end(folder):
    """Everything is sealed, into the log; then there is no room to move it into the file."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    episode = recorder.start("ends")
    kept = say(episode, range(300))
    episode.end("success")
    recorder.flush()
    with full(folder):
        recorder.close()
        found = {"heard": heard(home, episode), "kept": kept, "ls": command("ls", "--home", home)}
    with trackway.Recorder(home) as recorder:
        recorder.start("next").end("success")
    with trackway.open_store(home=home) as store:
        return found | {"after": heard(home, episode), "sound": is_sound(store)}


@pytest.mark.promise("disk full", "while the log is moved into the file: it stays a log, read as well as before")
def test_a_checkpoint_that_finds_no_room(tmp_path):
    """The end of a program is silent about it: all of it is sealed, and the next one moves it."""
    played = on("16m", full_at_the_end, tmp_path)

    assert played.value["heard"] == played.value["kept"] == played.value["after"] == list(range(300))
    assert played.value["sound"]
    assert played.value["ls"][0] == 0
    assert played.lines() == []


def older_store(folder, elsewhere):
    """A store of format 1 is opened to write on a full disk."""
    path = folder / "store.db"
    shutil.copy(GOLDEN / "store-1.db", path)
    before = path.read_bytes()
    recorder = trackway.Recorder(elsewhere, store=path)
    found = {}
    with full(folder):
        episode = recorder.start("new")
        kept = say(episode, range(20), "")
        try:
            recorder.flush()
        except StoreUnavailable as error:
            found["flush"] = str(error)
        found["same"] = path.read_bytes() == before
        found["full"] = command("ls", "--ids", "--home", elsewhere, "--store", path)
    recorder.flush()
    recorder.close()
    connection = sqlite3.connect(path)
    found["format"] = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    with trackway.open_store(path, home=elsewhere) as store:
        found["sound"] = is_sound(store)
    found["ls"] = command("ls", "--ids", "--home", elsewhere, "--store", path)
    return found | {"kept": kept, "heard": heard(elsewhere, episode, path)}


@pytest.mark.promise(
    "disk full", "while migrating: the store stays the format it was, readable, and rises once there is room"
)
def test_a_migration_that_finds_no_room(tmp_path, tmp_path_factory):
    """Byte for byte as it was, and listed with what waits in the journal; then it is brought up to date."""
    elsewhere = tmp_path_factory.mktemp("journals") / "home"
    found = on("2m", older_store, tmp_path, elsewhere=str(elsewhere)).value

    assert str(tmp_path / "store.db") in found["flush"]
    assert found["same"]
    assert found["full"] == found["ls"]
    assert len(found["ls"][1].split()) == 3
    assert found["format"] > 1
    assert found["heard"] == found["kept"] == list(range(20))
    assert found["sound"]
