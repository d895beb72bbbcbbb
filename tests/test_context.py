"""Context kept once: whatever an agent does to its history, each call's context comes back byte for byte."""

import copy
import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import trackway
from trackway.read.context import context, contexts, seen
from trackway.schema.codec import encode_fast, exact
from trackway.testing.events import any_value

TOOLS = [
    {"name": f"tool_{i}", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}} for i in range(9)
]


def recorded(calls):
    """Record these contexts as calls of one episode; gives the events from a store opened anew."""
    with trackway.Recorder() as recorder:
        episode = recorder.start("t")
        for each in calls:
            episode.model_call(model="m", **each)
        episode.end()
    with trackway.open_store() as store:
        return list(store.events(episode.id))


def as_bytes(messages):
    """Messages as the codec writes them: equal bytes are equal messages, 1 is not True."""
    return encode_fast(exact(messages))


message = (
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": any_value}) | any_value
)
change = st.one_of(
    st.tuples(st.just("append"), st.lists(message, min_size=1, max_size=3)),
    st.tuples(st.just("edit"), st.integers(0, 99), message),
    st.tuples(st.just("rewind"), st.integers(1, 5)),
    st.tuples(st.just("compact"), st.integers(1, 9), message),
    st.tuples(st.just("insert"), st.integers(0, 99), message),
    st.tuples(st.just("repeat"), st.integers(0, 99)),
    st.tuples(st.just("aside"), st.lists(message, max_size=2)),
    st.tuples(st.just("back"), st.integers(1, 9)),
)


def changed(history, past, what, *args):
    """The history after one thing an agent does to it."""
    if what == "append":
        history += args[0]
    elif what == "edit" and history:
        history[args[0] % len(history)] = args[1]
    elif what == "rewind":
        del history[-args[0] :]
    elif what == "compact":
        history[: args[0]] = [args[1]]
    elif what == "insert":
        history.insert(args[0] % (len(history) + 1), args[1])
    elif what == "repeat" and history:
        history.append(copy.deepcopy(history[args[0] % len(history)]))
    elif what == "back" and past:
        history[:] = copy.deepcopy(past[-min(args[0], len(past))])


@settings(max_examples=60)
@given(st.lists(change, min_size=1, max_size=14), st.lists(message, max_size=4))
def test_every_context_comes_back(changes, history):
    """Edits, rewinds, compactions, insertions, repeats, calls about other things and returns to an old state."""
    past = []
    for each in changes:
        changed(history, past, *each)
        past.append(copy.deepcopy(each[1] if each[0] == "aside" else history))
    events = recorded([{"messages": each} for each in past])

    assert [as_bytes(each.messages) for each in contexts(events)] == [as_bytes(each) for each in past]


def test_a_message_edited_in_place_is_seen():
    """The recorder trusts bytes and not identity: the same list and the same dict with other content is another one."""
    message = {"role": "user", "content": "a", "n": 1}
    with trackway.record("t") as episode:
        episode.model_call(messages=[message])
        message["n"] = True
        episode.model_call(messages=[message])
    seen = [each.messages for each in contexts(trackway.open_store().events("last"))]

    assert (
        json.dumps(seen)
        == '[[{"role": "user", "content": "a", "n": 1}], [{"role": "user", "content": "a", "n": true}]]'
    )


def test_an_edited_early_message_does_not_store_the_rest_again():
    """Of fifty messages one is changed: one is recorded."""
    history = [{"role": "user", "content": f"{i}"} for i in range(50)]
    edited = [*history[:3], {"role": "user", "content": "other"}, *history[4:]]
    events = recorded([{"messages": history}, {"messages": edited}])

    assert [len(each.messages) for each in events if each.kind == "model_call"] == [50, 1]


def test_a_call_about_something_else_does_not_store_the_history_again():
    """A title asked for in between, a sub-question, a rewind and a return: each message is still recorded once."""
    history = [{"role": "user", "content": f"{i}"} for i in range(30)]
    aside = [{"role": "user", "content": "a title, please"}]
    more = [*history, {"role": "user", "content": "next"}]
    events = recorded([{"messages": each} for each in (history, aside, more, aside, history[:10], more)])

    assert [len(each.messages) for each in events if each.kind == "model_call"] == [30, 1, 1, 0, 0, 0]


def test_fifty_calls_with_the_whole_history_record_each_message_once(home):
    """Messages, tools and system prompt of every call come back; on the disk the history stands once."""
    history, calls = [], []
    for i in range(50):
        history += [
            {"role": "user", "content": f"{i} " + "lorem ipsum " * 40},
            {"role": "assistant", "content": f"ok {i}"},
        ]
        calls.append({"messages": list(history), "tools": TOOLS, "system": "be careful " * 500})
    events = recorded(calls)

    found = [context(events, at=each) for each in events if each.kind == "model_call"]

    assert [each.messages for each in found] == [each["messages"] for each in calls]
    assert list(seen(events)) == found
    assert all(each.tools == TOOLS and each.system == "be careful " * 500 for each in found)
    assert sum(len(each.messages) for each in events if each.kind == "model_call") == 100
    raw = sum(len(msgspec.json.encode(each)) for each in calls)
    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) < raw * 0.1
