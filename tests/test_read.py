"""Readings: pure functions of events."""

import json
from pathlib import Path

import pytest

import trackway
from trackway.errors import BadSetting, EpisodeNotFound
from trackway.read.order import ordered
from trackway.schema import events as kinds
from trackway.schema.trace import FullTrace
from trackway.testing.events import small_episode


def fixture() -> FullTrace:
    """The seed's own."""
    return FullTrace(trace_id="t1", model="claude-opus-4-7", system_prompt="you are rsclaw", tools_schema=[])


def test_the_wire_form_is_the_seeds() -> None:
    """Tagged by kind in snake case, nothing left out, nothing added; what the seed wrote loads unchanged."""
    trace = fixture()
    trace.push_tool_call("x", {"deeply": {"nested": {"value": 42}}}, "c")
    trace.push_tool_result("c", "permission denied", False)

    assert json.loads(trace.to_json())["steps"] == [
        {"kind": "assistant_tool_call", "name": "x", "args": {"deeply": {"nested": {"value": 42}}}, "call_id": "c"},
        {"kind": "tool_result", "call_id": "c", "content": "permission denied", "is_error": False},
    ]
    line = (
        b'{"trace_id":"t","timestamp":5,"model":"m","system_prompt":"s","tools_schema":[{"a":1}],"steps":[{"kind":'
        b'"assistant_tool_call","name":"n","args":{"q" : 1.10, "n":123456789012345678901234567890},"call_id":"c"}]}'
    )
    assert FullTrace.from_json(line).to_json() == line
    assert FullTrace.from_json(trace.to_json()) == trace


def test_lone_surrogates_survive_the_wire() -> None:
    """JSON has a spelling for them."""
    trace = fixture()
    trace.push_user("a\ud83d")
    trace.push_tool_call("x", {"k": "\ud83d"}, "c")

    assert FullTrace.from_json(trace.to_json()) == trace


def test_trace_gives_one_per_turn_and_loses_nothing() -> None:
    """Failed and unanswered calls, broken arguments, text beside calls, sub-agents: all in their turn."""
    with trackway.record("traced", model="m", system_prompt="s", tools=[{"name": "bash"}]) as episode:
        episode.user("one")
        episode.text("let me look")
        first = episode.tool_call("bash", '{"cmd": "ls"')
        episode.tool_call("bash", {"cmd": "pwd"})
        episode.tool_result(first, "broken", is_error=True)
        helper = episode.agent("helper")
        helper.user("sub")
        episode.user("two")
        episode.text("bye")

    one, sub, two = trackway.trace(trackway.open_store().events(episode.id))
    assert [each.kind for each in one.steps] == [
        "user", "assistant_text", "assistant_tool_call", "assistant_tool_call", "tool_result",
    ]  # fmt: skip
    assert json.loads(one.to_json())["steps"][2]["args_text"] == '{"cmd": "ls"'
    assert (one.trace_id, sub.trace_id, two.step_count()) == (f"{episode.id}/1", f"{episode.id}/1/helper", 2)
    assert (one.model, one.system_prompt, one.tools_schema) == ("m", "s", [{"name": "bash"}])


def test_steps_pair_results_with_calls_where_ids_repeat() -> None:
    """The oldest unanswered call of an id is meant; an unanswered one is a step with status missing."""
    call = kinds.AssistantToolCall
    events = [
        call(name="a", args=b"{}", call_id="x", n=0),
        call(name="b", args=b"{}", call_id="x", n=1),
        kinds.ToolResult(call_id="x", content="1", n=2),
        call(name="c", args=b"{}", call_id="x", n=3, agent="sub"),
        kinds.ToolResult(call_id="x", content="2", is_error=True, status="error", n=4),
    ]

    found = trackway.steps(events)

    assert [(each.tool, each.observation, each.status) for each in found] == [
        ("a", "1", "ok"), ("b", "2", "error"), ("c", None, "missing"),
    ]  # fmt: skip
    assert found[1].error == "2"
    assert found[0].signature != found[1].signature


def test_reading_order_is_time_but_never_against_a_writer() -> None:
    """Two writers interleave by time; a clock that went backwards does not turn a writer's own order around."""
    note = kinds.Note
    events = [
        note(topic="b1", writer="b", n=0, at=15),
        note(topic="b2", writer="b", n=1, at=40),
        note(topic="a1", writer="a", n=0, at=10),
        note(topic="a2", writer="a", n=1, at=30),
        note(topic="a3", writer="a", n=2, at=5),
    ]

    assert [each.topic for each in ordered(events)] == ["a1", "b1", "a2", "a3", "b2"]


def test_a_child_follows_its_parent() -> None:
    """What names a parent stands behind it; rings and unknown parents lose nothing."""
    note = kinds.Note
    events = [
        note(topic="child", writer="b", n=0, at=1, parent="a:0"),
        note(topic="parent", writer="a", n=0, at=5),
        note(topic="orphan", writer="c", n=0, at=2, parent="nobody:9"),
        note(topic="ring1", writer="d", n=0, at=3, parent="d:1"),
        note(topic="ring2", writer="d", n=1, at=3, parent="d:0"),
    ]

    assert [each.topic for each in ordered(events)] == ["orphan", "parent", "child", "ring1", "ring2"]


def test_a_whole_episode_reads_as_it_was() -> None:
    """Steps of the ready-made episode."""
    [step] = trackway.steps(small_episode())

    assert (step.tool, step.exit_code, step.error, step.duration_ms) == ("bash", 1, "2 failed", 812.5)


def test_what_was_denied_or_broken_off_is_an_error_everywhere(home: Path) -> None:
    """The summary counts what a step calls an error, whatever its status is."""
    with trackway.record("t", home=home) as episode:
        for status in ("ok", "error", "denied", "interrupted", "timeout"):
            episode.tool_result(episode.tool_call("x", {"why": status}), "", status=status)
    store = trackway.open_store(home=home)

    found = trackway.steps(store.events(episode.id))

    assert [step.arguments["why"] for step in found if step.error is not None] == [
        "error", "denied", "interrupted", "timeout",
    ]  # fmt: skip
    assert store.episode(episode.id).n_errors == 4


def test_an_exception_is_seen_as_its_text(home: Path) -> None:
    """What has a text form is that text, without quotes, and is not kept twice."""
    with trackway.record("t", home=home) as episode:
        for content in (ValueError("no"), Path("a/b"), {"a": 1}):
            episode.tool_result(episode.tool_call("x"), content)
    results = [event for event in trackway.open_store(home=home).events(episode.id) if event.kind == "tool_result"]

    assert [event.content for event in results] == ["ValueError: no", "a/b", '{"a":1}']
    assert [event.returned for event in results] == [None, None, {"a": 1}]


def test_an_id_is_no_events() -> None:
    """A reading of the letters of an id would be nothing, or nonsense: it says what is meant."""
    for read in (trackway.steps, trackway.usage, trackway.trace, trackway.trajectory, trackway.difficulty):
        with pytest.raises(BadSetting, match="is an id"):
            read("01a1df4c-9621-767c-8cb8-25df22504ae9")


def test_an_episode_has_its_events_at_hand(home: Path) -> None:
    """Running or ended; one word alone is one tag."""
    with trackway.record("t", home=home, tags="nightly") as episode:
        episode.tool_call("bash")
        assert [step.tool for step in trackway.steps(episode.events())] == ["bash"]

    assert trackway.open_store(home=home).episode(episode.id).tags == ("nightly",)
    assert repr(episode) == f"Episode({episode.id!r}, ended)"


def test_the_last_ones_and_the_beginning_of_a_short_id(home: Path) -> None:
    """``last~1`` is the one before the last; what ls shows may be typed from its beginning."""
    with trackway.Recorder(home) as recorder:
        names = [recorder.start(f"{i}").id for i in range(3)]
    store = trackway.open_store(home=home)

    assert [store.resolve(ref) for ref in ("last", "last~1", "last~2")] == names[::-1]
    assert store.resolve(names[0][-8:-3]) == names[0]
    with pytest.raises(EpisodeNotFound, match="not so many"):
        store.resolve("last~3")
