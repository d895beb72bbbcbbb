"""System calls that fail or take their time, and limits on what a process may have: files, memory, sizes.

Calls are made to fail by strace, in the kernel's place; limits are the kernel's own.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import calls, compared, handles, is_sound, needs_strace, play, said_in
from trackway.cli import main
from trackway.errors import StoreTrouble

HALF = 300
ALL = list(range(2 * HALF))
WRITER = bytes(8)
MEGABYTE = 1 << 20
GOES_ON = """
import os, sys, trackway
episode = trackway.record("goes on", home=sys.argv[1])
episode.user("1")
print(episode.id, flush=True)
input()
episode.user("2")
os.kill(os.getpid(), 9)
"""


def say(episode, numbers, with_each=""):
    """Say the numbers; those that were acknowledged."""
    kept = []
    for each in numbers:
        before = episode.lost
        episode.user(f"{each} {with_each}")
        kept += [each] * (episode.lost == before)
    return kept


def heard(home, episode):
    """The numbers that are read back."""
    with trackway.open_store(home=home) as store:
        return [int(each.split()[0]) for each in said_in(store, episode)]


def doctor(home):
    """What the doctor says of a home."""
    return CliRunner().invoke(main, ["doctor", "--home", str(home)]).output


def known_writer(size):
    """Entropy that gives a journal's folder a name that a test knows before it is made."""
    return WRITER if size == len(WRITER) else os.urandom(size)


@contextlib.contextmanager
def limited(what, value):
    """A limit of this process, for a while."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (value, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def recorded(folder, journal=None):
    """Record, flush, record, close; what came of each."""
    home = folder / "home"
    recorder = trackway.Recorder(home, journal=journal, entropy=known_writer)
    episode = recorder.start("in trouble")
    kept = say(episode, range(HALF))
    found = {"flush": "ok", "kind": type(recorder._journal._segment).__name__}
    try:
        recorder.flush()
    except (OSError, StoreTrouble) as error:
        found["flush"] = str(error)
    kept += say(episode, range(HALF, 2 * HALF))
    episode.end("success")
    recorder.close()
    found["doctor"] = doctor(home)
    left = [str(each) for each in (home / "journals").iterdir()]
    return found | {"kept": kept, "heard": heard(home, episode.id), "lost": episode.lost, "left": left}


def in_another_process(home):
    """Whatever was left is sealed by a process that is in no trouble; the numbers in the store."""
    with trackway.Recorder(home) as recorder:
        recorder.flush()
    with trackway.open_store(home=home) as store:
        assert is_sound(store)
        [summary] = store.episodes()
        return [int(each.split()[0]) for each in said_in(store.store, summary.id)]


# --- calls that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
@pytest.mark.promise(
    "no flock", "recording and sealing go on; nobody living is taken for dead; doctor calls it a problem"
)
def test_no_flock(tmp_path, tell, error):
    """A file system without locks: everything is kept, once, also beside another process that records there."""
    played = play(recorded, tmp_path, inject=calls("flock", f"error={error}"))
    found = played.value
    tell(**compared(found["kept"], found["heard"]))

    assert found["heard"] == found["kept"] == ALL
    assert (found["flush"], found["left"]) == ("ok", [])
    assert "there are no locks here" in found["doctor"]
    assert played.lines() == []


def beside_an_unlocked_one(folder):
    """This process can lock; one that could not is recording in the same home."""
    home = folder / "home"
    command = ["strace", "-f", "-qq", "-o", os.devnull, *calls("flock", "error=ENOLCK"), sys.executable, "-c", GOES_ON]
    other = subprocess.Popen([*command, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    episode = other.stdout.readline().strip()
    with trackway.Recorder(home) as recorder:
        recorder.flush()
        alive = len(list((home / "journals").glob("????????????????")))
    other.communicate("go on\n")
    with trackway.Recorder(home) as recorder:
        recorder.flush()
    left = [each.name for each in (home / "journals").iterdir()]
    return {"alive": alive, "heard": heard(home, episode), "left": left}


@pytest.mark.promise("no flock", "a living process that could not lock is not adopted by one that can")
def test_one_that_could_not_lock_is_not_taken_for_dead(tmp_path):
    """It said so on its card: nobody seals its journal from under it, until its process is gone."""
    needs_strace()
    found = play(beside_an_unlocked_one, tmp_path).value

    assert found == {"alive": 1, "heard": [1, 2], "left": []}


@pytest.mark.promise("no mmap", "journals are appended to instead, with the same promises; doctor notes it")
def test_no_mmap(tmp_path, tell):
    """A file system that cannot map says so when the first segment is made, and nothing is lost by it."""
    segment = tmp_path / "home" / "journals" / WRITER.hex() / "000001.seg"
    inject = ("-P", str(tmp_path / "home" / ".doctor"), *calls("mmap", "error=ENODEV", path=segment))
    found = play(recorded, tmp_path, inject=inject).value
    tell(**compared(found["kept"], found["heard"]))

    assert found["kind"] == "AppendedSegment"
    assert found["heard"] == found["kept"] == ALL
    assert found["left"] == []
    assert "files cannot be mapped here" in found["doctor"]  # it tries with a file of its own


@pytest.mark.promise("no mmap", "where fallocate is missing too: allocated by writing, mapped all the same")
def test_no_fallocate(tmp_path):
    """The C library writes zeros instead; a full disk is still told before an event is acknowledged."""
    found = play(recorded, tmp_path, inject=calls("fallocate", "error=EOPNOTSUPP")).value

    assert found["kind"] == "MappedSegment"
    assert found["heard"] == found["kept"] == ALL


@pytest.mark.parametrize("call", ["fdatasync,fsync", "pwrite64"])
@pytest.mark.promise(
    "I/O errors", "while syncing or writing the store: all stays in the journal, sealed when it works again"
)
def test_errors_of_the_disk(tmp_path, tell, call):
    """A flush says so, close says so in a line, readers see it all, and the next process seals it, once."""
    played = play(recorded, tmp_path, inject=calls(call, "error=EIO"))
    found = played.value
    sealed = in_another_process(tmp_path / "home")
    tell(**compared(found["kept"], sealed))

    assert "error" in found["flush"]
    assert str(tmp_path) in found["flush"]
    assert found["heard"] == found["kept"] == sealed == ALL
    assert found["lost"] == 0
    assert 1 <= len(played.lines()) <= 2
    assert all("sealing waits" in each for each in played.lines())


def store_that_cannot_be_read(folder):
    """A store with something in it answers every read with an error; recording goes on."""
    found = recorded_again(folder)
    found["commands"] = [
        [(answer := CliRunner().invoke(main, [*words, "--home", str(folder / "home")])).exit_code, answer.output]
        for words in (["ls"], ["show", "last"], ["stats"], ["doctor"], ["verify"])
    ]
    return found


def recorded_again(folder):
    """Another episode, recorded into the same home."""
    recorder = trackway.Recorder(folder / "home")
    episode = recorder.start("while it cannot be read")
    kept = say(episode, range(HALF))
    episode.end()
    recorder.close()
    return {"kept": kept, "lost": episode.lost, "id": episode.id}


@pytest.mark.promise(
    "I/O errors", "while reading the store: one line and exit 1, never less than there is; recording goes on"
)
def test_a_store_that_cannot_be_read(tmp_path):
    """No command shows a part as if it were all; with the disk back everything is there."""
    home = tmp_path / "home"
    with trackway.Recorder(home) as recorder:
        recorder.start("before").end()
    inject = calls("pread64", "error=EIO", path=home / "store.db")
    found = play(store_that_cannot_be_read, tmp_path, inject=inject).value

    for code, said in found["commands"]:
        assert (code, str(home / "store.db") in said, "Traceback" in said) == (1, True, False), said
    assert (found["kept"], found["lost"]) == (list(range(HALF)), 0)
    with trackway.Recorder(home) as recorder:
        recorder.flush()
    assert heard(home, found["id"]) == found["kept"]
    assert len(list(trackway.open_store(home=home).episodes())) == 2


# --- a slow disk ----------------------------------------------------------------------------------------------------


def while_it_syncs(folder):
    """Record until the first sync is over; how many calls began and returned while it was under way."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    episode = recorder.start("slow disk")
    sync, begun, over = recorder._journal.sync, threading.Event(), threading.Event()

    def watched():
        begun.set()
        try:
            return sync()
        finally:
            over.set()

    recorder._journal.sync = watched
    kept, meanwhile = say(episode, [0]), 0
    begun.wait(60)
    while not over.is_set() and meanwhile < 2000:
        kept += say(episode, [len(kept)])
        meanwhile += not over.is_set()
    episode.end()
    recorder.close()
    left = list((home / "journals").iterdir())
    return {
        "kept": kept,
        "meanwhile": meanwhile,
        "heard": heard(home, episode.id),
        "left": len(left),
        "doctor": doctor(home),
    }


@pytest.mark.promise(
    "slow disk", "each sync takes 500 ms: recording calls do not wait for it, exit still seals everything"
)
def test_a_slow_disk(tmp_path, tell):
    """Calls begin and return while one is under way: had they to wait for it, none would; doctor says how slow."""
    with trackway.Recorder(tmp_path / "home") as recorder:  # a store takes a dozen syncs to make
        recorder.start("before").end()
    found = play(while_it_syncs, tmp_path, inject=calls("fdatasync,fsync", "delay_enter=500000")).value
    tell(recorded_while_the_disk_synced=found["meanwhile"], **compared(found["kept"], found["heard"]))

    assert found["meanwhile"] > 1  # one may slip in between its last call and its return
    assert found["heard"] == found["kept"]
    assert found["left"] == 0
    assert "the disk is slow: one sync took" in found["doctor"]


# --- limits ---------------------------------------------------------------------------------------------------------


def few_files(folder, spare):
    """No more than a few files may be opened; then as many as usual."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    found = {"flush": "ok"}
    with limited(resource.RLIMIT_NOFILE, handles() + spare):
        episode = recorder.start("few files")
        kept = say(episode, range(HALF), "x" * 1000)
        lost = episode.lost
        try:
            recorder.flush()
        except (OSError, StoreTrouble) as error:
            found["flush"] = str(error)
    kept += say(episode, range(HALF, 2 * HALF))
    after = episode.lost - lost
    episode.end()
    recorder.close()
    left = [each.name for each in (home / "journals").iterdir()]
    return found | {"kept": kept, "heard": heard(home, episode.id), "lost": lost, "after": after, "left": left}


@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4, 5, 6, 8])
@pytest.mark.promise(
    "file limit", "what finds no handle is counted as lost or waits in the journal; all is sealed once it can"
)
def test_few_files(tmp_path, tell, spare):
    """From none to enough: nothing acknowledged is missing, no folder is left, one line per reason."""
    played = play(few_files, tmp_path, spare=spare)
    found = played.value
    tell(**compared(found["kept"], found["heard"]), counted_lost=found["lost"])

    assert found["heard"] == found["kept"]
    assert (found["after"], found["left"]) == (0, [])
    assert found["lost"] - (len(ALL) - len(found["kept"])) in (0, 1)  # its start may be lost, too
    assert sum("could not be recorded" in each for each in played.lines()) == (found["lost"] > 0)


def test_doctor_says_that_few_files_may_be_open(tmp_path):
    """With the command that raises the limit."""
    with trackway.Recorder(tmp_path / "home") as recorder:
        recorder.start("t").end()
    program = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (40, 40)); from trackway.cli import main; main()"
    command = [sys.executable, "-c", program, "doctor", "--home", str(tmp_path / "home")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "files open here" in said
    assert "ulimit -n 1024" in said


def small_files(folder, limit):
    """No file may be larger than so many bytes; then any size."""
    home = folder / "home"
    with limited(resource.RLIMIT_FSIZE, limit):
        recorder = trackway.Recorder(home)
        episode = recorder.start("small files")
        kept = say(episode, range(600), "x" * 700)
        lost = episode.lost
        with contextlib.suppress(OSError, StoreTrouble):
            recorder.flush()
        said = doctor(home)
    kept += say(episode, range(600, 700))
    after = episode.lost - lost
    episode.end()
    recorder.close()
    return {"kept": kept, "heard": heard(home, episode.id), "lost": lost, "after": after, "doctor": said}


@pytest.mark.parametrize("limit", [100_000, 300_000, 3_000_000])
@pytest.mark.promise(
    "file size limit", "smaller journal files are made, sealing waits; what finds none is counted as lost"
)
def test_small_files(tmp_path, tell, limit):
    """A limit below the smallest journal file loses and counts; above it nothing is lost."""
    found = play(small_files, tmp_path, limit=limit).value
    tell(**compared(found["kept"], found["heard"]), counted_lost=found["lost"])

    assert found["heard"] == found["kept"]
    assert (found["lost"] > 0) == (limit < 256 << 10)
    assert found["after"] == 0
    assert "no file may be larger than" in found["doctor"]


def little_memory(folder, room):
    """Large values and small ones while memory is short, and after."""
    home = folder / "home"
    recorder = trackway.Recorder(home)
    episode = recorder.start("short of memory")
    kept = say(episode, range(100))
    recorder.flush()
    text, nested = "y" * (80 * MEGABYTE), {"deep": ["z" * (40 * MEGABYTE)]}
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    raised = []
    with limited(resource.RLIMIT_AS, used + room):
        for call in (
            lambda: episode.text(text),
            lambda: episode.tool_call("bash", {"command": text}),
            lambda: episode.note(nested),
            lambda: episode.user(text),
        ):
            try:
                call()
            except MemoryError:
                raised.append(1)
        kept += say(episode, range(100, 200))
    lost = episode.lost
    kept += say(episode, range(200, 300))
    episode.end("success")
    recorder.close()
    with trackway.open_store(home=home) as store:
        small = [each for each in said_in(store, episode.id) if len(each) < 1000]
        large = [each for each in map(letters, store.events(episode.id)) if each != (0, 0)]
        described = sum("no memory was left" in str(each)[:2000] for each in store.events(episode.id))
        sound = is_sound(store)
    return {
        "kept": kept,
        "heard": [int(each) for each in small],
        "lost": lost,
        "large": large,
        "described": described,
        "sound": sound,
        "raised": len(raised),
    }


def letters(event):
    """How many megabytes of y and z are in a large event, wherever it holds them."""
    values = [getattr(event, name, None) or "" for name in ("content", "args", "topic", "text", "detail")]
    texts = [each.decode() if isinstance(each, bytes) else each for each in values if len(each) > MEGABYTE]
    return sum(each.count("y") for each in texts) / MEGABYTE, sum(each.count("z") for each in texts) / MEGABYTE


@pytest.mark.parametrize("room", [8 * MEGABYTE, 30 * MEGABYTE, 60 * MEGABYTE, 100 * MEGABYTE, 200 * MEGABYTE])
@pytest.mark.promise(
    "out of memory", "in the agent: a large value is kept, described or counted as lost, and recording goes on"
)
def test_little_memory(tmp_path, tell, room):
    """Nothing raises into the agent and nothing ends it; what is kept of a large value is all of it."""
    played = play(little_memory, tmp_path, room=room)
    assert played.code == 0, signal.Signals(-played.code).name if played.code < 0 else played.said[-2000:]
    found = played.value
    figures = {"large_values_kept": len(found["large"]), "described": found["described"], "counted_lost": found["lost"]}
    tell(**compared(found["kept"], found["heard"]), **figures)

    assert found["heard"] == found["kept"]
    assert found["raised"] == 0
    assert {tuple(each) for each in found["large"]} <= {(80, 0), (0, 40)}
    assert len(found["kept"]) + sum(figures.values()) == 300 + 4
    assert bool(found["large"]) == (room >= 60 * MEGABYTE)  # room for a part of a text, and for no other form of it
    assert found["sound"]


def test_what_a_killed_copy_left_is_swept_up_by_the_next(tmp_path):
    """Whatever name it was meant for: a folder or file of ours that nobody holds goes, others stay."""
    with trackway.Recorder(tmp_path / "home") as recorder:
        recorder.start("t").end()
    dead = tmp_path / ".monday.db.abc.trackway.part"
    dead.mkdir()
    (dead / "lock").touch()
    (tmp_path / ".p.jsonl.1-1.trackway.part").touch()
    (tmp_path / ".theirs.part").touch()
    words = ["backup", str(tmp_path / "tuesday.db"), "--home", str(tmp_path / "home")]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == [".theirs.part"]
    shutil.rmtree(tmp_path / "home")
