"""Recorders of steps, one module each, in the shape of the peers benchmark.

``Recorder(folder)`` has ``begin(episode)``, ``step(step, messages)``, ``end(episode)`` and ``close()``, or ``drive``
where the peer owns the loop; ``read(folder)`` gives back ``{(episode, i): {"out": …, "result": …}}``, from which losses
are counted. A module may have ``stage(folder)``, the variables its processes need and what must stand beside them, and
``weigh(folder)``, the bytes that count. What a peer brings is imported when it records, never with its module.
"""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

OURS = "trackway"


class Peer(NamedTuple):
    """One recorder: its module, the package whose version is shown, and what it needs in an environment of its own."""

    module: str
    package: str = "trackway"
    needs: tuple[str, ...] = ()
    slow: bool = False  # a round of it takes half a minute

    @property
    def is_ours(self) -> bool:
        """Whether it is trackway, one way or another."""
        return self.package == OURS


# Held to a major version, so that a peer's next one does not silently record less.
NAMES = {
    OURS: Peer("trackway"),
    "trackway, append": Peer("trackway_append"),
    "trackway, ack=disk": Peer("trackway_disk", slow=True),
    "raw JSONL": Peer("jsonl", "python"),
    "SQLite txn": Peer("sqlite", "sqlite"),
    "SQLite queue": Peer("sqlite_queue", "sqlite"),
    "SQLite FULL": Peer("sqlite_full", "sqlite", slow=True),
    "OTel simple": Peer("otel_simple", "opentelemetry-sdk"),
    "OTel batch": Peer("otel_batch", "opentelemetry-sdk"),
    "Langfuse SDK": Peer("langfuse", "langfuse", ("langfuse>=5,<6",)),
    "MLflow": Peer("mlflow", "mlflow", ("mlflow>=3.10,<4",), slow=True),
    "Inspect": Peer("inspect", "inspect-ai", ("inspect-ai>=0.3.285,<0.4",), slow=True),
    "llm": Peer("llm", "llm", ("llm>=0.36,<0.40",), slow=True),
}
_IN_OUR_ENVIRONMENT = ("raw JSONL", "SQLite txn", "SQLite queue", "OTel batch")


def load(name: str) -> ModuleType:
    """The module of a peer."""
    return import_module(f"benchmarks.peers.b_{NAMES[name].module}")


def is_there(name: str) -> bool:
    """Whether what the peer needs is installed in this environment."""
    return not name.startswith("OTel") or find_spec("opentelemetry.exporter") is not None


def others() -> list[str]:
    """Everyone but trackway, as far as installed in this environment."""
    return [each for each in _IN_OUR_ENVIRONMENT if is_there(each)]


def drive(recorder: Any, plan: Sequence[Sequence[tuple[Any, Any]]], done: Callable[[int], object]) -> None:
    """Record every step; ``done`` is called after each, with the nanoseconds its caller waited."""
    if own := getattr(recorder, "drive", None):
        own(plan, done)
        return
    clock = time.perf_counter_ns
    for number, steps in enumerate(plan):
        recorder.begin(number)
        for each, sent in steps:
            started = clock()
            recorder.step(each, sent)
            done(clock() - started)
        recorder.end(number)
