"""The process in which one peer records, and the other in which it is read: `python -m benchmarks.peers.alone`.

Runs in the peer's environment, where nothing of ours is installed: it imports this package and the standard library.
The clock runs from the second episode until ``close`` returns; what opening takes, imports included, is told apart.
"""

import json
import os
import sqlite3
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import peers, workload
from benchmarks.measure import answer_alone, latency, one_core, settle
from benchmarks.sustained import read_back


def record(name: str, folder: Path, episodes: int, history: bool) -> dict[str, Any]:
    """Record every step, on one core; the first episode is the warm-up."""
    plan = workload.calls(episodes, history=history)
    settle()
    one_core()
    clock, before, samples, warm = time.perf_counter, _memory("VmRSS"), [], []

    def done(nanoseconds: int) -> None:
        samples.append(nanoseconds)
        if len(samples) == workload.EPISODE:
            warm.append(clock())

    started = clock()
    recorder = peers.load(name).Recorder(folder)
    opened = clock() - started
    peers.drive(recorder, plan, done)
    recorder.close()
    took = clock() - warm[0]
    waited = latency(samples[workload.EPISODE :])
    return {
        "version": version(name),
        "steps": len(samples),
        "rate": waited.samples / took,
        "p50": waited.p50,
        "p99": waited.p99,
        "open": opened,
        "memory": (_memory("VmHWM") - before) / 1024,
        "raw": sum(len(json.dumps(pair)) for steps in plan for pair in steps) / len(samples),
    }


def read(name: str, folder: Path, episodes: int, _: bool) -> dict[str, Any]:
    """How many steps come back with the very text that went in."""
    return {"kept": read_back(name, folder, episodes)}


def version(name: str) -> str:
    """Of what records: the package, or the part of Python that does it."""
    package = peers.NAMES[name].package
    own = {"python": sys.version.split()[0], "sqlite": sqlite3.sqlite_version}
    return own.get(package) or metadata.version(package)


def _memory(field: str) -> int:
    """What /proc says of this process, in KB. getrusage would count what the process before exec had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith(field))


def main() -> None:
    """Do one of the two and answer in JSON."""
    answer = answer_alone()
    what, name, folder, episodes, history = sys.argv[1:]
    found = {"record": record, "read": read}[what](name, Path(folder), int(episodes), history == "history")
    os.write(answer, json.dumps(found).encode())


if __name__ == "__main__":
    main()
