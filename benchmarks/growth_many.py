"""Many episodes: a hundred thousand in a store, and ten thousand open at once in one process."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import trackway
from benchmarks import memory
from benchmarks.measure import Options, apart, scratch, settle, short, size_of
from benchmarks.report import Beside, Row, Table, Target

_EVENTS = 4
_BATCH = 1000
_PAIRS = 11
_QUERIES = {
    "the newest 50": trackway.Query(limit=50),
    "50 of one tool": trackway.Query(tool="search", limit=50),
    "50 failures": trackway.Query(outcome="failure", limit=50),
    "50 by a word in the task": trackway.Query(task="77", limit=50),
}


class Stored(NamedTuple):
    """A store of many episodes: µs of the last thousands, and of thousands in a fresh store beside them; its bytes."""

    last: float
    beside: float
    ratio: float
    bytes: float
    some: str


class Open(NamedTuple):
    """Episodes that are open at once. Times in µs an event or an episode, in ms for all, kilobytes an episode."""

    start: float
    record: float
    beside: float
    kilobytes: float
    handles: int
    list_ms: float
    last_ms: float
    close: float


def run(options: Options) -> Iterator[Table]:
    """A store of many, beside one of a hundredth of them; then many at once, beside one."""
    many, few = options.size(100_000, 500), options.size(1000, 100)
    with scratch() as folder:
        stored = apart(record, folder, many, few)
        asked = apart(ask, folder / "many", stored.some)
        beside = apart(ask, folder / "few", apart(newest, folder / "few"))
    yield _many(many, few, stored, asked, beside)
    count = options.size(10_000, 200)
    with scratch() as folder:
        yield _open(count, apart(open_at_once, folder, count))


# --- in a store -------------------------------------------------------------------------------------------------------


def record(folder: Path, many: int, few: int) -> Stored:
    """Short episodes, sealed by the thousand; the last of them beside as many in a store that was empty before."""
    pairs = []
    batch = min(_BATCH, few)
    with trackway.Recorder(folder / "many") as recorder:
        for first in range(0, many, batch):
            ours = _thousand(recorder, first, batch)
            if first >= many - _PAIRS * batch:
                place = folder / ("few" if not pairs else f"few{first}")
                with trackway.Recorder(place) as fresh:
                    _episode(fresh, 0).label(tag="warm-up")
                    fresh.flush()
                    pairs.append((ours, _thousand(fresh, first, batch)))
    with trackway.open_store(home=folder / "many") as store:
        some = store.resolve("last")
    last, beside = (median(side) for side in zip(*pairs, strict=True))
    ratio = median(mine / theirs for mine, theirs in pairs)
    return Stored(last, beside, ratio, size_of(folder / "many") / many, some)


def _thousand(recorder: trackway.Recorder, first: int, batch: int) -> float:
    settle()
    started = time.perf_counter()
    for number in range(first, first + batch):
        _episode(recorder, number)
    recorder.flush()
    return (time.perf_counter() - started) / batch * 1e6


def _episode(recorder: trackway.Recorder, number: int) -> Any:
    episode = recorder.start(f"task number {number}", agent="bench", tags=("bench",))
    call = episode.tool_call("search" if number % 10 else "rare", {"q": str(number)})
    episode.tool_result(call, f"found {number}")
    episode.end("failure" if number % 50 == 0 else "success")
    return episode


def newest(home: Path) -> str:
    """The id of the newest episode."""
    with trackway.open_store(home=home) as store:
        return str(store.resolve("last"))


def ask(home: Path, some: str) -> dict[str, float]:
    """Milliseconds of each question."""
    opened = median(_timed(lambda: _opened(home)) for _ in range(5))
    with trackway.open_store(home=home) as store:
        questions: dict[str, Callable[[], Any]] = {
            name: lambda query=query: list(store.episodes(query)) for name, query in _QUERIES.items()
        }
        questions["by the end of its id"] = lambda: store.resolve(some[-8:])
        questions["last"] = lambda: store.resolve("last")
        return {"opened": opened} | {name: _asked(question) for name, question in questions.items()}


def _asked(question: Callable[[], Any]) -> float:
    assert question()
    return median(_timed(question) for _ in range(7))


def _opened(home: Path) -> None:
    with trackway.open_store(home=home) as store:
        next(iter(store.episodes(trackway.Query(limit=1))))


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def _many(many: int, few: int, stored: Stored, asked: dict[str, float], beside: dict[str, float]) -> Table:
    rows = [
        Row(
            "an episode, recorded and sealed",
            f"{short(stored.last)} µs, {stored.ratio:.2f}x",
            (Beside("into a fresh store", f"{short(stored.beside)} µs"),),
            Target("≤ 1.2x of that", stored.ratio <= 1.2),
            {"last": stored.last, "beside": stored.beside, "ratio": stored.ratio},
        ),
        Row(
            f"bytes an episode of {_EVENTS} events", short(stored.bytes), target=Target("≤ 1,500", stored.bytes <= 1500)
        ),
    ]
    for name, each in asked.items():
        limit = 200 if "word" in name or "end" in name else 20
        beside_it = (Beside(f"of {few:,}", f"{short(beside[name])} ms"),)
        rows.append(Row(f"of many: {name}", f"{short(each)} ms", beside_it, Target(f"≤ {limit} ms", each <= limit)))
    return Table(f"{many:,} episodes in a store", tuple(rows))


# --- at once ----------------------------------------------------------------------------------------------------------


def open_at_once(folder: Path, count: int) -> Open:
    """Open them all, record into each in turn; the same events into one alone, in between; look; close."""
    recorder, alone = trackway.Recorder(folder / "home"), trackway.Recorder(folder / "alone")
    one = alone.start("alone")
    one.user("warm-up")
    settle()
    before, started = memory.now(), time.perf_counter()
    episodes = [recorder.start(f"task number {number}") for number in range(count)]
    took = time.perf_counter() - started
    kilobytes = (memory.now() - before) * 1024 / count
    recorder.flush()
    taken = []
    for _ in range(5):
        taken.append((_round(episodes), _round([one] * count)))
        recorder.flush()
        alone.flush()
    _round(episodes)  # not sealed: whoever looks now has all of them to put together
    with trackway.open_store(home=folder / "home") as store:
        listed = _timed(lambda: list(store.episodes(trackway.Query(limit=5))))
        last = _timed(lambda: store.resolve("last"))
    handles = memory.handles()
    started = time.perf_counter()
    for each in episodes:
        each.end("success")
    recorder.close()
    closed = (time.perf_counter() - started) / count * 1e6
    alone.close()
    ours, theirs = (median(each) for each in zip(*taken, strict=True))
    return Open(took / count * 1e6, ours, theirs, kilobytes, handles, listed, last, closed)


def _round(episodes: list[Any]) -> float:
    started = time.perf_counter()
    for each in episodes:
        each.user("go on with what you were doing")
    return (time.perf_counter() - started) / len(episodes) * 1e6


def _open(count: int, found: Open) -> Table:
    ratio = found.record / found.beside
    alone = (Beside("the same into one episode", f"{short(found.beside)} µs"),)
    rows = (
        Row("an event, into each in turn", f"{short(found.record)} µs, {ratio:.2f}x", alone, None, found._asdict()),
        Row("memory an open episode", f"{short(found.kilobytes)} KB", target=Target("≤ 8 KB", found.kilobytes <= 8)),
        Row("handles of the process", str(found.handles), target=Target("≤ 32", 0 <= found.handles <= 32)),
        Row("start one", f"{short(found.start)} µs"),
        Row("the newest 5, none sealed", f"{short(found.list_ms)} ms", target=Target("≤ 500 ms", found.list_ms <= 500)),
        Row("last, none sealed", f"{short(found.last_ms)} ms", target=Target("≤ 500 ms", found.last_ms <= 500)),
        Row("end and seal one, closing", f"{short(found.close)} µs"),
    )
    return Table(f"{count:,} episodes open at once in a process", rows)
