"""Disk full while something is looked after: pruned, copied, put aside, written into the book of losses."""

import json
import os
import shutil
from pathlib import Path

import pytest

import trackway
from tests.faults.filling import command, files, heard, on, say
from tests.faults.places import (
    fill,
    full,
    handles,
    is_full,
    is_sound,
    said_in,
)
from trackway.schema import ids
from trackway.store.sqlite import SqliteStore

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
