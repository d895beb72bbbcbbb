"""Seed 000 under its own names: steps as an agent reports them, and the life of an episode."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway import ExecutionStep
from trackway.errors import BadSetting, EpisodeClosed, EpisodeNotFound
from trackway.read.execution import execution_steps

BUILD = ExecutionStep("cargo", "build --all", 12_500, observation="Build successful, 0 warnings")
TEST = ExecutionStep("cargo", "test --test integration_test", 3200, None, False, "2 tests failed: test_batch_insert")
GENERATE = ExecutionStep("claude", "generate async batch implementation", 4500, 2800, True, "Generated batch.rs")


def events_of(episode_id):
    """All events of an episode, from a store opened anew."""
    with trackway.open_store() as store:
        return list(store.events(episode_id))


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
