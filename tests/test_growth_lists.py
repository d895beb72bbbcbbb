"""Lists while thousands of episodes wait to be sealed: the few that are asked for, the same as from all of them."""

import random
from pathlib import Path

import pytest

import trackway
from trackway.recording.recorder import Recorder
from trackway.store.base import Query


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of its own."""
    return tmp_path / "home"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("store", [None, "memory:lists"], ids=["sqlite", "memory"])
def test_the_first_few_are_the_first_of_all(home, seed, store):
    """Sealed or not, begun now or said to have begun at another time: whatever the limit, the same order as of all."""
    luck = random.Random(seed)
    name = None if store is None else f"{store}{seed}"
    with Recorder(home, store=name) as recorder:
        episodes = []
        for i in range(12):
            episodes.append(recorder.start(f"{i}", at=luck.choice((None, luck.randrange(10**18)))))
            if luck.random() < 0.3:
                recorder.flush()
        for each in luck.sample(episodes, 6):
            each.user("more")
        for each in luck.sample(episodes, 3):
            each.end("success")
        with trackway.open_store(name, home=home) as live:
            for newest_first in (True, False):
                whole = list(live.episodes(Query(newest_first=newest_first)))
                assert len(whole) == 12
                for limit in (0, 1, 5, 11, 12, 50):
                    asked = Query(newest_first=newest_first, limit=limit)
                    assert list(live.episodes(asked)) == whole[:limit]
            assert live.resolve("last") == next(iter(live.episodes())).id


def test_an_episode_without_a_start_stands_last(home):
    """A label that was sealed before its episode began anywhere: there, and behind all that have begun."""
    with Recorder(home) as recorder:
        episodes = [recorder.start(f"{i}") for i in range(3)]
        with trackway.open_store(home=home) as live:
            assert [each.task for each in live.episodes(Query(limit=2))] == ["2", "1"]
            recorder.put(bytes(15) + b"\1", trackway.schema.events.Label, {"at": 1, "tag": "odd"})
            assert [each.task for each in live.episodes(Query(limit=9))] == ["2", "1", "0", ""]
            assert [each.task for each in live.episodes(Query(limit=3))] == ["2", "1", "0"]
        for each in episodes:
            each.end()


@pytest.mark.parametrize("seed", range(3))
def test_the_first_few_with_a_word_are_the_first_of_all_with_it(home, seed):
    """A tool or tag that most have, few, or none: the shorter way finds what the longer one does."""
    luck = random.Random(seed)
    with Recorder(home) as recorder:
        for i in range(60):
            tags = [word for word, share in (("most", 0.9), ("few", 0.05)) if luck.random() < share]
            episode = recorder.start(f"{i}", tags=tags, at=luck.choice((None, luck.randrange(10**18))))
            if luck.random() < 0.5:
                episode.tool_call("bash")
            episode.end(luck.choice(("success", "failure")))
    with trackway.open_store(home=home) as live:
        for tag, tool in (("most", None), ("few", None), (None, "bash"), ("most", "bash"), ("none", None)):
            for asked in ({}, {"outcome": "failure"}, {"newest_first": False}, {"sort": "task"}):
                whole = list(live.episodes(Query(tag=tag, tool=tool, **asked)))
                for limit in (0, 1, 2, 5, 60):
                    assert list(live.episodes(Query(tag=tag, tool=tool, limit=limit, **asked))) == whole[:limit]


def test_every_end_of_an_id_and_every_beginning_of_its_short_form_names_it(home):
    """Four characters or more, an odd number of them or an even one: bytes or halves of them."""
    with Recorder(home) as recorder:
        episodes = [recorder.start(f"{i}").id for i in range(5)]
    with trackway.open_store(home=home) as live:
        for each in episodes:
            bare = each.replace("-", "")
            for length in range(4, 33):
                assert each in live.find(bare[-length:])
            for length in range(4, 9):
                assert each in live.find(bare[-8:][:length])
