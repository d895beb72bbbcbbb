"""The least there is: one line of JSON per call, one ``os.write`` each. Survives a kill, answers no question."""

import json
import os
from pathlib import Path

from benchmarks.workload import genai_input, genai_output


class Recorder:
    """Appends to one file."""

    def __init__(self, folder):
        self._file = os.open(Path(folder, "log.jsonl"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def begin(self, number):
        """Nothing to do."""

    def end(self, number):
        """Nothing to do."""

    def step(self, step, messages):
        """Two lines."""
        place = {"ep": step["ep"], "i": step["i"]}
        self._write({"k": "llm", **place, "in": genai_input(messages), "out": genai_output(step)})
        self._write({"k": "tool", **place, "args": step["args"], "result": step["result"]})

    def _write(self, line):
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def close(self):
        """Let go of the file."""
        os.close(self._file)


def read(folder):
    """Every step; a torn last line is left out."""
    found = {}
    with Path(folder, "log.jsonl").open() as lines:
        for line in lines:
            if line.endswith("\n"):
                note(found, json.loads(line))
    return found


def note(found, line):
    """Put what a line says where it belongs."""
    step = found.setdefault((line["ep"], line["i"]), {})
    if line["k"] == "llm":
        step["out"] = line["out"][0]["parts"][1]["content"]
    else:
        step["result"] = line["result"]
