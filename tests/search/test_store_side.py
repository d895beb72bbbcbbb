"""What searching asks a store for: how much there is, one event by its number, whether anything has changed."""

import os

import pytest

import trackway
from tests.search.asking import said
from trackway.errors import EpisodeNotFound
from trackway.schema import ids
from trackway.store.listing import facts, mark, sizes, unsealed
from trackway.store.memory import MemoryStore
from trackway.store.single import Singles


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_what_there_is_in_short(home, kind):
    """The number of events and the facts of each episode, from whatever store."""
    store = MemoryStore() if kind == "memory" else None
    with trackway.Recorder(home, store=store) as recorder:
        episode = recorder.start("short", model="m")
        episode.text("hello")
        episode.end("success")
    with trackway.open_store(store, home=home) as live:
        name = ids.to_bytes(episode.id)
        assert sizes(live.store) == {name: 3}
        assert list(facts(live.store)) == [(name, "short", "m", "success")]


def test_what_waits_in_journals(home):
    """Episodes with events that are not sealed yet."""
    with trackway.Recorder(home) as recorder, trackway.open_store(home=home) as live:
        episode = recorder.start("waits")
        assert unsealed(live) == {episode.id}
        recorder.flush()
        assert unsealed(live) == set()


def test_events_one_by_one(home):
    """The same event as among all others, from a frame, from the tail, with a large value kept apart."""
    ended = said(home, *[f"{number} " + "x" * (200_000 if number == 7 else 10) for number in range(600)])
    open_ = said(home, *map(str, range(40)), end=False, task="goes on")
    with trackway.open_store(home=home) as live:
        singles = Singles(live.store)
        for name in (ended, open_):
            every = list(live.store.events(name))
            assert [singles.at(name, each.seq) for each in every[::13]] == every[::13]
            assert singles.at(name, 8) == every[8]
            assert singles.at(name, len(every)) is None
        with pytest.raises(EpisodeNotFound):
            singles.at(ids.uuid7(0, bytes(10)), 0)


def test_a_mark_changes_with_what_is_stored(home):
    """The same as long as nothing is committed; none where it was so just now that nobody can tell."""
    said(home, "one")
    files = [home / "store.db", home / "store.db-wal"]
    with trackway.open_store(home=home) as live:
        assert mark(live.store) is None
        for each in files:
            if each.exists():
                os.utime(each, ns=(10**18, 10**18))
        before = mark(live.store)
        assert before is not None
        assert mark(live.store) == before
        said(home, "two")
        assert mark(live.store) != before
