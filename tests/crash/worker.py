"""Records at full speed until it is killed: what was acknowledged is counted in memory that survives the process.

    python worker.py HOME JOURNAL PROCESSES [BUSY_SEALER]

One shared file holds a counter per process; a counter is raised after the recording call returned. Event k of process p
says ``p:k``, so a checker knows exactly which events were promised.
"""

import itertools
import mmap
import os
import sys
import time
from pathlib import Path

from trackway.recording.recorder import Recorder
from trackway.store import keeper

EPISODE_EVENTS = 150
SLOTS = 64


def counters(home: Path) -> mmap.mmap:
    """The shared counters, one u64 per process."""
    descriptor = os.open(home.parent / "acked", os.O_CREAT | os.O_RDWR, 0o600)
    os.ftruncate(descriptor, SLOTS * 8)
    return mmap.mmap(descriptor, SLOTS * 8)


def mark(acked: mmap.mmap, process: int, count: int) -> None:
    """This many were acknowledged, in one store: `struct.pack_into` writes zeros first, which a kill would leave."""
    memoryview(acked).cast("Q")[process] = count


def record_forever(home: Path, journal: str, process: int, acked: mmap.mmap) -> None:
    """Episodes of 150 events, one after another, each event acknowledged on its own."""
    recorder = Recorder(home, journal=journal)
    numbers = itertools.count()
    while True:
        episode = recorder.start(f"process {process}")
        for _ in range(EPISODE_EVENTS):
            k = next(numbers)
            if k % 3 == 0:
                episode.user(f"{process}:{k}")
            elif k % 3 == 1:
                episode.tool_call("bash", {"k": f"{process}:{k}"})
            else:
                episode.text(f"{process}:{k}" + "x" * (k % 700))
            mark(acked, process, k + 1)
        episode.end("success")


def main() -> None:
    """Start the processes and wait to be killed."""
    home, journal, processes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if len(sys.argv) > 4:  # seal all the time, so that kills land inside the sealer too
        keeper.SEAL_EVERY, keeper.SYNC_EVERY, keeper.ADOPT_EVERY, keeper._BACKLOG = 0.01, 0.005, 0.02, 50
    acked = counters(home)
    print("ready", flush=True)
    for process in range(1, processes):
        if os.fork() == 0:
            record_forever(home, journal, process, acked)
    record_forever(home, journal, 0, acked)
    time.sleep(600)


if __name__ == "__main__":
    main()
