"""Every real file says to us what it says to whoever counts by hand: our events give the numbers of `counting`."""

from collections import Counter

import pytest

from tests.ingest import counting
from tests.ingest.corpus import DATA, files
from trackway.ingest.original import Original
from trackway.ingest.parse import events_of
from trackway.ingest.sources import detect
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantToolCall, ToolResult, User

pytestmark = pytest.mark.corpus


def turns_of(events):
    """How often somebody said something; a task that a harness gave is one, where nobody did."""
    actors = [each.actor for each in events if isinstance(each, User) and each.agent is None]
    return sum(each != "harness" for each in actors) or bool(actors)


def counts_of(sessions):
    """The same numbers, of our events."""
    events = [each for some in sessions.values() for each in some]
    found = [each for some in sessions.values() for each in pairs(some)]
    return counting.Counts(
        episodes=len(sessions),
        calls=sum(isinstance(each, AssistantToolCall) for each in events),
        results=sum(isinstance(each, ToolResult) for each in events),
        pairs=sum(each.result is not None for each in found),
        turns=sum(turns_of(some) for some in sessions.values()),
    )


def read(path):
    """The events of a file by episode; None where it is no file by itself."""
    original = Original(path)
    detected = detect(original.head())
    assert detected, "nobody takes it for its own"
    source, sign = detected[0]
    return None if sign.is_part else events_of(source, original)


FILES = [each for each in files("**/*") if counting.counter_of(each, DATA)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_counted_twice(path):
    """Episodes, calls, results, pairs and turns are those of an independent count; a call that waits has a reason."""
    tally = counting.tallied(path, DATA)
    sessions = read(path)
    if sessions is None:
        pytest.skip("is read with the file it belongs to")
    assert counts_of(sessions) == tally.counts()
    reasons = [why for waiting in tally.unpaired().values() for why in waiting]
    assert "" not in reasons, f"calls that wait for no reason: {tally.unpaired()}"
    assert Counter(each.result is None for some in sessions.values() for each in pairs(some))[True] == len(reasons)
