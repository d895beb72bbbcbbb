"""The line that says where the figures come from. Without it they mean nothing tomorrow."""

import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median


def describe() -> dict[str, object]:
    """The machine, the moment, and what the clock itself costs."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "filesystem": _filesystem(Path(tempfile.gettempdir()).resolve()),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load": load(),
        "timer_us": _timer(),
    }


def line(about: dict[str, object]) -> str:
    """The description, to be read."""
    return (
        "{cpu}, {cores} cores, Python {python}, {filesystem}, {date}, load {load:.1f}; "
        "every latency includes {timer_us:.2f} µs of clock".format(**about)
    )


def load() -> float:
    """How many processes wanted a core over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _timer() -> float:
    clock = time.perf_counter_ns
    return median(-(clock() - clock()) for _ in range(10_000)) / 1000


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((each.split(":", 1)[1].strip() for each in lines if each.startswith("model name")), platform.machine())


def _filesystem(path: Path) -> str:
    """The type of the file system the scratch folders are on: the longest mount point above them."""
    try:
        mounts = [each.split()[1:3] for each in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown file system"
    above = [(len(point), kind) for point, kind in mounts if path.is_relative_to(point)]
    return max(above)[1] if above else "unknown file system"
