"""What every store must do. Subclass it in a test file, say how a store is made, and pytest runs the rest.

class TestMyStore(StoreContract):
    def make(self, tmp_path):
        return MyStore(tmp_path)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trackway.errors import BlobNotFound, EpisodeNotFound, EventRefused, TrackwayError
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import Event
from trackway.store.base import Batch, Query, Store
from trackway.store.record import BLOB_PART, EVENT, START, Position, Record, meta_of, pack_blob_part
from trackway.testing.events import records, small_episode

_ID = ids.uuid7(1_800_000_000_000_000_000, bytes(range(10)))
_OTHER = ids.uuid7(1_800_000_100_000_000_000, bytes(range(5, 15)))


def bare(events: Any) -> list[Event]:  # noqa: ANN401  any iterable of events
    """The events without the ``seq`` a store gave them: what was recorded."""
    return [msgspec.structs.replace(each, seq=None) for each in events]


class StoreContract:
    """Behaviours every store shares."""

    def make(self, tmp_path: Path) -> Store:
        """A fresh, empty store."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Any:  # noqa: ANN401  a generator of stores
        """The store under test."""
        made = self.make(tmp_path)
        yield made
        made.close()

    def test_gives_back_what_was_sealed(self, store: Store) -> None:
        """Events come back equal, in order, numbered from 0."""
        events = small_episode()

        count = store.seal(Batch(records(_ID, events)))

        found = list(store.events(_ID))
        assert count == len(events)
        assert bare(found) == events
        assert [each.seq for each in found] == list(range(len(events)))

    def test_an_empty_store_is_empty(self, store: Store) -> None:
        """Nothing is there, and asking for it says so."""
        assert list(store.episodes()) == []
        assert store.find("last") == []
        assert store.position("nobody") == START
        with pytest.raises(EpisodeNotFound):
            store.episode(_ID)
        with pytest.raises(EpisodeNotFound):
            list(store.events(_ID))
        with pytest.raises(BlobNotFound):
            list(store.blob(hash_bytes(b"never")))

    def test_summarises(self, store: Store) -> None:
        """A summary is the fold of the events."""
        store.seal(Batch(records(_ID, small_episode())))

        summary = store.episode(_ID)

        assert (summary.id, summary.task, summary.agent, summary.model) == (_ID, "fix the flaky test", "demo", "m")
        assert (summary.outcome, summary.score, summary.n_events, summary.n_steps, summary.n_errors) == (
            "failure",
            0,
            6,
            1,
            1,
        )
        assert summary.tools == ("bash",)
        assert summary.ended_at == 1_800_000_005_000_000_000

    def test_grows_in_pieces(self, store: Store) -> None:
        """An episode sealed one event at a time reads like one sealed at once."""
        events = small_episode()
        for each in events:
            store.seal(Batch(records(_ID, [each])))

        assert bare(store.events(_ID)) == events
        assert bare(store.events(_ID, after=3)) == events[4:]
        assert store.episode(_ID).n_events == len(events)

    def test_many_events_keep_their_order(self, store: Store) -> None:
        """Frames, tails and what lies between them read as one list."""
        notes = [kinds.Note(topic=f"{i}", n=i, writer="w") for i in range(1500)]
        for start in range(0, 1500, 130):
            store.seal(Batch(records(_ID, notes[start : start + 130])))

        assert bare(store.events(_ID)) == notes
        assert bare(store.events(_ID, after=699)) == notes[700:]

    def test_a_batch_goes_on_where_the_last_one_ended(self, store: Store) -> None:
        """The position is kept with the events; a batch that starts elsewhere is refused and leaves nothing."""
        events = small_episode()
        here = Position(1, 500)
        store.seal(Batch(records(_ID, events[:3]), "w1", {}, START, here))
        assert store.position("w1") == here

        with pytest.raises(TrackwayError):
            store.seal(Batch(records(_ID, events[:3]), "w1", {}, START, here))

        assert bare(store.events(_ID)) == events[:3]
        store.seal(Batch(records(_ID, events[3:]), "w1", {}, here, Position(2, 64)))
        assert bare(store.events(_ID)) == events

    def test_a_batch_is_stored_whole_or_not_at_all(self, store: Store) -> None:
        """A record that cannot be read back leaves nothing of its batch, and the position where it was."""
        good = list(records(_ID, small_episode()))
        broken = good[0]._replace(whole=ids.to_bytes(_ID) + b"\x01")

        with pytest.raises(Exception, match=r".*"):
            store.seal(Batch([*good, broken], "w1", {}, START, Position(1, 500)))

        assert store.position("w1") == START
        assert list(store.episodes()) == []

    def test_large_values_come_back_and_equal_ones_are_blobs(self, store: Store) -> None:
        """Text and bytes of any size survive, and can be read by hash, piece by piece."""
        text, raw = "é" * 1_500_000, b"\x00\xff" * 3000
        events = [
            kinds.ToolResult(call_id="c", content=text, n=0),
            kinds.ToolResult(call_id="d", content=text, n=1),
            kinds.AssistantToolCall(name="x", args=raw, call_id="c", n=2),
            kinds.ModelCall(
                id="m", tools=[{"name": "t" * 2000}], messages=({"role": "user", "content": "q" * 9000},), n=3
            ),
        ]

        store.seal(Batch(records(_ID, events)))

        assert bare(store.events(_ID)) == events
        assert b"".join(store.blob(hash_bytes(text.encode()))) == text.encode()
        assert b"".join(store.blob(hash_bytes(raw))) == raw

    def test_blob_parts_become_one_blob(self, store: Store) -> None:
        """What a journal wrote in parts is one blob by its whole hash."""
        parts = [b"a" * 1_300_000, b"b" * 1_300_000, b"c"]
        whole = b"".join(parts)
        state = kinds.FileState(hash=hash_bytes(whole), size=len(whole))
        change = kinds.FileChange(op="create", path="big.bin", after=state)
        batch = [
            Record(meta_of(BLOB_PART, 0, 1), ids.to_bytes(_ID) + pack_blob_part(1, part, last=part == b"c"))
            for part in parts
        ]

        store.seal(Batch([*batch, *records(_ID, [change])]))

        assert bare(store.events(_ID)) == [change]
        assert b"".join(store.blob(state.hash)) == whole

    def test_drops_what_only_the_episode_needs(self, store: Store) -> None:
        """An episode goes with the blobs it alone needs; those of others stay, and so do positions."""
        own, shared, state = "own " * 2000, "shared " * 2000, kinds.FileState(hash=hash_bytes(b"file"), size=4)
        part = Record(meta_of(BLOB_PART, 0, 1), ids.to_bytes(_ID) + pack_blob_part(1, b"file", last=True))
        events = [
            *small_episode(),
            kinds.ToolResult(call_id="c", content=own, n=6),
            kinds.ToolResult(call_id="d", content=shared, n=7),
            kinds.FileChange(op="create", path="a", after=state, n=8),
        ]
        others = [*small_episode(), kinds.ToolResult(call_id="e", content=shared, n=6)]
        store.seal(Batch([part, *records(_ID, events)], "w1", {}, START, Position(1, 500)))
        store.seal(Batch(records(_OTHER, others)))

        gone = store.drop([_ID, _ID, ids.uuid7(1, bytes(10))])

        assert (gone.ids, gone.events, gone.blobs) == ((_ID,), len(events), 2)
        assert gone.bytes > 0
        assert [each.id for each in store.episodes()] == [_OTHER]
        assert store.find(_ID) == []
        for name in (hash_bytes(own.encode()), state.hash):
            with pytest.raises(BlobNotFound):
                list(store.blob(name))
        with pytest.raises(EpisodeNotFound):
            list(store.events(_ID))
        assert bare(store.events(_OTHER)) == others
        assert store.position("w1") == Position(1, 500)
        assert [each.id for each in store.episodes(Query(tool="bash", tag="nightly"))] == [_OTHER]
        assert store.drop([_ID]).ids == ()
        last = store.drop([_OTHER])
        assert (last.ids, last.blobs) == ((_OTHER,), 1)
        assert list(store.episodes()) == []

    def test_what_comes_late_is_no_episode(self, store: Store) -> None:
        """An event for a dropped episode is refused with its whole batch; the episode's start begins it anew."""
        store.seal(Batch(records(_ID, small_episode())))
        store.drop([_ID])
        label = kinds.Label(outcome="success", n=7)

        with pytest.raises(EventRefused, match="pruned"):
            store.seal(Batch([*records(_OTHER, small_episode()), *records(_ID, [label])]))

        assert list(store.episodes()) == []
        store.seal(Batch(records(_ID, small_episode())))
        store.seal(Batch(records(_ID, [label])))
        assert store.episode(_ID).outcome == "success"
        assert bare(store.events(_ID)) == [*small_episode(), label]

    def test_a_reader_is_told_when_its_episode_goes(self, store: Store) -> None:
        """An episode that is dropped while it is read does not just end."""
        notes = [kinds.Note(topic=f"{i}", n=i, writer="w") for i in range(600)]
        store.seal(Batch(records(_ID, notes)))
        reading = store.events(_ID)
        next(reading)

        store.drop([_ID])

        with pytest.raises(EpisodeNotFound):
            list(reading)

    def test_unknown_kinds_and_fields_survive(self, store: Store) -> None:
        """A newer version's events pass through unchanged, byte for byte where the kind is unknown."""
        raw = msgspec.msgpack.encode({"kind": "dream", "n": 1, "writer": "w", "depth": [1, {"x": None}]})
        newer = msgspec.msgpack.encode({"kind": "user", "content": "hi", "mood": "calm", "n": 2})
        batch = [Record(meta_of(EVENT, 0, 999), ids.to_bytes(_ID) + body) for body in (raw, newer)]

        store.seal(Batch(batch))

        first, second = store.events(_ID)
        assert isinstance(first, kinds.Unknown)
        assert (first.kind, first.raw, first.n) == ("dream", raw, 1)
        assert isinstance(second, kinds.User)
        assert second.unknown_fields == {"mood": "calm"}
        [*again] = records(_OTHER, [first, second])
        store.seal(Batch(again))
        assert bare(store.events(_OTHER)) == bare([first, second])

    def test_finds_by_prefix_suffix_and_last(self, store: Store) -> None:
        """An id answers to its whole, its beginning, its end; the newest to ``last``."""
        store.seal(Batch(records(_ID, small_episode())))
        store.seal(Batch(records(_OTHER, small_episode(at=1_800_000_100_000_000_000))))

        assert store.find(_ID) == [_ID]
        assert store.find(ids.short(_ID)) == [_ID]
        assert store.find(_ID[:22]) == [_ID]
        assert store.find("last") == [_OTHER]
        assert sorted(store.find(_ID[:6])) == [_ID, _OTHER]
        assert store.find("nothing-like-it") == []

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (Query(), [_OTHER, _ID]),
            (Query(newest_first=False), [_ID, _OTHER]),
            (Query(limit=1), [_OTHER]),
            (Query(task="FLAKY"), [_ID]),
            (Query(agent="demo"), [_OTHER, _ID]),
            (Query(agent="nobody"), []),
            (Query(tool="bash"), [_OTHER, _ID]),
            (Query(tool="grep"), []),
            (Query(tag="nightly"), [_OTHER, _ID]),
            (Query(tag="never"), []),
            (Query(outcome="failure", model="m"), [_OTHER, _ID]),
            (Query(outcome="none"), []),
            (Query(since=1_800_000_050_000_000_000), [_OTHER]),
            (Query(until=1_800_000_050_000_000_000), [_ID]),
            (Query(sort="task"), [_OTHER, _ID]),
        ],
    )
    def test_answers_queries(self, store: Store, query: Query, expected: list[str]) -> None:
        """Filters, order and limit hold."""
        store.seal(Batch(records(_ID, small_episode())))
        store.seal(Batch(records(_OTHER, small_episode("write the docs", at=1_800_000_100_000_000_000))))

        assert [each.id for each in store.episodes(query)] == expected
