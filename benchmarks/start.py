"""How long until something happens: whole processes, started again and again, beside a Python that does nothing.

The bare one is started in turn with the others, so both see the same machine; a figure is the difference of medians.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measure import Options, scratch
from benchmarks.peers import b_trackway, is_there
from benchmarks.report import Beside, Row, Table, Target
from benchmarks.workload import messages, plan

_RECORD = """
import trackway
with trackway.record("start") as episode:
    episode.user("go")
"""
_OTEL = """
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(FileSpanExporter("spans.jsonl")))
provider.get_tracer("start").start_span("go").end()
provider.shutdown()
"""


def run(options: Options) -> Iterator[Table]:
    """Import, first record, first answer of the command line."""
    commands = {
        "bare": ["-c", "pass"],
        "import": ["-c", "import trackway"],
        "record": ["-c", _RECORD],
        "ls": ["-m", "trackway", "ls", "--json"],
        "sqlite": ["-c", "import sqlite3, json"],
    }
    if is_there("OTel batch"):
        commands["otel"] = ["-c", _OTEL]
    with scratch() as folder:
        _fill(folder / "listed")
        took = _times(commands, folder, options.size(15, 3))
    bare = median(took.pop("bare"))
    over = {name: median(each) - bare for name, each in took.items() if each}
    yield Table(f"start, in ms over a bare Python ({bare:.0f} ms)", tuple(_rows(over)))


def _fill(home: Path) -> None:
    """Something for ``ls`` to list."""
    recorder = b_trackway.Recorder(home)
    for number, steps in enumerate(plan(30, 5)):
        recorder.begin(number)
        for each in steps:
            recorder.step(each, messages([each], history=False))
        recorder.end(number)
    recorder.close()


def _times(commands: dict[str, list[str]], folder: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each command, round after round; a command that fails has none."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, arguments in commands.items():
            home = folder / ("listed" if name == "ls" else f"{name}-{number}")
            environ = {**os.environ, "TRACKWAY_HOME": str(home)}
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *arguments], env=environ, cwd=folder, capture_output=True, check=False
            )
            answered = name != "ls" or b"episode 29" in done.stdout
            if number and not done.returncode and answered:  # the first round compiles
                took[name].append((time.perf_counter() - started) * 1000)
    return took


def _rows(over: dict[str, float]) -> Iterator[Row]:
    yield _row("import trackway", over.get("import"), 60)
    beside = (("import sqlite3, json", over.get("sqlite")), ("OTel batch, one span", over.get("otel")))
    yield _row("record the first event, until exit", over.get("record"), None, beside)
    yield _row("trackway ls --json", over.get("ls"), 150)


def _row(what: str, took: float | None, limit: float | None, beside: tuple[tuple[str, float | None], ...] = ()) -> Row:
    target = Target(f"≤ {limit:.0f} ms", took is not None and took <= limit) if limit else None
    if took is None:
        return Row(what, "failed", target=target)
    others = tuple(Beside(name, f"{each:.0f} ms", each / took) for name, each in beside if each is not None)
    return Row(what, f"{took:.0f} ms", others, target, {"ms": took})
