"""`trackway import` and `trackway export raw`, as people and programs use them."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.ingest.sessions import pi_lines, session_id
from trackway.cli import main


def command(*args, **more):
    """Call the command line."""
    return CliRunner().invoke(main, [str(each) for each in args], **more)


@pytest.fixture
def file(tmp_path):
    """A session."""
    made = tmp_path / "a.jsonl"
    made.write_bytes(b"".join(pi_lines(3)))
    return made


@pytest.fixture
def history():
    """What a user has who works with two clients."""
    home = Path(os.environ["HOME"])
    for i, folder in enumerate((".pi/agent/sessions/--work--", ".pi/agent/sessions/--play--")):
        (home / folder).mkdir(parents=True)
        (home / folder / f"{i}.jsonl").write_bytes(b"".join(pi_lines(3, i)))
    return home


def test_a_file(file):
    """A table says what came in, and what comes next is said beside it."""
    answer = command("import", file)

    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[0].split() == [
        "FORMAT", "FILES", "SIZE", "EPISODES", "NEW", "EVENTS", "ADDED", "WARNINGS",
    ]  # fmt: skip
    assert "trackway search" in answer.stderr
    assert "look at page 0" in command("ls").stdout


def test_the_report(file, tmp_path):
    """JSON has every file with its state, its episodes, its counts and its warnings."""
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(file.read_bytes() + b'{"cut')
    (tmp_path / "other.txt").write_text("nothing")

    answer = command("import", tmp_path, "--json")

    report = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert report["states"] == {"new": 1, "present": 1, "unknown": 1}
    assert [each["state"] for each in report["files"]] == ["new", "present"]
    assert report["files"][0]["episodes"] == [session_id()]
    assert report["files"][1]["warnings"] == [
        {"line": 14, "offset": len(file.read_bytes()), "reason": "cut off in the middle of a value"}
    ]
    assert report["sources"]["pi"]["new_episodes"] == 1


def test_refused(tmp_path, file):
    """What cannot be imported is said with what was looked for; the rest is imported; the exit code is 1."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1}')

    answer = command("import", bad, file, tmp_path / "gone")

    assert answer.exit_code == 1
    assert f"{bad} is nothing known (hint: looked for" in answer.stderr
    assert "gone: No such file" in answer.stderr
    assert "look at page 0" in command("ls").stdout


def test_detect(file, tmp_path):
    """What a file is, how surely and why; nothing is imported; what is nothing makes the exit code 1."""
    (tmp_path / "bad.json").write_text("{}")
    answer = command("import", "--detect", file)
    told = json.loads(command("import", "--detect", "--json", file).stdout)

    assert answer.exit_code == 0
    assert answer.stdout.startswith("pi ")
    assert "% sure: " in answer.stdout
    assert told[0]["found"][0]["source"] == "pi"
    assert command("import", "--detect", tmp_path / "bad.json").exit_code == 1
    assert "nothing is recorded" in command("ls").stderr


def test_as_a_format(file):
    """A format that is named is believed; one that there is none of is refused with those there are."""
    assert command("import", file, "--as", "pi").exit_code == 0
    answer = command("import", file, "--as", "word")
    assert answer.exit_code == 1
    assert "one of claude_code" in answer.stderr


def test_discovery_asks(history):
    """Without a path it says what it found; nothing is read unless somebody agrees."""
    answer = command("import")

    assert answer.exit_code == 1
    assert "FOUND" in answer.stdout
    assert "--yes" in answer.stderr
    assert "nothing is recorded" in command("ls").stderr

    agreed = command("import", "--yes")
    assert agreed.exit_code == 0
    assert len(json.loads(command("ls", "--json").stdout)) == 2


def answered(*args, reply):
    """What a person on a terminal sees, who answers like that."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "trackway", *args])
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
            if b"[Y/n]" in seen and reply:
                os.write(terminal, reply)
                reply = b""
    except OSError:  # the other end is gone
        pass
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(("reply", "count"), [(b"\n", 2), (b"n\n", 0)])
def test_a_person_is_asked(history, reply, count):
    """On a terminal the answer decides; yes is the default."""
    seen, code = answered("import", reply=reply)

    assert "Import them?" in seen
    assert code == (0 if count else 1)
    assert len(json.loads(command("ls", "--json").stdout)) == count


def test_nothing_to_discover():
    """Who has no history is told to name a path."""
    answer = command("import")
    assert answer.exit_code == 1
    assert "trackway import PATH" in answer.stderr


def test_watch(tmp_path, file):
    """It goes on until Ctrl-C: what is added to a file comes in, and is said at once."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trackway", "import", tmp_path, "--watch", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        first = json.loads(process.stdout.readline())
        file.write_bytes(b"".join(pi_lines(5)))
        second = json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
    assert (first["state"], second["state"]) == ("new", "grown")
    assert process.wait(20) == 130
    process.stdout.close()


def test_raw(file, tmp_path):
    """The file comes back on stdout, or under a name; a folder keeps the name it had."""
    command("import", file)
    folder = tmp_path / "out"
    folder.mkdir()

    assert command("export", "raw", "last").stdout_bytes == file.read_bytes()
    assert command("export", "raw", session_id(), "-o", tmp_path / "b").exit_code == 0
    assert command("export", "raw", "last", "-o", folder).exit_code == 0
    assert (tmp_path / "b").read_bytes() == (folder / "a.jsonl").read_bytes() == file.read_bytes()


def test_raw_of_several(file, tmp_path):
    """An episode of several files: they are listed, each can be had, or all."""
    longer = tmp_path / "b.jsonl"
    longer.write_bytes(b"".join(pi_lines(5)))
    command("import", file, longer)

    first = command("export", "raw", "last")
    listed = json.loads(command("export", "raw", "last", "--list", "--json").stdout)
    everything = command("export", "raw", "last", "--all", "-o", tmp_path / "all")

    assert first.stdout_bytes == longer.read_bytes()
    assert "one of 2 files" in first.stderr
    assert [each["name"] for each in listed] == [str(longer), str(file)]
    assert command("export", "raw", "last", "--file", 2).stdout_bytes == file.read_bytes()
    assert command("export", "raw", "last", "--file", 3).exit_code == 2
    assert everything.exit_code == 0
    assert sorted(each.name for each in (tmp_path / "all").iterdir()) == ["a.jsonl", "b.jsonl"]
    assert command("export", "raw", "last", "--all").exit_code == 2


def test_ctrl_c(tmp_path):
    """Interrupted, it exits 130, leaves nothing half done, and no process behind."""
    for i in range(40):
        (tmp_path / f"{i:02d}.jsonl").write_bytes(b"".join(pi_lines(60, i, "x" * 5000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "trackway", "import", tmp_path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    home = Path(os.environ["TRACKWAY_HOME"])
    until = time.monotonic() + 20
    while not (home / "store.db").exists() and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()

    assert process.returncode == 130
    assert b"Traceback" not in said
    assert list((home / "imports").glob(".*.part")) == []
    assert all(each["n_turns"] == 60 for each in json.loads(command("ls", "--json").stdout))
