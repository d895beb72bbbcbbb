"""Seed 001 under its own names: the behaviours of its own tests, and what it promises beyond them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway import FullTrace
from trackway.errors import BadSetting, TrackwayError


def events_of(episode_id):
    """All events of an episode, from a store opened anew."""
    with trackway.open_store() as store:
        return list(store.events(episode_id))


@pytest.fixture
def fixture():
    """The seed's own fixture."""
    return FullTrace("t1", "claude-opus-4-7", "you are rsclaw", [])


def test_push_and_count_steps_in_order(fixture):
    """Five pushes are five steps, in order."""
    fixture.push_user("hello")
    fixture.push_thinking("user wants a greeting")
    fixture.push_tool_call("greet", {"name": "world"}, "call_1")
    fixture.push_tool_result("call_1", "hi world", False)
    fixture.push_assistant_text("done")

    assert fixture.step_count() == 5
    assert fixture.has_tool_calls()
    assert [each.kind for each in fixture.steps] == [
        "user", "assistant_thinking", "assistant_tool_call", "tool_result", "assistant_text",
    ]  # fmt: skip


def test_empty_trace_has_no_tool_calls(fixture):
    """Nothing pushed, nothing there; and it was opened now."""
    assert not fixture.has_tool_calls()
    assert fixture.step_count() == 0
    assert fixture.timestamp > 1_700_000_000


def test_round_trip_is_lossless(fixture):
    """Through JSON, and through the store, the trace is equal."""
    fixture.push_user("u")
    fixture.push_thinking("thinking")
    fixture.push_tool_call("search", {"q": "weather"}, "c1")
    fixture.push_tool_result("c1", '{"temp": 20}', False)
    fixture.push_assistant_text("it is 20 degrees")

    assert FullTrace.from_json(fixture.to_json()) == fixture
    with trackway.Recorder() as recorder:
        added = recorder.add(fixture)
    assert trackway.trace(events_of(added)) == [fixture]


def test_tool_result_error_flag_preserved(fixture):
    """A failed call is an error in the trace, and in the store."""
    fixture.push_tool_result("c1", "permission denied", True)

    assert fixture.steps[0].is_error
    with trackway.Recorder() as recorder:
        (found,) = trackway.trace(events_of(recorder.add(fixture)))
    assert (found.steps[0].content, found.steps[0].is_error) == ("permission denied", True)


def test_raw_args_are_not_summarized(fixture):
    """Arguments are what was given, however deep."""
    args = {"deeply": {"nested": {"value": 42}}}
    fixture.push_tool_call("x", args, "c")

    assert fixture.steps[0].arguments == args


def test_tagged_serialization_uses_snake_case_kind(fixture):
    """Lines describe themselves."""
    fixture.push_user("hi")

    assert b'"kind":"user"' in fixture.to_json()


any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner) |
    st.dictionaries(st.text(), inner), max_leaves=5,
)  # fmt: skip


@given(st.data())
def test_any_trace_comes_back_from_a_store(data):
    """Whatever was pushed in whatever order, tools that are null or no list, no steps at all: one trace, equal."""
    draw, text = data.draw, st.text(st.characters())
    trace = FullTrace(draw(text), draw(text), draw(text), draw(any_json), draw(st.integers(0, 2**33)))
    for kind in draw(st.lists(st.integers(0, 4), max_size=8)):
        if kind == 2:
            trace.push_tool_call(draw(text), draw(any_json), draw(text))
        elif kind == 3:
            trace.push_tool_result(draw(text), draw(text), draw(st.booleans()))
        else:
            [trace.push_user, trace.push_thinking, None, None, trace.push_assistant_text][kind](draw(text))
    recorder = trackway.Recorder(store="memory:traces")
    added = recorder.add(trace)
    recorder.close()

    assert trackway.trace(trackway.open_store("memory:traces").events(added)) == [trace]


@pytest.mark.parametrize("timestamp", [1_763_200_000.5, None, -1, 1_763_200_000_000, "now"])
def test_a_time_that_is_none_is_refused(timestamp, fixture):
    """Whole seconds: anything else would be an episode nobody could read."""
    fixture.timestamp = timestamp
    with trackway.Recorder() as recorder:
        with pytest.raises(BadSetting, match="timestamp"):
            recorder.add(fixture)
        with pytest.raises(BadSetting, match="FullTrace"):
            recorder.add({"trace_id": "t"})
        with pytest.raises(BadSetting, match="at is"):
            recorder.start("t", at=1.5e18)
    assert list(trackway.open_store().episodes()) == []


def test_what_is_pushed_is_text(fixture):
    """A value is pushed as the text a model would see of it, so every step comes back."""
    fixture.push_user(None)
    fixture.push_tool_result("c", {"a": 1}, 0)
    fixture.push_assistant_text(ValueError("no"))
    with trackway.Recorder() as recorder:
        added = recorder.add(fixture)

    assert trackway.trace(events_of(added)) == [fixture]
    assert fixture.steps[1].content == '{"a":1}'


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{", b'"x"', b'{"trace_id": 3}', b"\xff", b'{"trace_id":"t","steps":[1]}']
)
def test_a_line_that_is_no_trace_is_refused(line):
    """One error, whatever is wrong with it."""
    with pytest.raises(TrackwayError, match="no trace"):
        FullTrace.from_json(line)


def test_a_trace_holds_what_the_seeds_own_loses():
    """Failed, timed-out and unanswered calls, text beside calls, an aborted turn, and which calls were made at once."""
    with contextlib.suppress(KeyboardInterrupt), trackway.record("t") as episode:
        episode.user("go")
        episode.text("two things at once")
        slow, bad = episode.tool_call("slow", {}, call_id="a"), episode.tool_call("bad", "{broken", call_id="b")
        episode.tool_result(bad, "no such tool", is_error=True)
        episode.tool_result(slow, "", status="timeout")
        episode.tool_call("never", {}, call_id="c")
        raise KeyboardInterrupt
    (trace,) = trackway.trace(events_of(episode.id))

    assert [(each.kind, getattr(each, "call_id", "")) for each in trace.steps] == [
        ("user", ""), ("assistant_text", ""), ("assistant_tool_call", "a"), ("assistant_tool_call", "b"),
        ("tool_result", "b"), ("tool_result", "a"), ("assistant_tool_call", "c"),
    ]  # fmt: skip
    assert [each.is_error for each in trace.steps if each.kind == "tool_result"] == [True, True]
    assert trace.steps[3].args_text == "{broken"
