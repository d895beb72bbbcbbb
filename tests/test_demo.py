"""`trackway demo`: the agent really works, everything is recorded, and nothing is left behind but the episode."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.cli._demo_agent import Seen, decide
from trackway.recording.settings import open_store


def demo(*args):
    """What `trackway demo` answers."""
    return CliRunner().invoke(main, ["demo", *args])


@pytest.fixture
def workspaces(tmp_path, monkeypatch):
    """The folder in which the demo makes its workspace."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_demo_repairs_and_shows(home, workspaces):
    """The demo ends in success, prints the episode with its short id, and says what to try next on stderr."""
    answer = demo()
    assert answer.exit_code == 0, answer.output
    [summary] = open_store(home=home).episodes()
    assert (summary.outcome, summary.score, summary.state, summary.lost) == ("success", 1.0, "ended", 0)
    assert summary.id[-8:] in answer.stdout
    assert f"trackway show {summary.id[-8:]}" in answer.stderr
    assert answer.stdout == CliRunner().invoke(main, ["show", "last"]).stdout
    assert list(workspaces.iterdir()) == []


def test_demo_is_real(home, workspaces):
    """The test really fails, then really passes, because a file really changed; its contents are kept."""
    found = json.loads(demo("--json").stdout)
    events = found["events"]
    tests = [(each.get("passed", 0), each.get("failed", 0)) for each in events if each["kind"] == "test_run"]
    assert tests == [(2, 1), (3, 0)]
    exits = [each["exit_code"] for each in events if each["kind"] == "tool_result" and "exit_code" in each]
    assert exits == [1, 0]
    [change] = [each for each in events if each["kind"] == "file_change"]
    live = open_store(home=home)
    before, after = (b"".join(live.blob(change[side]["hash"])) for side in ("before", "after"))
    assert b"total // size" in before
    assert b"-(-total // size)" in after
    [cause] = [each for each in events if each.get("call_id") == change["cause"] and "name" in each]
    assert cause["name"] == "write_file"
    kinds = {each["kind"] for each in events}
    assert {"context", "user", "model_call", "model_result", "assistant_thinking", "assistant_text"} <= kinds
    assert {"reward", "note", "episode_end"} <= kinds


def test_decisions_look_at_what_came_back():
    """The script follows the observations: it gives up on a failure it does not know, and claims nothing unproven."""
    fine = Seen("bash", {"cmd": "t"}, "OK", 0)
    strange = Seen("bash", {"cmd": "t"}, "Segmentation fault", 139)
    wrote = Seen("write_file", {"path": "a.py"}, "wrote")
    other = Seen("read_file", {"path": "a.py"}, "nothing to divide")
    assert not decide([strange]).tool
    assert not decide([strange]).repaired
    assert not decide([other]).tool
    assert decide([wrote]).tool == "bash"
    assert decide([wrote, fine]).repaired
    assert not decide([fine]).repaired
    assert not decide([wrote, strange]).repaired


def test_demo_twice(home, workspaces):
    """Each demo is an episode of its own."""
    demo()
    demo()
    assert len(list(open_store(home=home).episodes())) == 2


def test_demo_where_nothing_can_be_written(tmp_path):
    """Without a place to write, the demo says so with what to set, and shows nothing."""
    (tmp_path / "file").write_text("")
    answer = demo("--home", str(tmp_path / "file" / "home"))
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "TRACKWAY_HOME" in answer.stderr


def test_demo_while_disabled(monkeypatch):
    """TRACKWAY_DISABLED and a demo contradict each other, and it says so."""
    monkeypatch.setenv("TRACKWAY_DISABLED", "1")
    answer = demo()
    assert answer.exit_code == 1
    assert "TRACKWAY_DISABLED" in answer.stderr


def test_demo_into_another_store(home, tmp_path, workspaces):
    """The store named is the store used, be it only in memory."""
    assert demo("--store", str(tmp_path / "x" / "s.db")).exit_code == 0
    assert (tmp_path / "x" / "s.db").exists()
    assert "repair the failing test" in demo("--store", "memory:").stdout


def test_home_is_private(home, workspaces):
    """The home the demo makes is its owner's alone."""
    demo()
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "store.db").stat().st_mode & 0o777 == 0o600


def test_demo_from_a_shell(home, tmp_path):
    """With an empty HOME and nothing set, the demo records into ~/.trackway and exits 0."""
    environ = {name: each for name, each in os.environ.items() if not name.startswith("TRACKWAY_")}
    done = subprocess.run(
        [sys.executable, "-m", "trackway", "demo"],
        env=environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(tmp_path, ".trackway", "store.db").exists()
    assert "end       success" in done.stdout
