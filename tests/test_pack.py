"""An episode as one file: the same bytes from every home, the same episode from the bytes, or nothing at all."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import msgspec
import pytest
import zstandard
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trackway.errors import EpisodeNotFound, EventRefused, StoreDamaged
from trackway.recording.recorder import Recorder
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.canonical import hash_bytes, name_of
from trackway.schema.marks import dumps
from trackway.store import pack as packing
from trackway.store import pack_reader
from trackway.store.base import Batch
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.memory import MemoryStore
from trackway.store.pack import PackRefused, as_packed, pack
from trackway.store.record import BLOB_PART, START, Position, Record, meta_of, pack_blob_part
from trackway.store.sqlite import SqliteStore
from trackway.store.unpack import unpack
from trackway.testing.events import any_event, records, small_episode

GOLDEN = Path(__file__).parent / "golden" / "pack-1.jsonl"
ID = ids.uuid7(1_800_000_000_000_000_000, bytes(range(10)))
AT = 1_800_000_000_000_000_000
W = "w" * 16


def live_sqlite(folder):
    """A home with the default store."""
    return LiveStore(Home(folder), SqliteStore(folder / "store.db"))


def live_memory(folder):
    """A home with a store that has no file."""
    return LiveStore(Home(folder), MemoryStore())


def packed(live, episode=ID):
    """The bytes of a pack."""
    file = io.BytesIO()
    pack(live, episode, file)
    return file.getvalue()


def unpacked(body, live):
    """Unpack these bytes."""
    return unpack(io.BytesIO(body), live)


def events_of(live, episode=ID):
    """The events but for what a store adds to them."""
    return [as_packed(each) for each in live.events(episode)]


def blob(number, *parts):
    """A blob on its way from a journal."""
    for i, part in enumerate(parts, start=1):
        body = pack_blob_part(number, part, last=i == len(parts))
        yield Record(meta_of(BLOB_PART, 0, 1), ids.to_bytes(ID) + body)


def state(body, mode=None):
    """A file's content by hash."""
    return kinds.FileState(hash=hash_bytes(body), size=len(body), mode=mode)


def sealed(live, *batches):
    """The home, with these records in its store."""
    for each in batches:
        live.store.seal(Batch(each))
    return live


def end_of(*lines):
    """The whole pack of these lines, its last line made true by counting as the format says."""
    body = b"".join(line if isinstance(line, bytes) else dumps(line).encode() + b"\n" for line in lines)
    trees = [json.loads(each) for each in body.splitlines()[1:]]
    blobs = {each["blob"]: "missing" in each for each in trees if "blob" in each}
    missing = sum(blobs.values())
    counts = {"events": sum("kind" in each for each in trees), "blobs": len(blobs) - missing, "missing": missing}
    end = {"trackway_pack_end": 1, **counts, "hash": name_of(blake3(body).digest())}
    return body + dumps(end).encode() + b"\n"


HEADER = {"trackway_pack": 1, "episode": ID, "schema": 1}
START_LINE = {"kind": "episode_start", "writer": W, "header": {"task": "t"}}


def dump(live):
    """Everything that is in a home's store, row by row; None where there is no store."""
    if not live.home.store.exists():
        return None
    with sqlite3.connect(live.home.store) as connection:
        found = list(connection.iterdump())
    connection.close()
    return found


def rich_episode():
    """One of everything that is hard to carry."""
    text = "é" * 150_000 + "\n"
    big = ("日本語 " * 530_000).encode()  # 5.3 MB; parts end inside characters
    binary = bytes(range(256)) * 5000
    raw = msgspec.msgpack.encode({"kind": "dream", "writer": W, "n": 12, "at": AT + 12, "depth": [1, {"x": None}]})
    newer = msgspec.msgpack.encode({"kind": "user", "content": "hi", "mood": {"calm": 1}, "writer": W, "n": 13})
    changes = [
        kinds.FileChange(op="modify", path="a.txt", before=state(b"old\n"), after=state(big, 0o644), writer=W, n=5),
        kinds.FileChange(op="create", path="b\ud800.bin", after=state(binary), writer=W, n=6, exact=False),
        kinds.FileChange(op="modify", path="c.txt", before=state(big), after=state(b""), writer=W, n=7),
        kinds.FileChange(op="modify", path="d.txt", before=state(b"nobody kept it"), writer=W, n=8),
    ]
    header = kinds.Header(id=ID, task="carry\ud83d it", tags=("a", "b"), metadata={1: 10**30, "$map": float("inf")})
    events = [
        kinds.EpisodeStart(header=header, writer=W, n=0, at=AT),
        kinds.User(content=text, writer=W, n=1, at=AT + 1),
        kinds.AssistantToolCall(name="x", args=b"\xff\x00not text", call_id="c", writer=W, n=2, at=AT + 2),
        kinds.ToolResult(call_id="c", content="\x00\x1b[31m\u2028", returned=b"\x80" * 9000, writer=W, n=3),
        kinds.ModelCall(id="m", tools=[{"name": "t" * 2000}], messages=({"content": "q" * 9000},), writer=W, n=4),
        *changes,
        kinds.Note(topic="other", text="from elsewhere", writer="v" * 16, n=0, at=AT + 3),
        kinds.Reward(value=1.5, writer=W, n=9),
        kinds.Reward(value=None, writer="v" * 16, n=1),
        kinds.Label(outcome="partial", by="me", writer="u" * 16, n=0),
    ]
    part = 999_983
    parts = [big[i : i + part] for i in range(0, len(big), part)]
    unknown = [Record(meta_of(1, 0, 999), ids.to_bytes(ID) + each) for each in (raw, newer)]
    return [
        *records(ID, events[:5]),
        *blob(1, b"old\n"),
        *blob(2, *parts),
        *blob(3, binary),
        *blob(4, b""),
        *records(ID, events[5:]),
        *unknown,
    ]


# --- there and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"), [(live_sqlite, live_sqlite), (live_sqlite, live_memory), (live_memory, live_sqlite)]
)
def test_an_episode_is_the_same_elsewhere(tmp_path, first, second):
    """Events, their order, files and summary; and a pack of it is the same, byte for byte."""
    here, there = sealed(first(tmp_path / "a"), rich_episode()), second(tmp_path / "b")
    body = packed(here)
    done = unpacked(body, there)

    assert (done.state, done.events, done.added, done.blobs, done.missing) == ("new", 15, 15, 4, 1)
    assert events_of(there) == events_of(here)
    assert [each.seq for each in there.events(ID)] == list(range(15))
    assert there.episode(ID) == here.episode(ID)
    for change in (each for each in here.events(ID) if isinstance(each, kinds.FileChange)):
        if change.after is not None:
            name = change.after.hash
            assert b"".join(there.blob(name)) == b"".join(here.blob(name))
    assert packed(there) == body


def test_a_pack_is_made_of_events_alone(tmp_path):
    """How far the store has come with its frames, and in how many batches, shows nowhere."""
    whole = rich_episode()
    end = list(records(ID, [kinds.EpisodeEnd(outcome="success", writer=W, n=20)]))
    at_once = sealed(live_sqlite(tmp_path / "a"), [*whole, *end])
    in_pieces = sealed(live_sqlite(tmp_path / "b"), whole[:4], whole[4:], end)
    no_frames = sealed(live_memory(tmp_path / "c"), [*whole, *end])
    assert packed(at_once) == packed(in_pieces) == packed(no_frames)
    assert packed(at_once) == packed(at_once)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(any_event, min_size=1, max_size=5))
def test_any_events_survive(tmp_path, events):
    """Whatever a recorder accepts is packed, unpacked and packed again without a difference."""
    here = sealed(live_memory(tmp_path / "a"), records(ID, events))
    there = live_memory(tmp_path / "b")
    body = packed(here)
    assert unpacked(body, there).added == len(events)
    assert events_of(there) == events
    assert packed(there) == body
    assert unpacked(body, there).state == "present"


def test_bytes_of_an_unknown_kind_are_kept(tmp_path):
    """They are not read and written again on the way, whoever wrote them."""
    raw = b"\xde\x00\x02\xa4kind\xd9\x05dream\xa1n\xcd\x00\x02"  # as no encoder of ours would
    here = sealed(live_sqlite(tmp_path / "a"), records(ID, [*small_episode(), kinds.Unknown(name="dream", raw=raw)]))
    there = live_sqlite(tmp_path / "b")
    unpacked(packed(here), there)
    assert list(there.events(ID))[-1].raw == raw
    assert packed(there) == packed(here)


def test_lines_are_for_anybody(tmp_path):
    """Strict JSON, a line each; a text file is text in it, every blob stands once, before the event that needs it."""
    content = "one\ntwo é\n".encode()
    change = kinds.FileChange(op="create", path="a", after=state(content), writer=W, n=6)
    again = kinds.FileChange(op="create", path="b", after=state(content), writer=W, n=7)
    here = sealed(
        live_memory(tmp_path), [*records(ID, small_episode()), *blob(1, content), *records(ID, [change, again])]
    )
    lines = [json.loads(line) for line in packed(here).decode().splitlines()]
    assert lines[0] == HEADER
    assert [line.get("kind", "") for line in lines[1:-1]] == [
        "episode_start", "user", "assistant_tool_call", "tool_result", "assistant_text", "episode_end",
        "", "file_change", "file_change",
    ]  # fmt: skip
    assert lines[7] == {"blob": state(content).hash, "text": "one\ntwo é\n"}
    assert {name: lines[-1][name] for name in ("events", "blobs", "missing")} == {"events": 8, "blobs": 1, "missing": 0}


def test_large_files_come_in_parts(tmp_path):
    """No line grows with a file; text is cut between characters, wherever the store cut it."""
    content = ("ä" * 1_500_001).encode()[1:-1]  # out of step with every even cut, and no text at its ends
    text = ("€" * 1_000_000).encode()
    events = [
        kinds.FileChange(op="create", path="a", after=state(content), writer=W, n=1),
        kinds.FileChange(op="create", path="b", after=state(text), writer=W, n=2),
    ]
    start = records(ID, small_episode()[:1])
    here = sealed(live_memory(tmp_path / "a"), [*start, *blob(1, content), *blob(2, text), *records(ID, events)])
    body = packed(here)
    trees = [json.loads(line) for line in body.splitlines()]
    assert max(map(len, body.splitlines())) < 1_500_000
    assert [tree.get("more") for tree in trees if "blob" in tree] == [True, True, None, True, True, None]
    assert all("text" in tree for tree in trees if tree.get("blob") == state(text).hash)
    there = live_sqlite(tmp_path / "b")
    unpacked(body, there)
    assert b"".join(there.blob(state(content).hash)) == content
    assert packed(there) == body


def test_missing_content_is_said(tmp_path):
    """A file whose content nobody kept stands in the pack as missing, and is counted."""
    changes = [
        kinds.FileChange(op="modify", path="a", before=state(b"old"), after=state(b"new"), writer=W, n=6),
        kinds.FileChange(op="modify", path="a", before=state(b"new"), after=state(b"old"), writer=W, n=7),
    ]
    here = sealed(live_sqlite(tmp_path / "a"), records(ID, [*small_episode(), *changes]))
    there = live_sqlite(tmp_path / "b")
    file = io.BytesIO()
    made = pack(here, ID, file)
    assert (made.blobs, made.missing, made.size) == (0, 2, len(file.getvalue()))
    assert {"blob": hash_bytes(b"old"), "missing": True} in map(json.loads, file.getvalue().splitlines())
    done = unpacked(file.getvalue(), there)
    assert (done.state, done.missing) == ("new", 2)
    assert packed(there) == file.getvalue()


def test_a_damaged_blob_is_not_packed(tmp_path):
    """Content that is not what its name says is no content."""
    here = sealed(live_memory(tmp_path), rich_episode())
    digest = bytes.fromhex(hash_bytes(b"old\n").removeprefix("blake3:"))
    here.store._blobs[digest] = b"new\n"
    with pytest.raises(StoreDamaged, match="not what its name says"):
        packed(here)


def test_an_episode_that_is_not_there(tmp_path):
    """Nothing is written for it."""
    with pytest.raises(EpisodeNotFound):
        packed(live_sqlite(tmp_path))


def test_memory_does_not_grow_with_files(tmp_path):
    """A file is never held whole, on the way out nor on the way in."""
    content = os.urandom(1 << 20) * 24
    change = kinds.FileChange(op="create", path="big", after=state(content), writer=W, n=6)
    parts = [content[i : i + (1 << 22)] for i in range(0, len(content), 1 << 22)]
    here = sealed(
        live_sqlite(tmp_path / "a"), [*records(ID, small_episode()), *blob(1, *parts), *records(ID, [change])]
    )
    there, path = live_sqlite(tmp_path / "b"), tmp_path / "pack"
    del content, parts
    tracemalloc.start()
    try:
        with path.open("wb") as file:
            pack(here, ID, file)
        with path.open("rb") as file:
            unpack(file, there)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 24 << 20


# --- an episode that is here already --------------------------------------------------------------------------------


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
        for _ in range(6):
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
    with pytest.raises(PackRefused, match="journal of its writer"):
        unpacked(packed(sealed(live_memory(tmp_path / "a"), records(ID, events))), there)
    assert dump(there) == was


# --- what is no pack ------------------------------------------------------------------------------------------------


def small_pack(tmp_path):
    """A short pack with a blob and a missing one."""
    change = kinds.FileChange(op="modify", path="a", before=state(b"gone"), after=state(b"new\n"), writer=W, n=6)
    live = live_memory(tmp_path / "small")
    return packed(sealed(live, [*records(ID, small_episode()), *blob(1, b"new\n"), *records(ID, [change])]))


def refuse(body, live, match=None):
    """It is refused, with one kind of error, and there is no store afterwards."""
    with pytest.raises(PackRefused, match=match) as caught:
        unpacked(body, live)
    assert dump(live) is None
    assert str(caught.value)
    return caught.value


def test_no_beginning_of_a_pack_is_one(tmp_path):
    """Cut off at any byte, a pack is refused before anything is stored."""
    body, live = small_pack(tmp_path), live_sqlite(tmp_path / "b")
    for length in range(len(body)):
        refuse(body[:length], live, "ends|empty")
    assert unpacked(body, live).state == "new"


def test_every_changed_byte_is_found(tmp_path):
    """No byte of a pack can be another one."""
    body, live = small_pack(tmp_path), live_sqlite(tmp_path / "b")
    for at in range(len(body)):
        for flip in (0x01, 0x20, 0x80):
            refuse(body[:at] + bytes([body[at] ^ flip]) + body[at + 1 :], live)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 4000), st.integers(0, 4000), st.binary(max_size=9))
def test_nothing_can_be_put_in_or_taken_out(tmp_path, start, length, instead):
    """Whatever replaces whatever, it is found."""
    body, live = small_pack(tmp_path), live_sqlite(tmp_path / "b")
    changed = body[:start] + instead + body[start + length :]
    if changed != body:
        refuse(changed, live)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: b"", "is empty: no pack"),
        (lambda body: b"\n", 'looked for a first line such as {"trackway_pack":1,'),
        (lambda body: b"Dear reader\n" + body, "is no pack: looked for .* found b'Dear reader"),
        (lambda body: b'{"kind":"user","content":"hi"}\n', "is no pack"),
        (lambda body: b"[1]\n", "is no pack"),
        (lambda body: body.replace(b"\n", b"\r\n"), r"line 1: its end was converted \(CRLF\)"),
        (lambda body: b"\xef\xbb\xbf" + body, "byte order mark"),
        (lambda body: body.decode().encode("utf-16"), "is UTF-16"),
        (lambda body: body.replace(b"it is red", b"it is r\xe9d"), "line 6: not UTF-8"),
        (lambda body: b"\x1f\x8b\x08\x00" + body, "gzip"),
        (lambda body: b"SQLite format 3\0" + body, "SQLite"),
        (lambda body: body.replace(b'"trackway_pack":1', b'"trackway_pack":2'), r"format 2, .* up to 1 .*pip install"),
        (lambda body: body.replace(b'"trackway_pack":1', b'"trackway_pack":true'), "is no pack"),
        (lambda body: body + body, "another pack follows after line 11"),
        (lambda body: body + b" ", "something follows"),
        (lambda body: body + b"\n", "something follows"),
        (lambda body: b"".join(body.splitlines(keepends=True)[:3] + body.splitlines(keepends=True)[4:]), "last line"),
        (lambda body: body.replace(b'"n":1', b'"n":9'), "not what was packed: its last line does not fit"),
    ],
)
def test_other_files_are_told_what_they_are(tmp_path, change, said):
    """What is no pack, or no longer one, is refused with what was looked for and what is there."""
    body, live = small_pack(tmp_path), live_sqlite(tmp_path / "b")
    refuse(change(body), live, said)


def raw_line(value, flags=b""):
    """An event of an unknown kind, as bytes."""
    body = value if isinstance(value, bytes) else msgspec.msgpack.encode(value)
    return {"kind": "dream", "$unknown": packing.base64_of(body)}


NAME = "blake3:" + "a" * 64
CHANGE = {"kind": "file_change", "op": "create", "path": "a", "after": {"hash": NAME, "size": 1}}
DREAM = {"kind": "dream"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([HEADER], "line 2: the pack holds no event"),
        ([HEADER | {"episode": "../../etc/passwd"}, START_LINE], "no id of an episode"),
        ([HEADER | {"episode": ID.upper()}, START_LINE], "no id of an episode"),
        ([HEADER | {"episode": 5}, START_LINE], "no id of an episode"),
        ([HEADER | {"schema": "x"}, START_LINE], "no schema number"),
        ([{"trackway_pack": 1}, START_LINE], "no id of an episode"),
        ([HEADER, HEADER, START_LINE], "line 2: it is neither"),
        ([HEADER, {"kind": 5}], "line 2: no event: it names no kind"),
        ([HEADER, {"kind": "user"}], "line 2: no event: .*content"),
        ([HEADER, {"kind": "dream", "n": 1}], "schema 1 has no kind 'dream'"),
        ([HEADER, {"kind": "user", "content": "", "at": "noon"}], "no moment"),
        ([HEADER, CHANGE], "line 2: it needs the blob blake3:aaa"),
        ([HEADER, {"blob": NAME, "missing": True}, START_LINE], "line 3: it is not the event that needs the blob"),
        ([HEADER, START_LINE, {"blob": NAME, "missing": True}], "needed by no event"),
        ([HEADER, {"blob": NAME, "text": "x"}, CHANGE], "is not what its name says"),
        ([HEADER, {"blob": NAME, "text": "x", "more": True}, CHANGE], "has not ended"),
        ([HEADER, {"blob": NAME, "text": "x", "more": True}, {"blob": hash_bytes(b""), "text": ""}], "has not ended"),
        ([HEADER, START_LINE, {"blob": NAME, "text": "x", "more": True}], "needed by no event"),
        ([HEADER, {"blob": NAME, "missing": True}, CHANGE, {"blob": NAME, "missing": True}, CHANGE], "there twice"),
        ([HEADER, {"blob": "blake3:../x", "text": ""}], "no name of a blob"),
        ([HEADER, {"blob": NAME, "base64": "?"}], "no content of a blob"),
        ([HEADER, {"blob": NAME, "text": 5}], "no content of a blob"),
        ([HEADER, b'{"blob":"%s","text":"\\ud800"}\n' % NAME.encode()], "no content of a blob"),
        ([HEADER, CHANGE | {"after": {"hash": "sha1:x", "size": 1}}], "it needs the blob sha1:x"),
        ([HEADER, raw_line(b"")], "line 2: these bytes are no event"),
        ([HEADER, raw_line([1])], "line 2: an event is a map"),
        ([HEADER, raw_line(DREAM | {"n": 7})], "not those of the event it says"),
        ([HEADER, raw_line({"kind": "nightmare"})], "not those of the event it says"),
        ([HEADER, raw_line(DREAM | {"x": msgspec.msgpack.Ext(3, bytes(32))})], "refers into a store"),
        ([HEADER, raw_line(DREAM | {"x": [msgspec.msgpack.Ext(6, bytes(4))]})], "refers into a store"),
        (
            [HEADER, raw_line(DREAM | {"x": msgspec.msgpack.Ext(8, b"\x91\x92\xa1a\xd6\x06\0\0\0\0")})],
            "refers into a store",
        ),
        ([HEADER, raw_line(DREAM | {"x": msgspec.msgpack.Ext(2, b"zz")})], "line 2: no event"),
        ([HEADER, raw_line(b"\x82\xa4kind\xa5dream\xa1x" + b"\x91" * 9000 + b"\xc0")], "line 2"),
        ([HEADER, {"kind": "user", "$msgpack": packing.base64_of(b"\xc1")}], "line 2: these bytes are no event"),
    ],
)
def test_hostile_packs_are_refused(tmp_path, lines, said):
    """A pack that is whole and true by its hash is not believed more than it can be checked."""
    refuse(end_of(*lines), live_sqlite(tmp_path), said)


def test_a_line_is_bounded(tmp_path, monkeypatch):
    """A line that never ends is not read to its end, from a compressed file either."""
    monkeypatch.setattr(pack_reader, "LONGEST_LINE", 1 << 20)
    live = live_sqlite(tmp_path)
    head = dumps(HEADER).encode() + b"\n"
    refuse(head + b" " * (1 << 21) + b"\n", live, "line 2: it is longer than")
    bomb = io.BytesIO(zstandard.ZstdCompressor(level=3).compress(head + bytes(1 << 28)))
    with pytest.raises(PackRefused, match="line 2: it is longer than"):
        unpack(bomb, live)
    assert bomb.tell() < len(bomb.getvalue())


def test_an_event_too_large_for_a_line(tmp_path, monkeypatch):
    """No pack is written that nobody could read."""
    monkeypatch.setattr(packing, "LONGEST_LINE", 1 << 10)
    with pytest.raises(PackRefused, match="more than a pack's line may"):
        packed(sealed(live_memory(tmp_path), records(ID, [kinds.User(content="x" * 2000)])))


def test_a_newer_versions_pack_is_kept(tmp_path):
    """Kinds and fields of a newer schema come in, and go out again with everything that was in them."""
    newer = {"kind": "dream", "writer": W, "n": 1, "at": "2027-01-15T08:00:00.000000000Z", "depth": [1.5]}
    field = {"kind": "user", "writer": W, "n": 2, "content": "hi", "mood": {"$integer": "99999999999999999999"}}
    live = live_sqlite(tmp_path / "a")
    unpacked(end_of(HEADER | {"schema": 9, "made": "later"}, START_LINE, newer, field), live)
    _, dream, user = live.events(ID)
    assert (dream.kind, dream.n, dream.at) == ("dream", 1, AT)
    assert msgspec.msgpack.decode(dream.raw)["depth"] == [1.5]
    assert user.unknown_fields == {"mood": 99999999999999999999}
    there = live_sqlite(tmp_path / "b")
    unpacked(packed(live), there)
    assert events_of(there) == events_of(live)


def test_other_programs_may_write_packs(tmp_path):
    """Spaces, order and spelling are theirs; what it says is what counts."""
    lines = [json.dumps(each, indent=None).encode() + b"\n" for each in (HEADER, START_LINE)]
    odd = b'{ "content" : "\\u00e9", "n" : 1, "writer" : "%s", "turn": 0, "kind" : "user" }\n' % W.encode()
    live = live_sqlite(tmp_path)
    unpacked(end_of(*lines, odd), live)
    assert events_of(live)[1] == kinds.User(content="é", n=1, writer=W)


# --- compressed -----------------------------------------------------------------------------------------------------


def test_compressed_packs(tmp_path):
    """A zstd file is known by its content; cut off at any byte or with anything behind it, it is refused."""
    body, live = small_pack(tmp_path), live_sqlite(tmp_path / "b")
    folded = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(body)
    for length in range(len(folded)):
        refuse(folded[:length], live)
    refuse(folded + b"\0", live, "decompress|not whole")
    refuse(folded + folded, live, "another pack follows")
    refuse(folded[:90] + bytes([folded[90] ^ 1]) + folded[91:], live)
    assert unpacked(folded, live).state == "new"
    assert packed(live) == body


def test_compressed_in_several_frames(tmp_path):
    """However a compressor cut it."""
    body = small_pack(tmp_path)
    compress = zstandard.ZstdCompressor().compress
    folded = b"".join(compress(body[i : i + 100]) for i in range(0, len(body), 100))
    assert unpacked(folded, live_sqlite(tmp_path / "b")).state == "new"


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

    def tired(count):
        if count == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack(io.BytesIO(body), live, seen=tired)
    assert dump(live) == was
    assert unpacked(body, live).state == "new"


# --- the golden file ------------------------------------------------------------------------------------------------


def golden_episode():
    """Every mark, every kind of line."""
    header = kinds.Header(id=ID, task="golden", tags=("a",), metadata={1: "é", "$text": b"\xff", "t": [1.0, -0.5e300]})
    events = [
        kinds.EpisodeStart(header=header, writer=W, at=AT),
        kinds.User(content="a\ud83d\\\x00\u2028", writer=W, n=1, at=AT + 123_456_789),
        kinds.AssistantToolCall(name="bash", args=b'{"cmd": "ls"}', call_id="c", writer=W, n=2, at=10**40),
        kinds.AssistantToolCall(name="bash", args=b"\xff", call_id="d", writer=W, n=2**53),
        kinds.Note(topic="t", detail={"nan": float("nan"), "n": -(2**64), "m": {"$map": 1}}, n=4),
        kinds.FileChange(op="modify", path="a", before=state(b"old\n"), after=state(b"\x00\x01"), writer=W, n=5),
        kinds.FileChange(op="delete", path="b", before=state(b"gone"), writer="v" * 16),
        kinds.User(content="hi", unknown_fields={"mood": 1}, n=6),
        kinds.Unknown(name="dream", raw=b"\x82\xa4kind\xa5dream\xa1n\x02", n=2),
        kinds.EpisodeEnd(outcome="success", score=0.1, writer=W, n=7),
    ]
    return [*records(ID, events[:5]), *blob(1, b"old\n"), *blob(2, b"\x00\x01"), *records(ID, events[5:])]


def test_packs_are_written_as_the_golden_file_says(tmp_path, golden):
    """A change of a single byte is a change of format, and is seen in review."""
    golden(GOLDEN, packed(sealed(live_sqlite(tmp_path), golden_episode())).decode())


def test_a_golden_pack_is_read(tmp_path):
    """The pack of format 1 as first written comes in equal, forever."""
    here, there = sealed(live_memory(tmp_path / "a"), golden_episode()), live_sqlite(tmp_path / "b")
    unpacked(GOLDEN.read_bytes(), there)
    assert list(map(repr, events_of(there))) == list(map(repr, events_of(here)))
    assert packed(there) == GOLDEN.read_bytes()
