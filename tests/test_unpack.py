"""Packs come in exactly once, whatever is here already and whoever else is at work."""

import io
import signal
import subprocess
import sys

import msgspec
import pytest

from tests.packing import (
    AT,
    HEADER,
    ID,
    START_LINE,
    W,
    blob,
    dump,
    end_of,
    events_of,
    live_memory,
    live_sqlite,
    packed,
    rich_episode,
    sealed,
    small_pack,
    state,
    unpacked,
)
from trackway.errors import EventRefused, PackRefused
from trackway.recording.recorder import Recorder
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.canonical import hash_bytes
from trackway.store.base import Batch
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.record import START, Position
from trackway.store.sqlite import SqliteStore
from trackway.store.unpack import unpack
from trackway.testing.events import records, small_episode


def grown(live):
    """A home with an episode that has one event more than it had, and the packs of then and now."""
    sealed(live, records(ID, small_episode()))
    before = packed(live)
    change = kinds.FileChange(op="create", path="a", after=state(b"late"), writer="v" * 16, n=0)
    sealed(live, [*blob(1, b"late"), *records(ID, [change, kinds.Label(outcome="success", writer="v" * 16, n=1)])])
    return before, packed(live)


def test_unpacking_twice_changes_nothing(tmp_path):
    """What is here already is said to be, and the store is as it was."""
    there = live_sqlite(tmp_path / "b")
    body = packed(sealed(live_sqlite(tmp_path / "a"), rich_episode()))
    unpacked(body, there)
    was = dump(there)
    done = unpacked(body, there)
    assert (done.state, done.added) == ("present", 0)
    assert dump(there) == was


def test_a_later_pack_brings_what_is_new(tmp_path):
    """Of an episode that has grown, only the new events come in, with their files; an older pack brings nothing."""
    before, after = grown(live_sqlite(tmp_path / "a"))
    there = live_sqlite(tmp_path / "b")
    assert unpacked(before, there).state == "new"
    done = unpacked(after, there)
    assert (done.state, done.events, done.added) == ("grown", 8, 2)
    assert packed(there) == after
    assert there.episode(ID).outcome == "success"
    assert b"".join(there.blob(hash_bytes(b"late"))) == b"late"
    was = dump(there)
    assert unpacked(before, there).state == "present"
    assert dump(there) == was


def test_two_that_grew_apart_are_joined(tmp_path):
    """Labels given on two machines are both there in the end."""
    here, there = sealed(live_sqlite(tmp_path / "a"), records(ID, small_episode())), live_sqlite(tmp_path / "b")
    unpacked(packed(here), there)
    sealed(here, records(ID, [kinds.Label(tag="mine", writer="a" * 16)]))
    sealed(there, records(ID, [kinds.Label(tag="yours", writer="b" * 16)]))
    assert unpacked(packed(here), there).added == 1
    assert unpacked(packed(there), here).added == 1
    assert set(here.episode(ID).tags) == set(there.episode(ID).tags) == {"nightly", "mine", "yours"}


def test_another_content_is_refused(tmp_path):
    """An event that is here with another content is a conflict, and nothing comes in, not even what is new."""
    here, there = live_sqlite(tmp_path / "a"), live_sqlite(tmp_path / "b")
    other = [msgspec.structs.replace(each, at=each.at + 1) if each.n == 4 else each for each in small_episode()]
    sealed(here, records(ID, [*other, kinds.Label(tag="new", writer="v" * 16)]))
    sealed(there, records(ID, small_episode()))
    was = dump(there)
    with pytest.raises(PackRefused, match=f"line 6: event 4 of writer {W} is here with another content") as caught:
        unpacked(packed(here), there)
    assert caught.value.line == 6
    assert dump(there) == was


def test_unnumbered_events_are_told_apart(tmp_path):
    """Where a source numbered nothing, the first of two is not taken for the second."""
    here, there = live_sqlite(tmp_path / "a"), live_sqlite(tmp_path / "b")
    sealed(here, records(ID, [kinds.Note(topic=each) for each in "aba"]))
    unpacked(packed(here), there)
    sealed(here, records(ID, [kinds.Note(topic="a")]))
    assert unpacked(packed(here), there).added == 1
    assert [each.topic for each in there.events(ID)] == ["a", "b", "a", "a"]
    assert unpacked(packed(here), there).state == "present"


def test_a_pruned_episode_can_come_back(tmp_path):
    """A pack brings back what was deleted."""
    live = sealed(live_sqlite(tmp_path), rich_episode())
    body = packed(live)
    live.store.drop([ID])
    assert unpacked(body, live).state == "new"
    assert packed(live) == body
    late = end_of(HEADER, {"kind": "label", "writer": W, "n": 99, "tag": "x"})
    live.store.drop([ID])
    with pytest.raises(EventRefused, match="pruned"):
        unpacked(late, live)


# --- beside a recorder --------------------------------------------------------------------------------------------


def test_a_running_episode_is_not_doubled(tmp_path):
    """A pack of a running episode, unpacked where it runs, finds every event here: in the store or on its way."""
    with Recorder(tmp_path) as recorder:
        episode = recorder.start("t")
        episode.user("go")
        recorder.flush()
        episode.text("not sealed yet, or just so")
        episode.file_change("a.txt", after="a")
        live = live_sqlite(tmp_path)
        body = packed(live, episode.id)
        assert unpacked(body, live).state == "present"
        episode.text("on it goes")
    assert [each.n for each in live.events(episode.id)] == list(range(5))
    assert unpacked(body, live).state == "present"


def test_a_dead_writers_journal_is_packed(tmp_path):
    """What a killed process had recorded is in the pack before anybody sealed it, its files too."""
    code = f"""
import os, signal
from trackway.recording.recorder import Recorder
recorder = Recorder({str(tmp_path / "a")!r})
episode = recorder.start("dies")
episode.user("x" * 1_500_000)
episode.file_change("a.txt", before="old", after=b"\\0" * 5_000_000)
print(episode.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    episode = process.stdout.strip()
    here, there = live_sqlite(tmp_path / "a"), live_sqlite(tmp_path / "b")
    body = packed(here, episode)
    done = unpacked(body, there)
    assert (done.events, done.blobs, done.missing) == (3, 2, 0)
    assert events_of(there, episode) == events_of(here, episode)
    assert packed(there, episode) == body
    assert unpacked(body, here).state == "present"
    with Recorder(tmp_path / "a") as recorder, recorder.start("adopts"):
        pass
    assert packed(here, episode) == body


RECORDS_ALL_THE_TIME = """
import itertools, sys
from trackway.recording.recorder import Recorder
with Recorder(sys.argv[1]) as recorder:
    episode = recorder.start("never done")
    print(episode.id, flush=True)
    for k in itertools.count():
        episode.text("x" * (k % 900))
        if k % 50 == 0:
            episode.file_change("f.txt", before=f"{k - 50}", after=f"{k}")
        if k % 500 == 0 and not sys.stdin.buffer.raw.read(1):
            break
    episode.end("success")
"""


def test_packs_beside_a_busy_recorder(tmp_path):
    """Packs taken while another process records are whole, each goes on where the last one ended, none doubles."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS_ALL_THE_TIME, str(tmp_path / "a")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        episode = process.stdout.readline().strip()
        here, there = live_sqlite(tmp_path / "a"), live_sqlite(tmp_path / "b")
        counts = []
        for _ in range(4):
            process.stdin.write(".")
            process.stdin.flush()
            body = packed(here, episode)
            assert unpacked(body, here).state == "present"
            counts.append(unpacked(body, there).events)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    done = unpacked(packed(here, episode), there)
    assert counts == sorted(counts)
    assert [each.n for each in there.events(episode)] == list(range(done.events))
    assert packed(there, episode) == packed(here, episode)


def test_many_at_once_store_one(tmp_path):
    """Processes that unpack the same file at the same moment leave one episode behind; one of them was first."""
    path = tmp_path / "pack"
    path.write_bytes(packed(sealed(live_memory(tmp_path / "a"), rich_episode())))
    code = f"""
import sys
from pathlib import Path
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.sqlite import SqliteStore
from trackway.store.unpack import unpack
home, store = Path(sys.argv[1]), Path({str(tmp_path / "shared.db")!r})
sys.stdin.read()
with open({str(path)!r}, "rb") as file:
    print(unpack(file, LiveStore(Home(home), SqliteStore(store))).state)
"""
    # Two homes share one store, so seal.lock alone would not do.
    homes = [tmp_path / "h1", tmp_path / "h1", tmp_path / "h2", tmp_path / "h2"]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for home in homes
    ]
    for each in started:
        each.stdin.close()
    said = [each.stdout.read().strip() for each in started]
    for each in started:
        each.stdout.close()
        assert each.wait() == 0
    assert sorted(said) == ["new", "present", "present", "present"]
    live = LiveStore(Home(tmp_path / "h1"), SqliteStore(tmp_path / "shared.db"))
    assert packed(live) == path.read_bytes()


def test_what_another_homes_journal_will_bring_is_refused(tmp_path):
    """Into a store that two homes share, nobody brings by pack what a writer still has in its journal elsewhere."""
    writer = "e" * 16
    events = [msgspec.structs.replace(each, writer=writer) for each in small_episode()]
    there = live_sqlite(tmp_path / "b")
    there.store.seal(Batch(records(ID, events[:3]), writer, {}, START, Position(1, 500)))
    was = dump(there)
    with pytest.raises(PackRefused, match="journal of its writer, in another home"):
        unpacked(packed(sealed(live_memory(tmp_path / "a"), records(ID, events))), there)
    assert dump(there) == was


# --- failures on the way --------------------------------------------------------------------------------------------


def test_a_file_that_changes_while_it_is_read(tmp_path):
    """What is stored is what was checked, or nothing."""
    body = small_pack(tmp_path)
    other = end_of(HEADER, START_LINE)

    class Shifting(io.BytesIO):
        """Another file from its second reading on."""

        def seek(self, *args):
            if self.tell() > 100:
                super().seek(0)
                self.truncate()
                self.write(other)
            return super().seek(*args)

    live = live_sqlite(tmp_path / "b")
    with pytest.raises(PackRefused, match="changed while it was read"):
        unpack(Shifting(body), live)
    assert list(live.episodes()) == []


def test_a_store_that_fails_keeps_nothing(tmp_path):
    """Trouble in the middle of storing leaves the store as it was."""
    live = sealed(live_sqlite(tmp_path / "b"), records(ids.uuid7(AT, bytes(10)), small_episode()))
    was = dump(live)
    body = packed(sealed(live_memory(tmp_path / "a"), rich_episode()))

    lines = body.count(b"\n")
    left = iter(range(lines + lines // 2))

    def tired(_more):
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(io.BytesIO(body), live, done=tired)
    assert dump(live) == was
    assert unpacked(body, live).state == "new"
