"""SQLite as most would use it: a row of JSON per call, each in a transaction of its own (WAL, synchronous=NORMAL)."""

import json
import sqlite3
from pathlib import Path

from benchmarks.peers.b_jsonl import note
from benchmarks.workload import genai_input, genai_output

INSERT = "INSERT INTO ev (ep, i, k, body) VALUES (?, ?, ?, ?)"


def connect(folder, synchronous="NORMAL"):
    """A connection in which every statement commits."""
    connection = sqlite3.connect(Path(folder, "log.db"), isolation_level=None, timeout=60, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS ev (id INTEGER PRIMARY KEY, ep INT, i INT, k TEXT, body TEXT)")
    connection.execute("CREATE INDEX IF NOT EXISTS ev_ep ON ev (ep, i)")
    return connection


def rows(step, messages):
    """The two rows of a step."""
    asked = json.dumps({"in": genai_input(messages), "out": genai_output(step)})
    done = json.dumps({"args": step["args"], "result": step["result"]})
    return (step["ep"], step["i"], "llm", asked), (step["ep"], step["i"], "tool", done)


class Recorder:
    """Inserts rows."""

    synchronous = "NORMAL"

    def __init__(self, folder):
        self._connection = connect(folder, self.synchronous)

    def begin(self, number):
        """Nothing to do."""

    def end(self, number):
        """Nothing to do."""

    def step(self, step, messages):
        """Two transactions."""
        for row in rows(step, messages):
            self._connection.execute(INSERT, row)

    def close(self):
        """Let go of the file."""
        self._connection.close()


def read(folder):
    """Every step."""
    found = {}
    for episode, i, k, body in connect(folder).execute("SELECT ep, i, k, body FROM ev"):
        note(found, {"ep": episode, "i": i, "k": k, **json.loads(body)})
    return found
