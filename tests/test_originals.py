"""Imported files: cut where they say the same, kept once, given back as they were."""

import sqlite3

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.errors import BlobNotFound
from trackway.schema.canonical import hash_bytes
from trackway.store.base import Batch, Query
from trackway.store.choice import Criteria
from trackway.store.home import Home
from trackway.store.memory import MemoryStore
from trackway.store.originals import LEAST, MOST, Hashing, cut
from trackway.store.retention import Retention
from trackway.store.sqlite import SqliteStore
from trackway.store.verify import verify
from trackway.testing.contract_originals import OriginalsContract, incoming, lines
from trackway.testing.events import records, small_episode

FIRST, SECOND, THIRD = (f"00000000-0000-4000-8000-00000000000{i}" for i in range(3))


class TestSqlite(OriginalsContract):
    def make(self, tmp_path):
        """In a file."""
        return SqliteStore(tmp_path / "store.db")


class TestMemory(OriginalsContract):
    def make(self, tmp_path):
        """In this process."""
        return MemoryStore()


@pytest.fixture
def store(tmp_path):
    """A store with two episodes and a file about both."""
    made = SqliteStore(tmp_path / "store.db")
    events = [each for episode in (FIRST, SECOND) for each in records(episode, small_episode())]
    made.seal(Batch(events, originals=[incoming(BODY, FIRST, SECOND)], is_whole=True))
    yield made
    made.close()


BODY = lines(60_000)


def count(store, table):
    """How many rows there are."""
    return store._rows(f"SELECT count(*) FROM {table}", ())[0][0]


@given(st.lists(st.binary(max_size=400_000), max_size=8), st.integers(1, 500_000))
def test_cutting_loses_nothing(blocks, size):
    """Pieces put together are the file, whatever blocks it came in, and none is too large."""
    body = b"".join(blocks)
    pieces = list(cut(body[i : i + size] for i in range(0, len(body), size)))

    assert b"".join(pieces) == body
    assert pieces == list(cut([body]))
    assert all(0 < len(each) <= MOST for each in pieces)


def test_a_longer_file_has_the_same_beginning():
    """All pieces of a file but its last are pieces of what it grows into."""
    whole = lines(80_000)
    short = list(cut([whole[: len(whole) // 2]]))

    assert len(short) > 3
    assert short[:-1] == list(cut([whole]))[: len(short) - 1]


def test_a_slice_has_most_of_the_pieces():
    """A file that begins later is cut at the same lines from some line on."""
    whole = lines(200_000)
    pieces = set(cut([whole]))
    sliced = list(cut([whole[whole.index(b"\n", LEAST // 3) + 1 :]]))

    shared = sum(each in pieces for each in sliced)
    assert shared > len(sliced) // 2


def test_the_hash_of_what_it_was():
    """While a file passes, the hash of its beginning is told too."""
    hashing = Hashing(1000)

    assert b"".join(hashing.passing([BODY[:700], BODY[700:5000], BODY[5000:]])) == BODY
    assert (hashing.name, hashing.earlier) == (hash_bytes(BODY), hash_bytes(BODY[:1000]))


def test_what_one_episode_takes_along(store):
    """Of a file about two episodes, the parts that hold one go with it; the rest stays, and the hole is said."""
    before = count(store, "parts")

    store.drop([FIRST])

    (found,) = store.originals(SECOND)
    assert 0 < count(store, "parts") < before
    with pytest.raises(BlobNotFound, match="went with an episode that was pruned"):
        list(store.original(found.hash))
    assert verify(store, Home(store.path.parent)).is_sound

    store.drop([SECOND])

    assert [count(store, each) for each in ("originals", "parts", "original_parts", "original_episodes")] == [0] * 4


def test_importing_again_fills_the_hole(store):
    """What a prune took comes back with the file."""
    store.drop([FIRST])

    events = list(records(FIRST, small_episode()))
    store.seal(Batch(events, originals=[incoming(BODY, FIRST, SECOND)], is_whole=True))

    (found,) = store.originals(FIRST)
    assert b"".join(store.original(found.hash)) == BODY


def test_a_time_nobody_told(store):
    """An episode without times has none: it is not old, and no question about times finds it."""
    timeless = [msgspec.structs.replace(each, at=0, writer="i" * 16) for each in small_episode()]
    store.seal(Batch(records(THIRD, timeless)))

    assert store.episode(THIRD).started_at is None
    assert {each.id for each in store.episodes(Query(until=2**62))} == {FIRST, SECOND}
    assert not Query(until=2**62).takes(store.episode(THIRD))
    assert not Criteria(limits=Retention(max_age="1s")).condemns(store.episode(THIRD), 0, now=2**62)


def test_copies_share_their_parts(store):
    """A second file that is the first and a little more costs the little more."""
    before = count(store, "parts")

    store.seal(Batch([], originals=[incoming(BODY + lines(10, "more"), FIRST, name="b.jsonl")]))

    assert count(store, "parts") == before + 1
    assert len(store.originals(FIRST)) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE parts SET body = zeroblob(length(body)) WHERE id = 1",
        "DELETE FROM parts WHERE id = 1",
        "DELETE FROM original_parts WHERE start > 0",
        "UPDATE originals SET about = substr(about, 1, 20)",
        "DELETE FROM original_episodes",
        "UPDATE original_parts SET part = 1",
    ],
)
def test_damage_is_found(store, sql):
    """Verifying names a file that is not what it was."""
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute(sql)
    connection.close()

    found = verify(store, Home(store.path.parent))

    assert any("imported" in each.where for each in found.damage)
