"""Packs for tests: homes to pack from and to unpack into, episodes that are hard to carry, packs made by hand."""

import io
import json
import sqlite3

import msgspec
import pytest
from blake3 import blake3

from trackway.errors import PackRefused
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.canonical import hash_bytes, name_of
from trackway.schema.marks import dumps
from trackway.store.base import Batch
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.memory import MemoryStore
from trackway.store.pack import as_packed, pack
from trackway.store.record import BLOB_PART, Record, meta_of, pack_blob_part
from trackway.store.sqlite import SqliteStore
from trackway.store.unpack import unpack
from trackway.testing.events import records, small_episode

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
