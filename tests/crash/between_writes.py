"""Children that are killed between two of SQLite's writes, one after another, each at the next one.

    strace -f -e inject=pwrite64:signal=KILL:when=600 python -m tests.crash.between_writes FOLDER JOURNAL 600

Started under strace, which kills a process at its 600th pwrite64, counted for each process apart. So child N spends all
but N of them on a file of no importance, then records, seals, adopts and closes until the N-th write of its own; the
last child is the one that comes to its end. What each was promised is counted in memory that survives it, as in
``worker.py``.
"""

import itertools
import os
import sys
from pathlib import Path

from tests.crash.agent import alone
from tests.crash.worker import counters, mark
from trackway.recording.recorder import Recorder


def spend(writes: int) -> None:
    """Use up writes."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    for _ in range(writes):
        os.pwrite(descriptor, b"x", 0)
    os.close(descriptor)


def work(home: Path, journal: str) -> None:
    """Episodes of two writers, sealed in between; the first one is left as a dead process leaves it."""
    acked, k = counters(home), 0
    for process in range(2):
        recorder = alone(home, journal)
        for _ in range(2):
            episode = recorder.start(f"process {process}")
            for _ in range(20):
                episode.text(f"{process}:{k}" + "x" * 2000)
                k += 1
                mark(acked, process, k)
            episode.end("success")
            recorder._sealer.seal_all(recorder._journal)
        k = 0
        if process == 0:
            recorder._journal.release()
        else:
            recorder.close()
    with Recorder(home) as last:
        last.flush()


def main() -> None:
    """One child for each number, until one lives."""
    folder, journal, spent = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for n in itertools.count(1):
        home = folder / f"{n}" / "home"
        home.parent.mkdir()
        child = os.fork()
        if not child:
            spend(spent - n)
            work(home, journal)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


if __name__ == "__main__":
    main()
