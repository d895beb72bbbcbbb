"""What a query means: the index and the tail in memory agree with looking at every event, word by word."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trackway
from tests.search.naive import holds, looked_at
from trackway.schema import ids
from trackway.schema.events import AssistantText, AssistantToolCall, EpisodeStart, Header, ToolResult, User
from trackway.search.finding import Asked, find
from trackway.search.query import parse
from trackway.store.base import Batch
from trackway.store.memory import MemoryStore
from trackway.testing.events import records

_WORDS = st.sampled_from(
    ["red", "Green", "blue", "getUserName", "user_name", "café", "cafe", "数据库", "数据", "a/b.py", "os.path",
     "HTTPServer", "test", "tests", "tested", "é", "name", "x1", "-", "…"]
)  # fmt: skip
_TEXTS = st.lists(_WORDS, max_size=7).map(" ".join)
_ATOMS = st.one_of(
    _WORDS.filter(lambda word: word not in "-…"),
    st.lists(_WORDS, min_size=1, max_size=3).map(" ".join).filter(lambda text: text.strip("-… ")).map('"{}"'.format),
    st.sampled_from(
        ["te*", "*est", "t?st*", "user*", "*ame", "数据*", "tool:bash", "tool:edit", "error:true", "error:false",
         "kind:user", "kind:text", "a/*", "get_us*"]
    ),
)  # fmt: skip
_QUERIES = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} OR {two[1]})"),
        inner.map(lambda one: f"-({one})"),
    ),
    max_leaves=5,
)


@st.composite
def _episodes(draw):
    """A few episodes of talk and calls, some answered, some failed."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        events = [EpisodeStart(header=Header(task=draw(_TEXTS)))]
        for step in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(["user", "text", "call"]))
            if kind == "user":
                events.append(User(content=draw(_TEXTS)))
            elif kind == "text":
                events.append(AssistantText(content=draw(_TEXTS)))
            else:
                name, text = draw(st.sampled_from(["bash", "Edit"])), draw(_TEXTS)
                events.append(AssistantToolCall(name=name, args=b'{"q": "%s"}' % text.encode(), call_id=f"c{step}"))
                if draw(st.booleans()):
                    events.append(ToolResult(call_id=f"c{step}", content=draw(_TEXTS), is_error=draw(st.booleans())))
        found.append((number, events))
    return found


def _id(number):
    return ids.uuid7(1_800_000_000_000_000_000 + number * 10**9, bytes([number]) * 10)


def _placed(number, events):
    import msgspec

    at = 1_800_000_000_000_000_000
    return [
        msgspec.structs.replace(each, writer=f"{number:016x}", n=n, at=at + number * 10**12 + n)
        for n, each in enumerate(events)
    ]


def _found(live, query):
    answer = find(live, Asked(query, limit=0, hits=0), now=time.time_ns())
    assert not answer.notes
    return {(each.episode.id, hit.seq) for each in answer.groups for hit in each.hits}


def _expected(episodes, query):
    node = parse(query, now=0)
    return {
        (_id(number), seq)
        for number, events in episodes
        for seq, each in enumerate(looked_at(events))
        if holds(node, each) and (each.text or each.failed is not None)
    }


@settings(max_examples=40)
@given(_episodes(), st.lists(_QUERIES, min_size=1, max_size=3))
def test_the_tail_agrees_with_looking_at_every_event(episodes, queries):
    """Of a store in memory nothing is on a disk: all of it is indexed for the question."""
    store = MemoryStore()
    for number, events in episodes:
        store.seal(Batch(list(records(_id(number), _placed(number, events)))))
    with trackway.open_store(store) as live:
        for query in queries:
            assert _found(live, query) == _expected(episodes, query), query


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    episodes=_episodes(),
    queries=st.lists(_QUERIES, min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 20), max_size=3),
)
def test_the_index_agrees_however_it_was_fed(tmp_path_factory, episodes, queries, cuts):
    """In one go or piece by piece, cut wherever: between a call and its result, before an episode's first event."""
    from trackway.search.catching_up import catch_up

    home = tmp_path_factory.mktemp("fed")
    with trackway.open_store(home=home) as live:
        stored = dict.fromkeys((number for number, _ in episodes), 0)
        for cut in [*sorted(cuts), 100]:
            for number, events in episodes:
                placed = _placed(number, events)[stored[number] : cut]
                stored[number] += len(placed)
                live.seal(Batch(list(records(_id(number), placed))))
            catch_up(live)
        for query in queries:
            assert _found(live, query) == _expected(episodes, query), query


@pytest.mark.parametrize("query", ["red", '"red green"', "re*", "tool:bash", "-red"])
def test_a_question_to_nothing(query, home):
    """Where nothing is recorded nothing is found, and nothing is made."""
    with trackway.open_store(home=home) as live:
        assert _found(live, query) == set()
    assert not home.exists()
