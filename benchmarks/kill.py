"""What is gone after kill -9, of what was acknowledged, and whether anything is there twice.

A process records steps without a pause and says so after each, by one byte in a pipe. It is killed in the middle; the
bytes in the pipe are the steps it had been promised. Another process then reads what there is.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import peers, workload
from benchmarks.measure import Options, answer_alone, apart, scratch
from benchmarks.report import Beside, Row, Table, Target
from benchmarks.sustained import read_back

LIMIT_S = 400  # for what takes a minute at most


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
        episodes = episodes_for(after)
        acked = acknowledged([sys.executable, *process(peer, folder, episodes)], after)
        return max(0, acked - apart(read_back, peer, folder, episodes)), acked


def episodes_for(after: int) -> int:
    """More than will be recorded by then."""
    return max(1, after * 3 // workload.EPISODE)


def process(peer: str, folder: Path, episodes: int, rest: float = 0.0) -> list[str]:
    """What a Python is told in order to record until it is killed."""
    return ["-m", "benchmarks.kill", peer, str(folder), str(episodes), str(rest)]


def acknowledged(command: list[str], after: int, **more: Any) -> int:
    """Kill the process once it has been promised so many steps; how many it had been promised by then."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, **more) as process:
        assert process.stdout is not None
        too_long = threading.Timer(LIMIT_S, process.kill)
        too_long.start()
        acked = len(process.stdout.read(after))
        process.kill()
        acked += len(process.stdout.read())
        too_long.cancel()
    if acked < after:
        raise ValueError(f"{' '.join(command)}: ended by itself or stood still, after {acked} of {after} steps")
    return acked


def record_until_killed(peer: str, folder: Path, episodes: int, rest: float) -> None:
    """The process that is killed."""
    answer = answer_alone()

    def said(_: int) -> None:
        os.write(answer, b".")
        if rest:
            time.sleep(rest)

    recorder = peers.load(peer).Recorder(folder)
    peers.drive(recorder, workload.calls(episodes), said)
    signal.pause()


if __name__ == "__main__":
    record_until_killed(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
