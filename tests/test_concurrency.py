"""Threads, forks, signal handlers, asyncio: order per source is kept, nothing is lost, nothing is doubled."""

import asyncio
import collections
import gc
import itertools
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import trackway
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note

JOURNALS = pytest.mark.parametrize("journal", ["mmap", "append"])


def notes(home: Path) -> dict[str, list[int]]:
    """The numbers noted, by topic, in the order in which they are stored."""
    store = trackway.open_store(home=home)
    found: dict[str, list[int]] = collections.defaultdict(list)
    numbers: dict[str, list[int]] = collections.defaultdict(list)
    for summary in store.episodes():
        for event in store.events(summary.id):
            numbers[event.writer].append(event.n)
            if isinstance(event, Note):
                found[event.topic].append(int(event.text))
    for writer, each in numbers.items():
        assert sorted(each) == list(range(len(each))), f"the numbers of {writer} are not dense"
    return found


def wait_for(children: list[int]) -> None:
    """Every child ends well."""
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0


@JOURNALS
def test_eight_threads_on_one_episode(home: Path, journal: str) -> None:
    """Each thread's events are all there, in its order."""
    with Recorder(home, journal=journal) as recorder:
        episode = recorder.start("threads")

        def work(name: str) -> None:
            for i in range(3000):
                episode.note(name, str(i))

        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert notes(home) == {f"t{i}": list(range(3000)) for i in range(8)}


@JOURNALS
def test_nested_appends_from_signal_handlers(home: Path, journal: str) -> None:
    """A handler that records while its thread is inside a recording call: both are kept, in order, without a hang."""
    with Recorder(home, journal=journal) as recorder:
        episode = recorder.start("signals")
        numbers = itertools.count()

        def handler(_number: int, _frame: object) -> None:
            episode.note("handler", str(next(numbers)))  # a handler may itself be interrupted by the next one

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
        try:
            outer = 0
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                episode.note("outer", str(outer))
                outer += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    inside = next(numbers)
    found = notes(home)
    assert inside > 100
    assert found["outer"] == list(range(outer))
    assert sorted(found["handler"]) == list(range(inside))


class Interrupted(BaseException):
    """What a handler throws into the middle of anything."""


class Alarm(TimeoutError):
    """What an agent's own time limit throws: an OSError by birth, and none of ours."""


@JOURNALS
@pytest.mark.parametrize("thrown", [Interrupted, Alarm])
def test_exceptions_thrown_into_append(home: Path, journal: str, thrown: type[BaseException]) -> None:
    """An interrupt inside a recording call reaches the agent, always, and leaves that event whole or absent."""
    certain, attempts, interrupts = [], 0, 0
    gc.collect()  # what earlier tests left must not be finalized in here: no exception leaves a finalizer
    gc.disable()  # ... nor a collector's callback, of which Hypothesis has one
    with Recorder(home, journal=journal) as recorder:
        episode = recorder.start("interrupts")

        def handler(_number: int, _frame: object) -> None:
            raise thrown

        before = signal.signal(signal.SIGALRM, handler)
        luck = random.Random(7)
        until = time.monotonic() + 1.5
        try:
            while time.monotonic() < until:
                try:
                    signal.setitimer(signal.ITIMER_REAL, luck.uniform(0.00001, 0.0003))
                    caught = time.monotonic() + 10
                    while time.monotonic() < caught:
                        attempts += 1
                        episode.note("k", str(attempts))
                        certain.append(attempts)
                    pytest.fail("the alarm went off and nobody heard it")
                except thrown:
                    interrupts += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            gc.enable()

    found = notes(home)["k"]
    assert interrupts > 100
    assert found == sorted(set(found))
    assert set(certain) <= set(found)
    assert recorder.lost(episode.id) == 0


@JOURNALS
def test_fork_in_a_thread_storm(home: Path, journal: str) -> None:
    """Threads record without pause while the main thread forks; children record too: everyone's events are complete."""
    recorder = Recorder(home, journal=journal)
    episode = recorder.start("storm")
    stop = threading.Event()
    counts = [0] * 4

    def storm(i: int) -> None:
        while not stop.is_set():
            episode.note(f"thread{i}", str(counts[i]))
            counts[i] += 1

    threads = [threading.Thread(target=storm, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    children = []
    for child in range(12):
        pid = os.fork()
        if pid == 0:
            for i in range(200):
                episode.note(f"child{child}", str(i))
            os._exit(0)
        children.append(pid)
        time.sleep(0.02)
    stop.set()
    for each in threads:
        each.join()
    wait_for(children)
    recorder.close()

    expected = {f"thread{i}": list(range(counts[i])) for i in range(4)}
    expected |= {f"child{i}": list(range(200)) for i in range(12)}
    assert notes(home) == expected


@JOURNALS
def test_a_hundred_forked_children(home: Path, journal: str) -> None:
    """Each child has a journal of its own; all of it is adopted; the parent's is untouched by their ends."""
    recorder = Recorder(home, journal=journal)
    episode = recorder.start("children")
    episode.note("parent", "0")
    children = []
    for child in range(100):
        pid = os.fork()
        if pid == 0:
            for i in range(20):
                episode.note(f"child{child}", str(i))
            os._exit(0)
        children.append(pid)
    episode.note("parent", "1")
    wait_for(children)
    episode.end("success")
    recorder.close()

    assert notes(home) == {"parent": [0, 1]} | {f"child{i}": list(range(20)) for i in range(100)}
    assert not any((home / "journals").iterdir())


def test_a_child_that_outlives_its_parent_does_not_keep_it_alive(home: Path) -> None:
    """The lock dies with the process that took it, not with its children: the parent's journal can be adopted."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        recorder = Recorder(home)
        recorder.start("orphaned").note("k", "0")
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)  # lives until the test ends
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(reading)
    os.waitpid(parent, 0)

    store = trackway.open_store(home=home)
    until = time.monotonic() + 20
    while [each.state for each in store.episodes()] == ["running"] and time.monotonic() < until:
        time.sleep(0.01)  # the orphan may not have come to the first line of its own yet
    states = [each.state for each in store.episodes()]
    os.close(writing)

    assert states == ["crashed"]


def _in_a_pool(args: tuple[str, int]) -> None:
    with trackway.record("pool", home=args[0]) as episode:
        episode.note("pool", str(args[1]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_pools(home: Path, method: str) -> None:
    """Workers that end without their exit handlers lose nothing."""
    with multiprocessing.get_context(method).Pool(3) as pool:
        pool.map(_in_a_pool, [(str(home), i) for i in range(30)])

    assert sorted(notes(home)["pool"]) == list(range(30))


def test_asyncio_tasks_share_the_episode(home: Path) -> None:
    """Tasks see the episode of the block they were started in; a cancelled one ends it as abandoned."""

    @trackway.tool
    async def double(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    async def agent() -> list[int]:
        with trackway.record("async", home=home):
            return await asyncio.gather(*(double(i) for i in range(50)))

    async def cancelled() -> None:
        with trackway.record("cancelled", home=home):
            await asyncio.sleep(60)

    async def both() -> list[int]:
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0.01)
        task.cancel()
        return await agent()

    assert asyncio.run(both()) == [2 * i for i in range(50)]
    store = trackway.open_store(home=home)
    by_task = {each.task: each for each in store.episodes()}
    steps = trackway.steps(store.events(by_task["async"].id))
    assert [each.observation for each in steps] == [str(2 * i) for i in range(50)]
    assert len({each.batch for each in steps}) == 1
    assert by_task["cancelled"].outcome == "abandoned"


def test_interpreter_exit_seals_and_removes_the_journal(home: Path) -> None:
    """A program that just ends leaves a store and no journal; an episode it never ended is readable."""
    import subprocess
    import sys

    program = "import trackway; e = trackway.record('left open'); e.user('hi'); e.note('k', '0')"
    subprocess.run([sys.executable, "-c", program], check=True)

    assert notes(home) == {"k": [0]}
    assert not any((home / "journals").iterdir())
    [summary] = trackway.open_store(home=home).episodes()
    assert (summary.state, summary.outcome) == ("crashed", None)


def test_many_processes_create_one_home_at_once(home: Path) -> None:
    """Sixteen processes that find no home yet all record and seal into the same store."""
    children = []
    for child in range(16):
        pid = os.fork()
        if pid == 0:
            with Recorder(home) as recorder:
                recorder.start("first").note(f"p{child}", "0")
            os._exit(0)
        children.append(pid)
    wait_for(children)

    assert notes(home) == {f"p{i}": [0] for i in range(16)}


def test_a_handler_that_seals_inside_a_seal_does_not_hang(home: Path) -> None:
    """ack="store" with a timer whose handler records too: no hang, nothing lost."""
    recorder = Recorder(home, ack="store")
    episode = recorder.start("nested seals")
    numbers = itertools.count()

    going = True

    def handler(_number: int, _frame: object) -> None:
        episode.note("handler", str(next(numbers)))
        if going:  # the next one when this one is done: on a busy disk a fixed rate would leave time for nothing else
            signal.setitimer(signal.ITIMER_REAL, 0.001)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    try:
        for i in range(150):
            episode.note("outer", str(i))
    finally:
        going = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    recorder.close()

    inside = next(numbers)
    found = notes(home)
    assert found["outer"] == list(range(150))
    assert sorted(found["handler"]) == list(range(inside))


def test_a_child_flushes_beside_its_parents_open_store(home: Path) -> None:
    """POSIX locks are not inherited: a database open at the fork must not be open in the child."""
    recorder = Recorder(home)
    episode = recorder.start("parent")
    episode.note("parent", "0")
    recorder.flush()
    pid = os.fork()
    if pid == 0:
        for i in range(300):
            episode.note("child", str(i))
            if i % 50 == 0:
                recorder.flush()
        recorder.flush()
        os._exit(0)
    episode.note("parent", "1")
    recorder.flush()
    recorder.close()
    wait_for([pid])
    with Recorder(home) as adopting:
        adopting.flush()

    assert notes(home) == {"parent": [0, 1], "child": list(range(300))}


def test_a_child_that_leaves_the_block_does_not_end_the_episode(home: Path) -> None:
    """The episode is its parent's to end."""
    with trackway.record("forked", home=home) as episode:
        pid = os.fork()
        if pid == 0:
            episode.__exit__(None, None, None)
            os._exit(0)
        wait_for([pid])
        assert trackway.open_store(home=home).episode(episode.id).state == "running"


def test_a_daemon_thread_that_records_until_the_end_loses_nothing(home: Path) -> None:
    """Exit seals what there is and leaves the rest to be adopted: everything acknowledged is readable."""
    import subprocess
    import sys

    program = """
import os, sys, threading, time, trackway
episode = trackway.record("daemon")
acked = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
def work():
    for i in range(10**9):
        episode.note("k", str(i))
        os.pwrite(acked, str(i).encode(), 0)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    counter = home.parent / "counter"
    subprocess.run([sys.executable, "-c", program, str(counter)], check=True)

    # The thread outlived its first journal and went on in a second one, which is stored when it is adopted.
    found, acknowledged = sorted(notes(home)["k"]), int(counter.read_text()) + 1
    assert len(found) == len(set(found))
    assert set(range(acknowledged)) <= set(found)


def test_threads_that_share_a_view_have_their_own_contexts(home: Path) -> None:
    """Model calls from several threads at once are rebuilt as each was made."""
    from trackway.read.context import contexts

    with trackway.record("contexts", home=home) as episode:

        def work(name: str) -> None:
            for i in range(40):
                episode.model_call(model=name, messages=[{"n": f"{name}{k}"} for k in range(i)]).done()

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    for call, messages in contexts(trackway.open_store(home=home).events(episode.id)):
        assert messages == [{"n": f"{call.model}{k}"} for k in range(len(messages))]


def test_a_store_may_be_read_while_it_is_made(tmp_path: Path) -> None:
    """Whoever looks in the moment in which another thread makes the store sees all of it or nothing."""
    for i in range(60):
        home = tmp_path / str(i)
        recorder = Recorder(home)
        recorder.start("first")
        thread = threading.Thread(target=recorder.flush)
        thread.start()
        while thread.is_alive():
            with trackway.open_store(home=home) as store:
                assert [each.task for each in store.episodes()] == ["first"]
        thread.join()
        recorder.close()
