"""What the tests of searching share: episodes to search in, and answers in short."""

import time

import trackway
from trackway.search.catching_up import catch_up
from trackway.search.finding import Asked, find


def said(home, *texts, task="talk", end=True, **about):
    """An episode in which these were said, sealed; its id."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start(task, **about)
        for each in texts:
            episode.text(each)
        if end:
            episode.end("success")
    return episode.id


def answer(home, query, *, store=None, **how):
    """What is found."""
    with trackway.open_store(store, home=home) as live:
        return find(live, Asked(query, **{"hits": 0, "limit": 0, **how}), now=time.time_ns())


def places(home, query, **how):
    """Where it is found: the episodes' tasks, each with the numbers of its events."""
    return {each.episode.task: [hit.seq for hit in each.hits] for each in answer(home, query, **how).groups}


def texts(home, query, **how):
    """The pieces that are found."""
    return [hit.snippet.text for each in answer(home, query, **how).groups for hit in each.hits]


def indexed(home, store=None):
    """Bring the index up to date."""
    with trackway.open_store(store, home=home) as live:
        return catch_up(live)
