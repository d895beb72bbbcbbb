"""Backups: complete, sound, one file, never half of one, and nothing doubles when a copy is used later."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trackway
from trackway.errors import BadSetting, StoreDamaged, StoreUnavailable
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.store import backup as module
from trackway.store.backup import FAILPOINTS, backup
from trackway.store.home import Home
from trackway.store.journal import Journal
from trackway.store.large import Payload
from trackway.store.live import LiveStore
from trackway.store.memory import MemoryStore
from trackway.store.record import EVENT
from trackway.store.sealer import Sealer
from trackway.store.segment import MappedSegment
from trackway.store.sqlite import SqliteStore
from trackway.testing.contract import bare


def contents(store):
    """Every event of every episode."""
    return {each.id: bare(store.events(each.id)) for each in store.episodes()}


def record_one(home, task="one", text="text"):
    """A whole episode, sealed."""
    with Recorder(home) as recorder, recorder.start(task, tags=["t"]) as episode:
        episode.user("go")
        episode.tool_result(episode.tool_call("bash", {"cmd": "ls"}), text * 3000)
    return episode.id


def test_a_copy_is_the_store(home, tmp_path):
    """Every event, blob and id is in the copy, which is one file for its owner, and verified."""
    for i in range(5):
        record_one(home, f"task {i}", f"text {i} ")
    target = tmp_path / "copy.db"

    with open_store(home=home) as live:
        done = backup(live, target)
        assert contents(SqliteStore(target)) == contents(live)
        assert [each.task for each in SqliteStore(target).episodes()] == [each.task for each in live.episodes()]
    assert done.copy == done.source == (5, 25, 5)
    assert (done.waiting, done.verified.is_sound, done.bytes) == (0, True, target.stat().st_size)
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_what_is_not_sealed_yet_is_in_it(home, tmp_path):
    """Events in the journals of the living and of the dead are in the copy, and stay in their journals."""
    code = """
import os, signal
from trackway.recording.recorder import Recorder
episode = Recorder().start("died")
episode.tool_call("bash", {"cmd": "sleep"})
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    recorder = Recorder(home)
    recorder._wake = lambda: None  # no keeper: everything stays in the journal
    recorder._journal._wake = lambda: None
    episode = recorder.start("lives")
    episode.text("large " * 400_000)
    episode.note("the last")

    with open_store(home=home) as live:
        done = backup(live, tmp_path / "copy.db")
        assert (done.source.events, done.waiting, done.copy.episodes, done.copy.events) == (5, 5, 2, 5)
        assert contents(SqliteStore(tmp_path / "copy.db")) == contents(live)
        assert not live.store.path.exists()
    recorder.close()


@pytest.mark.parametrize("rest", ["seals", "dies"])
def test_nothing_doubles_when_the_copy_takes_the_place_of_the_store(home, tmp_path, monkeypatch, rest):
    """A copy knows how far each journal is in it: put where the store was, it goes on exactly from there.

    It is taken in the middle of an event whose payload is written and the event itself is not.
    """
    place, store = Home(home), SqliteStore(home / "store.db")
    journal = Journal(place, store_key=store.key, clock=time.time_ns, entropy=os.urandom)
    episode = ids.to_bytes(ids.uuid7(time.time_ns(), os.urandom(10)))
    journal.append(episode, kinds.EpisodeStart, {"header": kinds.Header(task="goes on")})
    Sealer(place, store).seal(journal)
    for i in range(300):
        journal.append(episode, kinds.Note, {"topic": f"{i}", "text": "x" * 5000})
    done = []

    def put(segment, meta, body, real=MappedSegment.put):
        if meta & 0xFF == EVENT and not done:
            done.append(backup(LiveStore(place, store), tmp_path / "copy.db"))
        real(segment, meta, body)

    monkeypatch.setattr(MappedSegment, "put", put)
    journal.append(episode, kinds.ToolResult, {"call_id": "c"}, (Payload("large " * 500_000, "content"),))
    journal.append(episode, kinds.EpisodeEnd, {"outcome": "success"})
    [made] = done
    assert (made.source.events, made.waiting, made.copy.events, made.verified.is_sound) == (301, 300, 301, True)
    expected = contents(LiveStore(place, store))
    store.close()
    shutil.copy(tmp_path / "copy.db", home / "store.db")

    if rest == "seals":
        assert Sealer(place, store).seal(journal).events == 2
    else:
        journal.release()
        assert Sealer(place, store).adopt().adopted == 1
    assert store.episode(ids.from_bytes(episode)).n_events == 303
    assert contents(store) == expected
    assert not (home / "quarantine").exists()


def test_where_links_cannot_be_made(home, tmp_path, monkeypatch):
    """On another disk the journals are copied, and the file is renamed."""
    recorder = Recorder(home)
    recorder.start("lives").note("here")

    def refuse(*_):
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with open_store(home=home) as live:
        assert backup(live, tmp_path / "copy.db").copy.events == 2
        assert contents(SqliteStore(tmp_path / "copy.db")) == contents(live)
    recorder.close()


# --- places --------------------------------------------------------------------------------------------------------


def test_nothing_is_overwritten_unasked(home, tmp_path):
    """A file that is there stays as it is; with force it is replaced, and nothing of its log is left beside it."""
    record_one(home)
    target, log = tmp_path / "copy.db", tmp_path / "copy.db-wal"
    target.write_text("precious")
    log.write_text("old")

    with open_store(home=home) as live:
        with pytest.raises(BadSetting, match="there already"):
            backup(live, target)
        assert (target.read_text(), log.read_text()) == ("precious", "old")
        backup(live, target, force=True)
        assert contents(SqliteStore(target)) == contents(live)
        target.unlink()
        log.write_text("of another store")
        with pytest.raises(BadSetting, match="there already"):
            backup(live, target)


def test_a_file_that_appears_meanwhile_stays(home, tmp_path):
    """Even one made between the first look and the last step is not overwritten."""
    record_one(home)

    def appear(reached):
        if reached == "backup:synced":
            (tmp_path / "copy.db").write_text("precious")

    with open_store(home=home) as live, pytest.raises(BadSetting, match="there already"):
        backup(live, tmp_path / "copy.db", failpoint=appear)
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_places_that_cannot_be(home, tmp_path):
    """The store itself, a folder, a folder that is not there, and a store that is no file: refused, with a reason."""
    record_one(home)
    with open_store(home=home) as live:
        for target, reason in (
            (home / "store.db", "the store itself"),
            (tmp_path, "is a folder"),
            (tmp_path / "none/copy.db", "there is no folder"),
        ):
            with pytest.raises(BadSetting, match=reason):
                backup(live, target, force=True)
    with pytest.raises(BadSetting, match="no file"):
        backup(LiveStore(Home(home), MemoryStore()), tmp_path / "copy.db")


def test_nothing_to_copy(home, tmp_path):
    """Where nothing is recorded there is nothing to copy, and no file is made."""
    with open_store(home=home) as live, pytest.raises(StoreUnavailable, match="nothing"):
        backup(live, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


# --- trouble -------------------------------------------------------------------------------------------------------

LITTLE_ROOM = """
import resource, signal, sys
from pathlib import Path
from trackway.errors import StoreUnavailable
from trackway.recording.settings import open_store
from trackway.store.backup import backup
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    backup(open_store(), Path(sys.argv[1]))
except StoreUnavailable as error:
    print(error)
"""


def test_a_full_disk_leaves_nothing(home, tmp_path):
    """A copy that does not fit is refused, and no part of it stays."""
    for i in range(10):
        record_one(home, f"{i}", os.urandom(20).hex())
    record_one(home, "large", os.urandom(400).hex())

    said = subprocess.run(
        [sys.executable, "-c", LITTLE_ROOM, tmp_path / "copy.db"], check=True, capture_output=True, text=True
    ).stdout

    assert "copying" in said
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_said_before(home, tmp_path, monkeypatch):
    """Where the copy cannot fit, that is said at once."""
    record_one(home)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))

    with open_store(home=home) as live, pytest.raises(StoreUnavailable, match="has 0 MB left"):
        backup(live, tmp_path / "copy.db")


def test_a_damaged_store_is_copied_and_said(home, tmp_path):
    """Damaged events go along as they are, and the copy's verification names them; a broken file is refused."""
    record_one(home)
    store = SqliteStore(home / "store.db")
    with store.changing() as connection:
        connection.execute("UPDATE frames SET body = x'00'")
    store.close()
    with open_store(home=home) as live:
        assert [each.first for each in backup(live, tmp_path / "copy.db").verified.damage] == [0]
        live.close()
        raw = bytearray((home / "store.db").read_bytes())
        raw[4096 * 2 : 4096 * 12] = b"\xa5" * 4096 * 10
        (home / "store.db").write_bytes(raw)
        with pytest.raises((StoreDamaged, StoreUnavailable)):
            backup(live, tmp_path / "other.db")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


KILLED = """
import sys
from pathlib import Path
from trackway.recording.settings import open_store
from trackway.store.backup import backup
from trackway.testing.dying import die_at
backup(open_store(), Path(sys.argv[2]), failpoint=die_at(sys.argv[1]))
"""


@pytest.mark.crash
def test_killed_in_the_middle(home, tmp_path):
    """Killed anywhere, there is no file of that name; the next backup sweeps up what was left."""
    record_one(home)
    target = tmp_path / "copy.db"
    for point in FAILPOINTS:
        killed = subprocess.run([sys.executable, "-c", KILLED, point, target], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not target.exists()
    assert list(tmp_path.iterdir())

    with open_store(home=home) as live:
        assert backup(live, target).verified.is_sound
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_it_tells_how_far_it_is(home, tmp_path, monkeypatch):
    """Whoever waits is told how much is copied; an interrupt is one."""
    record_one(home, "large", os.urandom(400).hex())
    monkeypatch.setattr(module, "_OPCODES", 5)
    said = []

    def stop(what, done, total):
        raise KeyboardInterrupt

    with open_store(home=home) as live:
        backup(live, tmp_path / "copy.db", progress=lambda what, done, total: said.append((what, done, total)))
        assert {each[0] for each in said} >= {"copying", "checking episodes"}
        with pytest.raises(KeyboardInterrupt):
            backup(live, tmp_path / "other.db", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]


def test_a_device_or_a_pipe_is_never_replaced(home, tmp_path):
    """Not even with force: it is not a file that could be made again."""
    with trackway.Recorder() as recorder:
        recorder.start("t").end()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    _, device = os.openpty()
    for target in (pipe, Path(os.ttyname(device))):
        with pytest.raises(BadSetting, match="device or a pipe"):
            backup(trackway.open_store(), target, force=True)
        assert not stat.S_ISREG(target.stat().st_mode)


def test_a_link_stays_a_link(home, tmp_path):
    """What it names is replaced, with force."""
    with trackway.Recorder() as recorder:
        recorder.start("t").end()
    (tmp_path / "real.db").write_bytes(b"old")
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    backup(trackway.open_store(), tmp_path / "link.db", force=True)

    assert (tmp_path / "link.db").is_symlink()
    assert (tmp_path / "real.db").read_bytes().startswith(b"SQLite")
