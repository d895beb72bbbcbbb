"""`trackway ls`: filters, order, limits, the table and its JSON."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.cli._text import width
from trackway.recording.recorder import Recorder

DAY = 86_400 * 10**9
DIES = """
import os, signal
from trackway.recording.recorder import Recorder
episode = Recorder().start("dies", agent="victim")
episode.user("go")
episode.tool_call("bash", {"cmd": "kill -9 $$"})
os.kill(os.getpid(), signal.SIGKILL)
"""


def ls(*args):
    """What `trackway ls` answers."""
    return CliRunner().invoke(main, ["ls", *args])


def tasks(*args):
    """The tasks `ls --json` lists, in its order."""
    answer = ls("--json", *args)
    assert answer.exit_code == 0, answer.stderr
    return [each["task"] for each in json.loads(answer.stdout)]


@pytest.fixture
def now():
    """A clock of this test: each look is a day earlier than the episode recorded before it."""
    import time

    return time.time_ns()


@pytest.fixture
def three(home, now):
    """Three episodes: today, three days ago, ten days ago."""
    at = [now]
    with Recorder(home, clock=lambda: at[0]) as recorder:
        with recorder.start("Fix the parser", agent="alpha", model="m1", variant="v1", tags=["nightly"]) as episode:
            call = episode.tool_call("bash", {"cmd": "ls"})
            episode.tool_result(call, "no", is_error=True)
            episode.end("failure", score=0.1)
        at[0] = now - 3 * DAY
        with recorder.start("write docs", agent="beta", model="m2") as episode:
            episode.end("success", score=0.9)
        at[0] = now - 10 * DAY
        with recorder.start("fix the lexer", agent="alpha", model="m2") as episode:
            episode.user("go")
    return home


def test_newest_first(three):
    """Without anything said, the newest episode comes first."""
    assert tasks() == ["Fix the parser", "write docs", "fix the lexer"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--task", "FIX"], ["Fix the parser", "fix the lexer"]),
        (["--agent", "beta"], ["write docs"]),
        (["--model", "m2"], ["write docs", "fix the lexer"]),
        (["--variant", "v1"], ["Fix the parser"]),
        (["--outcome", "success"], ["write docs"]),
        (["--outcome", "none"], ["fix the lexer"]),
        (["--tool", "bash"], ["Fix the parser"]),
        (["--tag", "nightly"], ["Fix the parser"]),
        (["--state", "ended"], ["Fix the parser", "write docs", "fix the lexer"]),
        (["--state", "running"], []),
        (["--since", "12h"], ["Fix the parser"]),
        (["--since", "1w"], ["Fix the parser", "write docs"]),
        (["--until", "1d"], ["write docs", "fix the lexer"]),
        (["--since", "5d", "--until", "30m", "--outcome", "success"], ["write docs"]),
        (["--sort", "task"], ["Fix the parser", "fix the lexer", "write docs"]),
        (["--sort", "score"], ["write docs", "Fix the parser", "fix the lexer"]),
        (["--sort", "n_events", "--limit", "1"], ["Fix the parser"]),
        (["--reverse"], ["fix the lexer", "write docs", "Fix the parser"]),
        (["-n", "2"], ["Fix the parser", "write docs"]),
        (["--limit", "0"], ["Fix the parser", "write docs", "fix the lexer"]),
        (["--state", "ended", "-n", "1", "--reverse"], ["fix the lexer"]),
    ],
)
def test_filters_order_and_limit(three, filters, found):
    """Every filter must hold; what is left is sorted, then cut."""
    assert tasks(*filters) == found


def test_since_takes_dates_and_times(three, now):
    """A date, a time and an offset are read; a bare one is local, or UTC with --utc."""
    day_before = datetime.fromtimestamp((now - DAY) / 1e9, tz=UTC)
    for written in (f"{day_before:%Y-%m-%d}", f"{day_before:%Y-%m-%dT%H:%M}", f"{day_before:%Y-%m-%dT%H:%M:%S}Z"):
        assert tasks("--since", written, "--utc") == ["Fix the parser"]


@pytest.mark.parametrize("wrong", ["yesterdayish", "3 parsecs", "2025-13-45", ""])
def test_a_time_that_is_none_is_misuse(wrong):
    """What is no time exits 2 and shows how one is written."""
    answer = ls("--since", wrong)
    assert answer.exit_code == 2
    assert "2025-11-15" in answer.stderr


def test_json_has_what_is_promised(three):
    """Each object has the fields a program may rely on; instants are ISO 8601 UTC."""
    found = json.loads(ls("--json", "--agent", "beta").stdout)[0]
    wanted = "id task agent model outcome state score n_events n_steps started_at ended_at"
    assert set(wanted.split()) <= set(found)
    assert (found["outcome"], found["state"], found["score"], found["n_steps"]) == ("success", "ended", 0.9, 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", found["started_at"])


def test_table_says_it_in_a_line(three):
    """The table has a line per episode with its short id, and the state in a word."""
    lines = ls().stdout.splitlines()
    assert lines[0].split() == ["ID", "TASK", "AGENT/MODEL", "STATE", "STEPS", "ERR", "TIME", "STARTED"]
    first = json.loads(ls("--json", "-n", "1").stdout)[0]
    assert lines[1].split()[0] == first["id"][-8:]
    assert "failure 0.1" in lines[1]
    assert lines[2].endswith("3d ago")
    assert "ended" in lines[3]


def test_utc_shows_instants(three):
    """With --utc the table shows when, not how long ago."""
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", ls("--utc").stdout.splitlines()[1])


def test_wide_characters_line_up(home):
    """Columns stand under their titles whatever the width of the characters before them."""
    with Recorder(home) as recorder:
        for task in ("日本語のタスク", "emoji 🎉🎉 party", "plain", "combining e\u0301e\u0301"):
            recorder.start(task, agent="a").end("success")
    lines = ls().stdout.splitlines()
    assert len({width(line[: line.index("success")]) for line in lines[1:]}) == 1


def test_hostile_task_is_shown_harmless(home):
    """Line breaks and escape sequences in a task neither break the table nor reach the terminal."""
    with Recorder(home) as recorder:
        recorder.start("a\nb\x1b[31m \u202e\ud800").end()
    answer = ls()
    assert answer.exit_code == 0
    assert len(answer.stdout.splitlines()) == 2
    assert "a b␛[31m \\u202e\\ud800" in answer.stdout
    assert json.loads(ls("--json").stdout)[0]["task"] == "a\nb\x1b[31m \u202e\ud800"
    assert "\u202e" not in ls("--json").stdout


def test_narrow_screen(home, monkeypatch):
    """On a narrow screen the task gives way, not the line."""
    monkeypatch.setenv("COLUMNS", "80")
    with Recorder(home) as recorder:
        recorder.start("x" * 500, agent="y" * 100).end("success")
    assert all(width(line) <= 80 for line in ls().stdout.splitlines())


def test_the_table_is_short_and_says_so(home):
    """Twenty lines, then how many more there are, on stderr; --limit 0 shows all, and JSON is all anyway."""
    with Recorder(home) as recorder:
        for number in range(25):
            recorder.start(f"t{number}").end()
    answer = ls()
    assert len(answer.stdout.splitlines()) == 21
    assert answer.stderr == "trackway: … 5 more (--limit 0 shows all)\n"
    assert len(ls("--limit", "0").stdout.splitlines()) == 26
    assert ls("--limit", "0").stderr == ""
    assert len(tasks()) == 25


def test_nothing_yet(home):
    """An empty place is not an error: a friendly line on stderr, nothing on stdout, nothing made."""
    answer = ls()
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "trackway demo" in answer.stderr
    assert ls("--json").stdout == "[]\n"
    assert not home.exists()


def test_nothing_matches(three):
    """Filters that leave nothing say so in other words than an empty store."""
    answer = ls("--task", "nonsense")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "no episode matches" in answer.stderr


def test_running_and_crashed_are_seen_at_once(home):
    """An episode being recorded is running before anything is sealed; one whose process was killed is crashed."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    with Recorder(home) as recorder:
        episode = recorder.start("goes on")
        found = {each["task"]: each["state"] for each in json.loads(ls("--json").stdout)}
        assert found == {"goes on": "running", "dies": "crashed"}
        assert tasks("--state", "crashed") == ["dies"]
        assert tasks("--state", "running") == ["goes on"]
        episode.end()
    assert tasks("--state", "running") == []
    assert tasks("--state", "crashed") == ["dies"]


def test_read_only_home(three):
    """A home nobody may write to can be listed."""
    for path in [*three.rglob("*"), three]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert len(tasks()) == 3
    finally:
        for path in [three, *three.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
