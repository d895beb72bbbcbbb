"""`trackway pack` and `trackway unpack`: files, pipes, names, answers and exit codes."""

import json
import os
import pty
import stat
import subprocess
import sys

import pytest
import zstandard
from click.testing import CliRunner

from trackway.cli import main
from trackway.recording.recorder import Recorder
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileChange, FileState
from trackway.store.base import Batch
from trackway.store.sqlite import SqliteStore
from trackway.testing.events import records


def cli(*args, **more):
    """What a command answers."""
    return CliRunner().invoke(main, args, **more)


def shell(command):
    """What a shell line answers; `trackway` in it is this one."""
    command = command.replace("trackway ", f"{sys.executable} -m trackway ")
    return subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)


@pytest.fixture
def recorded(home, tmp_path, monkeypatch):
    """A home with one episode, and an empty folder to be in; gives the episode's id."""
    monkeypatch.chdir(tmp_path)
    with Recorder(home) as recorder, recorder.start("Fix the *flaky* test: ../../café", agent="demo") as episode:
        episode.user("go")
        episode.file_change("a.txt", before="old", after="new")
        episode.end("success", score=1.0)
    return episode.id


@pytest.fixture
def elsewhere(tmp_path_factory):
    """Another home."""
    return str(tmp_path_factory.mktemp("elsewhere"))


def test_a_pack_is_named_after_its_task(recorded, tmp_path):
    """The name is the answer; it is made of letters and digits, whatever the task says, and is the owner's alone."""
    answer = cli("pack", "last")
    assert (answer.exit_code, answer.stdout) == (0, f"fix-the-flaky-test-cafe-{recorded[-8:]}.jsonl\n")
    assert answer.stderr.startswith("trackway: packed 4 events and 2 file contents, ")
    assert [each.name for each in tmp_path.iterdir()] == [answer.stdout.strip()]
    assert stat.S_IMODE((tmp_path / answer.stdout.strip()).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("task", "name"), [("日本語", "episode"), ("", "episode"), ("x" * 99, "x" * 40), ("\0\ud800/..", "episode")]
)
def test_names_of_other_tasks(home, tmp_path, monkeypatch, task, name):
    """A task without such letters, or with too many of them, has a name too."""
    monkeypatch.chdir(tmp_path)
    with Recorder(home) as recorder, recorder.start(task) as episode:
        pass
    assert cli("pack", "last").stdout == f"{name}-{episode.id[-8:]}.jsonl\n"


def test_there_and_back(recorded, home, elsewhere):
    """What was packed here is unpacked there, and packed there it is the same file."""
    assert cli("pack", recorded[:13], "-o", "a.jsonl").exit_code == 0
    answer = cli("unpack", "a.jsonl", "--home", elsewhere)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == f"new       {recorded[-8:]}  Fix the *flaky* test: ../../café  4 events\n"
    assert cli("pack", "last", "-o", "b.jsonl", "--home", elsewhere).exit_code == 0
    with open("a.jsonl", "rb") as first, open("b.jsonl", "rb") as second:  # noqa: PTH123
        assert first.read() == second.read()
    assert cli("show", "last", "--home", elsewhere).exit_code == 0


def test_unpacking_again(recorded, home, elsewhere):
    """An episode that is here is said to be, with exit 0; one that has grown brings what is new."""
    cli("pack", "last", "-o", "a.jsonl")
    cli("label", "last", "--tag", "late")
    cli("pack", "last", "-o", "b.jsonl")
    assert cli("unpack", "a.jsonl", "--home", elsewhere).stdout.startswith("new ")
    again = cli("unpack", "a.jsonl", "--home", elsewhere)
    assert (again.exit_code, again.stdout.split()[0]) == (0, "present")
    grown = cli("unpack", "b.jsonl", "a.jsonl", "--home", elsewhere)
    assert [line.split()[0] for line in grown.stdout.splitlines()] == ["grown", "present"]
    assert "1 new of 5 events" in grown.stdout


def test_a_file_that_is_there_stays(recorded, tmp_path):
    """Nothing is overwritten unless asked to; what is written is whole or not there."""
    other = tmp_path / "a.jsonl"
    other.write_text("mine")
    answer = cli("pack", "last", "-o", "a.jsonl")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("trackway: a.jsonl is there already (hint: --force ")
    assert other.read_text() == "mine"
    assert cli("pack", "last", "-o", "a.jsonl", "--force").exit_code == 0
    assert other.read_text().startswith('{"trackway_pack":1,')
    dangling = tmp_path / "link.jsonl"
    dangling.symlink_to("nowhere")
    assert cli("pack", "last", "-o", "link.jsonl").exit_code == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl", "link.jsonl"]


def test_places_that_cannot_be_written(recorded, tmp_path):
    """A folder that is not there is said, and nothing is left behind."""
    answer = cli("pack", "last", "-o", "no/such/folder/a.jsonl")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "No such file or directory" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_into_a_folder(recorded, tmp_path):
    """A folder gets the file under its own name."""
    (tmp_path / "packs").mkdir()
    assert cli("pack", "last", "-o", "packs").stdout == f"packs/fix-the-flaky-test-cafe-{recorded[-8:]}.jsonl\n"


def test_a_device_is_written_to_and_not_replaced(recorded):
    """What is no file keeps its place."""
    _, device = os.openpty()  # one of our own: a mistake must not cost the machine its /dev/null
    assert cli("pack", "last", "-o", os.ttyname(device), "--force").exit_code == 0
    assert stat.S_ISCHR(os.stat(os.ttyname(device)).st_mode)  # noqa: PTH116


def test_compressed(recorded, tmp_path, elsewhere):
    """A name that ends in .zst is a zstd file of the same lines."""
    cli("pack", "last", "-o", "a.jsonl")
    cli("pack", "last", "-o", "a.jsonl.zst")
    with (tmp_path / "a.jsonl.zst").open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file).read() == (tmp_path / "a.jsonl").read_bytes()
    answer = cli("unpack", "a.jsonl.zst", "a.jsonl", "--home", elsewhere)
    assert [line.split()[0] for line in answer.stdout.splitlines()] == ["new", "present"]


def test_through_a_pipe(recorded, elsewhere):
    """Out of one and into the other, with nothing else on the way."""
    done = shell(f"trackway pack last -o - | trackway unpack - --json --home {elsewhere}")
    assert done.returncode == 0, done.stderr
    assert [(each["file"], each["state"]) for each in json.loads(done.stdout)] == [("-", "new")]


def test_from_a_file_as_stdin(recorded, elsewhere):
    """A redirected file is read in its place; a pipe given as a file is a file too."""
    cli("pack", "last", "-o", "a.jsonl")
    assert shell(f"trackway unpack - --home {elsewhere} < a.jsonl").stdout.startswith("new ")
    assert shell(f"trackway unpack <(cat a.jsonl) --home {elsewhere}").stdout.startswith("present ")


def test_a_reader_that_has_enough(recorded):
    """`| head` ends it without a word and without failing the pipeline."""
    done = shell("trackway pack last -o - | head -1")
    assert done.returncode == 0
    assert json.loads(done.stdout)["episode"] == recorded


def test_no_pack_on_a_terminal(recorded):
    """Stored text is not poured out over a terminal."""
    here, there = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "trackway", "pack", "last", "-o", "-"], stdout=there, stderr=subprocess.PIPE, check=False
    )
    os.close(there)
    os.close(here)
    assert done.returncode == 2
    assert b"trackway show is for reading" in done.stderr


def test_json_answers(recorded, elsewhere):
    """Both answer in JSON, complete; a file that is refused is one of the answers."""
    made = json.loads(cli("pack", "last", "-o", "a.jsonl", "--json").stdout)
    assert made == {
        "file": "a.jsonl", "state": "ended", "episode": recorded, "events": 4, "blobs": 2, "missing": 0,
        "size": os.stat("a.jsonl").st_size,  # noqa: PTH116
    }  # fmt: skip
    with open("bad.jsonl", "w") as file:  # noqa: PTH123
        file.write("no pack\n")
    answer = cli("unpack", "bad.jsonl", "a.jsonl", "--json", "--home", elsewhere)
    assert answer.exit_code == 1
    bad, good = json.loads(answer.stdout)
    assert (bad["file"], bad["state"]) == ("bad.jsonl", "refused")
    assert "bad.jsonl is no pack: looked for" in bad["error"]
    assert good == {
        "file": "a.jsonl", "state": "new", "task": "Fix the *flaky* test: ../../café", "episode": recorded,
        "events": 4, "added": 4, "blobs": 2, "missing": 0,
    }  # fmt: skip
    assert cli("pack", "last", "-o", "-", "--json").exit_code == 2


def test_what_is_refused_does_not_stop_the_others(recorded, elsewhere, tmp_path):
    """Every file is tried; one line on stderr for each that was refused, and exit 1 at the end."""
    cli("pack", "last", "-o", "a.jsonl")
    (tmp_path / "cut.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes()[:-30])
    answer = cli("unpack", "cut.jsonl", "nowhere.jsonl", str(tmp_path), "a.jsonl", "--home", elsewhere)
    assert answer.exit_code == 1
    assert answer.stdout.startswith("new ")
    said = answer.stderr.splitlines()
    assert said[0] == "trackway: cut.jsonl ends in the middle of line 8: it is not whole (hint: get it again)"
    assert said[1] == "trackway: nowhere.jsonl: No such file or directory"
    assert said[2] == f"trackway: {tmp_path}: Is a directory"
    assert len(said) == 3


def test_nothing_is_made_for_what_is_refused(tmp_path, home):
    """A file that is no pack leaves no store behind."""
    (tmp_path / "empty").touch()
    assert cli("unpack", str(tmp_path / "empty")).exit_code == 1
    assert not home.exists()


def test_missing_and_running_are_said(home, tmp_path, monkeypatch):
    """A pack that lacks something, or of an episode that goes on, says so on stderr."""
    monkeypatch.chdir(tmp_path)
    with Recorder(home) as recorder:
        episode = recorder.start("goes on")
        episode.user("go")
        answer = cli("pack", "last", "-o", "a.jsonl")
        assert answer.exit_code == 0
        assert "packed 2 events" in answer.stderr
        assert "the episode is running: this is what was recorded up to now" in answer.stderr
        assert json.loads(cli("pack", "last", "-o", "b.jsonl", "--json").stdout)["state"] == "running"
    lost = FileChange(op="delete", path="x", before=FileState(hash=hash_bytes(b"x"), size=1), writer="w" * 16)
    SqliteStore(home / "store.db").seal(Batch(records(episode.id, [lost])))
    answer = cli("pack", "last", "-o", "c.jsonl")
    assert "1 file content could not be packed: not in the store" in answer.stderr
    assert "the episode has no end, and nobody is recording it" in answer.stderr
    answer = cli("unpack", "c.jsonl", "--home", str(tmp_path / "b"))
    assert answer.stdout.startswith("new ")
    assert answer.stderr == "trackway: c.jsonl lacks 1 file content: missing already where it was packed\n"


def test_misuse():
    """What cannot be meant exits 2."""
    assert cli("pack").exit_code == 2
    assert cli("unpack").exit_code == 2
    assert cli("pack", "nothing-like-it").exit_code == 1
