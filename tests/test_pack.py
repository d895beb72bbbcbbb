"""An episode as one file: the same bytes from every home, and the same episode from the bytes."""

import io
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.packing import (
    AT,
    HEADER,
    ID,
    W,
    blob,
    events_of,
    live_memory,
    live_sqlite,
    packed,
    rich_episode,
    sealed,
    state,
    unpacked,
)
from trackway.errors import EpisodeNotFound, StoreDamaged
from trackway.schema import events as kinds
from trackway.schema.canonical import hash_bytes
from trackway.store.pack import pack
from trackway.store.unpack import unpack
from trackway.testing.events import any_event, records, small_episode

GOLDEN = Path(__file__).parent / "golden" / "pack-1.jsonl"


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


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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
    content = os.urandom(1 << 20) * 20
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
    assert path.stat().st_size > 20 << 20


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
