"""Timing, done the same way everywhere: warmed up, by the nanosecond clock, in a process of its own.

The garbage collector stays on, as it is beside a real agent, but what the benchmark itself made is taken out of its
sight first. Most figures are the median over rounds of each round's quantile, which one disturbed round does not move.
"""

import contextlib
import gc
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

_USED = ("trackway.recording.api", "sqlite3")  # what `import trackway` leaves for later


class Options(NamedTuple):
    """What the person asked for."""

    quick: bool = False
    steps: int | None = None

    def size(self, full: int, quick: int) -> int:
        """How many of something."""
        return quick if self.quick else full


class Latency(NamedTuple):
    """Quantiles of one call's time, in microseconds."""

    p50: float
    p99: float
    p999: float
    samples: int

    def __str__(self) -> str:
        return " / ".join(short(each) for each in self[:3])


def short(number: float) -> str:
    """Three digits that matter."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def latency(nanoseconds: Iterable[int]) -> Latency:
    """The quantiles of these samples."""
    ordered = sorted(nanoseconds)
    last = len(ordered) - 1
    return Latency(*(ordered[min(last, int(len(ordered) * q))] / 1000 for q in (0.5, 0.99, 0.999)), len(ordered))


def middle(rounds: Sequence[Latency]) -> Latency:
    """The median round, quantile by quantile."""
    quantiles = (median(column) for column in zip(*(each[:3] for each in rounds), strict=True))
    return Latency(*quantiles, sum(each.samples for each in rounds))


def settle() -> None:
    """Collect what there is, and let the collector forget what will live as long as the process."""
    gc.collect()
    gc.freeze()


def one_core() -> None:
    """Stay on one core from here on: a figure for one is not helped by the others."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def answer_alone() -> int:
    """What was stdout, for a process's answer alone: whatever else is printed from here on goes to stderr."""
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def timed(pairs: Iterable[tuple[Callable[[Any], Any], Any]], rest: float = 0.0) -> list[int]:
    """The time of each ``call(item)``; with ``rest`` the calls start that many seconds apart, asleep in between."""
    clock, samples = time.perf_counter_ns, []
    note = samples.append
    for call, item in pairs:
        started = clock()
        call(item)
        note(clock() - started)
        if rest:
            time.sleep(rest)
    return samples


@contextlib.contextmanager
def busy_thread() -> Iterator[None]:
    """Beside a thread of this process that never stops computing: it wants the GIL back at once, always."""
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            total = 0
            for each in range(2_000):
                total += each * each

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def compiled() -> Iterator[None]:
    """Give every process started meanwhile compiled modules to load, as an installed package has them.

    Where the environment forbids writing them each process would compile trackway anew, and start-up mean nothing.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTHONPYCACHEPREFIX" in os.environ:
        yield
        return
    with scratch() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
        try:
            yield
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one measurement."""
    with tempfile.TemporaryDirectory(prefix="trackway-bench-") as folder:
        yield Path(folder)


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """The function's answer from a process of its own: no heap, threads or files left over from another measurement."""
    return together([(function, *args)])[0]


def together(calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The answers of several functions, each in a process of its own, all at once.

    The processes are forked from a server that has imported everything and done nothing: fresh, and there at once.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.record", "benchmarks.sustained", "benchmarks.read", *_USED])
    with ProcessPoolExecutor(len(calls), mp_context=context) as pool:
        waiting = [pool.submit(*each) for each in calls]
        return [each.result() for each in waiting]


def size_of(folder: Path) -> int:
    """The bytes of every file in a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
