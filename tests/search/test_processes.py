"""Searching beside others: agents that record, processes that index, ones that are killed at it, disks that fill up."""

import fcntl
import shutil
import signal
import subprocess
import sys

import pytest

import trackway
from tests.faults.filling import on
from tests.faults.places import full
from tests.search.asking import answer, indexed, places, said
from trackway.recording import feeding
from trackway.recording.feeding import Feeding
from trackway.search.catching_up import catch_up
from trackway.search.index import opened, place_of

_AGENT = """
import sys
from trackway.recording.recorder import Recorder
recorder = Recorder()
episode = recorder.start("runs", agent="elsewhere")
episode.user("look at the frobnicator")
print("recorded", flush=True)
for word in sys.stdin:
    episode.text(word.strip())
    print("recorded", flush=True)
"""
_INDEXES = """
import sys
from trackway.recording.settings import open_store
from trackway.search.catching_up import catch_up
def told(what, done, total):
    print(what, done, flush=True)
with open_store() as live:
    catch_up(live, progress=told)
"""


def process(code):
    """A process that does this."""
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def documents(home):
    """What is committed: how many events are in the index, and how many different ones."""
    import tantivy

    with trackway.open_store(home=home) as live:
        searcher = opened(place_of(live)).searcher()
    hits = searcher.search(tantivy.Query.all_query(), limit=100_000).hits
    addresses = [address for _, address in hits]
    columns = (searcher.fast_field_values(name, addresses) for name in ("key", "seq"))
    found = [each for each in zip(*columns, strict=True) if each[0] is not None]
    return len(found), len(set(found))


def many(home, episodes=30, events=100):
    """Episodes enough to be killed at; the end of each has no words, and is not indexed."""
    with trackway.Recorder(home) as recorder:
        for number in range(episodes):
            with recorder.start(f"t{number}") as episode:
                for each in range(events):
                    episode.text(f"word{each} said in {number}")


# --- running episodes -----------------------------------------------------------------------------------------------


def test_a_running_episode_is_found_from_another_process(home):
    """What it has just recorded, sealed or not; and each further event as soon as it is recorded."""
    said(home, "before")
    indexed(home)
    with process(_AGENT) as agent:
        assert agent.stdout.readline() == "recorded\n"
        assert places(home, "frobnicator") == {"runs": [1]}
        for number, word in enumerate(("plugh", "xyzzy"), start=2):
            agent.stdin.write(f"{word}\n")
            agent.stdin.flush()
            assert agent.stdout.readline() == "recorded\n"
            assert places(home, word) == {"runs": [number]}
        assert answer(home, "agent:elsewhere task:run xyzzy").groups[0].episode.state == "running"
        agent.kill()
    assert places(home, "xyzzy") == {"runs": [3]}, "what a dead one left is found too"


def test_what_is_not_sealed_has_the_number_it_will_have(home):
    """The place that search tells of a running episode is where it is shown, now and once it is sealed."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("runs")
        episode.text("sealed")
        recorder.flush()
        episode.text("waiting")
        assert places(home, "waiting") == {"runs": [2]}
        recorder.flush()
        assert places(home, "waiting") == {"runs": [2]}


# --- one writer at a time -------------------------------------------------------------------------------------------


def test_several_processes_index_at_once(home):
    """Each event is in the index once, whoever was first."""
    many(home, episodes=20, events=50)
    workers = [process(_INDEXES) for _ in range(3)]
    assert [each.communicate(timeout=60) and each.returncode for each in workers] == [0, 0, 0]

    assert documents(home) == (20 * 51, 20 * 51)


def test_a_search_does_not_wait_for_a_writer(home):
    """Another process writes: the answer is what is committed and what is new, from memory, and says so."""
    said(home, "before")
    indexed(home)
    said(home, *[f"new{number}" for number in range(400)], task="new")
    with (home / "search/own.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = answer(home, "new7")

    assert [each.episode.task for each in found.groups] == ["new"]
    assert found.notes == ("another process is writing the search index",)
    assert answer(home, "new7").notes == ()


@pytest.mark.crash
@pytest.mark.parametrize("after", [1, 2, 3])
def test_killed_while_it_indexes(home, after):
    """The index is usable at once, and the next search brings it up to date: every event once, none missing."""
    many(home, episodes=60)
    with process(_INDEXES) as worker:
        for _ in range(after):
            worker.stdout.readline()
        worker.send_signal(signal.SIGKILL)

    assert len(places(home, "word7")) == 60
    assert documents(home) == (60 * 101, 60 * 101)


@pytest.mark.crash
def test_killed_between_commits(home):
    """What was committed stays, and is not taken in a second time."""
    many(home, episodes=12)
    often = "import os\nfrom trackway.search import catching_up\ncatching_up._COMMIT_EVERY = 300\n"
    with process(often + _INDEXES.replace("print(what, done, flush=True)", "os.kill(os.getpid(), 9)")) as worker:
        worker.communicate(timeout=60)
    assert worker.returncode == -signal.SIGKILL
    committed, _ = documents(home)
    assert 0 < committed < 12 * 101

    assert indexed(home).episodes == 12 - committed // 101
    assert documents(home) == (12 * 101, 12 * 101)


# --- no room, no right ----------------------------------------------------------------------------------------------


def search_without_room(folder):
    """On a full disk: what is committed is found, and what is new, and it is said why."""
    home = folder / "home"
    said(home, "before")
    indexed(home)
    many(home, episodes=5)
    with full(folder):
        found = answer(home, "word7 OR before")
    again = answer(home, "word7 OR before")
    return {
        "found": sorted(each.episode.task for each in found.groups), "notes": found.notes,
        "again": len(again.groups), "notes_again": again.notes,
    }  # fmt: skip


def test_a_disk_that_is_full(tmp_path):
    """The answer is whole as long as memory holds what is missing, it says why; with room again, all is indexed."""
    told = on("40m", search_without_room, tmp_path).value

    assert told["found"] == ["t0", "t1", "t2", "t3", "t4", "talk"]
    assert len(told["notes"]) == 1
    assert "could not be written" in told["notes"][0]
    assert (told["again"], told["notes_again"]) == (6, [])


def search_where_nothing_can_be_written(folder):
    """A home on a disk that becomes read-only: with an index that is behind, and without one."""
    home = folder / "home"
    many(home, episodes=5)
    indexed(home)
    said(home, *["after"] * 400, task="later")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    behind = answer(home, "word7 OR after")
    subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
    shutil.rmtree(home / "search")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    none = answer(home, "word7 OR after")
    return [[len(each.groups), each.notes] for each in (behind, none)]


def test_a_home_that_cannot_be_written(tmp_path):
    """Searched from what is committed and from memory, and it is said why nothing was written."""
    for groups, notes in on("40m", search_where_nothing_can_be_written, tmp_path).value:
        assert groups == 6
        assert len(notes) == 1
        assert "could not be written" in notes[0]


# --- fed by recorders -----------------------------------------------------------------------------------------------


def test_a_recorder_feeds_the_index(home):
    """Once a good deal was sealed, and where there is an index: in a thread of its own, through the plug-in point."""
    said(home, "before")
    indexed(home)
    many(home, episodes=12)
    with trackway.open_store(home=home) as live:
        told = Feeding(live.home, live.store)
        told.sealed(feeding.EVERY - 1)
        assert told._thread is None
        told.sealed(1)
        told._thread.join()

    assert not told._given_up
    assert documents(home)[0] == 3 + 12 * 101


_FORKS = """
import os, sys
from trackway.recording import feeding
from trackway.recording.settings import open_store
from trackway.search.catching_up import catch_up
with open_store() as live:
    told = feeding.Feeding(live.home, live.store)
    told.sealed(feeding.EVERY)
    child = os.fork()
    if not child:
        sys.stdin.read()
        os._exit(0)
    told.stop()
    print(catch_up(live, patience=0) is not None, flush=True)
    sys.stdin.read()
    os.waitpid(child, 0)
"""


def test_a_fork_inherits_no_lock_of_the_index(home):
    """While a child lives that was forked while the index was fed, others can write it."""
    said(home, "before")
    indexed(home)
    many(home, episodes=12)
    with process(_FORKS) as forking:
        assert forking.stdout.readline() == "True\n"
        forking.stdin.close()
    assert forking.returncode == 0


def test_nobody_is_fed_where_nobody_has_searched(home):
    """A recorder that is not searched starts no thread and makes no folder."""
    many(home, episodes=1)
    with trackway.open_store(home=home) as live:
        told = Feeding(live.home, live.store)
        told.sealed(10 * feeding.EVERY)

    assert told._thread is None
    assert not (home / "search").exists()


def test_what_feeds_stops_when_it_is_enough(home):
    """What is left is taken in by whoever comes next."""
    many(home, episodes=6)
    with trackway.open_store(home=home) as live:
        first = catch_up(live, enough=lambda: True)
        rest = catch_up(live)

    assert (first.is_all, rest.is_all) == (False, True)
    assert 0 < first.events < 6 * 102
    assert documents(home) == (6 * 101, 6 * 101)
