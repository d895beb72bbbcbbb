"""Seed 003 under its own names; and all three seeds after kill -9, read back by another process."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import trackway
from trackway import ExecutionStep, FileDiff, FullTrace, TrajectoryLogger, TrajectoryRecord, TrajectoryStep
from trackway.errors import BadSetting, EpisodeClosed
from trackway.read.execution import execution_steps

ROOT = Path(__file__).resolve().parent.parent

BUILD = ExecutionStep("cargo", "build --all", 12_500, observation="Build successful, 0 warnings")
GENERATE = ExecutionStep("claude", "generate async batch implementation", 4500, 2800, True, "Generated batch.rs")


def events_of(episode_id):
    """All events of an episode, from a store opened anew."""
    with trackway.open_store() as store:
        return list(store.events(episode_id))


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
from tests.test_seed_trajectories import BUILD, GENERATE, STEP
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
