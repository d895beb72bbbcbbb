"""kill -9 at random moments at full speed: no acknowledged event lost, none twice, every episode says where it died."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crash.checking import Counted, check
from trackway.read.ending import ending
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.store import system, tail
from trackway.store.home import Home

WORKER = Path(__file__).parent / "worker.py"
KILLS = int(os.environ.get("KILLS", "75"))


def kill_once(home: Path, journal: str, processes: int, luck: random.Random, *, busy_sealer: bool) -> None:
    """Start, let it run for a moment, kill the whole group."""
    command = [sys.executable, str(WORKER), str(home), journal, str(processes), *(["busy"] if busy_sealer else [])]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    time.sleep(luck.uniform(0.005, 0.12))
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdout.read()  # ends when the last of the group is gone: one may still be inside a system call
    worker.stdout.close()
    place = Home(home)
    while any(each.alive for each in tail.writers(place)) or any(
        system.is_locked(each.lock) for each in place.all_unnamed()
    ):  # the others of the group may still be dying
        time.sleep(0.001)


@pytest.mark.promise("kill -9", "at a random moment, at full speed: nothing acknowledged is lost, nothing is twice")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("processes", [1, 8])
@pytest.mark.parametrize("journal", ["mmap", "append"])
def test_kill_9_loses_nothing(tmp_path: Path, journal: str, processes: int, tell) -> None:
    """75 kills; after each, everything promised is readable, before and after adoption; no journal is left."""
    luck = random.Random(f"{journal}{processes}")
    total = Counted()
    broken = {}
    for i in range(KILLS):
        home = tmp_path / str(i) / "home"
        home.parent.mkdir()
        kill_once(home, journal, processes, luck, busy_sealer=i % 2 == 1)
        before = check(home)
        store = open_store(home=home)
        for summary in store.episodes():
            assert summary.state in ("ended", "crashed")
            if summary.state == "crashed":
                assert ending(store.events(summary.id)).startswith(("inside step", "after event"))
        with Recorder(home) as recorder:
            recorder.flush()
        after = check(home)
        assert after.acknowledged == before.acknowledged
        assert not any(recorder.home.journals.glob("*"))
        worse = after if before.is_kept else before
        total = total.plus(worse)
        broken |= {} if worse.is_kept else {str(home): worse}
    tell(real_kills=KILLS, **total._asdict())
    assert not broken


def test_an_episode_says_which_step_it_died_in(home: Path) -> None:
    """Killed inside a tool, the episode names the step, the tool and its arguments."""
    program = """
import os, signal, trackway
with trackway.record("doomed") as episode:
    for i in range(3):
        call = episode.tool_call("bash", {"cmd": f"sleep {i}"})
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        episode.tool_result(call, "ok")
"""
    subprocess.run([sys.executable, "-c", program], check=False)

    store = open_store()
    episode_id = store.resolve("last")
    assert store.episode(episode_id).state == "crashed"
    assert ending(store.events(episode_id)) == 'inside step 3, bash, args {"cmd":"sleep 2"}'


def test_a_journal_whose_card_was_lost_is_adopted(home: Path) -> None:
    """A power cut may take writer.json with it: the events are visible and go to the home's own store."""
    program = "import os, trackway; trackway.record('cut').user('hi'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program], check=False)
    [card] = home.glob("journals/*/writer.json")
    card.write_bytes(b"")

    assert [each.n_events for each in open_store().episodes()] == [2]
    with Recorder(home) as recorder:
        recorder.flush()
    assert [each.n_events for each in open_store().episodes()] == [2]
    assert not any((home / "journals").iterdir())
