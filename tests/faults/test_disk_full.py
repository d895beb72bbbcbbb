"""Disk full, wherever something is written: nothing stored is lost, what finds no room is counted, and it goes on.

Each scene is played on a disk of a few megabytes, in memory, that really fills up.
"""

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import (
    compared,
    fill,
    full,
    handles,
    is_full,
    is_sound,
    nobody_seals,
    play,
    said_in,
    small_disk,
)
from trackway.cli import main
from trackway.errors import StoreUnavailable
from trackway.schema import ids
from trackway.store.sqlite import SqliteStore

GOLDEN = Path(__file__).parents[1] / "golden"
FILLING = 4000
KILOBYTE = "x" * 1000


def on(size, scene, folder, **given):
    """The scene's answer, played on a disk of that size."""
    played = play(scene, folder, mount=small_disk(folder, size), **given)
    assert played.code == 0, played.said[-3000:]
    return played


def command(*words):
    """A command's exit code and all it said."""
    answer = CliRunner().invoke(main, [str(each) for each in words])
    return answer.exit_code, answer.output


def say(episode, numbers, with_each=KILOBYTE):
    """Say the numbers; those that were acknowledged."""
    kept = []
    for each in numbers:
        before = episode.lost
        episode.user(f"{each} {with_each}")
        kept += [each] * (episode.lost == before)
    return kept


def heard(home, episode, store=None):
    """The numbers that are read back."""
    with trackway.open_store(store, home=home) as opened:
        return [int(each.split()[0]) for each in said_in(opened, episode.id)]


def files(folder):
    """Every file below a folder."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


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


# --- upkeep ---------------------------------------------------------------------------------------------------------


def recorded(home, episodes):
    """Some episodes, sealed; their ids."""
    found = []
    with trackway.Recorder(home) as recorder:
        for number in range(episodes):
            with recorder.start(f"t{number}") as episode:
                say(episode, range(20), os.urandom(400).hex())
            found.append(episode.id)
    return found


def prune_without_room(folder, leave):
    """Prune half on a disk with that much room, then with plenty."""
    home = folder / "home"
    kept = recorded(home, 20)[10:]
    with full(folder, leave=leave):
        code, said = command("prune", "--keep", 10, "--yes", "--home", home)
        left = command("ls", "--ids", "--home", home)[1].split()
    again, _ = command("prune", "--keep", 10, "--yes", "--home", home)
    with trackway.open_store(home=home) as store:
        ends = {each.id for each in store.episodes()}
        heard_all = all(len(said_in(store, each)) == 20 for each in kept)
        sound = is_sound(store)
    return {
        "code": code, "said": said, "left": len(left), "again": again, "sound": sound,
        "kept": heard_all and ends == set(kept),
    }  # fmt: skip


@pytest.mark.parametrize("leave", [0, 8 << 10, 40 << 10, 100 << 10, 200 << 10, 400 << 10])
@pytest.mark.promise(
    "disk full", "while pruning and vacuuming: whole episodes go or stay, the same prune again finishes it"
)
def test_a_prune_that_finds_no_room(tmp_path, tell, leave):
    """At whatever point the room ends: one line with the path, a sound store, and what was to stay is whole."""
    found = on("8m", prune_without_room, tmp_path, leave=leave).value

    assert found["code"] == 0 or str(tmp_path) in found["said"], found["said"]
    assert found["said"].count("Traceback") == 0
    assert found["left"] in (10, 20)
    assert (found["again"], found["kept"], found["sound"]) == (0, True, True)
    tell(stopped=int(found["code"] != 0))


def copies_without_room(folder, leave):
    """Backup, pack and unpack on a disk with that much room."""
    home, target = folder / "home", folder / "target"
    target.mkdir()
    episode = recorded(home, 5)[-1]
    assert command("pack", episode, "-o", Path(os.environ["HOME"]) / "p.jsonl", "--home", home)[0] == 0
    commands = {
        "backup": ("backup", target / "b.db", "--home", home),
        "pack": ("pack", episode, "-o", target / "p.jsonl", "--home", home),
        "pack, compressed": ("pack", episode, "-o", target / "p.jsonl.zst", "--home", home),
        "unpack": ("unpack", Path(os.environ["HOME"]) / "p.jsonl", "--home", home, "--store", target / "u.db"),
    }
    found = {}
    for name, words in commands.items():
        with full(folder, leave=leave):
            code, said = command(*words)
            found[name] = [code, said, [each for each in files(target) if not each.startswith("u.")]]
        again, _ = command(*words, *(["--force"] if name != "unpack" else []))
        found[name] += [again, files(target)]
        shutil.rmtree(target)
        target.mkdir()
    return found


@pytest.mark.parametrize("leave", [0, 20 << 10])
@pytest.mark.promise(
    "disk full", "while copying (backup, pack, unpack): one line with the path, nothing half made is left"
)
def test_a_copy_that_finds_no_room(tmp_path, tell, leave):
    """Nothing stands under the final name, no .part is left, and with room the same command works."""
    found = on("8m", copies_without_room, tmp_path, leave=leave).value

    for name, (code, said, left, again, _) in found.items():
        assert code == 1 or name.startswith("pack, c"), name
        assert code == 0 or str(tmp_path / "target") in said, said
        assert code == 0 or left == [], name
        assert again == 0, name
    tell(refused=sum(each[0] for each in found.values()))


# --- what says that something is wrong ------------------------------------------------------------------------------


def books_without_room(folder, elsewhere):
    """A loss and a damaged record, on a disk where neither can be written down."""
    home = folder / "home"
    recorder = trackway.Recorder(home, store=elsewhere)
    episode = recorder.start("unlucky")
    kept = say(episode, range(20), "")
    segment = next(home.rglob("*.seg"))
    ballast = fill(folder)
    with segment.open("r+b") as file:
        body = file.read()
        file.seek(body.index(b"7 ") - 4)
        file.write(b"\xff\xff")
    try:
        recorder.flush()
        found = {"flush": "went well"}
    except OSError as error:
        found = {"flush": str(error), "full": is_full(error)}
    found["position"] = SqliteStore(Path(elsewhere)).position(recorder._journal.writer).offset
    say(episode, range(20, 21), "y" * 600_000)
    recorder.lose(ids.to_bytes(episode.id), OSError("made up"))
    ballast.unlink()
    recorder.flush()
    episode.end()
    recorder.close()
    found["aside"] = [each for each in files(home / "quarantine") if each.endswith(".json")]
    found["losses"] = (home / "losses.jsonl").read_text().splitlines()
    return found | {"kept": kept, "heard": heard(home, episode, elsewhere)}


@pytest.mark.promise("disk full", "while putting a damaged record aside: it is not passed over, sealing waits for room")
def test_a_quarantine_that_finds_no_room(tmp_path, tmp_path_factory):
    """The position does not move beyond bytes that are kept nowhere; with room they are, and the rest is sealed."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "store.db"
    found = on("2m", books_without_room, tmp_path, elsewhere=str(elsewhere)).value

    assert found["full"], found["flush"]
    assert str(tmp_path) in found["flush"]
    assert found["position"] == 0
    assert len(found["aside"]) == 1
    assert [each for each in found["heard"] if each < 20] == [each for each in found["kept"] if each != 7]
    assert all(json.loads(each)["lost"] for each in found["losses"])


def losses_without_room(folder):
    """What was lost cannot be written down either, or only half of it."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    for leave in (0, 4096):
        episode = recorder.start("lossy")
        recorder.flush()
        for number in range(40):
            recorder.lose(ids.to_bytes(episode.id), OSError(f"made up {number}"))
        before = handles()
        with full(folder, leave=leave):
            episode.end()
            after = handles()
    episode = recorder.start("later")
    recorder.lose(ids.to_bytes(episode.id), OSError("later"))
    episode.end()
    recorder.close()
    read = []
    for line in (home / "losses.jsonl").read_text().splitlines():
        try:
            read.append(json.loads(line)["reason"])
        except ValueError:
            continue
    with trackway.open_store(home=home) as store:
        summaries = sorted(each.lost for each in store.episodes())
    doctor = command("doctor", "--home", home)
    return {"read": read, "lost": summaries, "leaked": after - before, "doctor": doctor}


@pytest.mark.promise(
    "disk full", "while writing down a loss: it is said on stderr, counted in the episode, a half line hides none"
)
def test_a_book_of_losses_that_finds_no_room(tmp_path):
    """A line that found half the room it needed does not swallow the next one; no handle leaks."""
    played = on("8m", losses_without_room, tmp_path)

    assert played.value["lost"] == [1, 40, 40]
    assert "OSError: later" in played.value["read"]
    assert len(played.value["read"]) > 1
    assert played.value["leaked"] == 0
    assert sum("could not be recorded" in each for each in played.lines()) == 81
    assert "OSError: later" in played.value["doctor"][1]
