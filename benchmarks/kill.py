"""What is gone after kill -9, of what was acknowledged, and whether anything is there twice.

A process records steps without a pause and says so after each, by one byte in a pipe. It is killed in the middle; the
bytes in the pipe are the steps it had been promised. Another process then reads what there is.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import peers, workload
from benchmarks.measure import Options, apart, scratch
from benchmarks.report import Beside, Row, Table, Target
from benchmarks.sustained import read_back


def run(options: Options) -> Iterator[Table]:
    """A few kills for each."""
    names = ["trackway", "trackway, append", *peers.others()]
    after, kills = options.size(1025, 120), options.size(3, 1)
    found = {each: [_killed(each, after) for _ in range(kills)] for each in names}
    ours = [lost for each in names[:2] for lost, _ in found[each]]
    beside = tuple(Beside(each, _told(found[each])) for each in names[1:])
    row = Row("lost at kill -9", _told(found["trackway"]), beside, Target("0, none twice", not any(ours)))
    yield Table(f"acknowledged steps lost by kill -9 after about {after:,}", (row,))


def _told(outcomes: list[tuple[int, int]]) -> str:
    lost, acked = (sum(column) for column in zip(*outcomes, strict=True))
    return f"{lost:,} of {acked:,}"


def _killed(peer: str, after: int) -> tuple[int, int]:
    """Steps lost, and steps acknowledged. A step that is there twice makes reading fail."""
    with scratch() as folder:
        episodes = after * 3 // workload.EPISODE
        command = [sys.executable, "-m", "benchmarks.kill", peer, folder, str(episodes)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        acked = len(process.stdout.read(after))
        process.send_signal(signal.SIGKILL)
        acked += len(process.stdout.read())
        process.wait()
        return max(0, acked - apart(read_back, peer, folder, episodes)), acked


def record_until_killed(peer: str, folder: Path, episodes: int) -> None:
    """The process that is killed."""
    plan = workload.plan(episodes)
    recorder = peers.load(peer).Recorder(folder)
    for number, steps in enumerate(plan):
        recorder.begin(number)
        for each in steps:
            recorder.step(each, workload.messages([each], history=False))
            os.write(1, b".")
        recorder.end(number)
    signal.pause()


if __name__ == "__main__":
    record_until_killed(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
