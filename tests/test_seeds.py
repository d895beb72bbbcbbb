"""What the seed documents promise, under their own names; after kill -9 it comes back equal, from another process."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway import ExecutionStep, FileDiff, FullTrace, TrajectoryLogger, TrajectoryRecord, TrajectoryStep
from trackway.errors import BadSetting, EpisodeClosed, EpisodeNotFound, TrackwayError
from trackway.read.execution import execution_steps

ROOT = Path(__file__).resolve().parent.parent

BUILD = ExecutionStep("cargo", "build --all", 12_500, observation="Build successful, 0 warnings")
TEST = ExecutionStep("cargo", "test --test integration_test", 3200, None, False, "2 tests failed: test_batch_insert")
GENERATE = ExecutionStep("claude", "generate async batch implementation", 4500, 2800, True, "Generated batch.rs")


def events_of(episode_id):
    """All events of an episode, from a store opened anew."""
    with trackway.open_store() as store:
        return list(store.events(episode_id))


# --- seed 000 -------------------------------------------------------------------------------------------------------


def test_logged_steps_come_back_equal():
    """By the episode, by id, several at once: in order, equal, from a store opened anew."""
    with trackway.Recorder() as recorder:
        episode = recorder.start("ship the batch writer")
        episode.log_step(BUILD)
        recorder.log_step(episode.id, TEST)
        recorder.log_steps(episode.id, [GENERATE, BUILD])
        episode.end("success")

    assert execution_steps(events_of(episode.id)) == [BUILD, TEST, GENERATE, BUILD]


def test_a_logged_step_is_marked_as_reported():
    """It is an action with what came of it, said by the agent and not produced by a model; tokens are usage."""
    with trackway.record("t") as episode:
        episode.log_step(GENERATE)
    (step,) = trackway.steps(events_of(episode.id))
    (usage,) = [each for each in events_of(episode.id) if each.kind == "model_result"]

    assert (step.tool, json.loads(step.args), step.reported) == ("claude", {"action": GENERATE.action}, True)
    assert (step.observation, step.error, step.duration_ms) == ("Generated batch.rs", None, 4500)
    assert (usage.usage, usage.usage_from) == ({"total_tokens": 2800}, "agent")


@given(st.builds(
    ExecutionStep, tool=st.text(), action=st.text(), latency_ms=st.integers(0, 2**64 - 1), success=st.booleans(),
    tokens=st.none() | st.integers(0, 2**32 - 1), observation=st.text(st.characters()),
))  # fmt: skip
def test_any_step_comes_back_equal(step):
    """Every field, whatever is in it, the longest latency a u64 can hold included."""
    recorder = trackway.Recorder(store="memory:steps")
    episode = recorder.start("t")
    episode.log_step(step)
    recorder.close()

    assert execution_steps(trackway.open_store("memory:steps").events(episode.id)) == [step]


def test_steps_go_on_in_another_recorder():
    """An id is all that is needed, short or whole; an episode that has ended takes no more steps."""
    with trackway.Recorder() as first:
        episode = first.start("t")
        episode.log_step(BUILD)
    with trackway.Recorder() as second:
        second.log_step(episode.id[-8:], TEST)
        second.log_step(episode.id, GENERATE)
        second.resume(episode.id).end("success")
        with pytest.raises(EpisodeClosed):
            second.log_step(episode.id, BUILD)
        with pytest.raises(EpisodeNotFound):
            second.log_step("0000", BUILD)

    assert execution_steps(events_of(episode.id)) == [BUILD, TEST, GENERATE]


def test_what_is_no_step_is_refused():
    """A mapping, or a latency that is no number: misuse, and nothing is recorded of it."""
    with trackway.record("t") as episode:
        with pytest.raises(BadSetting, match="ExecutionStep"):
            episode.log_step({"tool": "x"})
        with pytest.raises(BadSetting, match="latency_ms"):
            episode.log_step(ExecutionStep("x", "y", "soon"))
    assert trackway.steps(events_of(episode.id)) == []


@pytest.mark.parametrize("step", [
    ExecutionStep("t", "a", 1, tokens=2.7), ExecutionStep("t", {"a": 1}, 1), ExecutionStep("t", "a", 1, success="no"),
    ExecutionStep("t", "a", True), ExecutionStep(None, "a", 1), ExecutionStep("t", "a", 1, observation=b"x"),
])  # fmt: skip
def test_a_step_that_would_not_come_back_equal_is_refused(step):
    """Nothing is rounded, coerced or left out: it raises before anything is recorded."""
    with trackway.record("t") as episode, pytest.raises(BadSetting):
        episode.log_step(step)
    assert trackway.steps(events_of(episode.id)) == []


def test_last_means_the_last_each_time():
    """A word is looked up whenever it is used; and an episode that another handle ended takes no more steps."""
    with trackway.Recorder() as recorder, trackway.Recorder() as other:
        first = other.start("first")
        other.flush()
        recorder.log_step("last", BUILD)
        second = other.start("second")
        other.flush()
        recorder.log_step("last", TEST)
        first.end("success")
        with pytest.raises(EpisodeClosed):
            recorder.log_step(first.id, BUILD)
        assert recorder.resume(second.id) is not second
        assert other.resume(second.id) is second

    assert execution_steps(events_of(first.id)) == [BUILD]
    assert execution_steps(events_of(second.id)) == [TEST]


def test_the_life_of_an_episode():
    """Started, logged, checkpointed, completed or failed or abstained from, tagged, related to others."""
    with trackway.Recorder() as recorder:
        first = recorder.start("plan", tags=["nightly"])
        first.note("checkpoint", {"done": ["a"], "next": ["b"]})
        first.end("success", score=1.0)
        second = recorder.start("build", parent=first)
        second.relate("depends_on", first)
        second.end("abandoned", reason="the crate does not exist")
        recorder.relate(second.id[-8:], "follows", first.id, comment="same day", by="me")
        recorder.label(first.id, tag="reviewed", by="me")
        with pytest.raises(BadSetting):
            second.relate("depends_on", second)
        with pytest.raises(BadSetting):
            second.label()
    store = trackway.open_store()
    plan, build = store.episode(first.id), store.episode(second.id)

    assert (plan.outcome, plan.score, plan.tags) == ("success", 1.0, ("nightly", "reviewed"))
    assert (build.outcome, build.reason) == ("abandoned", "the crate does not exist")
    assert [(each.relation, each.to) for each in build.relations] == [("depends_on", first.id), ("follows", first.id)]
    assert build.parent.episode == first.id


def test_a_label_on_an_episode_of_long_ago():
    """Appended by whoever gives it, with the moment; the last outcome and score are the ones that count."""
    with trackway.record("t") as episode:
        episode.end("success")
    with trackway.Recorder() as recorder:
        recorder.label("last", outcome="failure", score=0.25, comment="it only looked done", by="me")
    (label,) = [event for event in events_of(episode.id) if event.kind == "label"]

    assert (label.outcome, label.by, label.at > 0) == ("failure", "me", True)
    assert trackway.open_store().episode(episode.id).outcome == "failure"


def test_a_label_holds_whenever_it_is_sealed():
    """One process seals its label before another has sealed the end: the label is still the last word."""
    with trackway.Recorder() as first:
        episode = first.start("t")
        episode.end("success", score=1.0)
        with trackway.Recorder() as second:
            second.label(episode.id, outcome="failure", by="me")
            second.label(episode.id, outcome="partial", by="me")
    summary = trackway.open_store().episode(episode.id)

    assert (summary.outcome, summary.score, summary.state) == ("partial", 1.0, "ended")


# --- seed 001 -------------------------------------------------------------------------------------------------------


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


# --- seed 003 -------------------------------------------------------------------------------------------------------

STEP = {
    "step_number": 1, "action_type": "write_file", "action_path": "src/a.py", "action_query": None,
    "action_content_length": 12, "reward": 0.08, "cumulative_reward": 0.13, "done": False, "error": None,
    "file_diff": FileDiff("src/a.py", None, "print('hi')\n", 12), "test_pass_rate": 0.5, "duration_ms": 3.25,
    "observation_compact": {"files_read": ["src/b.py"], "steps_remaining": 9},
    "security_flags": ["DANGEROUS_CODE:eval"],
}  # fmt: skip


def test_a_trajectory_comes_back_field_for_field():
    """In the seed's shape, with the content it throws away."""
    logger = TrajectoryLogger()
    episode_id = logger.start_episode("task1", "variant_3")
    logger.record_step(**STEP)
    logger.record_step(
        2, "run_tests", None, None, None, -0.02, 0.11, True, "2 failed", None, 0.75, 810.0, {"has_error": True}
    )
    logger.end_episode(final_score=0.75)
    found = logger.get_trajectory()
    first, second = found["steps"]

    assert (found["episode_id"], found["task"], found["variant_id"]) == (episode_id, "task1", "variant_3")
    assert (found["final_score"], found["total_steps"]) == (0.75, 2)
    assert found["duration_seconds"] == round(found["end_time"] - found["start_time"], 2)
    assert {name: first[name] for name in STEP if name in first} == {
        **{name: each for name, each in STEP.items() if name != "observation_compact"},
        "file_diff": {"path": "src/a.py", "before": None, "after": "print('hi')\n", "chars_changed": 12},
    }
    assert first["observation_snapshot"] == STEP["observation_compact"]
    assert (second["error"], second["done"], second["duration_ms"], second["security_flags"]) == (
        "2 failed",
        True,
        810.0,
        [],
    )
    json.dumps(found)
    assert logger.get_replay_actions() == [
        {"action_type": "write_file", "path": "src/a.py", "content": "print('hi')\n"}, {"action_type": "run_tests"},
    ]  # fmt: skip
    assert {name: logger.get_step_timeline()[0][name] for name in (
        "step", "action", "path", "reward", "error", "duration_ms", "pass_rate", "security_flags")} == {
        "step": 1, "action": "write_file", "path": "src/a.py", "reward": 0.08, "error": None, "duration_ms": 3.25,
        "pass_rate": 0.5, "security_flags": ["DANGEROUS_CODE:eval"],
    }  # fmt: skip


def test_a_step_is_more_than_the_loggers_own():
    """Everything else reads the same episode: rewards, files with their contents, tests, flags."""
    logger = TrajectoryLogger()
    episode_id = logger.start_episode("task1", "v")
    logger.record_step(**STEP)
    events = {event.kind: event for event in events_of(episode_id)}

    assert events["reward"].value == 0.08
    assert b"".join(trackway.open_store().blob(events["file_change"].after.hash)) == b"print('hi')\n"
    assert events["test_run"].pass_rate == 0.5
    assert events["security_flag"].rule == "DANGEROUS_CODE:eval"


def test_nothing_is_forgotten_and_nothing_ends_silently():
    """Unbounded history, the oldest first; one that was started over is abandoned; what cannot be recorded raises."""
    logger = TrajectoryLogger()
    assert (logger.get_trajectory(), logger.get_replay_actions(), logger.get_step_timeline()) == (None, [], [])
    assert logger.get_history_summary() == []
    with pytest.raises(BadSetting, match="start_episode"):
        logger.record_step(1, "read_file")
    for i in range(25):
        logger.start_episode(f"task{i}", "v")
        logger.record_step(1, "submit", reward=1.0, done=True)
        if i % 2:
            logger.end_episode(i / 10)
    history = logger.get_history_summary()

    assert [each["task"] for each in history] == [f"task{i}" for i in range(24)]
    assert [each["final_score"] for each in history[:4]] == [None, 0.1, None, 0.3]
    assert history[0]["outcome"] == "abandoned"
    assert [each["task"] for each in logger.get_history_summary(limit=2)] == ["task22", "task23"]
    logger.end_episode(0.5)
    with pytest.raises(EpisodeClosed):
        logger.end_episode(0.5)
    with pytest.raises(EpisodeClosed):
        logger.record_step(2, "submit")


@pytest.mark.parametrize("wrong", [
    {"reward": "x"}, {"reward": float("nan")}, {"test_pass_rate": "all"}, {"duration_ms": "long"},
    {"file_diff": {"path": "a"}}, {"observation_compact": [1]}, {"cumulative_reward": []},
])  # fmt: skip
def test_a_step_is_recorded_whole_or_not_at_all(wrong):
    """Everything is checked before anything is recorded."""
    logger = TrajectoryLogger()
    logger.start_episode("t", "v", agent="env", tags=["x"])
    with pytest.raises(BadSetting):
        logger.record_step(1, "act", **wrong)
    assert logger.get_step_timeline() == []
    logger.record_step(1, "act", security_flags="eval")
    assert logger.get_step_timeline()[0]["security_flags"] == ["eval"]
    with pytest.raises(BadSetting):
        logger.get_history_summary(-1)


def test_many_loggers_at_once():
    """Eight environments in threads of one process: each has its own episode, none loses a step."""
    found = {}

    def play(number):
        logger = TrajectoryLogger()
        logger.start_episode("t", f"v{number}")
        for i in range(20):
            logger.record_step(i + 1, "act", action_query=f"{number}.{i}", reward=float(i))
        logger.end_episode(float(number))
        found[number] = logger.get_trajectory()

    threads = [threading.Thread(target=play, args=(number,)) for number in range(8)]
    [each.start() for each in threads]
    [each.join() for each in threads]

    for number in range(8):
        assert [each["action_query"] for each in found[number]["steps"]] == [f"{number}.{i}" for i in range(20)]
        assert found[number]["steps"][-1]["cumulative_reward"] == sum(range(20))
    assert len(TrajectoryLogger().get_history_summary()) == 8


def test_any_episode_is_a_trajectory():
    """The same shape for what was recorded in another way."""
    with trackway.record("t", variant="v") as episode:
        call = episode.tool_call("read_file", {"path": "a.py"})
        episode.tool_result(call, "text")
        episode.reward(0.5)
        episode.end("success", score=1.0)
    found = trackway.trajectory(events_of(episode.id))

    assert isinstance(found, TrajectoryRecord)
    assert isinstance(found.steps[0], TrajectoryStep)
    assert (found.steps[0].action_type, found.steps[0].action_path, found.steps[0].reward) == ("read_file", "a.py", 0.5)
    assert found.final_score == 1.0


# --- all three, after kill -9 ---------------------------------------------------------------------------------------

DIES = """
import os, signal, sys, json
import trackway
from tests.test_seeds import BUILD, GENERATE, STEP
recorder = trackway.Recorder(journal=sys.argv[1])
episode = recorder.start("steps")
episode.log_step(BUILD); recorder.log_step(episode.id, GENERATE)
trace = trackway.FullTrace("t1", "m", "prompt", [{"name": "x"}], timestamp=1_700_000_000)
trace.push_user("hi"); trace.push_tool_call("x", {"a": [1, 2.5]}, "c"); trace.push_tool_result("c", "no", True)
added = recorder.add(trace)
logger = trackway.TrajectoryLogger()
played = logger.start_episode("task", "v")
logger.record_step(**STEP)
print(json.dumps([episode.id, added, played]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.crash
@pytest.mark.parametrize("journal", ["mmap", "append"])
def test_after_kill_9_everything_comes_back_equal(home, journal, monkeypatch):
    """The process is killed, another one opens the store: steps, trace and trajectory are what was given."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "src")]))
    dead = subprocess.run([sys.executable, "-c", DIES, journal], cwd=ROOT, capture_output=True, text=True, check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    steps, added, played = json.loads(re.search(r"\[.*\]", dead.stdout)[0])
    expected = FullTrace("t1", "m", "prompt", [{"name": "x"}], 1_700_000_000)
    expected.push_user("hi")
    expected.push_tool_call("x", {"a": [1, 2.5]}, "c")
    expected.push_tool_result("c", "no", True)

    for sealed in (False, True):
        if sealed:
            with trackway.Recorder() as recorder:
                recorder.start("seals what the dead one left")
                recorder.flush()
        assert execution_steps(events_of(steps)) == [BUILD, GENERATE]
        assert trackway.trace(events_of(added)) == [expected]
        logger = TrajectoryLogger()
        (step,) = logger.get_trajectory(played)["steps"]
        assert step["file_diff"]["after"] == "print('hi')\n"
        assert (step["reward"], step["observation_snapshot"]) == (0.08, STEP["observation_compact"])
        assert trackway.open_store().episode(played).state == "crashed"
