"""What the agent's thread waits for when it records: each kind of event, in the conditions agents live in.

    hot         a tight loop, the sealer at work beside it
    paced       400 a second, asleep in between: caches are cold
    busy        paced, beside a thread that never stops computing: whoever lets go of the GIL waits to get it back
    processes   eight at once, 200 a second each, one home

A step is six events, or two rows, lines or spans for the others. ``ack`` is the promise made when a call returns.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks import peers, workload
from benchmarks.measure import (
    Latency,
    Options,
    apart,
    busy_thread,
    latency,
    middle,
    scratch,
    settle,
    timed,
    together,
)
from benchmarks.report import Beside, Row, Table, Target
from benchmarks.sinks import KINDS, SINKS

_OURS = ("trackway", "trackway, append")  # the journal mapped, and appended to
_EVENTS = {"text": "text, 180 B", "user": "user, 500 B", "tool_call": "tool call, a dict", "tool_result": "tool result"}
_HOT_TARGET = {"text": 4.0, "user": 4.0, "tool_call": 8.0}


def run(options: Options) -> Iterator[Table]:
    """Every condition, a table each."""
    yield hot(options)
    yield _steps(options)
    yield _paced(options)
    yield busy(options)
    yield _processes(options)
    yield _acks(options)


# --- one event, in a process of its own -------------------------------------------------------------------------------


def in_loop(sink: str, folder: Path, count: int, kinds: Sequence[str] = KINDS) -> dict[str, Latency]:
    """Each kind in a tight loop."""
    made = SINKS[sink](folder)
    found, warm = {}, max(count // 20, 10)
    for kind in kinds:
        pairs = [(made.calls[kind], item) for item in islice(cycle(made.items[kind]), count + warm)]
        timed(pairs[:warm])
        settle()
        found[kind] = latency(timed(pairs[warm:]))
    _whole(sink, made.close(), (count + warm) * len(kinds))
    return found


def at_a_pace(sink: str, folder: Path, count: int, rate: float, busy: bool = False) -> list[int]:
    """All kinds in turn, ``rate`` a second, if asked beside a busy thread."""
    made = SINKS[sink](folder)
    items = {kind: cycle(made.items[kind]) for kind in KINDS}
    pairs = [(made.calls[kind], next(items[kind])) for kind in islice(cycle(KINDS), count + 40)]
    timed(pairs[:40])
    settle()
    with busy_thread() if busy else nullcontext():
        samples = timed(pairs[40:], rest=1 / rate)
    _whole(sink, made.close(), len(pairs))
    return samples


def a_step(peer: str, folder: Path, episodes: int, history: bool = False) -> Latency:
    """Whole steps in a tight loop; with history, each call carries the conversation so far, up to 150 messages."""
    recorder, samples = peers.load(peer).Recorder(folder), []
    plan = workload.calls(episodes, history=history)
    settle()
    peers.drive(recorder, plan, samples.append)
    recorder.close()
    return latency(samples[workload.EPISODE :] or samples)  # the first episode is the warm-up


def _whole(sink: str, kept: int, recorded: int) -> None:
    """A figure counts only if everything that was recorded is there."""
    if kept != recorded:
        raise ValueError(f"{sink}: {recorded} events recorded, {kept} read back")


# --- the conditions ---------------------------------------------------------------------------------------------------


def _rounds(count: int, function: Callable[..., Any], name: str, *args: Any) -> list[Any]:
    found = []
    for _ in range(count):
        with scratch() as folder:
            found.append(apart(function, name, folder, *args))
    return found


def hot(options: Options, names: Sequence[str] = (*_OURS, "os.write", "SQLite txn")) -> Table:
    """Each kind of event in a tight loop."""
    rounds = {each: _rounds(options.size(3, 1), in_loop, each, options.size(10_000, 300)) for each in names}
    rows = []
    for kind in KINDS:
        found = {name: middle([each[kind] for each in rounds[name]]) for name in names}
        limit = _HOT_TARGET.get(kind)
        target = Target(f"p50 ≤ {limit:.0f} µs", found["trackway"].p50 <= limit) if limit else None
        rows.append(_row(_EVENTS[kind], found, target=target))
    return Table("record an event, hot: p50 / p99 / p999 in µs (ratio of p50)", tuple(rows))


def _steps(options: Options) -> Table:
    names = (*_OURS, *peers.others())
    rows = []
    for what, episodes, history in (
        ("a step of 1.5 KB", options.size(40, 2), False),
        ("with its whole history", options.size(10, 2), True),
    ):
        rounds = {each: _rounds(options.size(3, 1), a_step, each, episodes, history) for each in names}
        rows.append(_row(what, {each: middle(rounds[each]) for each in names}))
    return Table("record a whole step, hot: p50 / p99 / p999 in µs (ratio of p50)", tuple(rows))


def _paced(options: Options) -> Table:
    names = (*_OURS, "os.write", "os.write, synced", "SQLite txn")
    found = _at_a_pace(options, names, options.size(500, 40), busy=False)
    return Table(
        "record an event, paced, 400 a second: p50 / p99 / p999 in µs (ratio of p50)", (_row("all kinds", found),)
    )


def busy(
    options: Options, names: Sequence[str] = (*_OURS, "os.write", "os.write, synced", "SQLite txn", "SQLite queue")
) -> Table:
    """Events now and then, beside a thread that never stops computing; a plain write that is synced is among them."""
    found = _at_a_pace(options, names, options.size(400, 20), busy=True)
    ours, theirs = found["trackway"].p99, found["os.write, synced"].p99
    target = Target("p99 ≤ 250 µs, ≥ 30x better than os.write", ours <= 250 and theirs / ours >= 30)
    row = _row("all kinds, beside a busy thread", found, by="p99", target=target)
    return Table("record an event, paced, beside a busy thread: p50 / p99 / p999 in µs (ratio of p99)", (row,))


def _at_a_pace(options: Options, names: Sequence[str], count: int, *, busy: bool) -> dict[str, Latency]:
    rounds = {each: _rounds(options.size(3, 1), at_a_pace, each, count, 400.0, busy) for each in names}
    return {each: latency(chain(*rounds[each])) for each in names}  # rare waits: all rounds are one sample


def _processes(options: Options) -> Table:
    names = (*_OURS, "os.write, synced", "SQLite txn")
    many, count = options.size(8, 2), options.size(400, 20)
    samples: dict[str, list[int]] = {each: [] for each in names}
    for name in names * options.size(3, 1):
        with scratch() as folder:
            samples[name] += chain(*together([(at_a_pace, name, folder, count, 200.0)] * many))
    found = {each: latency(samples[each]) for each in names}
    better = found["SQLite txn"].p99 / found["trackway"].p99
    target = Target("p99 ≥ 20x better than SQLite txn", better >= 20)
    row = _row(f"all kinds, {many} processes", found, by="p99", target=target)
    return Table(f"record an event, {many} processes, 200 a second each: p50 / p99 / p999 in µs (ratio of p99)", (row,))


def _acks(options: Options) -> Table:
    compared = {
        "ack disk": ("ack disk, append", "write + fdatasync"),
        "ack store": ("SQLite FULL",),
    }
    rows = []
    for name, others in compared.items():
        found = {}
        for each in (name, *others):
            rounds = _rounds(options.size(3, 1), in_loop, each, options.size(200, 5), ("text",))
            found[each] = middle([one["text"] for one in rounds])
        rows.append(_row(f"text, {name.replace(' ', '=')}", found))
    return Table(
        "record an event that is safe from more than a kill: p50 / p99 / max in µs (ratio of p50)", tuple(rows)
    )


def _row(what: str, found: dict[str, Latency], *, by: str = "p50", target: Target | None = None) -> Row:
    """The first of them, beside the others."""
    ours, *others = found
    better = {each: getattr(found[each], by) / getattr(found[ours], by) for each in others}
    beside = tuple(Beside(each, str(found[each]), better[each]) for each in others)
    return Row(what, str(found[ours]), beside, target, found[ours]._asdict())
