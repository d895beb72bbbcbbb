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
ROOM = 40
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
