"""What is no whole pack is refused, says why, and leaves nothing behind."""

import io
import json

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.packing import (
    AT,
    HEADER,
    ID,
    START_LINE,
    W,
    end_of,
    events_of,
    live_memory,
    live_sqlite,
    packed,
    refuse,
    sealed,
    small_pack,
    unpacked,
)
from trackway.errors import PackRefused
from trackway.schema import events as kinds
from trackway.schema.canonical import hash_bytes
from trackway.schema.marks import base64_of, dumps
from trackway.store import pack as pack_writer
from trackway.store import pack_reader
from trackway.store.unpack import unpack
from trackway.testing.events import records


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
        flip = 1 << at % 8
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
    return {"kind": "dream", "$unknown": base64_of(body)}


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
        ([HEADER, {"kind": "user", "$msgpack": base64_of(b"\xc1")}], "line 2: these bytes are no event"),
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
    monkeypatch.setattr(pack_writer, "LONGEST_LINE", 1 << 10)
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
