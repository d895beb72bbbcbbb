"""Two versions of trackway at one home: the older one never guesses, never deletes, and loses nothing."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import command, digest, record
from trackway.errors import StoreTooNew
from trackway.recording.recorder import Recorder
from trackway.schema.codec import encode
from trackway.schema.events import Note, Unknown, User
from trackway.schema.version import JOURNAL, STORE
from trackway.testing.contract import bare

GOLDEN = Path(__file__).parent.parent / "golden"

# Real code with other numbers, and a migration of its own: what a next release would be.
_NEXT = """
import os, sys
import trackway.schema.version as version
version.STORE += 1
version.JOURNAL += int(os.environ.get("JOURNAL_TOO", "0"))
from trackway.store import migrations, record, tail
migrations.MIGRATIONS = (*migrations.MIGRATIONS, "ALTER TABLE episodes ADD COLUMN mood TEXT;")
assert (migrations.STORE, record.JOURNAL, tail.JOURNAL) == (version.STORE, version.JOURNAL, version.JOURNAL)
import trackway
"""
_RECORDS = """
recorder = trackway.Recorder(sys.argv[1])
if os.environ.get("JOURNAL_TOO"):
    recorder._wake = recorder._journal._wake = lambda: None      # no keeper: all of it stays in the journal
episode = recorder.start("from the future")
episode.note("0")
episode.end("success")
"""
_CLOSES = "recorder.close()\n"
_DIES = "os.kill(os.getpid(), 9)\n"
_FLUSHES_ON_CUE = """
recorder = trackway.Recorder(sys.argv[1])
episode = recorder.start("beside another version")
episode.note("0")
recorder.flush()
print("open", flush=True)
sys.stdin.readline()
for i in range(1, 50):
    episode.note(str(i))
try:
    recorder.flush()
except trackway.TrackwayError as error:
    print(type(error).__name__, flush=True)
else:
    print("sealed", flush=True)
episode.end("success")
recorder.close()
"""


def start(*program: str, home: Path, **more: str) -> subprocess.Popen:
    """A process that does this, in this home."""
    environment = {**os.environ, **more}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", "".join(program), str(home)]
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def finish(*program: str, home: Path, **more: str) -> int:
    """The same, to its end."""
    worker = start(*program, home=home, **more)
    worker.communicate()
    return worker.returncode


def notes(home: Path, task: str) -> list[int]:
    """Which notes of an episode are there, in order."""
    with trackway.open_store(home=home) as store:
        [summary] = [each for each in store.episodes() if each.task == task]
        return [int(each.topic) for each in store.events(summary.id) if isinstance(each, Note)]


@pytest.mark.promise("newer store", "readers refuse it in one line; not a byte of it changes")
def test_readers_refuse_a_newer_store(home: Path) -> None:
    """Each command names both numbers and the way out, and exits 1."""
    assert finish(_NEXT, _RECORDS, _CLOSES, home=home) == 0
    before = digest(home / "store.db")
    for args in (("ls",), ("show", "last"), ("stats",), ("verify",), ("du",), ("doctor",), ("doctor", "--fix")):
        code, said = command(*args)
        assert code == 1
        assert f"is format {STORE + 1}, this trackway reads up to {STORE}" in " ".join(said.split()), said
        assert "pip install -U trackway" in said
    with pytest.raises(StoreTooNew), trackway.open_store() as store:
        list(store.episodes())
    assert digest(home / "store.db") == before


@pytest.mark.promise(
    "newer store", "an older recorder keeps all of it in its journal, says so once; the newer one seals it"
)
def test_an_older_recorder_beside_a_newer_store(home: Path, capfd) -> None:
    """Nothing raised into the agent, nothing put aside, nothing touched."""
    assert finish(_NEXT, _RECORDS, _CLOSES, home=home) == 0
    before = digest(home / "store.db")
    with Recorder(home) as recorder:
        episode = recorder.start("from the past")
        for i in range(100):
            episode.note(str(i))
        with pytest.raises(StoreTooNew):
            recorder.flush()
        episode.end("success")
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("trackway: ")]
    assert len(said) == 1, said
    assert "pip install -U trackway" in said[0]
    assert "kept in the journal" in said[0]
    assert digest(home / "store.db") == before
    assert not (home / "quarantine").exists()
    assert len(list((home / "journals").iterdir())) == 1
    # The newer one adopts what the older one left.
    program = """
recorder = trackway.Recorder(sys.argv[1])
recorder.flush()
recorder.start("adopts").end()
recorder.close()
store = trackway.open_store(home=sys.argv[1])
[summary] = [each for each in store.episodes() if each.task == "from the past"]
assert [each.topic for each in store.events(summary.id) if each.kind == "note"] == [str(i) for i in range(100)]
assert not any((recorder.home.path / "journals").iterdir())
"""
    assert finish(_NEXT, program, home=home) == 0


@pytest.mark.promise("two versions", "the store rises under a living older recorder: it stops sealing, loses nothing")
def test_a_migration_under_a_living_older_recorder(home: Path) -> None:
    """It notices inside its own transaction, keeps everything in its journal, and says so in one line."""
    older = start("import os, sys, trackway\n", _FLUSHES_ON_CUE, home=home)
    assert older.stdout.readline() == "open\n"
    assert finish(_NEXT, _RECORDS, _CLOSES, home=home) == 0
    before = digest(home / "store.db")
    out, err = older.communicate("go\n")
    said = [line for line in err.splitlines() if line.startswith("trackway: ")]
    assert (out, older.returncode) == ("StoreTooNew\n", 0), err
    assert len(said) == 1, said
    assert digest(home / "store.db") == before
    assert not (home / "quarantine").exists()
    program = """
recorder = trackway.Recorder(sys.argv[1])
recorder.flush()
store = trackway.open_store(home=sys.argv[1])
[summary] = [each for each in store.episodes() if each.task == "beside another version"]
assert summary.outcome == "success" and summary.n_events == 52, summary
assert [each.topic for each in store.events(summary.id) if each.kind == "note"] == [str(i) for i in range(50)]
"""
    assert finish(_NEXT, program, home=home) == 0


_SEALS_AS_FORMAT_2 = '''
    INSERT INTO writers (writer, about, activation, "offset") VALUES ('w', '{}', 1, 64)
    ON CONFLICT (writer) DO UPDATE SET activation = excluded.activation, "offset" = excluded."offset"'''
"""What the release before format 3 says in every batch; it does not look at the store's number again."""


@pytest.mark.promise("two versions", "a release that looks at the number once only is stopped by the first column")
def test_a_migration_under_a_release_that_does_not_look_again(home: Path) -> None:
    """Its batch fails as a whole, as one of a store that is not to be had: all of it stays in its journal."""
    home.mkdir()
    shutil.copy(Path(__file__).parent.parent / "golden" / "store-2.db", home / "store.db")
    older = sqlite3.connect(home / "store.db", isolation_level=None)
    older.execute(_SEALS_AS_FORMAT_2)
    record(home, 1)

    with pytest.raises(sqlite3.OperationalError, match="activation"):
        older.execute(_SEALS_AS_FORMAT_2)
    older.close()


@pytest.mark.promise("two versions", "a reader that has the store open while it rises: refuses, never guesses")
def test_a_migration_under_a_living_reader(home: Path) -> None:
    """Asked again, it says that the store is newer by now."""
    record(home, 2)
    with trackway.open_store() as store:
        [first, *_] = list(store.episodes())
        assert finish(_NEXT, _RECORDS, _CLOSES, home=home) == 0
        for question in (
            lambda: list(store.episodes()),
            lambda: list(store.events(first.id)),
            lambda: store.find("last"),
        ):
            with pytest.raises(StoreTooNew):
                question()


@pytest.mark.promise("two versions", "readers of every older layout read on, equal, while it is brought up to date")
@pytest.mark.parametrize("version", range(1, STORE))
def test_an_older_layout_rises_under_a_reader(home: Path, version: int) -> None:
    """What was opened in an older layout is read on in the newer one, and a recorder that has it open seals on."""
    home.mkdir(mode=0o700)
    shutil.copy(GOLDEN / f"store-{version}.db", home / "store.db")
    with trackway.open_store() as store:
        before = {each.id: bare(store.events(each.id)) for each in store.episodes()}
        recorder = start("import os, sys, trackway\n", _FLUSHES_ON_CUE, home=home)
        assert recorder.stdout.readline() == "open\n"
        for name, events in before.items():
            assert bare(store.events(name)) == events
        assert len(list(store.episodes())) == len(before) + 1
        out, err = recorder.communicate("go\n")
        assert (out, err) == ("sealed\n", "")
    assert notes(home, "beside another version") == list(range(50))


@pytest.mark.promise("two versions", "an older store open in a newer recorder, an older one comes: both lose nothing")
def test_an_older_recorder_comes_to_a_newer_one(home: Path, capfd) -> None:
    """The other way round: the newer one goes on sealing, the older one's journal is adopted by it in the end."""
    newer = start(_NEXT, _FLUSHES_ON_CUE, home=home)
    assert newer.stdout.readline() == "open\n"
    with Recorder(home) as recorder:
        recorder.start("older guest").end("success")
    assert "pip install -U" in capfd.readouterr().err
    out, err = newer.communicate("go\n")
    assert (out, newer.returncode) == ("sealed\n", 0), err
    program = """
store = trackway.open_store(home=sys.argv[1])
assert sorted((each.task, each.outcome) for each in store.episodes()) == [
    ("beside another version", "success"), ("older guest", "success")]
"""
    assert finish(_NEXT, program, home=home) == 0


@pytest.mark.promise(
    "newer journal", "left by a dead newer process: kept as it is, doctor explains, the newer one seals it"
)
def test_a_journal_of_a_newer_version(home: Path) -> None:
    """Not adopted, not deleted, not put aside, whatever the older one does."""
    record(home, 1)
    assert finish(_NEXT, _RECORDS, _DIES, home=home, JOURNAL_TOO="1") == -9
    [folder] = (home / "journals").iterdir()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with Recorder(home) as recorder:
        recorder.start("older").end()
        recorder.flush()
    assert command("prune", "--older-than", "0s", "--dry-run")[0] == 0
    assert command("backup", home.parent / "copy.db")[0] == 0
    code, said = command("doctor", "--fix")
    assert (code, f"a journal of version {JOURNAL + 1}" in " ".join(said.split())) == (1, True), said
    assert "pip install -U trackway" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not (home / "quarantine").exists()
    assert [each.task for each in trackway.open_store().episodes()] == ["older", "task 0"]
    program = """
recorder = trackway.Recorder(sys.argv[1])
recorder.flush()
assert "from the future" in [each.task for each in trackway.open_store(home=sys.argv[1]).episodes()]
assert not any((recorder.home.path / "journals").iterdir())
"""
    assert finish(_NEXT, program, home=home, JOURNAL_TOO="1") == 0


_NEWER_EVENTS = """
import os, sys, trackway
from msgspec import msgpack
from trackway.store import record
recorder = trackway.Recorder(sys.argv[1])
recorder._wake = recorder._journal._wake = lambda: None      # no keeper: all of it stays in the journal
episode = recorder.start("newer events")
segment = recorder._journal._segment
for tree in ({"kind": "dream", "depth": 3, "at": 5}, {"kind": "user", "content": "hi", "mood": "odd", "at": 6}):
    body = msgpack.encode({**tree, "writer": recorder._journal.writer, "n": segment.n})
    segment.put(record.meta_of(record.EVENT, 0, 2), episode._core.raw + body)
print(body.hex())
episode.end("success")
os.kill(os.getpid(), 9)
"""


@pytest.mark.promise(
    "newer events", "unknown kinds and fields: kept, read, sealed, packed and rewritten with their bytes"
)
def test_events_of_a_newer_schema(home: Path, tmp_path: Path) -> None:
    """What this version does not know goes through every file and comes out equal."""
    worker = start(_NEWER_EVENTS, home=home)
    worker.communicate()

    def found():
        with trackway.open_store() as store:
            [summary] = store.episodes()
            return list(store.events(summary.id))

    def seal():
        with Recorder(home) as recorder:
            recorder.flush()

    for step in (lambda: None, seal):
        step()
        _, dream, user, _ = found()
        assert isinstance(dream, Unknown)
        assert (dream.name, b"depth" in dream.raw, dream.at) == ("dream", True, 5)
        assert isinstance(user, User)
        assert (user.content, user.unknown_fields) == ("hi", {"mood": "odd"})
        assert encode(dream).body == dream.raw
        assert b"mood" in encode(user).body
    assert command("verify")[0] == 0
    assert command("show", "last")[0] == 0
    command("pack", "last", "-o", tmp_path / "pack.jsonl")
    assert command("unpack", tmp_path / "pack.jsonl", "--home", tmp_path / "there")[0] == 0
    with trackway.open_store(home=tmp_path / "there") as store:
        [summary] = store.episodes()
        _, dream_again, user_again, _ = store.events(summary.id)
    assert (dream_again.raw, user_again.unknown_fields) == (dream.raw, user.unknown_fields)


@pytest.mark.promise("newer pack", "refused by name, nothing is changed")
def test_a_newer_pack(home: Path, tmp_path: Path) -> None:
    """A pack of a version that does not exist yet is refused with the way out."""
    record(home, 1)
    command("pack", "last", "-o", tmp_path / "pack.jsonl")
    head, *rest = (tmp_path / "pack.jsonl").read_text().splitlines(keepends=True)
    header = json.loads(head)
    header["trackway_pack"] += 1
    (tmp_path / "newer.jsonl").write_text(json.dumps(header) + "\n" + "".join(rest))
    before = digest(home / "store.db")
    code, said = command("unpack", tmp_path / "newer.jsonl")
    assert (code, "pip install -U trackway" in " ".join(said.split())) == (1, True), said
    assert digest(home / "store.db") == before
