"""Three days of an agent that takes a step every five seconds, told in a minute: what is held must not grow.

The keeper is the real one, its periods shortened, so that it seals, syncs and looks for the dead all the time. On the
second day somebody else reads the store and does not let go of it for hours; on the third, somebody locks it.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import trackway
from benchmarks import memory, workload
from benchmarks.measure import Options, apart, scratch, settle, size_of
from benchmarks.report import Beside, Row, Table, Target
from trackway.store import keeper
from trackway.store.home import Home

_HOUR = 720  # steps
_MB = 1 << 20
_PAUSE = 0.0003


class Sample(NamedTuple):
    """What the process and its home hold: megabytes, counts, bytes on the disk."""

    memory: float
    handles: int
    threads: int
    journal: float
    log: float
    store: float


class Told(NamedTuple):
    """Samples by part of the three days, how often was sealed, and the megabytes of text while the store was locked."""

    days: dict[str, list[Sample]]
    seals: int
    meanwhile: float
    kept: bool


def run(options: Options) -> Iterator[Table]:
    """All of it in one process, as it would be."""
    hours = options.size(24, 1)
    with scratch() as folder:
        told = apart(record, folder, hours)
    yield _table(told, 3 * hours)


def record(folder: Path, hours: int) -> Told:
    """The days in turn, sampled often; then everything is read back and counted."""
    keeper.SEAL_EVERY, keeper.SYNC_EVERY, keeper.ADOPT_EVERY = 0.0, 0.001, 0.05  # type: ignore[misc]
    home, steps = Home(folder), workload.plan(1, _HOUR)[0]
    recorder = trackway.Recorder(folder)
    _hour(recorder, steps, lambda: None)
    settle()
    days: dict[str, list[Sample]] = {}
    seals = _Seals(recorder)

    def day(name: str, count: int, beside: Callable[[Path], contextlib.AbstractContextManager[None]]) -> None:
        found = days.setdefault(name, [])
        with beside(home.store):
            for _ in range(count):
                _hour(recorder, steps, lambda: found.append(_sample(home)))

    half = max(1, hours // 2)
    day("alone", hours, lambda _path: contextlib.nullcontext())
    day("read by another", half, _read_by_another)
    day("after that", half, lambda _path: contextlib.nullcontext())
    day("locked by another", half, _locked_by_another)
    recorder.flush()
    day("in the end", half, lambda _path: contextlib.nullcontext())
    recorder.close()
    text = sum(len(each["think"]) * 2 + len(each["out"]) + len(str(each["args"])) for each in steps)
    wanted = 1 + hours + 4 * half
    with trackway.open_store(home=folder) as store:
        kept = sum(each.n_steps for each in store.episodes()) == wanted * _HOUR
    return Told(days, seals.count, text * half / _MB, kept)


class _Seals:
    """Counts what the recorder's sealer commits."""

    def __init__(self, recorder: trackway.Recorder) -> None:
        self.count = 0
        seal = recorder.store.seal

        def counted(batch: object) -> int:
            self.count += 1
            return seal(batch)  # type: ignore[arg-type]

        recorder.store.seal = counted  # type: ignore[method-assign]


def _hour(recorder: trackway.Recorder, steps: list[workload.Step], look: Callable[[], None]) -> None:
    """One episode."""
    episode = recorder.start("an hour's work")
    for i, each in enumerate(steps):
        episode.user(each["think"])
        call = episode.tool_call("search", each["args"])
        episode.tool_result(call, each["out"])
        episode.text(each["think"])
        if i % 240 == 120:
            look()
        time.sleep(_PAUSE)
    episode.end("success")


def _sample(home: Home) -> Sample:
    log = home.store.with_name(f"{home.store.name}-wal")
    return Sample(
        memory.now(), memory.handles(), threading.active_count(), size_of(home.journals) / _MB,
        log.stat().st_size / _MB if log.exists() else 0.0, home.store.stat().st_size / _MB,
    )  # fmt: skip


@contextlib.contextmanager
def _read_by_another(path: Path) -> Iterator[None]:
    """A program that began to read and does not end: the log cannot be moved into the file past where it reads."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM frames").fetchone()
    try:
        yield
    finally:
        connection.close()


@contextlib.contextmanager
def _locked_by_another(path: Path) -> Iterator[None]:
    """A program that holds the store to write, and writes nothing."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


# --- the table --------------------------------------------------------------------------------------------------------


def _table(told: Told, hours: int) -> Table:
    every = [each for samples in told.days.values() for each in samples]
    alone = told.days["alone"]
    first = alone[0]
    held, locked, after = told.days["read by another"], told.days["locked by another"], told.days["in the end"]

    def row(what: str, name: str, limit: float, unit: str, samples: list[Sample] = every) -> Row:
        values = [getattr(each, name) for each in samples]
        said = f"{getattr(first, name):,.0f} → {values[-1]:,.0f}{unit}, at most {max(values):,.0f}{unit}"
        return Row(what, said, target=Target(f"at most {limit:,.0f}{unit}", max(values) <= limit))

    grown = max(each.journal for each in locked) - first.journal
    waited = Beside("text recorded meanwhile", f"{told.meanwhile:,.1f} MB")
    rows = (
        row("days: memory", "memory", first.memory + 48, " MB"),
        row("days: handles", "handles", first.handles + 6, ""),
        row("days: threads", "threads", 2, ""),
        row("days: journal on the disk", "journal", 40, " MB", alone),
        row("days: log of the store", "log", 64, " MB", alone),
        row("days: log, read by another half a day", "log", 64 + 4 * max(each.store for each in every), " MB", held),
        row("days: log, after that", "log", 64, " MB", told.days["after that"][1:]),
        Row(
            "days: journal, locked out for half a day", f"+{grown:,.0f} MB", (waited,),
            Target("≤ 3x that + 16 MB", grown <= 3 * told.meanwhile + 16),
        ),
        row("days: journal, after that", "journal", 40, " MB", after[1:]),
        Row("days: every step is there", "yes" if told.kept else "no", target=Target("yes", told.kept)),
    )  # fmt: skip
    return Table(f"{hours} hours, a step every 5 s, sealed {told.seals:,} times", rows)
