"""Large payloads: a result of 300 MB, the same inside a value, a file of 2 GB; recorded, sealed, moved, read.

What is measured is the peak of the process's memory over what it was with the payload in it; mapped files count.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import trackway
from benchmarks import memory
from benchmarks.measure import Options, apart, scratch, short
from benchmarks.report import Row, Table, Target
from trackway.store import backup, pack, prune, unpack, verify
from trackway.store.choice import Criteria

_MB = 1 << 20
_ROOM = 64


class Peak(NamedTuple):
    """Megabytes beyond what was there before, and seconds."""

    over: float
    seconds: float


def run(options: Options) -> Iterator[Table]:
    """A value in memory, then a file that is not."""
    size = options.size(300, 12)
    rows = []
    for what in ("text", "nested"):
        with scratch() as folder:
            found = apart(in_memory, folder, what, size)
            found["read back"] = apart(read_event, folder, size)
        name = "a tool result" if what == "text" else "bytes inside a note"
        rows += [_row(f"{name}, {step}", each) for step, each in found.items()]
    yield Table(f"{size} MB in one event: peak memory over the payload", tuple(rows))
    size = options.size(2048, 24)
    with scratch() as folder:
        found = apart(from_file, folder, size)
        blob = apart(moved, folder, options.size(200, 24))
    rows = [_row(f"a file of {size:,} MB, {step}", each) for step, each in found.items()]
    rows += [_row(f"{step}, with one of {options.size(200, 24)} MB", each) for step, each in blob.items()]
    yield Table(f"a file of {size:,} MB, by its path: peak memory", tuple(rows))


def _row(what: str, found: Peak) -> Row:
    value = f"{memory.told(found.over)}, {short(found.seconds)} s"
    return Row(what, value, target=Target(f"≤ {_ROOM} MB", found.over <= _ROOM), numbers=found._asdict())


def _peak(call: Callable[[], Any]) -> Peak:
    before, started = memory.reset(), time.perf_counter()
    call()
    return Peak(max(0.0, memory.peak() - before), time.perf_counter() - started)


# --- in memory --------------------------------------------------------------------------------------------------------


def in_memory(folder: Path, what: str, size: int) -> dict[str, Peak]:
    """Record it and seal it, the payload in memory all the while."""
    recorder = trackway.Recorder(folder)
    episode = recorder.start("large")
    recorder.flush()
    if what == "text":
        text = "0123456789abcdef" * (size * _MB // 16)
        recorded = _peak(lambda: episode.tool_result("c1", text))
    else:
        body = os.urandom(_MB) * size
        recorded = _peak(lambda: episode.note("n", detail={"rows": [body]}))
    sealed = _peak(recorder.flush)
    recorder.close()
    return {"recorded": recorded, "sealed": sealed}


def read_event(folder: Path, size: int) -> Peak:
    """Read the event again: what comes is the payload, so that much is no overhead."""
    with trackway.open_store(home=folder) as store:
        found = _peak(lambda: [None for _ in store.events(store.resolve("last"))])
    return found._replace(over=max(0.0, found.over - size))


# --- from a file ------------------------------------------------------------------------------------------------------


def from_file(folder: Path, size: int) -> dict[str, Peak]:
    """A file that is read piece by piece, on its way in and out."""
    source = _written(folder / "source", size)
    recorder = trackway.Recorder(folder / "home")
    episode = recorder.start("a large file")
    recorder.flush()
    found = {"recorded": _peak(lambda: episode.file_change("source", after=source))}
    source.unlink()
    found["sealed"] = _peak(recorder.flush)
    recorder.close()
    with trackway.open_store(home=folder / "home") as store:
        change = next(each for each in store.events(episode.id) if each.kind == "file_change")
        found["read, streamed"] = _peak(lambda: sum(map(len, store.blob(change.after.hash))))
        found["verified"] = _peak(lambda: verify.verify(store.store, store.home))
    return found


def moved(folder: Path, size: int) -> dict[str, Peak]:
    """What upkeep takes with a blob of some size."""
    home, file = folder / "upkeep", folder / "episode.pack"
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("a file")
        episode.file_change("source", after=_written(folder / "source", size))
        episode.end("success")
    found = {}
    with trackway.open_store(home=home) as store:
        found["backup"] = _peak(lambda: backup.backup(store, folder / "copy.db"))
        with file.open("wb") as out:
            found["pack"] = _peak(lambda: pack.pack(store, episode.id, out))
        criteria = Criteria(query=trackway.Query(task="a file"))
        found["prune"] = _peak(lambda: prune.prune(store, criteria, now=time.time_ns()))
    with file.open("rb") as back, trackway.open_store(home=folder / "elsewhere") as store:
        found["unpack"] = _peak(lambda: unpack.unpack(back, store))
    return found


def _written(path: Path, size: int) -> Path:
    block = os.urandom(_MB)
    with path.open("wb") as file:
        for i in range(size):
            file.write(i.to_bytes(8, "little") + block[8:])
    return path
