"""verify, prune, backup and du as people use them, also beside a process that records all the time."""

import json
import os
import pty
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.store.home import Home
from trackway.store.sqlite import SqliteStore
from trackway.store.verify import verify

LIVE = """
import sys, threading
from pathlib import Path
from trackway.recording.recorder import Recorder
stop, recorder = Path(sys.argv[1]), Recorder()
running = recorder.start("goes on")
for i in range(40):
    with recorder.start(f"old {i}", tags=["keep"] if i % 10 == 0 else ["drop"]) as episode:
        mark = "KEPT" if i % 10 == 0 else "MARKER"
        episode.tool_result(episode.tool_call("bash", {"cmd": f"{mark} {i}"}), f"{mark} {i} " * 900)
recorder.flush()
print("ready", flush=True)
n = 0
while not stop.exists():
    running.note(f"{n}", "text " * 50)
    with recorder.start(f"new {n}") as episode:
        episode.user("go")
    n += 1
    if n % 10 == 0:
        recorder.flush()
    threading.Event().wait(0.003)  # an agent, not a benchmark
running.end("success")
recorder.close()
print(n, running.lost, flush=True)
"""


def run(*args, code=0):
    """What a command prints; it must exit with the code."""
    answer = CliRunner().invoke(main, args)
    assert answer.exit_code == code, answer.output
    return answer.output


def answer(*args, code=0):
    """What a command answers in JSON."""
    return json.loads(CliRunner().invoke(main, [*args, "--json"]).stdout) if code == 0 else run(*args, code=code)


def record(home, *tasks, text="text "):
    """An episode of each task, sealed."""
    with Recorder(home) as recorder:
        for task in tasks:
            with recorder.start(task) as episode:
                episode.tool_result(episode.tool_call("bash", {}), text * 2000)
            episode_id = episode.id
    return episode_id


def raw_bytes(home):
    """Every byte of every file in the home."""
    found = []
    for path in sorted(home.rglob("*")):
        try:
            found.append(path.read_bytes() if path.is_file() else b"")
        except FileNotFoundError:  # journals come and go
            continue
    return b"".join(found)


def test_beside_a_recorder_at_work(home, tmp_path):
    """While another process records all the time: nothing of it is lost, what is pruned is gone, copies verify."""
    stop = tmp_path / "stop"
    worker = subprocess.Popen([sys.executable, "-c", LIVE, stop], stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout.readline() == "ready\n"
        assert b"MARKER" in raw_bytes(home)
        before = answer("du")
        planned = answer("prune", "--tag", "drop", "--dry-run")
        assert (planned["episodes"], planned["events"], planned["blobs"]) == (36, 36 * 4, 36)

        assert answer("verify")["ok"]
        first = answer("backup", str(tmp_path / "first.db"))
        pruned = answer("prune", "--tag", "drop", "--yes")
        left = raw_bytes(home)
        second = answer("backup", str(tmp_path / "second.db"))
        after = answer("du")
        assert answer("verify")["ok"]
    finally:
        stop.touch()
        said = worker.communicate()[0].split()

    n = int(said[0])
    assert said[1] == "0"
    assert (pruned["episodes"], pruned["events"], pruned["blobs"]) == (36, 36 * 4, 36)
    assert sorted(pruned["ids"]) == sorted(planned["ids"])
    assert (pruned["whole"], pruned["log_emptied"]) == (True, True)
    assert b"MARKER" not in left
    assert b"KEPT" in left
    assert after["parts"]["blobs"] < before["parts"]["blobs"] / 5
    for copy, episodes in ((first, 40), (second, 4)):
        assert copy["verified"]["ok"]
        assert copy["copy"]["events"] >= copy["source"]["events"]
        tasks = [each.task for each in SqliteStore(Path(copy["path"])).episodes()]
        assert sum(task.startswith("old") for task in tasks) == episodes
    with open_store(home=home) as live:
        tasks = [each.task for each in live.episodes()]
        assert sorted(tasks) == sorted(
            ["goes on", *(f"old {i}" for i in range(0, 40, 10)), *(f"new {i}" for i in range(n))]
        )
        [going_on] = [each for each in live.episodes() if each.task == "goes on"]
        notes = [each.topic for each in live.events(going_on.id) if each.kind == "note"]
        assert notes == [str(i) for i in range(n)]
        assert verify(live.store, live.home).is_sound
    assert not (home / "quarantine").exists()


# --- prune ------------------------------------------------------------------------------------------------------------


def test_prune_says_what_would_go(home):
    """A dry run lists the episodes and what goes with them, and changes nothing."""
    record(home, "one", "two")

    said = run("prune", "--older-than", "0s", "--dry-run")

    assert "one" in said
    assert "would go  2 episodes, 8 events, 1 blob," in said
    assert len(json.loads(run("ls", "--json"))) == 2
    assert not (home / "receipts.jsonl").exists()


def test_prune_tells_what_it_did(home):
    """The answer has counts, the space before and after, and where the receipt is."""
    record(home, "one", "two", text=os.urandom(20).hex())

    said = run("prune", "--keep", "1", "--yes")

    assert said.startswith("pruned    1 episode, 4 events, 0 blobs\nspace     ")
    assert f"in {home / 'receipts.jsonl'}" in said
    assert "traces" not in said
    assert "traces of what is gone" in run("prune", "--keep", "0", "--yes", "--no-scrub")
    assert "nothing to prune" in run("prune", "--keep", "0", "--yes")


def test_prune_does_not_delete_unasked(home):
    """Where nobody can be asked, it refuses and says how."""
    record(home, "one")

    assert "--yes prunes without" in run("prune", "--keep", "0", code=2)
    assert "--yes prunes without" in run("prune", "--keep", "0", "--json", code=2)
    assert len(json.loads(run("ls", "--json"))) == 1


@pytest.mark.parametrize(("typed", "left"), [("n\n", 1), ("y\n", 0)])
def test_prune_asks_on_a_terminal(home, typed, left):
    """What would go is shown, and the answer decides."""
    record(home, "precious")
    ours, theirs = pty.openpty()
    code = "from trackway.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "prune", "--keep", "0"], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while b"for good?" not in said:
        said += os.read(ours, 1000)
    os.write(ours, typed.encode())
    while True:
        try:
            said += os.read(ours, 1000)
        except OSError:  # the other end is closed
            break
    os.close(ours)

    assert process.wait() == (1 if left else 0)
    assert b"precious" in said
    assert len(json.loads(run("ls", "--json"))) == left


def test_prune_applies_the_settings(home, tmp_path, monkeypatch):
    """Without criteria [retention] holds, its tags protect in any case; without either it is misuse."""
    monkeypatch.chdir(tmp_path)
    record(home, "one", "two", "three")
    assert "nothing says what to prune" in run("prune", "--yes", code=2)
    (home / "trackway.toml").write_text('[retention]\nmax_episodes = 1\nkeep_tags = ["gold"]\n')
    run("label", "last", "--tag", "gold")
    record(home, "four")

    assert answer("prune", "--dry-run")["spared"] == {"protected": 1}
    assert answer("prune", "--keep", "0", "--protect", "other", "--dry-run")["episodes"] == 3
    pruned = answer("prune", "--yes")
    assert (pruned["episodes"], pruned["criteria"]) == (2, {"max_episodes": 1, "keep_tags": ["gold"]})
    assert [each["task"] for each in json.loads(run("ls", "--json"))] == ["four", "three"]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--older-than", "soon", "write 30m, 12h, 90d"),
        ("--max-size", "large", "write 500MB"),
        ("--keep", "-1", "not in the range"),
        ("--state", "running", "Invalid value"),
    ],
)
def test_prune_refuses_what_it_cannot_read(home, option, value, said):
    """A value that means nothing is misuse, with what to write instead."""
    assert said in run("prune", option, value, code=2)


# --- verify -----------------------------------------------------------------------------------------------------------


def break_it(home, sql):
    """Change the file behind the store's back."""
    connection = sqlite3.connect(home / "store.db")
    connection.execute(sql)
    connection.commit()
    connection.close()


def test_verify_names_damage(home):
    """What is damaged is named, with what can be read; exit 1; --fix does not touch it."""
    episode = record(home, "one")
    assert "✓ ok      every hash holds: 1 episode, 4 events, 1 blob" in run("verify")
    break_it(home, "UPDATE frames SET body = x'00'")

    for args in (["verify"], ["verify", "--fix"]):
        said = run(*args, code=1)
        assert f"✗ damaged episode {episode}, events 0 to 3: the checksum of the frame does not hold" in said
        assert f"episode {episode}: 0 of 4 events can be read" in said
    found = json.loads(CliRunner().invoke(main, ["verify", "--json"]).stdout)
    assert (found["ok"], found["damage"][0]["first"], found["damage"][0]["last"]) == (False, 0, 3)


def test_verify_makes_derived_rows_again(home):
    """Rows that differ are told, and made again when asked for."""
    record(home, "one")
    break_it(home, "UPDATE episodes SET task = 'other'")

    assert "derived rows of 1 episode differ from their events: columns" in run("verify", code=1)
    assert "✓ fixed" in run("verify", "--fix")
    assert "every hash holds" in run("verify")
    assert [each["task"] for each in json.loads(run("ls", "--json", "--task", "one"))] == ["one"]


def test_verify_where_nothing_is(home):
    """No store is no problem, and none is made."""
    assert "every hash holds: 0 episodes" in run("verify")
    assert not home.exists()


# --- backup -----------------------------------------------------------------------------------------------------------


def test_backup(home, tmp_path):
    """Both counts are told, the copy is verified, and a file that is there stays."""
    record(home, "one", "two")
    target = str(tmp_path / "copy.db")

    said = run("backup", target)

    assert "source    2 episodes, 8 events, 1 blob\ncopy      2 episodes, 8 events, 1 blob\n" in said
    assert "✓ ok      every hash holds: 2 episodes, 8 events, 1 blob" in said
    assert "--force replaces it" in run("backup", target, code=1)
    assert answer("backup", target, "--force")["verified"]["ok"]
    assert [each["task"] for each in json.loads(run("ls", "--json", "--store", target))] == ["two", "one"]
    assert "nothing is recorded" in run("backup", str(tmp_path / "x.db"), "--home", str(tmp_path / "none"), code=1)


def test_backup_says_that_the_key_stays(home, tmp_path):
    """A home with a key: the copy holds none, and that is said."""
    record(home, "one")
    assert "redact.key" not in run("backup", str(tmp_path / "a.db"))
    (home / "redact.key").write_text("k")

    assert f"the key {home / 'redact.key'} is not in it" in run("backup", str(tmp_path / "b.db"))


def test_backup_of_a_damaged_store(home, tmp_path):
    """The copy is made, what is damaged in it is named, and the exit code says so."""
    record(home, "one")
    break_it(home, "UPDATE frames SET body = x'00'")

    assert "✗ damaged episode" in run("backup", str(tmp_path / "a.db"), code=1)
    assert (tmp_path / "a.db").exists()


# --- du ---------------------------------------------------------------------------------------------------------------


def test_du(home):
    """Parts, tasks, episodes and blobs, with bars; the same figures in JSON."""
    record(home, "small")
    record(home, "large", text=os.urandom(20).hex())

    said = run("du")

    assert "rows and pages" in said
    assert "█" in said
    assert "2 episodes, 8 events, 2 steps, 2 blobs" in said
    found = answer("du", "--top", "1")
    assert found["total"] == sum(found["parts"].values())
    assert len(found["tasks"]) == len(found["largest"]) == len(found["largest_blobs"]) == 1
    assert found["bytes_per_step"] == found["store"] / 2


def test_du_where_nothing_is(home):
    """Nothing takes no space, and nothing is made."""
    assert answer("du")["total"] == 0
    assert "0 episodes" in run("du")
    assert not home.exists()


# --- the bar ----------------------------------------------------------------------------------------------------------


def test_a_bar_on_a_terminal_only(home, monkeypatch, capsys):
    """Stages are drawn on stderr where it is a terminal, and leave nothing behind; nothing is written elsewhere."""
    from trackway.cli import _progress

    with _progress.stages() as quiet:
        quiet("checking", 1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(_progress, "_AFTER", 0)
    monkeypatch.setattr(_progress, "_EVERY", 0)
    with _progress.stages() as told:
        told("checking blobs", 1, 2)
        told("looking", 7, 0)
    drawn = capsys.readouterr().err
    assert "checking blobs" in drawn
    assert "50%" in drawn
    assert "looking 7" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_nothing_is_left_open(home):
    """A command lets go of the store: its log goes with the last who looks."""
    record(home, "one")
    for args in (["verify"], ["du"], ["prune", "--keep", "5", "--yes"]):
        run(*args)
        assert not list(home.glob("store.db-*")), args
    assert Home(home).store.exists()


@pytest.mark.parametrize("command", [["verify"], ["du"], ["prune", "--keep", "1", "--yes"], ["backup", "copy.db"]])
def test_a_store_that_was_named_and_is_not_there_is_refused(command, tmp_path):
    """A typing error is not an empty store: exit 1, and nothing is made."""
    answer = CliRunner().invoke(main, [*command, "--store", str(tmp_path / "typo.db")])

    assert answer.exit_code == 1
    assert "there is no store at" in answer.stderr
    assert list(tmp_path.iterdir()) == []
