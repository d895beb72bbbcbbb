"""Large things cost the memory they take themselves and a bounded rest: recorded, sealed, read.

Each is done in a process of its own, whose peak is read from the kernel. Sizes are tens of megabytes: enough to tell a
copy from a bounded buffer.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MB = 1 << 20
ROOM = 60
"""Megabytes beyond the payload itself: the mapped journal, a segment being sealed, SQLite's cache."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the kernel tells no peak of a process's memory here"
)

_AROUND = """
import json, os, sys
import trackway
from pathlib import Path

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

def begin():
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")

def over(before):
    return memory("VmHWM") - before

home = Path(sys.argv[1])
size = int(sys.argv[2])
said = {}
"""


@pytest.fixture
def apart(tmp_path):
    """Runs code in a process of its own; returns what it put into ``said``."""

    def run(code, size=0):
        command = [sys.executable, "-c", f"{_AROUND}{code}\nprint(json.dumps(said))", str(tmp_path), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_large_result_costs_itself_and_a_little(apart):
    """Recording and sealing a long text takes no second copy of it, not even as mapped files of the journal."""
    found = apart(
        """
recorder = trackway.Recorder(home)
episode = recorder.start("large")
text = "0123456789abcdef" * (size // 16)
before = begin()
episode.tool_result("c1", text)
said["recorded"] = over(before)
recorder.flush()
said["sealed"] = over(before)
recorder.close()
""",
        100 * MB,
    )

    assert found["recorded"] < ROOM
    assert found["sealed"] < ROOM


def test_bytes_inside_a_value_cost_themselves_and_a_little(apart):
    """What is large inside a note goes its own way: neither recording nor sealing makes a copy of it."""
    found = apart(
        """
recorder = trackway.Recorder(home)
episode = recorder.start("large")
body = os.urandom(1 << 20) * (size >> 20)
before = begin()
episode.note("n", detail={"rows": [body, "beside"]})
said["recorded"] = over(before)
recorder.flush()
said["sealed"] = over(before)
recorder.close()
""",
        100 * MB,
    )

    assert found["recorded"] < ROOM
    assert found["sealed"] < ROOM


def test_a_file_costs_no_memory_of_its_size(apart):
    """By its path in, by its name out, and looked at by others in between: piece by piece."""
    found = apart(
        """
source = home / "source"
with source.open("wb") as file:
    for _ in range(size >> 20):
        file.write(os.urandom(1 << 20))
recorder = trackway.Recorder(home)
episode = recorder.start("file")
before = begin()
episode.file_change("source", after=source)
said["recorded"] = over(before)
with trackway.open_store(home=home) as store:
    before = begin()
    change = list(store.events(episode.id))[-1]
    assert store.episode(episode.id).n_events == 2
    assert [each.id for each in store.episodes()] == [episode.id]
    assert sum(map(len, store.blob(change.after.hash))) == size
    said["looked at"] = over(before)
recorder.flush()
with trackway.open_store(home=home) as store:
    before = begin()
    assert sum(map(len, store.blob(change.after.hash))) == size
    said["read"] = over(before)
recorder.close()
""",
        100 * MB,
    )

    assert found["recorded"] < ROOM
    assert found["looked at"] < ROOM
    assert found["read"] < 16


def test_a_large_text_is_read_in_one_copy(apart):
    """The event that comes is as large as its text; beside that, little."""
    found = apart(
        """
with trackway.Recorder(home) as recorder:
    episode = recorder.start("large")
    episode.tool_result("c1", "0123456789abcdef" * (size // 16))
    episode.tool_result("c2", "é" * size)
with trackway.open_store(home=home) as store:
    for name in ("ascii", "wider"):
        before = begin()
        result = next(each for each in store.events(episode.id, after=len(said)) if each.kind == "tool_result")
        said[name] = over(before) - sys.getsizeof(result.content) / (1 << 20)
        del result
""",
        60 * MB,
    )

    assert found["ascii"] < 16
    assert found["wider"] < 16


def test_many_large_results_are_read_one_after_another(apart):
    """However many of them stand side by side in the store, a reader holds a few at a time."""
    found = apart(
        """
with trackway.Recorder(home) as recorder:
    episode = recorder.start("many")
    for i in range(12):
        episode.tool_result(f"c{i}", f"{i:x}" * (size // 12))
    recorder.flush()
    with trackway.open_store(home=home) as store:
        for name in ("tail", "frame"):
            before = begin()
            lengths = [len(each.content) for each in store.events(episode.id) if each.kind == "tool_result"]
            said[name] = over(before)
            assert lengths == [size // 12] * 12
            if name == "tail":
                episode.end()
                recorder.flush()
""",
        96 * MB,
    )

    assert found["tail"] < 40
    assert found["frame"] < 40


def test_a_long_episode_is_moved_and_counted_a_little_at_a_time(apart):
    """Stats, transcript and unpack hold what is open or being written, not all that was said."""
    found = apart(
        """
import io
from trackway.read.stats import Counting
from trackway.store.pack import pack
from trackway.store.unpack import unpack

with trackway.Recorder(home) as recorder:
    episode = recorder.start("long")
    for i in range(size // 2):
        call = episode.tool_call("bash", {"i": i})
        episode.tool_result(call, "done")
with trackway.open_store(home=home) as store, (home / "pack").open("w+b") as file:
    summary = store.episode(episode.id)
    before = begin()
    counting = Counting()
    counting.add(summary, store.events(episode.id))
    said["stats"] = over(before)
    assert counting.stats().tools[0].calls == size // 2
    pack(store, episode.id, file)
    file.seek(0)
    with trackway.open_store(home=home / "elsewhere") as other:
        before = begin()
        assert unpack(file, other).added == size + 1
        said["unpack"] = over(before)
""",
        30_000,
    )

    assert found["stats"] < 6
    assert found["unpack"] < 24


def test_a_refused_payload_is_put_aside_piece_by_piece(apart):
    """What comes late for a pruned episode goes to quarantine, all of it, and is never held whole."""
    found = apart(
        """
from blake3 import blake3
recorder = trackway.Recorder(home)
episode = recorder.start("pruned")
recorder.flush()
recorder.store.drop([episode.id])
source = home / "source"
source.write_bytes(os.urandom(1 << 20) * (size >> 20))
episode.file_change("source", after=source)
other = recorder.start("beside")
before = begin()
recorder.flush()
said["refused"] = over(before)
(aside,) = (home / "quarantine").glob("*.blob")
assert aside.stat().st_size == size
assert blake3(aside.read_bytes()).digest() == blake3(source.read_bytes()).digest()
assert recorder.store.episode(other.id).task == "beside"
recorder.close()
""",
        64 * MB,
    )

    assert found["refused"] < 45
