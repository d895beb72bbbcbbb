"""One episode that goes on and on: what an event costs at its beginning and at its end, and what reading it takes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import trackway
from benchmarks import memory, workload
from benchmarks.measure import Options, apart, scratch, settle, short
from benchmarks.report import Beside, Row, Table, Target

EVENTS_A_STEP = 4
_SLICE = 500  # steps
_PAIRS = 21
_FILL = 10_000  # steps between flushes: or the journal would outgrow the sealer
_SCANS = 3
_PRINTED = 20 << 20  # bytes of a transcript that are read before its reader goes


_COMMANDS = {"ls": ("ls",), "show": ("show", "last"), "show --json": ("show", "last", "--json"), "stats": ("stats",)}


class Cost(NamedTuple):
    """Microseconds an event: the caller's side, and sealing; of the long episode and of a fresh one beside it."""

    at: int
    record: float
    seal: float
    beside_record: float
    beside_seal: float
    ratio_record: float
    ratio_seal: float
    ratio: float


class Reading(NamedTuple):
    """Milliseconds to a page, events a second of a scan, and megabytes it took beyond what was there before."""

    pages: dict[str, float]
    scan: float
    memory: float


class Shown(NamedTuple):
    """A command: milliseconds until it prints anything, seconds until it is done, its most megabytes."""

    first: float
    whole: float
    memory: float


def run(options: Options) -> Iterator[Table]:
    """Record to the last size, look at each; then read it."""
    sizes = (10_000,) if options.quick else (10_000, 100_000, 1_000_000)
    with scratch() as folder:
        costs, episode, grown = apart(record, folder, sizes, options.size(_PAIRS, 2))
        yield _costs(costs, grown)
        reading = apart(read, folder, episode, sizes[-1])
        apart(record_few, folder / "few")
        for arguments in _COMMANDS.values():  # the first of each compiles what it loads
            _command(folder / "few", *arguments)
        shown = {
            what: (_command(folder / "home", *arguments), _command(folder / "few", *arguments))
            for what, arguments in _COMMANDS.items()
        }
        yield _reading(sizes[-1], reading, shown)


# --- recording --------------------------------------------------------------------------------------------------------


def record(folder: Path, sizes: tuple[int, ...], pairs: int) -> tuple[list[Cost], str, float]:
    """One long episode; at each size, slices of it beside slices of fresh ones. Also how many megabytes it grew by."""
    steps = workload.plan(1, 200)[0]
    long, fresh = (trackway.Recorder(folder / name) for name in ("home", "fresh"))
    episode = long.start("the long one")
    _slice(fresh, fresh.start("warm-up"), steps)
    settle()
    costs, done, before = [], 0, 0.0
    for size in sizes:
        room = min(pairs * _SLICE, size // EVENTS_A_STEP - done)
        done = _fill(long, episode, steps, size // EVENTS_A_STEP - room, done)
        count = max(1, room // _SLICE)
        taken = []
        for _ in range(count):
            other = fresh.start("a fresh one")
            taken.append((_slice(long, episode, steps), _slice(fresh, other, steps)))
            other.end()
            done += _SLICE
        costs.append(_cost(size, taken))
        before = before or memory.now()
    grown = memory.now() - before
    episode.end("success")
    for each in (long, fresh):
        each.close()
    return costs, episode.id, grown


def _fill(recorder: trackway.Recorder, episode: Any, steps: list[Any], until: int, done: int) -> int:
    while done < until:
        for i in range(min(_FILL, until - done)):
            _step(episode, steps[i % len(steps)])
        done += min(_FILL, until - done)
        recorder.flush()
    return done


def _slice(recorder: trackway.Recorder, episode: Any, steps: list[Any]) -> tuple[float, float]:
    started = time.perf_counter()
    for i in range(_SLICE):
        _step(episode, steps[i % len(steps)])
    recorded = time.perf_counter()
    recorder.flush()
    count = _SLICE * EVENTS_A_STEP / 1e6
    return (recorded - started) / count, (time.perf_counter() - recorded) / count


def _step(episode: Any, step: workload.Step) -> None:
    episode.user(step["think"])
    call = episode.tool_call("search", step["args"])
    episode.tool_result(call, step["out"])
    episode.text(step["think"])


def _cost(size: int, taken: list[tuple[tuple[float, float], tuple[float, float]]]) -> Cost:
    ours, others = ([pair[i] for pair in taken] for i in (0, 1))
    medians = [median(each[i] for each in side) for side in (ours, others) for i in (0, 1)]
    ratios = [median(mine[i] / theirs[i] for mine, theirs in taken) for i in (0, 1)]
    both = median(sum(mine) / sum(theirs) for mine, theirs in taken)
    return Cost(size, *medians, *ratios, both)


def _costs(costs: list[Cost], grown: float) -> Table:
    rows = []
    for each in costs:
        beside = (
            Beside("the first 2,000 of a fresh one", f"{short(each.beside_record)} + {short(each.beside_seal)} µs"),
            Beside("recording alone, sealing alone", f"{each.ratio_record:.2f}x, {each.ratio_seal:.2f}x"),
        )
        rows.append(
            Row(
                f"an event, {each.at:,} in",
                f"{short(each.record)} + {short(each.seal)} µs, {each.ratio:.2f}x",
                beside,
                Target("≤ 1.2x of a fresh one", each.ratio <= 1.2),
                each._asdict(),
            )
        )
    what = f"memory, since {costs[0].at:,} events"
    rows.append(Row(what, f"+{memory.told(max(grown, 0))}", target=Target("≤ 64 MB more", grown <= 64)))
    return Table(f"one episode of {costs[-1].at:,} events: recorded + sealed", tuple(rows))


# --- reading ----------------------------------------------------------------------------------------------------------


def read(folder: Path, episode: str, size: int) -> Reading:
    """Pages from its beginning, middle and end; then all of it."""
    store = trackway.open_store(home=folder / "home")
    places = {"the first event": -1, "one in the middle": size // 2, "the last": size - 2}
    pages = {what: median(_page(store, episode, after) for _ in range(9)) for what, after in places.items()}
    before = memory.reset()
    rates = []
    for _ in range(_SCANS):
        started = time.perf_counter()
        count = sum(1 for _ in store.events(episode))
        rates.append(count / (time.perf_counter() - started))
    store.close()
    return Reading(pages, median(rates), memory.peak() - before)


def _page(store: Any, episode: str, after: int) -> float:
    started = time.perf_counter()
    next(iter(store.events(episode, after=after)))
    return (time.perf_counter() - started) * 1000


def record_few(home: Path) -> None:
    """An episode of a few steps in a store of its own."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("a short one")
        for each in workload.plan(1, 5)[0]:
            _step(episode, each)
        episode.end("success")


def _command(home: Path, *arguments: str) -> Shown:
    """A command in a process of its own, what it prints read and thrown away; of very much, the beginning."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "trackway", *arguments, "--home", str(home)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(1)
    first = time.perf_counter() - started
    for _ in range(_PRINTED >> 20):
        if not process.stdout.read(1 << 20):
            break
    process.stdout.close()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return Shown(first * 1000, time.perf_counter() - started, usage.ru_maxrss / 1024)


def _reading(size: int, found: Reading, shown: dict[str, tuple[Shown, Shown]]) -> Table:
    rows = [
        Row(f"of a million: {what}" if size >= 10**6 else what, f"{short(each)} ms", target=Target("≤ 5 ms", each <= 5))
        for what, each in found.pages.items()
    ]
    rows.append(
        Row("a scan", f"{found.scan:,.0f} events/s", target=Target("≥ 200,000 events/s", found.scan >= 200_000))
    )
    rows.append(
        Row("memory of a scan", memory.told(found.memory), target=Target("≤ 16 MB, constant", found.memory <= 16))
    )
    for what, (long, few) in shown.items():
        beside = Beside("of a short episode", f"{few.first:,.0f} ms, {few.whole:.1f} s, {memory.told(few.memory)}")
        value = f"{long.first:,.0f} ms to the first byte, {long.whole:.1f} s, {memory.told(long.memory)}"
        more = long.memory - few.memory
        rows.append(Row(f"trackway {what}", value, (beside,), Target("≤ 64 MB more memory", more <= 64)))
    return Table(f"one episode of {size:,} events: read", tuple(rows))
