"""Trajectories, timelines and reported steps: seeds 003 and 000, read from any episode."""

import json
from dataclasses import asdict

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.read.execution import execution_steps
from trackway.read.timeline import TimelineStep, timeline
from trackway.read.trajectory import trajectory
from trackway.schema import events as kinds
from trackway.schema.execution_step import ExecutionStep
from trackway.schema.plain import json_text
from trackway.schema.trajectory import TrajectoryStep
from trackway.testing.events import small_episode

CALL, RESULT = kinds.AssistantToolCall, kinds.ToolResult
SECOND = 1_000_000_000


def repair() -> list[kinds.Event]:
    """A search, an edit in two files that is tested and rewarded, and a call that nothing came back from."""
    state = kinds.FileState(hash="blake3:" + "0" * 64, size=3)
    events = [
        kinds.EpisodeStart(header=kinds.Header(id="e", task="fix", variant="v3", metadata={"k": 1}), at=5 * SECOND),
        CALL(name="search_code", args=b'{"query": "def f"}', call_id="1", at=6 * SECOND),
        RESULT(call_id="1", content="a.py", duration_ms=12),
        kinds.Reward(value=0.05),
        kinds.Reward(value=0.25),
        CALL(name="write_file", args=b'{"path": "a.py", "content": "x = 1"}', call_id="2", turn=2),
        kinds.FileChange(op="modify", path="a.py", before=state, after=state, cause="2"),
        kinds.FileChange(op="create", path="b.py", after=state, cause="2"),
        kinds.FileChange(op="create", path="log", after=state, cause="external"),
        RESULT(call_id="2", content="denied", status="denied", exit_code=1),
        kinds.SecurityFlag(rule="DANGEROUS_CODE: eval"),
        kinds.TestRun(passed=3, failed=1),
        kinds.Reward(value=None),
        kinds.Reward(value=0.9, scope="episode", name="judge"),
        CALL(name="submit", args=b"not json", call_id="3", agent="sub", turn=1),
        kinds.Reward(value=-0.5, agent="sub", ended="truncated"),
        kinds.EpisodeEnd(outcome="failure", score=0.25, reason="out of steps", at=9 * SECOND),
        kinds.Label(score=0.5, by="anna"),
    ]
    return [msgspec.structs.replace(each, n=n) for n, each in enumerate(events)]


def test_a_trajectory_tells_what_each_step_did_and_earned() -> None:
    """Path, query and content from the arguments; reward, tests, flags and files from beside the call."""
    record = trajectory(iter(repair()))
    search, write, submit = record.steps

    assert (search.step_number, search.timestamp, search.action_query) == (1, 6.0, "def f")
    assert search.observation_snapshot == {"content": "a.py", "status": "ok", "exit_code": None}
    assert (search.reward, search.cumulative_reward, search.duration_ms, search.done) == (0.3, 0.3, 12, False)
    assert (write.action_path, write.action_content, write.action_content_length) == ("a.py", "x = 1", 5)
    assert (write.reward, write.cumulative_reward, write.test_pass_rate) == (None, 0.3, 0.75)
    assert (write.error, write.security_flags) == ("denied", ["DANGEROUS_CODE: eval"])
    assert (write.file_diff["path"], write.file_diff["op"], write.file_diff["before"]["size"]) == ("a.py", "modify", 3)
    assert [each["path"] for each in write.file_diff["others"]] == ["b.py"]
    assert (submit.error, submit.done, submit.observation_snapshot["status"]) == ("nothing came back", True, "missing")
    assert submit.cumulative_reward == 0.3 - 0.5


def test_the_record_says_what_was_said_last() -> None:
    """Header, end and labels; a later score holds; episode rewards are told apart from steps'."""
    record = trajectory(repair())

    assert (record.episode_id, record.task, record.variant_id) == ("e", "fix", "v3")
    assert (record.start_time, record.end_time, record.final_score, record.total_steps) == (5.0, 9.0, 0.5, 3)
    assert record.metadata == {
        "k": 1, "outcome": "failure", "reason": "out of steps", "episode_rewards": {"judge": 0.9},
    }  # fmt: skip
    assert json.loads(json.dumps(record.to_dict()))["duration_seconds"] == 4.0
    assert msgspec.to_builtins(record)["steps"][0]["reward"] == 0.3


def test_what_nobody_said_is_none() -> None:
    """An episode that broke off has no end, no score and no last step; an empty one has nothing."""
    record = trajectory(repair()[:3])

    assert (record.end_time, record.final_score, record.steps[0].reward, record.steps[0].done) == (None,) * 3 + (False,)
    assert (trajectory([]).total_steps, trajectory([]).final_score) == (0, None)
    assert trajectory([kinds.Reward(value=2.0)]).metadata == {"reward_before_steps": 2.0}


_text = st.none() | st.text(st.characters(), max_size=9)
_number = st.none() | st.floats(allow_nan=False) | st.integers(-9, 9)
_exact = st.builds(
    TrajectoryStep, step_number=st.integers(), timestamp=st.floats(allow_nan=False), action_type=st.text(max_size=5),
    action_path=_text, action_query=_text, action_content_length=st.none() | st.integers(), reward=_number,
    observation_snapshot=st.dictionaries(st.text(), _number), cumulative_reward=st.floats(allow_nan=False),
    done=st.booleans(), error=_text, file_diff=st.none() | st.dictionaries(st.text(), _text), test_pass_rate=_number,
    duration_ms=_number, security_flags=st.lists(st.text()), action_content=_text,
)  # fmt: skip


@given(_exact)
def test_a_logged_step_is_read_back_field_for_field(step: TrajectoryStep) -> None:
    """What the TrajectoryLogger was given wins over what could be derived."""
    events = [
        CALL(name="other", args=b'{"path": "z"}', call_id="1", n=0),
        RESULT(call_id="1", content="", returned={"trajectory_step": asdict(step)}, n=1),
        kinds.Reward(value=9.0, n=2),
    ]

    record = trajectory(events)

    assert record.steps == [step]
    assert record.total_steps == step.step_number


def test_something_else_of_that_name_is_no_logged_step() -> None:
    """Fields that are too many or too few: the step is derived."""
    for returned in ({"trajectory_step": {"step_number": 1}}, {"trajectory_step": 3}, {"trajectory_step": {"x": 1}}, 7):
        events = [
            CALL(name="a", args=b"{}", call_id="1", n=0),
            RESULT(call_id="1", content="", returned=returned, n=1),
        ]
        assert trajectory(events).steps[0].action_type == "a"


def test_a_timeline_is_one_line_a_step() -> None:
    """With the trajectory's values, the agent and the turn."""
    search, _write, submit = timeline(repair())

    assert search == TimelineStep(step=1, action="search_code", reward=0.3, duration_ms=12)
    assert (submit.agent, submit.turn, submit.error) == ("sub", 1, "nothing came back")
    assert [each.error for each in timeline(small_episode())] == ["2 failed"]
    assert msgspec.to_builtins(search)["pass_rate"] is None


def test_rewards_and_files_of_another_voice_go_to_the_latest_call() -> None:
    """A harness and a scanner speak for the episode, the calls are a sub-agent's."""
    state = kinds.FileState(hash="blake3:" + "0" * 64, size=3)
    events = [
        CALL(name="a", args=b"{}", call_id="1", agent="sub", n=0),
        CALL(name="b", args=b"{}", call_id="2", agent="sub", n=1),
        kinds.FileChange(op="create", path="x", after=state, cause="1", n=2),
        kinds.FileChange(op="create", path="y", after=state, n=3),
        kinds.Reward(value=1.0, n=4),
    ]

    first, second = trajectory(events).steps

    assert (first.file_diff["path"], first.reward) == ("x", None)
    assert (second.file_diff["path"], second.reward) == ("y", 1.0)


def logged(steps: list[ExecutionStep]) -> list[kinds.Event]:
    """Reported steps as they are recorded."""
    events: list[kinds.Event] = []
    for n, step in enumerate(steps):
        name = f"c{n}"
        events.append(CALL(name=step.tool, args=json_text({"action": step.action}), call_id=name, reported=True))
        if step.tokens is not None:
            events.append(kinds.ModelResult(id=name, usage={"total_tokens": step.tokens}, usage_from="agent"))
        events.append(
            RESULT(call_id=name, content=step.observation, is_error=not step.success, duration_ms=step.latency_ms)
        )
    return [msgspec.structs.replace(each, n=n) for n, each in enumerate(events)]


@given(
    st.lists(
        st.builds(
            ExecutionStep, st.text(), st.text(st.characters()), st.integers(0, 2**40) | st.floats(0, 1e9),
            tokens=st.none() | st.integers(0, 2**40), success=st.booleans(), observation=st.text(),
        )
    )
)  # fmt: skip
def test_reported_steps_come_back_equal(steps: list[ExecutionStep]) -> None:
    """Tool, action, latency as it was given, tokens, success and observation."""
    found = execution_steps(logged(steps))

    assert found == steps
    assert [type(each.latency_ms) for each in found] == [type(each.latency_ms) for each in steps]


def test_only_reports_of_that_form_are_reported_steps() -> None:
    """Calls of a model, other arguments, broken JSON and reports that broke off are not."""
    args = (b'{"action": "a"}', b'{"action": "a", "b": 1}', b'{"action": 1}', b"[]", b"{")
    events = [CALL(name="t", args=each, call_id=str(n), reported=n > 0, n=n) for n, each in enumerate(args)]
    results = [RESULT(call_id=str(n), content="", duration_ms=1, n=n + 10) for n in range(len(args))]
    open_one = CALL(name="t", args=b'{"action": "a"}', call_id="open", reported=True, n=99)

    assert execution_steps([*events, *results, open_one]) == []


def test_a_recorded_episode_has_all_three() -> None:
    """From a store, through the public recorder."""
    with trackway.record("walk") as episode:
        call = episode.tool_call("read_file", {"path": "a"})
        episode.tool_result(call, "text")
        episode.reward(1.0)
    events = list(trackway.open_store().events(episode.id))

    assert trajectory(events).steps[0].cumulative_reward == 1.0
    assert timeline(events)[0].path == "a"
    assert execution_steps(events) == []
