"""`trackway doctor`: what it looks at, what it calls a problem, and what it repairs."""

import json
import sqlite3
import subprocess
import sys

import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.recording.recorder import Recorder
from trackway.schema.version import STORE

DIES = """
import os, signal, sys
from trackway.recording.recorder import Recorder
episode = Recorder(store=sys.argv[1] if len(sys.argv) > 1 else None).start("dies")
episode.user("go")
os.kill(os.getpid(), signal.SIGKILL)
"""


def doctor(*args):
    """What `trackway doctor` answers."""
    return CliRunner().invoke(main, ["doctor", *args])


def findings(*args, code):
    """What it finds, by level, in JSON; it must exit with the code."""
    answer = doctor("--json", *args)
    assert answer.exit_code == code, answer.output
    found = json.loads(answer.stdout)
    assert found["ok"] is (code == 0)
    levels = {"ok": [], "note": [], "problem": []}
    for each in found["findings"]:
        levels[each["level"]].append(f"{each['what']} | {each['where']} | {each['do']}")
    assert found["problems"] == len(levels["problem"])
    return levels


@pytest.fixture
def sound(home):
    """A home with one sealed episode."""
    with Recorder(home) as recorder:
        recorder.start("t").end("success")
    return home


def test_nothing_yet(home):
    """Where nothing is recorded nothing is wrong, and nothing is made."""
    found = findings(code=0)
    assert any("no home folder yet" in each for each in found["ok"])
    assert not home.exists()


def test_home_that_cannot_be_made(home, monkeypatch):
    """A home that is missing where nobody may make it is a problem, before anything was lost to it."""
    import os

    monkeypatch.setattr(os, "access", lambda *_: False)
    assert any("cannot be made" in each and "TRACKWAY_HOME" in each for each in findings(code=1)["problem"])


def test_all_is_well(sound):
    """A sound home exits 0 with versions, format and counts."""
    found = findings(code=0)
    assert found["note"] == found["problem"] == []
    said = "\n".join(found["ok"])
    for wanted in ("Python 3", "msgspec", "SQLite", f"format {STORE}, 1 episode, 2 events", "no journals"):
        assert wanted in said
    answer = doctor()
    assert answer.exit_code == 0
    assert "✓ ok" in answer.stdout


def test_living_writer(sound):
    """A process that records is named with its pid, and is no problem."""
    import os

    with Recorder(sound) as recorder:
        episode = recorder.start("goes on")
        found = findings(code=0)
        assert any(f"process {os.getpid()} on" in each and "is recording" in each for each in found["ok"])
        episode.end()


@pytest.mark.crash
def test_dead_writer_is_adopted_when_asked(sound):
    """A killed process's journal is a note with its way out; --fix seals it and the note is gone."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    found = findings(code=0)
    assert any("ended and left" in each and "doctor --fix" in each for each in found["note"])
    assert any("without an end" in each and "ls --state crashed" in each for each in found["note"])
    fixed = findings("--fix", code=0)
    assert any("sealed 2 events from 1 journal" in each for each in fixed["ok"])
    assert not any("ended and left" in each for each in fixed["note"])
    assert not list((sound / "journals").iterdir())


@pytest.mark.crash
def test_dead_writer_of_another_store(sound, tmp_path):
    """A journal for another store is named with the command that seals it there."""
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "other.db")], check=False)
    found = findings("--fix", code=0)
    [note] = [each for each in found["note"] if "left what it recorded for" in each]
    store = note.rpartition("--store ")[2]
    assert any("sealed" in each for each in findings("--fix", "--store", store, code=0)["ok"])


def test_home_that_others_may_read(sound):
    """A home open to others is a problem, with the command that closes it."""
    sound.chmod(0o755)
    [problem] = findings(code=1)["problem"]
    assert f"chmod 700 {sound}" in problem
    sound.chmod(0o700)
    (sound / "store.db").chmod(0o644)
    [problem] = findings(code=1)["problem"]
    assert "chmod 600" in problem


def test_home_that_is_a_file(tmp_path):
    """A home that is no folder is a problem."""
    (tmp_path / "file").write_text("")
    assert any("no folder" in each for each in findings("--home", str(tmp_path / "file"), code=1)["problem"])
    assert findings("--home", str(tmp_path / "file" / "below"), code=1)["problem"]


def test_store_that_is_something_else(sound):
    """A file that is no store is a problem, with its hint, and no traceback."""
    (sound / "store.db").write_bytes(b"not a database " * 100)
    assert any("name another" in each for each in findings(code=1)["problem"])


def test_store_of_a_newer_version(sound):
    """A newer store is a problem, with the command that helps."""
    with sqlite3.connect(sound / "store.db") as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    assert any("pip install -U trackway" in each for each in findings(code=1)["problem"])


def test_damaged_store(home):
    """Pages that were overwritten are found by SQLite's own check and reported, not raised."""
    with Recorder(home) as recorder:
        for number in range(300):
            episode = recorder.start(f"t{number}")
            episode.user("x" * 1000)
            episode.end()
    store = home / "store.db"
    body = bytearray(store.read_bytes())
    body[8192 : 8192 + 40_000] = b"\xa5" * 40_000
    store.write_bytes(body)
    assert findings(code=1)["problem"]


def test_quarantine_and_losses(sound):
    """Records put aside and events that were lost are problems, counted by reason, shown harmless."""
    folder = sound / "quarantine"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text(json.dumps({"reason": "odd \x1b[31m bytes"}))
    (folder / "broken.json").write_text("{")
    lost = [{"at": 1, "episode": "x", "lost": 2, "reason": "disk full"}] * 2
    (sound / "losses.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lost) + '{"torn')
    problems = "\n".join(findings(code=1)["problem"])
    assert "3 records could not be sealed: odd" in problems
    assert "1 record could not be sealed: no reason" in problems
    assert "4 events could not be recorded: disk full" in problems
    answer = doctor()
    assert answer.exit_code == 1
    assert "\x1b" not in answer.stdout


def test_disabled_is_noted(sound, monkeypatch):
    """TRACKWAY_DISABLED is worth a note: people forget it."""
    monkeypatch.setenv("TRACKWAY_DISABLED", "1")
    assert any("TRACKWAY_DISABLED" in each for each in findings(code=0)["note"])


def test_wrong_journal_setting(sound, monkeypatch):
    """A journal kind that does not exist is a problem."""
    monkeypatch.setenv("TRACKWAY_JOURNAL", "papyrus")
    assert any("papyrus" in each for each in findings(code=1)["problem"])


def test_other_kinds_of_store(home):
    """A store that is no file is asked, not opened."""
    assert any("memory" in each for each in findings("--store", "memory:", code=0)["ok"])
