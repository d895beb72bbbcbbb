"""Reading, from a store of a million events: one episode, all of them, a list.

The same text is put beside it as most would keep it: rows of JSON in SQLite, indexed by episode; and lines of JSON.
What is read is decoded everywhere, and counted.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import trackway
from benchmarks import workload
from benchmarks.measure import Latency, Options, apart, latency, scratch, settle, short, size_of
from benchmarks.peers import b_jsonl, b_sqlite, b_trackway
from benchmarks.report import Beside, Row, Table, Target

EVENTS_A_STEP = 6
_FLUSH_EVERY = 200
_QUERIES = {
    "the newest 50": trackway.Query(limit=50),
    "50 of one tool": trackway.Query(tool="search", limit=50),
    "50 by a word in the task": trackway.Query(task="7", limit=50),
    "50 best scores": trackway.Query(sort="score", limit=50),
}


class Found(NamedTuple):
    """What reading one store took."""

    one: Latency
    scan: float  # steps a second
    lists: dict[str, Latency]
    opened: float


def run(options: Options) -> Iterator[Table]:
    """Build the stores, then read them."""
    steps = options.steps or options.size(1_000_000 // EVENTS_A_STEP, 20_000 // EVENTS_A_STEP)
    episodes = max(steps // workload.EPISODE, 2)
    reads = options.size(1000, 30)
    with scratch() as folder:
        rate = apart(build, folder, episodes)
        weight = size_of(folder) / (episodes * workload.EPISODE)
        ours = apart(read_ours, folder, episodes, reads)
    with scratch() as folder:
        apart(build_others, folder, episodes)
        rows = apart(read_rows, folder, episodes, reads)
        lines = apart(read_lines, folder)
    events = episodes * (workload.EPISODE * EVENTS_A_STEP + 2)
    title = (
        f"read, from {events:,} events ({episodes:,} episodes, {rate:,.0f} steps/s to build, {short(weight)} B a step)"
    )
    yield _table(title, ours, rows, lines)


# --- building ---------------------------------------------------------------------------------------------------------


def build(folder: Path, episodes: int) -> float:
    """A store of steps, through the recorder; steps a second."""
    plan = _plan()
    recorder = b_trackway.Recorder(folder)
    started = time.perf_counter()
    for number in range(episodes):
        recorder.begin(number)
        for each, sent in plan[number % len(plan)]:
            recorder.step(each, sent)
        recorder.end(number)
        if number % _FLUSH_EVERY == _FLUSH_EVERY - 1:
            recorder.flush()  # or the journal would outgrow the sealer
    recorder.close()
    return episodes * workload.EPISODE / (time.perf_counter() - started)


def build_others(folder: Path, episodes: int) -> None:
    """The same steps as rows and, since every line of them is the same work, a tenth of them as lines."""
    plan = _plan()
    packed = [[row for each, sent in steps for row in b_sqlite.rows(each, sent)] for steps in plan]
    connection = b_sqlite.connect(folder)
    connection.execute("BEGIN")
    for number in range(episodes):
        rows = [(number, *row[1:]) for row in packed[number % len(packed)]]
        connection.executemany(b_sqlite.INSERT, rows)
    connection.execute("COMMIT")
    connection.close()
    lines = b_jsonl.Recorder(folder)
    for number in range(max(episodes // 10, 1)):
        for each, sent in plan[number % len(plan)]:
            lines.step(each, sent)
    lines.close()


def _plan() -> list[list[tuple[workload.Step, list[Any]]]]:
    """Forty episodes, used again and again: no store here packs two episodes together."""
    return [[(each, workload.messages([each], history=False)) for each in steps] for steps in workload.plan(40)]


# --- reading ----------------------------------------------------------------------------------------------------------


def read_ours(folder: Path, episodes: int, reads: int) -> Found:
    """Through ``open_store``, as everybody reads."""
    opened = []
    for _ in range(10):
        started = time.perf_counter()
        store = trackway.open_store(home=folder)
        store.resolve("last")
        opened.append((time.perf_counter() - started) * 1000)
        store.close()
    store = trackway.open_store(home=folder)
    names = [each.id for each in store.episodes()]
    want = workload.EPISODE * EVENTS_A_STEP + 2

    def one(name: str) -> None:
        if sum(1 for _ in store.events(name)) != want:
            raise ValueError(f"episode {name} is not whole")

    if len(names) != episodes:
        raise ValueError(f"{episodes} episodes recorded, {len(names)} listed")
    found = _one(one, names, reads)
    started = time.perf_counter()
    count = sum(1 for name in names for _ in store.events(name))
    rate = count / (time.perf_counter() - started) / EVENTS_A_STEP
    lists = {what: _one(lambda query: list(store.episodes(query)), [query], 20) for what, query in _QUERIES.items()}
    return Found(found, rate, lists, median(opened))


def read_rows(folder: Path, episodes: int, reads: int) -> Found:
    """Rows of JSON by index, and all of them."""
    connection = b_sqlite.connect(folder)

    def one(number: int) -> None:
        rows = connection.execute("SELECT body FROM ev WHERE ep = ? ORDER BY i", (number,))
        if sum(1 for (body,) in rows if json.loads(body)) != workload.EPISODE * 2:
            raise ValueError(f"episode {number} is not whole")

    found = _one(one, range(episodes), reads)
    started = time.perf_counter()
    count = sum(1 for (body,) in connection.execute("SELECT body FROM ev") if json.loads(body))
    return Found(found, count / 2 / (time.perf_counter() - started), {}, 0)


def read_lines(folder: Path) -> float:
    """Every line of JSON; steps a second."""
    started = time.perf_counter()
    with (folder / "log.jsonl").open() as lines:
        count = sum(1 for line in lines if json.loads(line))
    return count / 2 / (time.perf_counter() - started)


def _one(call: Callable[[Any], Any], items: Any, reads: int) -> Latency:
    """Random ones of the items, each read whole."""
    drawn = random.Random(1).choices(items, k=reads + 5)
    samples = []
    for each in drawn[:5]:
        call(each)
    settle()
    for each in drawn[5:]:
        started = time.perf_counter_ns()
        call(each)
        samples.append(time.perf_counter_ns() - started)
    return latency(samples)


def _table(title: str, ours: Found, rows: Found, lines: float) -> Table:
    scanned = ours.scan * EVENTS_A_STEP
    beside = Beside("SQLite rows, JSON", _ms(rows.one), rows.one.p50 / ours.one.p50)
    target = Target("p50 ≤ 0.3 ms", ours.one.p50 <= 300)
    found = [Row("one episode of 302 events, p50 / p99", _ms(ours.one), (beside,), target, ours.one._asdict())]
    others = {"SQLite rows, JSON": rows.scan, "lines of JSON": lines}
    scans = tuple(Beside(name, f"{each * EVENTS_A_STEP:,.0f}", ours.scan / each) for name, each in others.items())
    target = Target("≥ 200,000 events/s", scanned >= 200_000)
    found.append(Row("scan, events/s (others: as many steps)", f"{scanned:,.0f}", scans, target, {"rate": scanned}))
    found.append(Row("open, find the newest", f"{ours.opened:.2f} ms", numbers={"ms": ours.opened}))
    found += [Row(f"list {what}, p50 / p99", _ms(each), numbers=each._asdict()) for what, each in ours.lists.items()]
    return Table(title, tuple(found))


def _ms(found: Latency) -> str:
    return f"{found.p50 / 1000:.3f} / {found.p99 / 1000:.3f} ms"
