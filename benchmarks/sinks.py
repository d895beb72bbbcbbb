"""Where single events go: trackway with either journal, the bare system call, SQLite. Same events, same bytes.

A sink gives a callable per kind of event and what to call it with. trackway is called as an agent calls it, with text
and mappings. The others get the very bytes trackway would record, encoded beforehand: they are measured at their best.
"""

import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import trackway
from benchmarks import workload
from trackway.schema import events
from trackway.schema.codec import encode

KINDS = ("text", "user", "tool_call", "tool_result")
_SIZES = {"text": 180, "user": 500, "tool_result": 540}
_VARIETY = 64


def values(kind: str) -> list[Any]:
    """What an agent hands over, one after the other."""
    random = Random(kind)
    if kind == "tool_call":
        return [{"path": f"src/mod_{i}.py", "query": workload.text(random, 100)} for i in range(_VARIETY)]
    return [workload.text(random, _SIZES[kind]) for _ in range(_VARIETY)]


def _bodies() -> dict[str, list[bytes]]:
    """The bytes trackway records for these values, with the 32 its journal puts before each."""
    return {kind: [bytes(32) + encode(_event(kind, each)).body for each in values(kind)] for kind in KINDS}


def _event(kind: str, value: Any) -> events.Event:
    envelope = {"writer": "0123456789abcdef", "n": 100_000, "at": time.time_ns(), "turn": 1}
    if kind == "text":
        return events.AssistantText(content=value, **envelope)
    if kind == "user":
        return events.User(content=value, **envelope)
    call_id = "call_0123456789ffff"
    if kind == "tool_call":
        args = json.dumps(value, separators=(",", ":")).encode()
        return events.AssistantToolCall(name="search", args=args, call_id=call_id, batch=1, **envelope)
    return events.ToolResult(call_id=call_id, content=value, duration_ms=1.5, **envelope)


def _calls(episode: trackway.Episode) -> dict[str, Callable[[Any], Any]]:
    call = episode.tool_call("search", {"query": "the one whose results are recorded"})
    return {
        "text": episode.text,
        "user": episode.user,
        "tool_call": partial(episode.tool_call, "search"),
        "tool_result": partial(episode.tool_result, call),
    }


class Trackway:
    """The recorder with its defaults, but for the journal and how safe an event is when a call returns."""

    def __init__(self, folder: Path, journal: str = "mmap", ack: str = "process") -> None:
        self._folder = folder
        self._recorder = trackway.Recorder(home=folder, journal=journal, ack=ack)
        self._episode = self._recorder.start("bench")
        self.calls = _calls(self._episode)
        self.items = {kind: values(kind) for kind in KINDS}
        self._before = 2  # the start and the call made above

    def close(self) -> int:
        """Seal everything; how many events came in through ``calls`` and are read back."""
        self._recorder.close()
        store = trackway.open_store(home=self._folder)
        count = sum(1 for _ in store.events(self._episode.id)) - self._before
        store.close()
        return count


class RawWrite:
    """``os.write`` of the bytes, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / f"{os.getpid()}.log", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        self.calls = dict.fromkeys(KINDS, partial(os.write, self._file))
        self.items = _bodies()

    def close(self) -> int:
        """How many events the file holds: each one starts with its kind."""
        written = os.pread(self._file, os.fstat(self._file).st_size, 0)
        os.close(self._file)
        return written.count(b"\xa4kind")


class SyncedWrite(RawWrite):
    """``os.write``, and a thread that syncs ten times a second: the promise trackway makes about a power cut."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sync, daemon=True)
        self._thread.start()

    def _sync(self) -> None:
        while not self._stop.wait(0.1):
            os.fdatasync(self._file)

    def close(self) -> int:
        """Stop syncing, then count."""
        self._stop.set()
        self._thread.join()
        return super().close()


class WriteAndSync(RawWrite):
    """``os.write``, then ``fdatasync``, for each event."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls = dict.fromkeys(KINDS, self._write)

    def _write(self, body: bytes) -> None:
        os.write(self._file, body)
        os.fdatasync(self._file)


class Sqlite:
    """One transaction per event in WAL mode."""

    def __init__(self, folder: Path, synchronous: str = "NORMAL") -> None:
        self._connection = sqlite3.connect(
            folder / "events.db", isolation_level=None, timeout=60, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={synchronous}")
        self._connection.execute("CREATE TABLE IF NOT EXISTS ev (id INTEGER PRIMARY KEY, who INT, body BLOB)")
        self._who = os.getpid()
        self.calls = dict.fromkeys(KINDS, self._insert)
        self.items = _bodies()

    def _insert(self, body: bytes) -> None:
        self._connection.execute("INSERT INTO ev (who, body) VALUES (?, ?)", (self._who, body))

    def close(self) -> int:
        """How many of this process's events the table holds."""
        (count,) = self._connection.execute("SELECT count(*) FROM ev WHERE who = ?", (self._who,)).fetchone()
        self._connection.close()
        return count


class SqliteQueue(Sqlite):
    """A queue, and a thread that writes what has gathered. A kill takes what is in the queue: no peer in safety."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()
        self.calls = dict.fromkeys(KINDS, self._queue.put)

    def _drain(self) -> None:
        while (body := self._queue.get()) is not None:
            self._connection.execute("BEGIN")
            self._insert(body)
            for _ in range(self._queue.qsize() - 1):
                self._insert(self._queue.get_nowait())
            self._connection.execute("COMMIT")

    def close(self) -> int:
        """How many were written, once the queue is empty."""
        self._queue.put(None)
        self._thread.join()
        return super().close()


SINKS: dict[str, Callable[[Path], Any]] = {
    "trackway": Trackway,
    "trackway, append": partial(Trackway, journal="append"),
    "os.write": RawWrite,
    "os.write, synced": SyncedWrite,
    "SQLite txn": Sqlite,
    "SQLite queue": SqliteQueue,
    "ack disk": partial(Trackway, ack="disk"),
    "ack disk, append": partial(Trackway, journal="append", ack="disk"),
    "ack store": partial(Trackway, ack="store"),
    "write + fdatasync": WriteAndSync,
    "SQLite FULL": partial(Sqlite, synchronous="FULL"),
}
