"""Imports that go on beside others, are killed and taken up again, or watch what is written."""

import signal
import subprocess
import sys

import pytest

import trackway
from tests.ingest.homes import everything, imported, states, three_sessions
from tests.ingest.sessions import pi_lines
from trackway.ingest.watching import Clock, watch
from trackway.testing.contract import bare


def test_side_by_side(tmp_path, home):
    """Many megabytes are read by several processes, and stored as by one."""
    for i in range(12):
        said = f"{i} " + "x" * 9000
        (tmp_path / f"{i:02d}.jsonl").write_bytes(b"".join(pi_lines(60, i, said)))
    found = imported(tmp_path, workers=2)
    many = everything()

    assert [each.state for each in found] == ["new"] * 12
    assert list((home / "imports").glob(".*.part")) == []
    with trackway.open_store() as live:
        live.drop(list(many))
    assert states(tmp_path, workers=1, again=True) == ["new"] * 12
    assert {each: bare(events) for each, events in everything().items()} == {k: bare(v) for k, v in many.items()}


IMPORT = [sys.executable, "-m", "trackway", "import"]


def test_two_at_once(tmp_path):
    """Whoever comes second finds it there."""
    folder = three_sessions(tmp_path)
    both = [subprocess.Popen([*IMPORT, folder, "--json"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    two = everything()
    with trackway.open_store() as live:
        live.drop(list(two))
    imported(folder, again=True)

    assert {each: bare(events) for each, events in everything().items()} == {k: bare(v) for k, v in two.items()}


@pytest.mark.crash
def test_killed_and_gone_on(tmp_path, home):
    """Killed anywhere, each file is in whole or not at all, and the same command does the rest."""
    for i in range(30):
        (tmp_path / f"{i:02d}.jsonl").write_bytes(b"".join(pi_lines(40, i, "x" * 3000)))
    for patience in (0.15, 0.3, 0.45, 0.6, 0.8):
        process = subprocess.Popen([*IMPORT, tmp_path, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        with trackway.open_store() as live:
            found = list(live.episodes()) if home.exists() else []
            assert all((each.n_turns, each.n_steps) == (40, 40) for each in found)
            assert all(len(live.originals(each.id)) == 1 for each in found)
    imported(tmp_path)

    assert len(everything()) == 30
    assert list((home / "imports").glob(".*.part")) == []


def test_watching(tmp_path):
    """What is there is imported, then what is added to it, and what comes new."""
    file, lines = tmp_path / "a.jsonl", pi_lines(4)
    file.write_bytes(b"".join(lines[:5]))
    times = iter(range(10_000))
    waits = []

    def wait(_long):
        waits.append(1)
        if len(waits) == 1:
            file.write_bytes(b"".join(lines))
        if len(waits) == 200:
            (tmp_path / "b.jsonl").write_bytes(b"".join(pi_lines(2, 7)))
        return len(waits) < 300

    with trackway.open_store() as live:
        found = [each.state for each in watch(live, [tmp_path], Clock(lambda: next(times), wait))]

    assert found == ["new", "grown", "new"]
    assert len(everything()) == 2
