"""Processes that stop, die, hang on and come back: the others go on, and nothing acknowledged is lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import command
from trackway.errors import StoreUnavailable
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note
from trackway.store import holding, keeper, tail
from trackway.store.home import Home

_AS_USUAL = """
import signal
for each in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
_RECORDS = """
import os, signal, sys, trackway
recorder = trackway.Recorder(sys.argv[1])
episode = recorder.start(sys.argv[2])
for i in range(int(sys.argv[3])):
    episode.note(str(i))
"""
_STOPS_INSIDE_A_SEAL = """
def stop(reached):
    if reached == "seal:locked":
        print("inside", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
recorder._wake = recorder._journal._wake = lambda: None
recorder._sealer.failpoint = stop
recorder.close()
"""
_DIES = "os.kill(os.getpid(), signal.SIGKILL)\n"
_NO_KEEPER = "recorder._wake = recorder._journal._wake = lambda: None\n"
_WAITS = "print('recorded', flush=True)\nsys.stdin.readline()\nrecorder.close()\n"


def start(*program: str, home: Path, task: str = "t", notes: int = 10) -> subprocess.Popen:
    """A process that does this; what this one ignores (under nohup, behind &) it would ignore, too, if not told."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", _AS_USUAL + "".join(program), str(home), task, str(notes)]
    return subprocess.Popen(words, text=True, **pipes)


def until(condition) -> None:
    """Wait for something that is about to happen."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def recorded(home: Path) -> dict[str, list[int]]:
    """The numbers of all notes, by task."""
    with trackway.open_store(home=home) as store:
        return {
            each.task: [int(event.topic) for event in store.events(each.id) if isinstance(event, Note)]
            for each in store.episodes()
        }


@contextlib.contextmanager
def goes_on_after(stopped: subprocess.Popen, then: str = ""):
    """Whatever happens meanwhile, no process is left standing still."""
    try:
        yield
    finally:
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate(then)


@contextlib.contextmanager
def stopped_inside_a_seal(home: Path):
    """A process that holds seal.lock and does not move."""
    holder = start(_RECORDS, _STOPS_INSIDE_A_SEAL, home=home, task="stopped")
    with goes_on_after(holder):
        assert holder.stdout.readline() == "inside\n"
        until(lambda: holding.is_stopped(holder.pid))
        yield holder


@pytest.mark.promise(
    "SIGSTOP", "holding seal.lock: others record on, flush ends with a line that names it, nothing is lost"
)
def test_a_process_stopped_inside_a_seal(home: Path, capfd) -> None:
    """Nobody hangs: a flush gives up, a close leaves its journal, and both name the process that is stopped."""
    with stopped_inside_a_seal(home) as holder:
        recorder = Recorder(home)
        episode = recorder.start("beside")
        for i in range(1000):
            episode.note(str(i))
        with pytest.raises(StoreUnavailable, match=rf"seal.lock is held by process {holder.pid}, which is stopped"):
            recorder.flush()
        episode.end("success")
        recorder.close()
        assert recorded(home) == {"stopped": list(range(10)), "beside": list(range(1000))}
        [said] = [line for line in capfd.readouterr().err.splitlines() if line.startswith("trackway: ")]
        assert f"kill -CONT {holder.pid}" in said
        code, answer = command("doctor", "--home", home)
        answer = " ".join(answer.split())
        assert (code, f"process {holder.pid} holds seal.lock since" in answer, "it is stopped" in answer) == (
            1,
            True,
            True,
        )
        code, answer = command("prune", "--older-than", "0s", "--yes", "--home", home)
        assert (code, f"process {holder.pid}" in answer) == (1, True), answer
    with Recorder(home) as recorder:
        recorder.flush()
    assert recorded(home) == {"stopped": list(range(10)), "beside": list(range(1000))}
    assert not list((home / "journals").iterdir())


@pytest.mark.promise(
    "SIGSTOP", "holding seal.lock: the keeper beside an agent syncs on, and says who is in the way once"
)
def test_the_keeper_says_who_is_in_the_way(home: Path, monkeypatch, capfd) -> None:
    """The thread beside the agent does not wait for the lock, so its other work goes on; when let go, it seals."""
    monkeypatch.setattr(keeper, "SAY_AFTER", 0.2)
    with stopped_inside_a_seal(home) as holder:
        recorder = Recorder(home)
        episode = recorder.start("beside")
        asked: list[object] = []
        in_the_way = recorder._sealer.in_the_way

        def counted() -> Exception:
            asked.append(in_the_way())
            return asked[-1]

        def asked_often() -> bool:
            episode.note("0")
            return len(asked) > 3

        recorder._sealer.in_the_way = counted
        until(asked_often)
        until(lambda: not recorder._journal.dirty)
        holder.send_signal(signal.SIGCONT)
        until(lambda: recorder.store.position(recorder._journal.writer).offset > 0)
    recorder.close()
    [said] = [line for line in capfd.readouterr().err.splitlines() if line.startswith("trackway: ")]
    assert f"process {holder.pid}" in said


@pytest.mark.promise(
    "SIGSTOP", "a recorder that stands still is alive: it is read, not adopted, and goes on after SIGCONT"
)
def test_a_stopped_recorder_is_not_adopted(home: Path) -> None:
    """However long it takes: its lock is held."""
    worker = start(_RECORDS.replace("episode =", _NO_KEEPER + "episode ="), _WAITS, home=home, task="stopped")
    with goes_on_after(worker, "\n"):
        assert worker.stdout.readline() == "recorded\n"
        worker.send_signal(signal.SIGSTOP)
        until(lambda: holding.is_stopped(worker.pid))
        with Recorder(home) as recorder:
            recorder.start("other").end()
            assert recorder._sealer.adopt(recorder._journal.writer).adopted == 0
        assert recorded(home)["stopped"] == list(range(10))
        code, said = command("doctor", "--home", home)
        assert (code, "it is stopped" in " ".join(said.split())) == (0, True), said
    assert recorded(home)["stopped"] == list(range(10))
    assert not list((home / "journals").iterdir())


@pytest.mark.promise("SIGSTOP", "while it makes or migrates the store: named in one line, what others record is kept")
def test_a_process_stopped_while_it_makes_the_store(home: Path) -> None:
    """The lock of opening is waited for no longer than that of sealing."""
    program = """
import os, signal, sys
from pathlib import Path
from trackway.store.holding import held
Path(sys.argv[1]).mkdir(mode=0o700)
with held(Path(sys.argv[1]) / "store.lock") as got:
    print("inside", got, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    holder = start(program, home=home)
    with goes_on_after(holder):
        assert holder.stdout.readline() == "inside True\n"
        until(lambda: holding.is_stopped(holder.pid))
        recorder = Recorder(home)
        recorder._wake = recorder._journal._wake = lambda: None  # no keeper: this test seals when it says so
        recorder.start("beside").note("0")
        with pytest.raises(StoreUnavailable, match=rf"store.lock is held by process {holder.pid}, which is stopped"):
            recorder.flush()
        assert recorded(home) == {"beside": [0]}
        code, said = command("doctor", "--home", home)
        assert (code, f"process {holder.pid} holds store.lock" in " ".join(said.split())) == (1, True), said
    recorder.close()
    assert recorded(home) == {"beside": [0]}
    assert not list((home / "journals").iterdir())


@pytest.mark.promise(
    "signals", "SIGTERM, SIGHUP, SIGINT, SIGKILL as they come: the process ends, nothing acknowledged is lost"
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_it(home: Path, number: signal.Signals, tell) -> None:
    """With no handler of anybody's: what was recorded is read, and sealed by the next one."""
    worker = start(_RECORDS, "print('recorded', flush=True)\nsignal.pause()\n", home=home, notes=500)
    assert worker.stdout.readline() == "recorded\n"
    worker.send_signal(number)
    worker.communicate()
    assert worker.returncode != 0
    before = recorded(home)
    with Recorder(home) as recorder:
        recorder.flush()
    after = recorded(home)
    lost = sum(len(set(range(500)).difference(found.get("t", ()))) for found in (before, after))
    tell(acknowledged=500, lost=lost)
    assert lost == 0
    assert before == after == {"t": list(range(500))}
    assert not list((home / "journals").iterdir())


@pytest.mark.promise("signals", "SIGTERM turned into SystemExit: everything is sealed on the way out")
def test_sigterm_as_an_exit(home: Path) -> None:
    """The usual handler of a service: the interpreter ends in order, and no journal is left."""
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('recorded', flush=True)\nsignal.pause()\n"
    worker = start(_RECORDS, program, home=home)
    assert worker.stdout.readline() == "recorded\n"
    worker.terminate()
    worker.communicate()
    assert worker.returncode == 0
    assert recorded(home) == {"t": list(range(10))}
    assert not list((home / "journals").iterdir())


@pytest.fixture
def as_usual():
    """Ctrl-C raises, also where whoever started the tests had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.promise("signals", "SIGINT inside the sealer, wherever: the next seal does it, exactly once")
@pytest.mark.parametrize("point", ["seal:locked", "seal:before_store", "seal:stored", "seal:unlinked"])
def test_an_interrupt_inside_a_seal(home: Path, point: str, as_usual) -> None:
    """Ctrl-C reaches the agent; the lock is free, the store is whole, and the rest is sealed later."""
    recorder = Recorder(home)
    recorder._wake = recorder._journal._wake = lambda: None  # no keeper: this test seals when it says so
    episode = recorder.start("t")
    for i in range(3000):
        episode.note(str(i))

    def interrupt(reached: str) -> None:
        if reached == point:
            recorder._sealer.failpoint = lambda _name: None
            signal.raise_signal(signal.SIGINT)

    recorder._sealer.failpoint = interrupt
    with pytest.raises(KeyboardInterrupt):
        recorder.flush()
    assert holding.holder_of(Home(home).seal_lock) is None
    assert recorded(home) == {"t": list(range(3000))}
    episode.end("success")
    recorder.close()
    assert recorded(home) == {"t": list(range(3000))}


def crashed(home: Path, times: int, notes: int = 5) -> None:
    """So many processes that died recording, forked from one: a hundred interpreters take too long to start."""
    program = """
import os, signal, sys
import trackway.recording.recorder, trackway.store.sqlite
for k in range(int(sys.argv[3])):
    if os.fork() == 0:
        recorder = trackway.recording.recorder.Recorder(sys.argv[1])
        recorder._wake = recorder._journal._wake = lambda: None
        episode = recorder.start(f"crash {k}")
        for i in range(int(sys.argv[2])):
            episode.note(str(i))
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
"""
    worker = start(program, home=home, task=str(notes), notes=times)
    assert worker.communicate()[1] == ""


@pytest.mark.promise("100 crashed", "processes to adopt, by one: every event there, exactly once, no journal left")
def test_a_hundred_dead_are_adopted_by_one(home: Path, tell) -> None:
    """All at once, in one pass."""
    crashed(home, 100)
    assert len(list((home / "journals").iterdir())) == 100
    with Recorder(home) as recorder:
        recorder.flush()
    assert recorded(home) == {f"crash {k}": list(range(5)) for k in range(100)}
    assert not list((home / "journals").iterdir())
    tell(journals=100, events=600)


@pytest.mark.promise("100 crashed", "processes to adopt, by four at once: every event there, exactly once")
def test_a_hundred_dead_are_adopted_by_four(home: Path, tell) -> None:
    """Whoever holds the lock does it; the others find nothing left."""
    crashed(home, 100)
    program = "import sys, trackway\nsys.stdin.readline()\nr = trackway.Recorder(sys.argv[1])\nr.flush()\nr.close()\n"
    adopters = [start(program, home=home) for _ in range(4)]
    for each in adopters:
        each.stdin.write("\n")
        each.stdin.flush()
    assert [each.communicate()[1] for each in adopters] == [""] * 4
    assert recorded(home) == {f"crash {k}": list(range(5)) for k in range(100)}
    assert not list((home / "journals").iterdir())
    tell(journals=100, adopters=4)


@pytest.mark.promise("crash loop", "200 deaths beside a recorder at work: both have everything, exactly once")
def test_a_crash_loop_beside_a_recorder(home: Path, monkeypatch, tell) -> None:
    """A process that dies as soon as it has begun, over and over; the recorder beside it adopts as it goes."""
    monkeypatch.setattr(keeper, "ADOPT_EVERY", 0.05)
    monkeypatch.setattr(keeper, "SEAL_EVERY", 0.02)
    with Recorder(home) as recorder:
        episode = recorder.start("steady")
        with ThreadedCrashes(home, 200) as crashes:
            count = 0
            while crashes.running:
                episode.note(str(count))
                count += 1
                time.sleep(0.001)
        episode.end("success")
    found = recorded(home)
    assert found.pop("steady") == list(range(count))
    assert found == {f"crash {k}": [0] for k in range(200)}
    assert not list((home / "journals").iterdir())
    tell(deaths=200, beside=count)


class ThreadedCrashes:
    """The loop in a process of its own, watched."""

    def __init__(self, home: Path, times: int) -> None:
        self._home = home
        self._times = times

    def __enter__(self):
        import threading

        self._thread = threading.Thread(target=crashed, args=(self._home, self._times, 1))
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether some are still to die."""
        return self._thread.is_alive()

    def __exit__(self, *_: object) -> None:
        self._thread.join()


@pytest.mark.promise("zombie", "a dead recorder nobody has waited for: its journal is adopted")
def test_a_zombie_is_dead(home: Path) -> None:
    """Its number is taken, its lock is not."""
    worker = start(_RECORDS, _DIES, home=home)
    until(lambda: Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    until(lambda: not any(each.alive for each in tail.writers(Home(home))))  # its other threads die after the first
    with Recorder(home) as recorder:
        recorder.flush()
    assert not list((home / "journals").iterdir())
    assert recorded(home) == {"t": list(range(10))}
    worker.communicate()


@pytest.mark.promise("number reused", "a dead recorder whose number another process has: its journal is adopted")
def test_a_number_that_is_taken_again(home: Path) -> None:
    """Numbers are shown, never trusted: the lock alone says who lives."""
    worker = start(_RECORDS, _DIES, home=home)
    worker.communicate()
    [card] = home.glob("journals/*/writer.json")
    card.write_text(card.read_text().replace(f'"pid": {worker.pid}', f'"pid": {os.getpid()}'))
    with Recorder(home) as recorder:
        recorder.flush()
    assert not list((home / "journals").iterdir())
    assert recorded(home) == {"t": list(range(10))}
