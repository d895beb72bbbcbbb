"""What `trackway doctor` and others say of files that are damaged, in the wrong place, or not theirs to read."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.test_cli_doctor import findings
from trackway.cli import main
from trackway.errors import StoreDamaged
from trackway.recording.recorder import Recorder
from trackway.schema.version import STORE
from trackway.store.sqlite import SqliteStore

DIES = """
import os, signal, sys
from trackway.recording.recorder import Recorder
recorder = Recorder(journal="append")
recorder._wake = recorder._journal._wake = lambda: None
episode = recorder.start("dies")
for number in range(49):
    episode.user(f"number {number}")
os.kill(os.getpid(), signal.SIGKILL)
"""
HOLDS = """
import sys, time
from pathlib import Path
from trackway.store.holding import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
ANYBODY = """
import os, sys
from click.testing import CliRunner
from trackway.cli import main
CliRunner().invoke(main, ["doctor", "--json"])  # all is imported: Python itself may be root's alone
if os.getuid() == 0:
    os.setuid(65534)
main(["doctor", "--json", "--home", sys.argv[1]])
"""


def ask(*words):
    """What a command answers."""
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def recorded(home):
    """A home with thirty sealed episodes."""
    with Recorder(home) as recorder:
        for number in range(30):
            recorder.start(f"t{number}").end("success")
    return home


def change(home, *statements):
    """Change the store as nobody should."""
    connection = sqlite3.connect(home / "store.db")
    for each in statements:
        connection.execute(each)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


@pytest.mark.parametrize("byte", [0xEF, 0x20], ids=["no UTF-8", "no SQL"])
def test_a_flipped_bit_in_the_schema_is_damage(recorded, byte):
    """It is said to be damaged, never to be no store, and nobody is sent to another file."""
    change(recorded)
    store = recorded / "store.db"
    body = bytearray(store.read_bytes())
    body[body.index(b"CREATE TABLE writers") + 3] = byte
    store.write_bytes(body)

    with pytest.raises(StoreDamaged, match="is damaged"):
        list(SqliteStore(store).episodes())
    [problem] = [each for each in findings(code=1)["problem"] if "is damaged" in each]
    assert "copy the file away, then put a backup in its place" in problem
    assert "--store" not in problem


@pytest.mark.parametrize("number", [3, 2, 1, 0])
def test_a_flipped_bit_in_the_number_of_the_format_is_damage(recorded, number):
    """A store is never read, changed or called empty by a number that its tables belie; putting it back helps."""
    change(recorded, f"PRAGMA user_version={number}")

    answer = ask("ls")
    assert (answer.exit_code, f"its tables are those of format {STORE}" in answer.stderr) == (1, True), answer.output
    [problem] = [each for each in findings(code=1)["problem"] if f"its tables are those of format {STORE}" in each]
    assert f"PRAGMA user_version={STORE}" in problem
    with pytest.raises(StoreDamaged), SqliteStore(recorded / "store.db").changing():
        pass
    change(recorded, f"PRAGMA user_version={STORE}")
    assert findings(code=0)["problem"] == []


@pytest.mark.parametrize("name", ["journals", "quarantine"])
def test_a_file_in_the_place_of_a_folder(recorded, name):
    """Every event is lost to it: a problem, and nobody is told that everything is sealed."""
    shutil.rmtree(recorded / name, ignore_errors=True)
    (recorded / name).write_text("")
    found = findings(code=1)
    assert [f"{name} is no folder" in each for each in found["problem"]] == [True]
    assert any("everything recorded is sealed" in each for each in found["ok"]) is (name != "journals")


@pytest.mark.parametrize("name", ["seal.lock", "store.lock"])
def test_a_folder_in_the_place_of_a_lock(recorded, name):
    """Nobody can seal: a problem."""
    (recorded / name).unlink(missing_ok=True)
    (recorded / name).mkdir()
    assert [f"{name} is a folder" in each for each in findings(code=1)["problem"]] == [True]


@pytest.mark.parametrize("below", ["", "trackway"])
def test_a_home_that_nobody_may_look_into(below):
    """One line about the home, and what to do; not a word of a key that may not even be there."""
    place = Path(tempfile.mkdtemp(prefix="trackway-doctor-"))
    try:
        if os.getuid() == 0:
            os.chown(place, 65534, 65534)
        place.chmod(0)
        asked = [sys.executable, "-c", ANYBODY, str(place / below)]
        answer = subprocess.run(asked, check=False, capture_output=True, text=True, cwd="/")
    finally:
        place.chmod(0o700)
        place.rmdir()
    assert (answer.returncode, answer.stderr) == (1, "")
    [problem] = [each for each in json.loads(answer.stdout)["findings"] if each["level"] == "problem"]
    if below:
        assert problem["what"] == "the home cannot be looked at: Permission denied"
    else:
        assert problem["what"] == "the home cannot be looked into (mode 000)"
        assert f"chmod 700 {place}" in problem["do"]


@pytest.mark.parametrize("kind", ["file", "loop", "nowhere"])
def test_a_home_that_is_none(tmp_path, kind):
    """Said by the doctor and by every command; nowhere is it an empty home with nothing wrong."""
    home = tmp_path / "home"
    if kind == "file":
        home.write_text("")
    else:
        home.symlink_to(home if kind == "loop" else tmp_path / "nowhere")
    found = findings("--home", str(home), code=1)
    assert len(found["problem"]) == 1
    assert not [each for each in found["ok"] if "sealed" in each or "store" in each.split(" | ", maxsplit=1)[0]]
    for command in ("ls", "du", "verify", "stats"):
        answer = ask(command, "--home", str(home))
        assert (answer.exit_code, "is no folder" in answer.stderr) == (1, True), (command, answer.output)


def test_another_store_is_looked_at_where_the_home_is_none(recorded, tmp_path):
    """What is in another place is as sound as it was."""
    (tmp_path / "file").write_text("")
    named = ("--home", str(tmp_path / "file"), "--store", str(recorded / "store.db"))
    assert any("the store is sound" in each for each in findings(*named, code=1)["ok"])
    assert ask("ls", *named).exit_code == 0


@pytest.mark.crash
def test_what_lies_beside_a_store_that_cannot_be_read_is_said(recorded):
    """Journals, quarantine and losses are files of their own, and the store is complained of once."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    (recorded / "quarantine").mkdir(exist_ok=True)
    (recorded / "quarantine" / "1.json").write_text(json.dumps({"reason": "odd"}))
    (recorded / "losses.jsonl").write_text(json.dumps({"lost": 2, "reason": "disk full"}) + "\n")
    change(recorded, "PRAGMA user_version=99")
    for words in ((), ("--fix",)):
        found = findings(*words, code=1)
        said = "\n".join(found["problem"])
        assert said.count("is format 99") == 1
        assert "update trackway" in said
        assert "could not be sealed: odd" in said
        assert "2 events could not be recorded: disk full" in said
        assert any("ended and left records" in each for each in found["note"])


@pytest.mark.crash
def test_a_damaged_journal_is_never_said_to_be_seen_whole(recorded):
    """How much of it cannot be read is said, and where it goes; the rest is counted as ever."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    assert any("50 records" in each and "readers see it all" in each for each in findings(code=0)["note"])
    [segment] = [each for each in recorded.glob("journals/*/*.seg") if b"number 7" in each.read_bytes()]
    body = bytearray(segment.read_bytes())
    body[body.index(b"number 7")] ^= 1
    segment.write_bytes(body)
    [problem] = findings(code=1)["problem"]
    assert "left 49 records" in problem
    assert "readers see all but 1 damaged piece" in problem
    assert "quarantine" in problem


@pytest.mark.crash
def test_a_stopped_holder_is_named_once(recorded):
    """With --fix, too; and what lies in the home is said all the same."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(recorded / "seal.lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        found = findings("--fix", code=1)
    finally:
        holder.kill()
        holder.communicate()
    assert [f"process {holder.pid} holds seal.lock" in each for each in found["problem"]] == [True]
    assert any("ended and left 50 records" in each for each in found["note"])


@pytest.mark.parametrize("waiting", [False, True], ids=["all sealed", "one recording"])
def test_a_summary_that_cannot_be_read_hides_no_other_episode(recorded, waiting):
    """The others are listed, how many are not is said with what to do; that mends it."""
    change(recorded, "UPDATE episodes SET summary = x'ff' WHERE task = 't7'")
    recorder = Recorder(recorded)
    if waiting:
        recorder._wake = recorder._journal._wake = lambda: None  # no keeper: all of it stays in the journal
        recorder.start("goes on").user("go")
    for words in (["ls", "--json"], ["ls", "--ids"], ["ls", "--limit", "0"], ["ls", "--limit", "25"]):
        answer = ask(*words)
        assert answer.exit_code == 1, answer.output
        assert answer.stderr.count("1 of the episodes cannot be listed") == 1
        assert "trackway verify --fix" in answer.stderr
        if "--json" in words:
            assert len(json.loads(answer.stdout)) == 29 + waiting
        if "--ids" in words:
            assert len(answer.stdout.split()) == 29 + waiting
    found = findings(code=1)
    assert ["1 of the episodes cannot be listed" in each for each in found["problem"]] == [True]
    assert any("1 episode running" in each for each in found["ok"]) is waiting
    recorder.close()
    assert ask("verify", "--fix").exit_code == 0
    assert len(json.loads(ask("ls", "--json").stdout)) == 30 + waiting
    assert findings(code=0)["problem"] == []


def test_where_no_summary_can_be_read_nobody_is_told_that_nothing_is_recorded(recorded):
    """An empty list is not an empty store."""
    change(recorded, "UPDATE episodes SET summary = x'ff'")
    answer = ask("ls")
    assert (answer.exit_code, "nothing is recorded" in answer.output) == (1, False)
    assert "30 of the episodes cannot be listed" in answer.stderr
