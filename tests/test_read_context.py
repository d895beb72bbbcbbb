"""What a model saw at a call, put together from the differences it was recorded as."""

import weakref
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.errors import NotFound
from trackway.read.context import context, contexts
from trackway.read.messages import by_id, rebuild, resolve
from trackway.recording.messages import ContextTracker
from trackway.schema import events as kinds
from trackway.schema.events import Event, ModelCall

CONTEXTS = st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=12)


def recorded(sent: list[list[int]]) -> list[Event]:
    """Calls as a recorder writes them, each told by the one before."""
    tracker = ContextTracker()
    events: list[Event] = []
    for at, messages in enumerate(sent):
        taken = tracker.look(messages)
        fresh = tuple(msgspec.msgpack.decode(each) for each in taken.difference.messages)
        events.append(
            ModelCall(id=f"m{at}", base=taken.base, reuse=taken.difference.reuse, messages=fresh, n=at, at=at)
        )
        tracker.commit(f"m{at}", taken)
    return events


@given(CONTEXTS)
def test_every_call_is_rebuilt_in_whole_and_alone(sent: list[list[int]]) -> None:
    """Grown, cut, rewound or rewritten: one call asked for gives what all of them in a row give."""
    events = recorded(sent)

    assert [each.messages for each in contexts(iter(events))] == sent
    assert [context(iter(events), at=f"m{at}").messages for at in range(len(sent))] == sent


def test_what_is_given_out_is_the_readers_own() -> None:
    """Changing the messages of one call does not change those of the next."""
    found = []
    for each in contexts(recorded([[1], [1, 2], [1, 2, 3]])):
        found.append(list(each.messages))
        each.messages.clear()

    assert found == [[1], [1, 2], [1, 2, 3]]


@given(CONTEXTS, st.randoms())
def test_a_base_may_come_later_in_reading_order(sent: list[list[int]], random) -> None:
    """Processes whose clocks disagree: the differences still find their bases."""
    events = recorded(sent)
    moved = [msgspec.structs.replace(each, writer=each.id, at=random.randrange(9)) for each in events]

    assert {each.call.id: each.messages for each in contexts(moved)} == {f"m{i}": each for i, each in enumerate(sent)}


def test_a_missing_base_is_said_and_nothing_is_guessed() -> None:
    """Without the call it is told by, a call has no messages; with it, it has."""
    first, second, third = recorded([[1, 2], [1, 2, 3], [1, 2, 3, 4]])

    with pytest.raises(NotFound, match=r"call m1 are told by those of call m0, which is not among these events"):
        context([second, third], at="m2")
    assert context([first, second], at=second).messages == [1, 2, 3]
    seen = contexts([second, third])
    with pytest.raises(NotFound, match="hint: give all events"):
        next(seen)


def test_a_call_that_takes_nothing_from_its_base_does_not_need_it() -> None:
    """A base without reuse is a remark."""
    call = ModelCall(id="m1", base="gone", messages=("all", "here"))

    assert context([call], at="m1").messages == ["all", "here"]


@pytest.mark.parametrize("reuse", [((0, 0, 3),), ((2, 0, 1),), ((0, 1, 0),), ((0, 0, 1), (0, 0, 1)), ((0, -1, 1),)])
def test_a_difference_that_does_not_fit_its_base_is_refused(reuse) -> None:
    """Places that are not there, overlap or run backwards: an error, never a shorter list."""
    call = ModelCall(id="m", base="b", reuse=reuse, messages=("x",))
    with pytest.raises(NotFound, match="model call m takes messages"):
        rebuild(call, ["a", "b"])
    with pytest.raises(NotFound, match="model call m takes messages"):
        resolve(call, by_id([ModelCall(id="b", messages=("a", "b")), call]))


def test_a_base_without_messages_cannot_tell_anything() -> None:
    """It was recorded without its context."""
    events = [ModelCall(id="a", n=0), ModelCall(id="b", base="a", reuse=((0, 0, 1),), messages=(), n=1)]

    with pytest.raises(NotFound, match="b takes messages 0 to 1 of call a: they are not there"):
        context(events, at="b")


def test_calls_that_tell_each_other_or_share_an_id_are_refused() -> None:
    """A ring has no beginning; of two calls with one name nobody knows which was meant."""
    ring = [ModelCall(id=a, base=b, reuse=((0, 0, 1),), messages=("x",)) for a, b in (("a", "b"), ("b", "a"))]
    with pytest.raises(NotFound, match="which is told by it"):
        list(contexts(ring))

    twins = [ModelCall(id="a", messages=("1",), n=0), ModelCall(id="a", messages=("2",), n=1)]
    assert [each.messages for each in contexts(twins)] == [["1"], ["2"]]
    with pytest.raises(NotFound, match="two model calls are called a"):
        list(contexts([*twins, ModelCall(id="c", base="a", reuse=((0, 0, 1),), messages=(), n=2)]))


def test_an_unknown_call_is_not_found() -> None:
    """The error names it and says where to look."""
    with pytest.raises(NotFound, match=r"no model call 'm9' among these events \(hint: contexts"):
        context(recorded([[1]]), at="m9")


def test_system_prompt_tools_and_model_are_the_calls_own_or_what_stood() -> None:
    """The call's own first; else its agent's; else the episode's; never what was set later or for another agent."""
    header = kinds.Header(task="t", model="m-header")
    events = [
        kinds.EpisodeStart(header=header, n=0),
        kinds.Context(op="set", system_prompt="episode", tools=["read"], n=1),
        ModelCall(id="1", n=2),
        kinds.Context(op="set", system_prompt="sub", agent="sub", n=3),
        ModelCall(id="2", agent="sub", model="m-sub", n=4),
        ModelCall(id="3", system="own", tools=[], parameters={"temperature": 0}, n=5),
        ModelCall(id="4", n=6),
        kinds.Context(op="set", system_prompt="later", n=7),
    ]

    found = [context(events, at=each) for each in "1234"]

    assert [(each.model, each.system, each.tools) for each in found] == [
        ("m-header", "episode", ["read"]),
        ("m-sub", "sub", ["read"]),
        ("m-header", "own", []),
        ("m-header", "episode", ["read"]),
    ]
    assert found[2].parameters == {"temperature": 0}
    assert [each.messages for each in found] == [None] * 4


class Watched(str):
    """Text that can be seen to go."""

    __slots__ = ("__weakref__",)


def test_other_events_are_not_kept() -> None:
    """Reading one context of a stream holds on to calls and contexts only."""
    here: weakref.WeakSet[Watched] = weakref.WeakSet()
    most = 0

    def stream() -> Iterator[Event]:
        nonlocal most
        for n in range(50):
            text = Watched(f"text {n}")
            here.add(text)
            yield kinds.User(content=text, n=n)
            del text
            most = max(most, len(here))
        yield ModelCall(id="m", messages=("hi",), n=50)

    assert context(stream(), at="m").messages == ["hi"]
    assert most <= 2


def test_a_context_is_ready_for_json() -> None:
    """Recorded, read back and printed."""
    with trackway.record("seen", system_prompt="s") as episode, episode.model_call(messages=[{"role": "user"}]) as call:
        pass

    seen = context(trackway.open_store().events(episode.id), at=call.id)

    assert msgspec.to_builtins(seen)["messages"] == [{"role": "user"}]
    assert seen.system == "s"
