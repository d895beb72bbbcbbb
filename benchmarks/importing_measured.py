"""What is measured of an import, each in a process of its own, on one core."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import memory, sessions
from benchmarks.converters import kept
from benchmarks.measure import one_core, scratch, settle

MB = 1 << 20


class Took(NamedTuple):
    """One reading of a file: its size, seconds of a core and of the clock, what more was held, and what came out."""

    size: int
    seconds: float
    waited: float
    memory: float
    events: int = 0

    @property
    def rate(self) -> float:
        """Megabytes for each second that a core worked on them."""
        return self.size / MB / self.seconds


# --- in a process of its own ------------------------------------------------------------------------------------------


def _timed(act: Callable[[], int], size: int) -> Took:
    settle()
    one_core()
    before, started, worked = memory.reset(), time.perf_counter(), time.process_time()
    events = act()
    return Took(size, time.process_time() - worked, time.perf_counter() - started, memory.peak() - before, events)


def parsing(*paths: Path) -> Took:
    """Files → events, encoded as they are stored."""
    from trackway.ingest.original import Original
    from trackway.ingest.parse import Found, parsed
    from trackway.ingest.sources import detect

    sources = [detect(Original(each).head())[0].source for each in paths]  # before the clock: they are loaded here

    def act() -> int:
        found = (each for path, source in zip(paths, sources, strict=True) for each in parsed(source, Original(path)))
        return sum(len(each.events) for each in found if isinstance(each, Found))

    return _timed(act, sum(each.stat().st_size for each in paths))


def storing(path: Path) -> Took:
    """A file → a store: its bytes kept, its events sealed."""
    import trackway
    from trackway.ingest.gathering import gathered
    from trackway.ingest.importing import Options as How
    from trackway.ingest.importing import import_files

    def act(home: Path, what: Path) -> int:
        with trackway.open_store(home=home) as live:
            done = list(import_files(live, gathered([what]), How(workers=1)))
        if [each.state for each in done] != ["new"]:
            raise ValueError(f"{what.name}: {done}")
        return sum(each.events for each in done)

    with scratch() as warm, scratch() as home:
        act(warm / "home", sessions.write(warm, path.name.partition("-")[0], 1 << 14))  # everything is loaded
        return _timed(lambda: act(home, path), path.stat().st_size)


def storing_all(folder: Path, workers: int) -> float:
    """A folder of files → a store, by that many readers: megabytes for each second of the clock."""
    import trackway
    from trackway.ingest.gathering import gathered
    from trackway.ingest.importing import Options as How
    from trackway.ingest.importing import import_files

    files = list(gathered([folder]))
    with scratch() as home, trackway.open_store(home=home) as live:
        started = time.perf_counter()
        done = list(import_files(live, files, How(workers=workers)))
        took = time.perf_counter() - started
    if {each.state for each in done} != {"new"}:
        raise ValueError(f"{folder}: {done}")
    return sum(each.size for each in done) / MB / took


def loading(path: Path) -> Took:
    """The same bytes through ``json.loads``, a line at a time where they are lines."""

    def act() -> int:
        with path.open("rb") as file:
            if path.suffix == ".jsonl":
                return sum(bool(json.loads(line)) for line in file)
            return bool(json.load(file))

    return _timed(act, path.stat().st_size)


def keeping(path: Path) -> tuple[dict[str, float], int | None]:
    """What is in our events of what is in a file, and the tokens they say it took."""
    from trackway.ingest.original import Original
    from trackway.ingest.parse import events_of
    from trackway.ingest.sources import detect
    from trackway.read.usage import usage
    from trackway.schema.exact_json import line_of

    found = events_of(detect(Original(path).head())[0].source, Original(path))
    events = [each for some in found.values() for each in some]
    spent = usage(events)
    told = [each for each in (spent.input, spent.cache_read, spent.cache_write, spent.output) if each is not None]
    return kept(path, b"\n".join(line_of(each) for each in events).decode()), sum(told) if told else None
