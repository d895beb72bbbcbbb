"""Steps a second, recorded and stored, on one core; and what they weigh.

The clock runs from the first step until ``close`` returns: for trackway everything is then sealed into the store, the
journal gone and the log checkpointed. Afterwards a process of its own reads back every step and compares its text.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import peers, workload
from benchmarks.measure import Options, apart, one_core, scratch, settle, short, size_of
from benchmarks.report import Beside, Row, Table, Target

Plan = list[list[tuple[workload.Step, list[Any]]]]


class Outcome(NamedTuple):
    """What one peer did."""

    rate: float
    bytes: float
    kept: float
    raw: float

    def __str__(self) -> str:
        return f"{self.rate:,.0f} steps/s" + ("" if self.kept == 1 else f", kept {self.kept:.0%}")


def run(options: Options) -> Iterator[Table]:
    """Speed on one core, then size, without and with history in each call."""
    names = ["trackway", "trackway, append", *peers.others()]
    yield _speed({each: _outcome(each, options.size(100, 4), options.size(3, 1)) for each in names})
    weighed = [each for each in names if each not in ("trackway, append", "SQLite queue")]  # these weigh what theirs do
    short_calls = {each: _outcome(each, options.size(40, 4)) for each in weighed}
    long_calls = {each: _outcome(each, options.size(40, 2), history=True) for each in weighed}
    yield _weight(short_calls, long_calls)


def record_all(peer: str, folder: Path, episodes: int, history: bool) -> tuple[float, float]:
    """Record on one core; steps a second, and with history the bytes a step has as JSON."""
    plan = workload.calls(episodes, history=history)
    raw = sum(len(json.dumps(pair)) for steps in plan for pair in steps) if history else 0
    one_core()
    with scratch() as other:
        _record(peer, other, plan[:20])  # the warm-up
    settle()
    count = episodes * workload.EPISODE
    return count / _record(peer, folder, plan), raw / count


def _record(peer: str, folder: Path, plan: Plan) -> float:
    """Record it all; the seconds until everything is stored."""
    recorder = peers.load(peer).Recorder(folder)
    started = time.perf_counter()
    for number, steps in enumerate(plan):
        recorder.begin(number)
        for each, sent in steps:
            recorder.step(each, sent)
        recorder.end(number)
    recorder.close()
    return time.perf_counter() - started


def read_back(peer: str, folder: Path, episodes: int) -> int:
    """How many steps come back with the very text that went in."""
    found = peers.load(peer).read(folder)
    wanted = {(each["ep"], each["i"]): each for steps in workload.plan(episodes) for each in steps}
    return sum(
        each.get("out") == wanted[place]["out"] and each.get("result") == wanted[place]["result"]
        for place, each in found.items()
    )


def _outcome(peer: str, episodes: int, rounds: int = 1, history: bool = False) -> Outcome:
    found = []
    for _ in range(rounds):
        with scratch() as folder:
            rate, raw = apart(record_all, peer, folder, episodes, history)
            count = episodes * workload.EPISODE
            weight = size_of(folder) / count
            found.append(Outcome(rate, weight, apart(read_back, peer, folder, episodes) / count, raw))
    return Outcome(*(median(column) for column in zip(*found, strict=True)))


BYTES_A_STEP, BYTES_WITH_HISTORY = 800, 1000  # bytes a step, without and with the history in each call


def speed_target(rate: float, *, whole: bool) -> Target:
    """Steps a second, if every one of them is there."""
    return Target("≥ 20,000 steps/s", whole and rate >= 20_000)


def weight_target(weight: float, limit: int, *, whole: bool) -> Target:
    """Bytes a step, if every one of them is there."""
    return Target(f"≤ {limit:,}", whole and weight <= limit)


def share_row(share: float) -> Row:
    """What is left of calls that repeat their context."""
    return Row("of the JSON of such calls", f"{share:.1%}", target=Target("≤ 3 %", share <= 0.03))


def _speed(found: dict[str, Outcome]) -> Table:
    ours = found["trackway"]
    beside = tuple(Beside(each, str(found[each]), ours.rate / found[each].rate) for each in found if each != "trackway")
    kept = all(found[each].kept == 1 for each in ("trackway", "trackway, append"))
    row = Row("sustained, sealed", str(ours), beside, speed_target(ours.rate, whole=kept), ours._asdict())
    return Table("sustained on one core, until closed, every step read back", (row,))


def _weight(short_calls: dict[str, Outcome], long_calls: dict[str, Outcome]) -> Table:
    rows = []
    for what, found, limit in (
        ("bytes a step", short_calls, BYTES_A_STEP),
        ("bytes a step, full history", long_calls, BYTES_WITH_HISTORY),
    ):
        ours = found["trackway"]
        beside = tuple(_weighed(each, found[each], ours) for each in found if each != "trackway")
        target = weight_target(ours.bytes, limit, whole=ours.kept == 1)
        rows.append(Row(what, short(ours.bytes), beside, target, ours._asdict()))
    ours = long_calls["trackway"]
    rows.append(share_row(ours.bytes / ours.raw))
    return Table("on the disk, after close", tuple(rows))


def _weighed(name: str, theirs: Outcome, ours: Outcome) -> Beside:
    """Whoever lost steps weighs less for it: counted by what was kept."""
    weight = theirs.bytes / (theirs.kept or 1)
    return Beside(name, short(weight), weight / ours.bytes)
