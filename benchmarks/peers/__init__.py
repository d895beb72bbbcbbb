"""Recorders of steps, one module each, in the shape of the peers benchmark.

``Recorder(folder)`` has ``begin(episode)``, ``step(step, messages)``, ``end(episode)`` and ``close()``;
``read(folder)`` gives back ``{(episode, i): {"out": …, "result": …}}``, from which losses are counted.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

NAMES = {
    "trackway": "trackway",
    "trackway, append": "trackway_append",
    "raw JSONL": "jsonl",
    "SQLite txn": "sqlite",
    "SQLite queue": "sqlite_queue",
    "OTel batch": "otel_batch",
}


def load(name: str) -> ModuleType:
    """The module of a peer."""
    return import_module(f"benchmarks.peers.b_{NAMES[name]}")


def is_there(name: str) -> bool:
    """Whether what the peer needs is installed."""
    return name != "OTel batch" or find_spec("opentelemetry.exporter") is not None


def others() -> list[str]:
    """Everyone but trackway, as far as installed."""
    return [each for each in NAMES if not each.startswith("trackway") and is_there(each)]
