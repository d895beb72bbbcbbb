"""tau-bench: results with rewards, ids that repeat, agents that act in text, and the real file."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import (
    check_growth,
    check_longer,
    check_mutations,
    lines,
    of_kind,
    only,
    read,
    sign,
    troubles,
    written,
)
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.writing import document
from trackway.ingest.formats.tau_bench import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantToolCall, EpisodeEnd, EpisodeStart, Reward, ToolResult, User


def asks(call_id, name="find", arguments='{"id":  1}', content=None):
    """A message with a call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


def tool(call_id, content):
    """What came of it."""
    return {"role": "tool", "tool_call_id": call_id, "name": "find", "content": content}


TRAJ = [
    {"role": "system", "content": "Be polite."},
    {"role": "user", "content": "I want my money back"},
    asks("c1", content="I look."),
    tool("c1", "paid"),
    asks("c1", arguments="{no json"),
    tool("c1", "Error: no such order"),
    {"role": "assistant", "content": "It is on its way."},
    {"role": "user", "content": "Thanks ###STOP###"},
]
INFO = {
    "task": {"user_id": "ann", "instruction": "You are ann.\nGet a refund.", "actions": [{"name": "refund"}]},
    "reward_info": {"reward": 1.0, "info": {"r_actions": 1.0, "gt_data_hash": "ab"}, "actions": []},
    "user_cost": 0.01,
}
ROW = {"task_id": 7, "reward": 1.0, "info": INFO, "traj": TRAJ, "trial": 2}


def test_detected(tmp_path):
    """Rows with a task, a reward and a trajectory are tau-bench's; few-shot prompts as texts are nobody's."""
    assert sign(SOURCE, written(tmp_path, document([ROW]))).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, document([ROW], indent=2))).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, lines({"messages_display": "user: hi\nassistant: ho"}))) is None
    assert sign(SOURCE, written(tmp_path, document([{"task_id": 1, "reward": 1}]))) is None


def test_a_row_is_an_episode(tmp_path):
    """Task, trial, messages, reward with its parts and outcome come from the row; the ground truth is kept."""
    events = only(SOURCE, written(tmp_path, document([ROW])))
    head = of_kind(events, EpisodeStart)[0].header
    assert (head.task, head.task_key, head.trial, head.model) == ("You are ann.", "7", 2, None)
    assert [each.actor for each in of_kind(events, User)] == ["simulated", "simulated"]
    assert [(each.name, each.value, each.scope) for each in of_kind(events, Reward)] == [
        ("reward", 1.0, "episode"), ("r_actions", 1.0, "episode"),
    ]  # fmt: skip
    assert (of_kind(events, EpisodeEnd)[0].outcome, of_kind(events, EpisodeEnd)[0].score) == ("success", 1.0)
    assert of_kind(events, Reward)[0].native.fields["entry"]["info"]["task"]["actions"] == [{"name": "refund"}]


def test_ids_that_repeat_are_paired_in_order(tmp_path):
    """Two calls under one id have each its own result; arguments stay as written, an error is one."""
    found = pairs(only(SOURCE, written(tmp_path, document([ROW]))))
    assert [(each.call.args, each.result.content, each.failed) for each in found] == [
        (b'{"id":  1}', "paid", False), (b"{no json", "Error: no such order", True),
    ]  # fmt: skip


@pytest.mark.parametrize(("reward", "outcome"), [(0.0, "failure"), (0.5, "partial"), (1, "success"), (None, None)])
def test_outcomes(tmp_path, reward, outcome):
    """A reward of 1 is success, of 0 failure, in between it is partial; none is none, and not 0."""
    events = only(SOURCE, written(tmp_path, document([{**ROW, "reward": reward}])))
    assert of_kind(events, EpisodeEnd)[0].outcome == outcome
    assert of_kind(events, Reward)[0].value == reward


def test_a_row_that_broke_off(tmp_path):
    """A trial that ended in an exception says so, and has no messages."""
    row = {**ROW, "reward": 0.0, "traj": [], "info": {"error": "timeout", "traceback": "…"}}
    end = of_kind(only(SOURCE, written(tmp_path, document([row]))), EpisodeEnd)[0]
    assert (end.outcome, end.error) == ("failure", "timeout")


def test_actions_in_text(tmp_path):
    """Agents that act in text make calls by the benchmark's own rule; what they say stays whole beside them."""
    said = 'Thought:\nI look.\nAction:\n{"name": "find", "arguments": {"id":  1}}'
    reply = 'Action:\n{"name": "respond", "arguments": {"content": "Done."}}'
    traj = [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": said},
        {"role": "user", "content": "API output: paid"}, {"role": "assistant", "content": reply},
        {"role": "user", "content": "###STOP###"},
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, document([{**ROW, "traj": traj}])))
    assert says(events)[:4] == [
        ("user", "Hi"), ("assistant_text", said), ("assistant_tool_call", "find"), ("tool_result", "API output: paid"),
    ]  # fmt: skip
    assert pairs(events)[0].call.args == b'{"id":  1}'
    assert len(of_kind(events, AssistantToolCall)) == len(of_kind(events, ToolResult)) == 1


def test_equal_rows_are_told_apart(tmp_path):
    """A row that stands twice in a file is two episodes."""
    assert len(read(SOURCE, written(tmp_path, document([ROW, ROW, {**ROW, "trial": 3}])))) == 3


def test_growth(tmp_path):
    """A file with more rows says the rows it had again, whether a list or lines."""
    rows = [{**ROW, "trial": i} for i in range(4)]
    check_longer(SOURCE, tmp_path, [rows[:i] for i in range(1, 5)])
    check_growth(SOURCE, tmp_path, lines(*rows))


def test_a_list_that_is_cut_off(tmp_path):
    """Rows that are whole are read; that the file is not is said."""
    body = document([ROW, {**ROW, "trial": 9}, ROW])
    path = written(tmp_path, body[:-40])
    assert len(read(SOURCE, path)) == 2
    assert len(troubles(SOURCE, path)) == 1


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, document([ROW]), depth=3)


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("tau_bench/*.json"), ids=lambda path: path.name)
def test_the_real_file(path):
    """Calls, results, pairs, turns, rewards are those that plain counting finds; no call waits."""
    rows = json.loads(path.read_text())
    found = read(SOURCE, path)
    assert len(found) == len(rows)
    for row, events in zip(rows, found.values(), strict=True):
        roles = Counter(each["role"] for each in row["traj"])
        calls = [one for each in row["traj"] for one in each.get("tool_calls") or ()]
        assert len(of_kind(events, User)) == roles["user"]
        assert len(of_kind(events, ToolResult)) == roles["tool"]
        assert [each.args.decode() for each in of_kind(events, AssistantToolCall)] == [
            each["function"]["arguments"] for each in calls
        ]
        assert [each.result.content for each in pairs(events)] == [
            each["content"] for each in row["traj"] if each["role"] == "tool"
        ]
        assert of_kind(events, EpisodeEnd)[0].score == row["reward"]
