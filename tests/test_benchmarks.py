"""The benchmarks run, end to end and briefly. What they measure is not judged: a test that times will lie."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """One short benchmark, as a person starts it; all of this file share compiled modules."""
    compiled = str(tmp_path_factory.mktemp("compiled"))

    def run(*arguments):
        command = [sys.executable, "-m", "benchmarks", "--quick", *arguments]
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("area", "beside"),
    [
        ("record", "os.write"),
        ("sustained", "raw JSONL"),
        ("kill", "SQLite txn"),
        ("read", "lines of JSON"),
        ("search", "FTS5"),
        ("import", "json.loads"),
        ("start", "import sqlite3"),
        ("growth", "of a fresh one"),
    ],
)
def test_an_area_prints_its_figures_beside_others(bench, area, beside, tmp_path):
    """Each area runs, names what it is compared with, gives ratios, judges its targets, and says the same in JSON."""
    report = tmp_path / "report.json"
    done = bench(area, "--json", report)

    assert done.returncode == 0, done.stderr
    assert beside in done.stdout
    assert "targets met" in done.stdout
    tables = json.loads(report.read_text())["tables"]
    rows = [row for table in tables for row in table["rows"]]
    assert rows
    assert any(row["target"] for row in rows)
    ratios = [other["ratio"] for row in rows for other in row["beside"] if other["ratio"] is not None]
    assert area in ("kill", "growth") or (ratios and all(ratio > 0 for ratio in ratios))


def test_an_unknown_area_is_misuse(bench):
    """Exit 2, and the names there are."""
    done = bench("speed")

    assert done.returncode == 2
    assert "record" in done.stderr


def test_what_is_printed_is_kept_in_a_page(bench, tmp_path):
    """`--doc` puts it between two comments of the page, as it was printed; areas by themselves have their own."""
    page = tmp_path / "page.md"
    part = "python -m benchmarks kill"
    page.write_text(f"<!-- begin: {part} (generated) -->\n<!-- end: {part} -->", encoding="utf-8")
    done = bench("kill", "--doc", page)

    assert done.returncode == 0, done.stderr
    assert f"```text\n{done.stdout.strip()}\n```" in page.read_text(encoding="utf-8")
