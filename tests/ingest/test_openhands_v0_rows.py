"""OpenHands V0: the rows of its evaluation and of its resolver."""

import json

import pytest

from tests.ingest.agent_checks import lines, of_kind, read, troubles, written
from tests.ingest.openhands_v0_events import evaluation
from trackway.ingest.formats.openhands_v0 import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantText, AssistantToolCall, EpisodeEnd, Reward, User

OLD = [
    {"action": "message", "content": "Mend it", "wait_for_response": False},
    {"action": "run", "command": "ls", "thought": "I look.", "is_confirmed": "confirmed", "action_risk": None},
    {"observation": "run", "content": "a.py", "exit_code": 0, "command_id": -1, "command": "ls"},
    {"action": "run_ipython", "code": "1/0", "thought": "", "is_confirmed": "confirmed"},
    {"observation": "run_ipython", "content": "boom", "code": "1/0"},
    {"action": "finish", "outputs": {}, "thought": "Done."},
]


def rows(folder, *values):
    """The events of each row."""
    return list(read(SOURCE, written(folder, lines(*values), "output.jsonl")).values())


@pytest.mark.parametrize("history", [OLD, [OLD[:1], OLD[1:3], OLD[3:5], OLD[5:]]])
def test_resolver_rows(tmp_path, history):
    """Events without ids, or in pairs: results are of the action before; success is the outcome and a reward."""
    issue = {"owner": "o", "repo": "r", "number": 5, "title": "It leaks", "body": "badly"}
    row = {
        "issue": issue, "issue_type": "issue", "instruction": "Mend it", "base_commit": "", "git_patch": "diff",
        "history": history, "metrics": {"accumulated_cost": 0.1}, "success": False, "comment_success": None,
        "result_explanation": "It still leaks.", "error": None,
    }  # fmt: skip
    (found,) = rows(tmp_path, row)
    assert (found[0].header.task, found[0].header.task_key) == ("It leaks", "o/r#5")
    assert [(each.call.name, each.result and each.result.content) for each in pairs(found)] == [
        ("run", "a.py"), ("run_ipython", "boom"), ("finish", None),
    ]  # fmt: skip
    assert json.loads(of_kind(found, AssistantToolCall)[0].args)["command"] == "ls"
    assert [each.content for each in of_kind(found, AssistantText)] == ["I look.", "Done."]
    assert [(each.content, each.actor, each.turn) for each in of_kind(found, User)] == [("Mend it", "harness", 1)]
    assert [(each.name, each.value) for each in of_kind(found, Reward)] == [("success", 0.0)]
    end = of_kind(found, EpisodeEnd)[0]
    assert (end.outcome, end.reason) == ("failure", "It still leaks.")
    assert found[-2].native.fields["entry"]["git_patch"] == "diff"


@pytest.mark.parametrize(
    ("result", "outcome", "rewards"),
    [
        ({"git_patch": "diff"}, None, {}),
        ({"git_patch": "diff", "report": {"resolved": True, "failed_apply_patch": False}}, "success", {"resolved": 1}),
        ({"resolved": False}, "failure", {"resolved": 0}),
        ({"score": 0.5}, None, {"score": 0.5}),
        ({"result": {"odd": 1}}, None, {}),
        (True, "success", {"result": 1}),
        (None, None, {}),
    ],
)
def test_evaluation_rows(tmp_path, result, outcome, rewards):
    """One row is one finished episode; what the harness says of it is the outcome; what is no verdict is kept."""
    (found,) = rows(tmp_path, evaluation(test_result=result))
    start = found[0].header
    assert (start.task, start.task_key, start.model) == ("It leaks", "a__b-1", "m-1")
    assert {each.name: each.value for each in of_kind(found, Reward)} == rewards
    assert of_kind(found, EpisodeEnd)[0].outcome == outcome
    assert [each.actor for each in of_kind(found, User)] == ["harness", "simulated"]


def test_rows_are_known_by_their_bytes(tmp_path):
    """Equal rows are told apart; a row that failed before it began is an episode; a broken line stops nothing."""
    failed = evaluation(history=None, error="no image")
    body = lines(evaluation(), evaluation(), failed, {"odd": 1}) + b'{"instance_id": "cut'
    path = written(tmp_path, body, "output.jsonl")
    found = read(SOURCE, path)
    first, second, third = found
    assert second == f"{first}#2"
    assert len(found[first]) == len(found[second])
    assert of_kind(found[third], EpisodeEnd)[0].error == "no image"
    assert [each.content for each in of_kind(found[third], User)] == ["<x>\nMend"]
    assert [each.place.line for each in troubles(SOURCE, path)] == [4, 5]
