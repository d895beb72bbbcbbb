"""What is recorded for an episode after it was pruned: never shown, put aside when sealed, no harm to others."""

import time
from pathlib import Path

import pytest

from tests.crash.agent import alone
from trackway.errors import EpisodeNotFound
from trackway.recording.settings import open_store
from trackway.store.base import Query
from trackway.store.choice import Criteria
from trackway.store.prune import prune
from trackway.store.verify import verify


@pytest.fixture
def pruned(home: Path):
    """A recorder, and an episode of it that another process has pruned meanwhile."""
    recorder = alone(home, "mmap")
    episode = recorder.start("goes", tags=["old"])
    episode.end("success")
    recorder.flush()
    receipt = prune(open_store(), Criteria(query=Query(tag="old")), now=time.time_ns())
    assert receipt.ids == (episode.id,)
    yield recorder, episode
    recorder.close()


@pytest.mark.promise("model", "what comes for a pruned episode is not shown, sealed or not, and is put aside")
def test_a_pruned_episode_stays_gone_while_a_late_event_waits(home: Path, pruned) -> None:
    """Its label is in the journal: the episode is in no list, has no summary and no events, and answers to no name."""
    recorder, episode = pruned
    episode.label(comment="late")

    for _ in ("waiting", "sealed"):
        live = open_store()
        assert list(live.episodes()) == []
        assert live.find(episode.id[:13]) == live.find("last") == []
        with pytest.raises(EpisodeNotFound):
            live.episode(episode.id)
        with pytest.raises(EpisodeNotFound):
            list(live.events(episode.id))
        recorder.flush()
    assert len(list((home / "quarantine").glob("*.json"))) == 1


def test_a_refused_batch_leaves_no_stale_words(pruned) -> None:
    """A prune took a tag's number with it: the tag of an episode sealed after a refused label is found by it."""
    recorder, episode = pruned
    episode.label(comment="late")
    recorder.flush()
    other = recorder.start("stays", tags=["old"])
    recorder.flush()

    live = open_store()
    assert [each.id for each in live.store.episodes(Query(tag="old"))] == [other.id]
    assert verify(live.store, live.home).is_sound
