"""Where the time of a step goes, part by part: why a target of sustained recording is met or missed.

Every part is done alone, on the very events of the workload, on one core: the caller's six calls with nothing beside
them, then what sealing does with their bytes. What a part is made of in C (encoding, checksums, copies, compression)
is measured alone too: the rest of it is the interpreter. SQLite is what is left of sealing when the parts are gone.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from xxhash import xxh3_64_intdigest

from benchmarks import workload
from benchmarks.measure import Options, apart, one_core, scratch, settle, short
from benchmarks.peers.b_trackway import Recorder
from benchmarks.report import Row, Table, Target
from trackway.schema.brief import briefs_of
from trackway.schema.codec import decode_array, encode_fast
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.version import SCHEMA
from trackway.store import keeper, record, tail
from trackway.store.base import Batch
from trackway.store.frames import PLAIN_MARK, Packer, array_of
from trackway.store.home import Home
from trackway.store.journal_files import Finished
from trackway.store.record import EPISODE, SEGMENT_HEADER
from trackway.store.sqlite import SqliteStore
from trackway.store.tail import Piece

_ALLOWED = 50.0  # µs a step: 20,000 steps a second


def run(options: Options) -> Iterator[Table]:
    """One table: parts, in microseconds a step."""
    with scratch() as folder:
        found = apart(parts, folder, options.size(40, 2), options.size(7, 1))
    whole = found["the caller"] + found["sealing"]
    rows = [_row(name, found[name], whole) for name in found]
    target = Target(f"≤ {_ALLOWED:.0f} µs", whole <= _ALLOWED)
    rows.append(Row("both, on one core", f"{short(whole)} µs = {1e6 / whole:,.0f} steps/s", target=target))
    yield Table("where the time of a step goes, in µs (six events, 1.5 KB)", tuple(rows))


def _row(name: str, value: float, whole: float) -> Row:
    return Row(name, f"{short(value)} µs, {value / whole:.0%}", numbers={"µs": value})


def parts(folder: Path, episodes: int, rounds: int) -> dict[str, float]:
    """Every part, the median of the rounds."""
    one_core()
    keeper.SEAL_EVERY = keeper.SYNC_EVERY = 1e9  # nothing beside the caller
    found = [_round(folder / str(each), workload.plan(episodes)) for each in range(rounds)]
    return {name: median(each[name] for each in found) for name in found[0]}


def _round(folder: Path, plan: list[list[workload.Step]]) -> dict[str, float]:
    steps = sum(map(len, plan))
    sent = [[(each, workload.messages([each], history=False)) for each in steps] for steps in plan]
    recorder = Recorder(folder)
    settle()
    caller = _cost(lambda: _record(recorder, sent), steps)
    stretches = _stretches(Home(folder))
    scanned = [record.scan(*each).records for each in stretches]
    wholes = [each[1] for records in scanned for each in records]
    groups = _grouped(wholes)
    arrays = [array_of(bodies) for bodies in groups]
    briefs = [briefs_of(each) or [] for each in arrays]
    fields = [each for array in arrays for each in _plain(array)]
    packer = Packer()
    store = SqliteStore(folder / "again.db")
    sealing = _cost(
        lambda: [store.seal(Batch(iter(record.scan(body, start).records))) for body, start in stretches], steps
    )
    store.close()
    recorder.close()
    cost = {
        "scan": _cost(lambda: [record.scan(*each) for each in stretches], steps),
        "group": _cost(lambda: _grouped(wholes), steps),
        "brief": _cost(lambda: [briefs_of(each) for each in arrays], steps),
        "fold": _cost(lambda: [fold(EpisodeSummary(id=""), each) for each in briefs], steps),
        "pack": _cost(lambda: [packer.pack(each, [PLAIN_MARK] * len(each)) for each in groups], steps),
    }
    return {
        "the caller": caller,
        "  of which encoding (C)": _cost(lambda: [encode_fast(each) for each in fields], steps),
        "  of which checksums (C)": _cost(lambda: [xxh3_64_intdigest(each) for each in wholes], steps),
        "sealing": sealing,
        "  finding the records again": cost["scan"],
        "  putting them in groups": cost["group"],
        "  decoding them in brief (C)": cost["brief"],
        "  folding the summaries": cost["fold"],
        "  compressing the frames (C)": cost["pack"],
        "  SQLite, and the disk": max(0.0, sealing - sum(cost.values())),
    }


def _cost(work: Callable[[], Any], steps: int) -> float:
    """Microseconds a step."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) / steps * 1e6


def _record(recorder: Recorder, sent: list[list[tuple[workload.Step, list[Any]]]]) -> None:
    for number, steps in enumerate(sent):
        recorder.begin(number)
        for each, messages in steps:
            recorder.step(each, messages)
        recorder.end(number)


def _stretches(home: Home) -> list[tuple[bytes, int]]:
    """What the journal holds, as a sealer reads it."""
    [writer] = tail.writers(home)
    found: list[Finished] = tail.segments(writer.folder)
    bodies = [tail.read(Piece(*each[:2], SEGMENT_HEADER, each.end)) for each in found]
    return [(each[: record.padded(len(each.rstrip(b"\0")))], SEGMENT_HEADER) for each in bodies]


def _grouped(wholes: list[bytes]) -> list[list[bytes]]:
    groups: dict[bytes, list[bytes]] = {}
    for each in wholes:
        groups.setdefault(each[:EPISODE], []).append(each[EPISODE:])
    return list(groups.values())


def _plain(array: bytes) -> list[dict[str, Any]]:
    """The fields a caller's call ends up with, ready to be encoded once more."""
    return [
        {name: value for name in each.__struct_fields__ if (value := getattr(each, name)) is not None}
        for each in decode_array(array, flags=0, schema=SCHEMA)
    ]
