"""Verifying: every kind of damage is found and named, derived rows are made again, and truth is never touched."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.brief import briefs_of
from trackway.schema.canonical import hash_bytes
from trackway.schema.codec import Encoded, decode, encode
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.version import SCHEMA
from trackway.store.base import Batch
from trackway.store.frames import BOUND, Packer, array_of, check, check_at, mark_of
from trackway.store.home import Home
from trackway.store.memory import MemoryStore
from trackway.store.record import BLOB_PART, Record, meta_of, pack_blob_part
from trackway.store.sqlite import SqliteStore
from trackway.store.verify import verify
from trackway.testing.events import any_event, records, small_episode

ENDED = ids.uuid7(1_800_000_000_000_000_000, bytes(range(10)))
OPEN = ids.uuid7(1_800_000_100_000_000_000, bytes(range(10)))
BIG = os.urandom(1_600_000)
TEXT = "some text " * 900
DERIVED = ("episodes", "episode_tools", "episode_tags", "blob_refs")
TRUTH = ("frames", "tail", "blobs", "chunks")


@pytest.fixture
def store(tmp_path):
    """An ended episode of three frames, with blobs, one of them in chunks; an open one in the tail."""
    made = SqliteStore(tmp_path / "store.db")
    start, *rest, end = small_episode()
    start = kinds.EpisodeStart(header=kinds.Header(id=ENDED, task="whole", tags=("nightly",)), writer="w", n=0, at=5)
    notes = [kinds.Note(topic=f"note {i}", n=i, writer="w") for i in range(2100)]
    state = kinds.FileState(hash=hash_bytes(BIG), size=len(BIG))
    part = Record(meta_of(BLOB_PART, 0, 1), ids.to_bytes(ENDED) + pack_blob_part(1, BIG, last=True))
    change = kinds.FileChange(op="create", path="a.bin", after=state)
    result = kinds.ToolResult(call_id="c", content=TEXT)
    made.seal(Batch([part, *records(ENDED, [start, *rest, *notes, change, result, end])]))
    made.seal(Batch(records(OPEN, [*small_episode()[:-1], kinds.ToolResult(call_id="d", content=TEXT)])))
    made.close()
    return made


def looked(store, **how):
    """What verifying says."""
    return verify(store, Home(store.path.parent), **how)


def break_it(store, sql, *values):
    """Change the file behind the store's back."""
    store.close()
    connection = sqlite3.connect(store.path)
    done = connection.execute(sql, values).rowcount
    connection.commit()
    connection.close()
    assert done != 0, "nothing was broken"


def tables(store, names):
    """Everything in these tables."""
    connection = sqlite3.connect(store.path)
    found = {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in names}
    connection.close()
    return found


def flipped(store, table, where="1"):
    """Flip a bit in the middle of a stored body."""
    store.close()
    connection = sqlite3.connect(store.path)
    rowid, body = connection.execute(
        f"SELECT {'seq' if table == 'tail' else 'rowid'}, body FROM {table} WHERE {where} LIMIT 1"
    ).fetchone()
    broken = bytearray(body)
    broken[len(body) // 2] ^= 0x10
    key = "seq" if table == "tail" else "rowid"
    connection.execute(f"UPDATE {table} SET body = ? WHERE {key} = ? AND {where}", (bytes(broken), rowid))
    connection.commit()
    connection.close()


def test_a_sound_store(store):
    """Everything is looked at, and nothing is wrong."""
    found = looked(store)

    assert found.is_sound
    assert (found.episodes, found.events, found.blobs) == (2, 2108 + 6, 2)
    assert (found.damage, found.differences, found.orphans, found.quarantined) == ((), (), 0, 0)


def test_no_store_yet(tmp_path):
    """Where nothing is, nothing is wrong, and nothing is made."""
    assert looked(SqliteStore(tmp_path / "none/store.db")).is_sound
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(batches=st.lists(st.lists(st.tuples(st.booleans(), any_event), max_size=5), max_size=4))
def test_whatever_was_sealed_verifies(tmp_path_factory, batches):
    """Any events, in any batches: the rows are those that verifying derives, and fixing finds nothing to do."""
    store = SqliteStore(tmp_path_factory.mktemp("any") / "store.db")
    for batch in batches:
        store.seal(Batch([each for ended, event in batch for each in records(ENDED if ended else OPEN, [event])]))

    found = looked(store)

    assert (found.damage, found.differences) == ((), ())
    assert found.events == sum(map(len, batches))
    store.close()


@given(events=st.lists(any_event, max_size=8), cut=st.integers(0, 8))
def test_a_fold_goes_on_where_it_stopped(events, cut):
    """A summary does not depend on how the events came in batches."""
    empty = EpisodeSummary(id=ENDED)

    assert repr(fold(fold(empty, events[:cut]), events[cut:])) == repr(fold(empty, events))


@given(events=st.lists(any_event, max_size=8))
def test_a_fold_over_briefs_is_the_same(events):
    """Reading past everything large changes no summary."""
    encoded = [encode(each) for each in events]
    plain = [each.body for each in encoded if not each.flags and each.schema == SCHEMA]
    whole = [decode(Encoded(each)) for each in plain]
    briefs = briefs_of(array_of(plain))
    empty = EpisodeSummary(id=ENDED)

    assert briefs is not None
    assert repr(fold(empty, briefs)) == repr(fold(empty, whole))


# --- damaged truth ---------------------------------------------------------------------------------------------------


def damage(store, where):
    """What is damaged in one place, as (what, first, last); fixing changes neither that nor a single stored byte."""
    before = tables(store, TRUTH)
    found = looked(store)
    again = looked(store, fix=True)
    assert not found.is_sound
    assert again.damage == found.damage
    assert tables(store, TRUTH) == before
    return [(each.what, each.first, each.last) for each in found.damage if each.where == where]


def readable(store, where):
    """How many events of a damaged episode can be read, of how many."""
    return next((each.events, each.stored) for each in looked(store).readable if each.where == where)


def test_a_flipped_bit_in_a_frame(store):
    """The events of that frame are named, the others counted as readable."""
    flipped(store, "frames", "first_seq = 1024")

    [(what, first, last)] = damage(store, ENDED)
    assert ("checksum" in what, first, last) == (True, 1024, 2047)
    assert readable(store, ENDED) == (2108 - 1024, 2108)


def test_a_frame_that_is_gone(store):
    """What is missing between others, and at the end, is named."""
    break_it(store, "DELETE FROM frames WHERE first_seq = 1024")
    assert damage(store, ENDED) == [("missing", 1024, 2047)]

    break_it(store, "DELETE FROM frames WHERE first_seq = 2048")
    assert damage(store, ENDED) == [("missing", 1024, 2107)]
    assert readable(store, ENDED) == (1024, 2108)


def test_a_frame_of_another_content(store):
    """Bytes that are sound and hold another number of events, or no events, are found."""
    body = Packer().pack([b"\x80"] * 3, [1] * 3).bound(1, 0)
    break_it(store, "UPDATE frames SET body = ?, checksum = ? WHERE first_seq = 0", body.body, body.checksum)
    assert damage(store, ENDED) == [("their frame holds 3 events", 0, 1023)]

    garbage = Packer().deflate(b"\xc1 no msgpack")
    break_it(store, "UPDATE frames SET body = ?, checksum = ? WHERE first_seq = 0", garbage, check(garbage))
    [(_, first, last)] = damage(store, ENDED)
    assert (first, last) == (0, 1023)


def test_flags_that_do_not_fit(store):
    """A frame that refers to blobs and does not say so would be read as something else."""
    [(body,)] = store._rows("SELECT body FROM frames WHERE first_seq = 2048", ())
    checksum = check_at(body, 1, seq=2048, mark=mark_of(0, SCHEMA))
    break_it(store, "UPDATE frames SET flags = ?, checksum = ? WHERE first_seq = 2048", BOUND, checksum)

    assert damage(store, ENDED) == [("its flags are 0, its bytes need 2", 2106, 2106)]
    assert readable(store, ENDED) == (2107, 2108)


def test_a_flipped_bit_in_the_tail(store):
    """The one event is named."""
    flipped(store, "tail", "seq = 3")

    assert damage(store, OPEN) == [("the checksum does not hold", 3, 3)]
    break_it(store, "DELETE FROM tail WHERE seq = 1")
    assert damage(store, OPEN) == [("missing", 1, 1), ("the checksum does not hold", 3, 3)]
    break_it(store, "DELETE FROM tail WHERE seq = 5")
    assert damage(store, OPEN)[-1] == ("missing", 5, 5)
    assert readable(store, OPEN) == (3, 6)


def test_a_blob_that_is_not_what_its_name_says(store):
    """Every event that needs it is named, in every episode; and so is the blob."""
    text, name = TEXT.encode(), hash_bytes(TEXT.encode())
    flipped(store, "blobs", "body IS NOT NULL")
    [(what, _, _)] = damage(store, name)
    assert "checksum" in what
    assert ENDED in what
    assert OPEN in what
    assert damage(store, ENDED) == [(f"needs {name}, which is damaged", 2106, 2106)]
    assert damage(store, OPEN) == [(f"needs {name}, which is damaged", 5, 5)]

    other = Packer().deflate(text.replace(b"text", b"TEXT"))
    break_it(store, "UPDATE blobs SET body = ?, checksum = ? WHERE body IS NOT NULL", other, check(other))
    assert damage(store, name)[0][0].startswith("the content is not what its name says")
    break_it(store, "DELETE FROM blobs WHERE body IS NOT NULL")
    assert damage(store, ENDED) == [(f"needs {name}, which is missing", 2106, 2106)]
    assert damage(store, OPEN) == [(f"needs {name}, which is missing", 5, 5)]


def test_chunks(store):
    """A chunk that is damaged or missing makes the blob damaged."""
    name = hash_bytes(BIG)
    flipped(store, "chunks", "i = 1")
    assert "checksum of chunk 1 does not hold" in damage(store, name)[0][0]
    break_it(store, "DELETE FROM chunks WHERE i = 1")
    assert damage(store, name)[0][0].startswith("1,048,576 of 1,600,000 bytes are there")
    break_it(store, "DELETE FROM blobs WHERE body IS NULL")
    assert damage(store, "blobs") == [("1 lost their rows: chunks of them are there", None, None)]


def test_damage_below_the_rows(store):
    """Pages that SQLite itself cannot read are told, not raised."""
    store.close()
    raw = bytearray(store.path.read_bytes())
    page = store.path.stat().st_size // 4096 // 2 * 4096
    raw[page : page + 3 * 4096] = b"\xa5" * 3 * 4096
    store.path.write_bytes(raw)

    found = looked(store)

    assert not found.is_sound
    assert found.damage


@pytest.mark.parametrize("value", ["7", "'text'", "cast(x'ff' AS TEXT)"])
def test_what_is_of_another_kind(store, value):
    """A number or a text where bytes should be is damage like any other."""
    break_it(store, f"UPDATE frames SET body = {value} WHERE first_seq = 1024")
    break_it(store, f"UPDATE tail SET body = {value} WHERE seq = 2")
    break_it(store, f"UPDATE blobs SET body = {value} WHERE body IS NOT NULL")

    assert len(looked(store).damage) >= 3
    assert not looked(store).is_sound


def test_rows_are_not_made_from_damaged_truth(store):
    """Where an event cannot be read, what is derived from all of them stays as it is."""
    flipped(store, "frames", "first_seq = 0")
    break_it(store, "UPDATE episodes SET task = 'other'")
    before = tables(store, DERIVED)["episodes"]

    looked(store, fix=True)

    after = tables(store, DERIVED)["episodes"]
    assert after[0] == before[0]
    assert after[1] != before[1]


# --- derived rows ----------------------------------------------------------------------------------------------------

BREAKS = {
    "summary": "UPDATE episodes SET summary = x'80' WHERE id = 1",
    "an unreadable summary": "UPDATE episodes SET summary = x'c1' WHERE id = 1",
    "task": "UPDATE episodes SET task = 'other' WHERE id = 1",
    "score": "UPDATE episodes SET score = 0.5 WHERE id = 1",
    "started_at": "UPDATE episodes SET started_at = 1 WHERE id = 2",
    "n_events": "UPDATE episodes SET n_events = 1 WHERE id = 2",
    "next_seq too high": "UPDATE episodes SET next_seq = 9000 WHERE id = 1",
    "next_seq too low": "UPDATE episodes SET next_seq = 1 WHERE id = 2",
    "tail_events": "UPDATE episodes SET tail_events = 1 WHERE id = 2",
    "tail_bytes": "UPDATE episodes SET tail_bytes = 1 WHERE id = 2",
    "tools gone": "DELETE FROM episode_tools",
    "a tool too many": "INSERT INTO episode_tools VALUES ((SELECT id FROM words WHERE word = 'nightly'), 1)",
    "a tool of no word": "INSERT INTO episode_tools VALUES (999, 1)",
    "tags gone": "DELETE FROM episode_tags",
    "words gone": "DELETE FROM words",
    "refs gone": "DELETE FROM blob_refs",
    "a ref too many": "INSERT INTO blob_refs SELECT id, 2 FROM blobs WHERE body IS NULL",
    "a ref to nothing": "INSERT INTO blob_refs VALUES (999, 1)",
    "a ref of nobody": "INSERT INTO blob_refs VALUES (1, 999)",
    "a tool of nobody": "INSERT INTO episode_tools VALUES (1, 999)",
    "the row": "DELETE FROM episodes WHERE id = 1",
}


@pytest.mark.parametrize("sql", BREAKS.values(), ids=BREAKS.keys())
def test_derived_rows_are_made_again(store, sql):
    """Whatever differs is told, changes nothing by itself, and is made again when asked for, exactly."""
    before, words = tables(store, DERIVED), tables(store, ("words",))
    break_it(store, sql)
    broken = tables(store, (*DERIVED, *TRUTH))

    told = looked(store)
    assert (told.is_sound, told.damage, told.fixed) == (False, (), False)
    assert told.differences
    assert tables(store, (*DERIVED, *TRUTH)) == broken

    fixed = looked(store, fix=True)
    assert (fixed.is_sound, fixed.orphans) == (True, 0)
    assert set(fixed.differences) <= set(told.differences)  # to mend one may mend another
    assert looked(store).differences == ()
    assert tables(store, TRUTH) == {name: broken[name] for name in TRUTH}
    if "words" not in sql:
        assert tables(store, DERIVED) == before
        assert tables(store, ("words",)) == words


def test_an_episode_without_a_name(store):
    """Events whose row is gone and that do not say their id are named by number, and stay."""
    break_it(store, "DELETE FROM episodes WHERE id = 2")

    [(what, first, last)] = damage(store, "number 2")
    assert ("row is gone" in what, first, last) == (True, 0, 5)


def test_blobs_nobody_needs_are_counted(store):
    """What a dead process left without its event is told; it is no damage, and it stays."""
    part = Record(meta_of(BLOB_PART, 0, 1), ids.to_bytes(OPEN) + pack_blob_part(1, b"nobody", last=True))
    store.seal(Batch([part]))

    found = looked(store, fix=True)

    assert (found.is_sound, found.orphans, found.blobs) == (True, 1, 3)
    assert found.orphan_bytes > 0


def test_what_was_put_aside_is_counted(store):
    """The records in quarantine are part of the answer."""
    folder = store.path.parent / "quarantine"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"reason": "?"}))
    (folder / "a.bin").write_bytes(b"?")

    assert looked(store).quarantined == 1


def test_other_stores_are_verified_by_reading():
    """A store that is no file: every event is read and the summary compared."""
    store = MemoryStore()
    store.seal(Batch(records(ENDED, small_episode())))
    home = Home(Path("nowhere"))
    assert verify(store, home)[:2] == (1, 6)
    assert verify(store, home).is_sound

    store._summaries[ENDED] = EpisodeSummary(id=ENDED, task="other")
    assert [each.where for each in verify(store, home).differences] == [ENDED]


def test_it_tells_how_far_it_is(store):
    """Whoever waits is told what is being done."""
    said = []

    looked(store, progress=lambda what, done, total: said.append((what, done, total)))

    assert [each[0] for each in said] == ["checking the file", "checking blobs", *["checking episodes"] * 2]
    assert said[-1] == ("checking episodes", 1, 2)
