"""Homes in odd places, and places that change under a living recorder: moved, removed, replaced, cut off.

What is done to the files is done for real, by this process or by mounts of its own.
"""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import compared, is_sound, play, said_in, small_disk
from trackway.cli import main
from trackway.recording.recorder import Recorder

DIES = """
import os, sys, trackway
recorder = trackway.Recorder(sys.argv[1])
episode = recorder.start("dies")
for number in range(50): episode.user(str(number))
recorder.flush()
for number in range(50, 100): episode.user(str(number))
print(episode.id, flush=True)
os.kill(os.getpid(), 9)
"""


def command(*words):
    """A command's exit code and all it said."""
    answer = CliRunner().invoke(main, [str(each) for each in words])
    return answer.exit_code, answer.output


def say(episode, numbers):
    """Say the numbers; those that were acknowledged."""
    kept = []
    for each in numbers:
        before = episode.lost
        episode.user(str(each))
        kept += [each] * (episode.lost == before)
    return kept


def heard(home, episode):
    """The numbers that are read back."""
    with trackway.open_store(home=home) as store:
        return [int(each) for each in said_in(store, episode)]


def died_in(home):
    """A home that a killed process left: fifty numbers sealed, fifty in its journal; its episode."""
    done = subprocess.run([sys.executable, "-c", DIES, str(home)], check=False, capture_output=True, text=True)
    return done.stdout.strip()


# --- places that stay as they are -----------------------------------------------------------------------------------


def everything(folder, name="home"):
    """Record, die, adopt, read, pack, back up, prune and ask the doctor; what is read back, and what was said."""
    home = folder / name
    episode = died_in(home)
    with trackway.Recorder(home) as recorder:
        adopted = recorder.resume(episode)
        say(adopted, range(100, 120))
        adopted.end("success")
    found = {"heard": heard(home, episode)}
    pack, copy = folder / f"{name}.jsonl", folder / f"{name}.db"
    assert command("pack", episode, "-o", pack, "--home", home)[0] == 0
    assert command("unpack", pack, "--home", home, "--store", home / "copy.db")[0] == 0
    assert command("backup", copy, "--home", home)[0] == 0
    with trackway.open_store(copy, home=home) as store:
        found["copied"] = [int(each) for each in said_in(store, episode)]
    found["doctor"] = command("doctor", "--home", home)
    found["ls"] = command("ls", "--home", home)
    found["prune"] = command("prune", "--keep", 0, "--yes", "--home", home)
    found["verify"] = command("verify", "--home", home)
    return found


def all_went_well(found):
    """All of it is there, once, and no command failed."""
    assert found["heard"] == found["copied"] == list(range(120))
    assert [found[each][0] for each in ("ls", "prune", "verify")] == [0, 0, 0]


@pytest.mark.promise("home on tmpfs", "works like any other; doctor notes that it is gone at the next restart")
def test_a_home_on_tmpfs(tmp_path):
    """Journals are mapped, the dead are adopted, backups are made."""
    found = play(everything, tmp_path, mount=small_disk(tmp_path, "512m"))

    all_went_well(found.value)
    code, said = found.value["doctor"]
    assert (code, "in memory (tmpfs)" in said) == (0, True)


@pytest.mark.promise("home on overlay", "works like any other, over files of a lower layer too")
def test_a_home_on_overlay(tmp_path):
    """What the lower layer holds is read, written anew in the upper one, and stays as it was below."""
    below, work, merged = (tmp_path / each for each in ("below", "work", "merged"))
    for each in (below, work, merged):
        each.mkdir()
    died_in(below / "home")
    before = {each: each.read_bytes() for each in below.rglob("*") if each.is_file()}
    mount = (
        f"mount -t tmpfs upper {work} && mkdir {work}/u {work}/w && "
        f"mount -t overlay over -o lowerdir={below},upperdir={work}/u,workdir={work}/w {merged}"
    )
    found = play(over_a_lower_layer, merged, mount=mount)

    assert found.value["first"] == list(range(100))
    all_went_well(found.value)
    assert {each: each.read_bytes() for each in below.rglob("*") if each.is_file()} == before


def over_a_lower_layer(folder):
    """Adopt what a dead process left in the layer below, then do everything."""
    with trackway.Recorder(folder / "home") as recorder:
        recorder.flush()
        [summary] = trackway.open_store(home=folder / "home").episodes()
    first = heard(folder / "home", summary.id)
    return everything(folder, "other") | {"first": first}


NAMES = {
    "spaces": "a home  with spaces ",
    "non-ASCII": "größe-家-🏠",
    "non-UTF-8 bytes": os.fsdecode(b"latin-\xe9\xff"),
    "what URLs and shells mind": "50%?#&';\"$(x)*[a]\\",
    "a line break": "two\nlines",
    "a leading dash": "-home",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.promise("odd path", "spaces, non-ASCII, non-UTF-8, quotes, %, #, line breaks: everything works there")
def test_a_home_with_an_odd_name(tmp_path, name):
    """Journal, store, pack, backup and prune take any name a folder can have."""
    found = everything(tmp_path, name)

    all_went_well(found)
    assert found["doctor"][0] == 0, found["doctor"][1]


def test_a_store_that_is_named_by_a_surrogate(tmp_path):
    """A path that is no text at all is a path."""
    name = os.fsdecode(b"\xff\xfe.db")
    with trackway.Recorder(store=tmp_path / name) as recorder:
        episode = recorder.start("t")
        episode.end("success")

    assert [each.task for each in trackway.open_store(tmp_path / name).episodes()] == ["t"]


@pytest.mark.parametrize("length", [700, 3500])
@pytest.mark.promise("long path", "too long for SQLite: kept in journals and read there, said once; doctor says so too")
def test_a_path_that_is_too_long_for_sqlite(tmp_path, capfd, length):
    """SQLite takes some five hundred bytes; a journal goes on beyond, and nothing of it is lost."""
    home = tmp_path
    while len(str(home)) < length:
        home /= "x" * 100
    recorder = trackway.Recorder(home)
    episode = recorder.start("deep down")
    kept = say(episode, range(100))
    episode.end()
    recorder.close()

    assert heard(home, episode.id) == kept == list(range(100))
    [line] = [each for each in capfd.readouterr().err.splitlines() if each.startswith("trackway: sealing waits")]
    assert str(home) in line
    code, said = command("doctor", "--home", home)
    assert (code, "SQLite takes no more than" in said) == (1, True)


@pytest.mark.promise("long path", "too long for any file: every event is counted as lost, and the agent goes on")
def test_a_path_that_is_too_long_for_anything(tmp_path, capfd):
    """The system refuses the name: counted, told once."""
    home = tmp_path.joinpath(*["x" * 200] * 30)
    episode = trackway.record("nowhere", home=home)
    assert say(episode, range(10)) == []
    assert episode.lost == 11
    episode.end()
    assert sum("could not be recorded" in each for each in capfd.readouterr().err.splitlines()) == 1
    assert command("doctor", "--home", home)[0] == 1


def read_only(folder):
    """Read all of it, then try everything that would change something."""
    home = folder / "home"
    found = {"files": sorted(str(each) for each in home.rglob("*"))}
    with trackway.open_store(home=home) as store:
        episode = store.find("last")[0]
        found["sound"] = is_sound(store)
    found["heard"] = heard(home, episode)
    for words in (["ls"], ["show", "last"], ["stats"], ["verify"], ["du"], ["doctor"]):
        found[words[0]] = command(*words, "--home", home)
    changing = (["prune", "--keep", "0", "--yes"], ["label", "last", "--tag", "x"], ["backup", home / "b.db"])
    found["refused"] = [command(*words, "--home", home) for words in changing]
    live = trackway.record("cannot", home=home)
    found["kept"] = say(live, range(100))
    found["lost"] = live.lost
    return found


@pytest.mark.parametrize("left", ["dead", "dead, without -shm", "closed"])
@pytest.mark.promise(
    "read-only home", "all of it is read; what is recorded is counted as lost; commands say why in a line"
)
def test_a_home_on_a_read_only_mount(tmp_path, tell, left):
    """Journals and log are read as they were left; nothing is shown that is less than was committed."""
    home = tmp_path / "home"
    died_in(home)
    if left == "closed":
        Recorder(home).flush()
    elif left == "dead, without -shm":
        (home / "store.db-shm").unlink()
    played = play(
        read_only, tmp_path, mount=f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}"
    )
    found = played.value
    tell(**compared(list(range(100)), found["heard"]))

    assert found["heard"] == list(range(100))
    assert found["sound"]
    assert [found[each][0] for each in ("ls", "show", "stats", "verify", "du")] == [0] * 5
    assert "the home is on a read-only file system" in found["doctor"][1]
    for code, said in found["refused"]:
        assert (code, len(said.splitlines()) < 3, str(home) in said) == (1, True, True), said
    assert (found["kept"], found["lost"]) == ([], 101)
    assert sum("Read-only file system" in each for each in played.lines()) == 1
