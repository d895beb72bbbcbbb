"""tau2-bench: simulations in one document or a file each; a user that calls tools; rewards in parts."""

import pytest

from tests.ingest.agent_checks import check_longer, check_mutations, of_kind, only, read, sign, troubles, written
from tests.ingest.dataset_checks import says
from tests.ingest.writing import SESSION, document
from trackway.ingest.formats.tau2_bench import SOURCE
from trackway.ingest.naming import episode_id
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeEnd,
    EpisodeStart,
    ModelCall,
    ModelResult,
    Reward,
    ToolResult,
    User,
)


def at(second):
    """A time without a zone, as the benchmark writes them."""
    return f"2026-03-01T10:00:{second:02}"


def call(call_id, requestor="assistant", **arguments):
    """A call."""
    return {"id": call_id, "name": "look", "arguments": arguments, "requestor": requestor}


def tool(call_id, content, requestor="assistant", *, error=False):
    """What came of it."""
    return {
        "id": call_id,
        "role": "tool",
        "content": content,
        "requestor": requestor,
        "error": error,
        "timestamp": at(9),
    }


MESSAGES = [
    {"role": "assistant", "content": "How can I help?", "tool_calls": None, "turn_idx": 0, "timestamp": at(1)},
    {"role": "user", "content": "No signal", "tool_calls": None, "timestamp": at(2), "cost": 0.001,
     "usage": {"completion_tokens": 4, "prompt_tokens": 90}},
    {"role": "assistant", "content": None, "tool_calls": [call("a1", line=1)], "timestamp": at(3), "cost": 0.02,
     "usage": {"completion_tokens": 9, "prompt_tokens": 300}, "raw_data": {"model": "m-1"}},
    tool("a1", "active"),
    {"role": "assistant", "content": "Look at the bar.", "tool_calls": None, "timestamp": at(4)},
    {"role": "user", "content": None, "tool_calls": [call("u1", "user"), call("u2", "user")], "timestamp": at(5)},
    {"role": "tool", "tool_messages": [tool("u1", "no bars", "user"), tool("u2", "broken", "user", error=True)]},
    {"role": "user", "content": "None ###STOP###", "tool_calls": None, "timestamp": at(6)},
]  # fmt: skip
SIMULATION = {
    "id": SESSION, "task_id": "t-1", "timestamp": at(0), "start_time": at(0), "end_time": at(30), "duration": 30.0,
    "termination_reason": "user_stop", "agent_cost": 0.02, "user_cost": 0.001, "trial": 1, "seed": 626729,
    "reward_info": {
        "reward": 0.0, "db_check": {"db_match": False, "db_reward": 0.0},
        "reward_breakdown": {"DB": 0.0, "ACTION": 1.0},
        "action_checks": [{"action_match": True}, {"action_match": False}],
        "env_assertions": [{"met": True, "reward": 1.0}], "nl_assertions": None,
    },
    "messages": MESSAGES,
}  # fmt: skip
INFO = {
    "git_commit": "abc", "num_trials": 1, "seed": 300,
    "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
    "agent_info": {"implementation": "llm_agent", "llm": "m-1"}, "user_info": {"implementation": "sim", "llm": "m-2"},
}  # fmt: skip
TASK = {"id": "t-1", "user_scenario": {"instructions": {"reason_for_call": "The phone is dead."}}, "ticket": None}
RESULTS = {"timestamp": at(0), "info": INFO, "tasks": [TASK], "simulations": [SIMULATION]}


def test_detected(tmp_path):
    """The document, one simulation, and the list beside such files, which is only a part."""
    assert sign(SOURCE, written(tmp_path, document(RESULTS))).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, document(SIMULATION))).confidence > 0.8
    assert sign(SOURCE, written(tmp_path, document({**RESULTS, "simulations": [], "simulation_index": [{}]}))).is_part
    assert sign(SOURCE, written(tmp_path, document({"info": {}, "tasks": [], "simulations": []}))) is None


def test_a_simulation_is_an_episode(tmp_path):
    """Its id, task, trial, seed, models, termination and rewards come from the file."""
    events = only(SOURCE, written(tmp_path, document(RESULTS)))
    head = of_kind(events, EpisodeStart)[0].header
    assert (head.task, head.task_key, head.trial, head.seed) == ("The phone is dead.", "t-1", 1, 626729)
    assert (head.agent, head.model, head.metadata["domain"]) == ("llm_agent", "m-1", "telecom")
    assert next(iter(read(SOURCE, written(tmp_path, document(RESULTS))))) == SESSION
    assert episode_id(SOURCE.name, SESSION, keeps_ids=SOURCE.keeps_ids) == SESSION
    assert {each.name: each.value for each in of_kind(events, Reward)} == {
        "reward": 0.0, "DB": 0.0, "ACTION": 1.0, "db_check": 0.0, "actions": 0.5, "env_assertions": 1.0,
    }  # fmt: skip
    end = of_kind(events, EpisodeEnd)[0]
    assert (end.outcome, end.reason, end.score) == ("failure", "user_stop", 0.0)
    native = events[0].native.fields["entry"]
    assert native["info"]["environment_info"]["policy"] == "Be kind."


def test_the_user_calls_tools_too(tmp_path):
    """Calls and results of the user are those of the agent "user"; each finds its own, errors are errors."""
    events = only(SOURCE, written(tmp_path, document(RESULTS)))
    assert [(each.call.agent, each.call.call_id, each.result.content, each.failed) for each in pairs(events)] == [
        (None, "a1", "active", False), ("user", "u1", "no bars", False), ("user", "u2", "broken", True),
    ]  # fmt: skip
    assert [each.batch for each in of_kind(events, AssistantToolCall)] == [None, 1, 1]
    assert [(each.content, each.actor) for each in of_kind(events, User)] == [
        ("No signal", "simulated"), ("None ###STOP###", "simulated"),
    ]  # fmt: skip


def test_usage_is_of_whoever_spoke(tmp_path):
    """Each message that a model gave is a model call with its tokens and its cost."""
    events = only(SOURCE, written(tmp_path, document(RESULTS)))
    assert [(each.agent, each.model) for each in of_kind(events, ModelCall)] == [("user", "m-2"), (None, "m-1")]
    assert [each.usage["cost"] for each in of_kind(events, ModelResult)] == [0.001, 0.02]
    assert of_kind(events, ModelResult)[1].response == {"model": "m-1"}


def test_a_file_of_its_own(tmp_path):
    """A simulation in a file of its own is told about by the results beside its folder."""
    written(tmp_path, document({**RESULTS, "simulations": [], "simulation_index": []}), "results.json")
    path = written(tmp_path, document(SIMULATION, indent=2), "simulations/one.json")
    head = only(SOURCE, path)[0].header
    assert (head.model, head.task) == ("m-1", "The phone is dead.")
    alone = written(tmp_path, document(SIMULATION), "elsewhere/deep/one.json")
    assert only(SOURCE, alone)[0].header.task == "No signal"


def test_ticks(tmp_path):
    """A spoken simulation has ticks: chunks, calls and results of both sides."""
    ticks = [
        {"tick_id": 0, "timestamp": at(1), "agent_chunk": {"role": "assistant", "content": "Hello"}},
        {"tick_id": 1, "timestamp": at(2), "user_chunk": {"role": "user", "content": "Hi"},
         "agent_tool_calls": [call("a1")], "agent_tool_results": [tool("a1", "fine")]},
        {"tick_id": 2, "timestamp": at(3)},
    ]  # fmt: skip
    simulation = {**SIMULATION, "messages": None, "ticks": ticks}
    events = only(SOURCE, written(tmp_path, document({**RESULTS, "simulations": [simulation]})))
    assert says(events)[:5] == [
        ("assistant_text", "Hello"), ("assistant_tool_call", "look"), ("tool_result", "fine"), ("user", "Hi"),
        ("note", "tick"),
    ]  # fmt: skip
    assert pairs(events)[0].result.content == "fine"


def test_growth(tmp_path):
    """More simulations in a document, or later ones of a checkpoint, say the same first ones."""
    many = [{**SIMULATION, "id": f"s-{i}", "trial": i} for i in range(4)]
    check_longer(SOURCE, tmp_path, [{**RESULTS, "simulations": many[:i]} for i in range(1, 5)])


def test_odd_simulations(tmp_path):
    """What is no simulation is said, and the others are read; one without an id has a name by its content."""
    nameless = {key: each for key, each in SIMULATION.items() if key != "id"}
    path = written(tmp_path, document({**RESULTS, "simulations": [7, SIMULATION, nameless]}))
    assert len(read(SOURCE, path)) == 2
    assert len(troubles(SOURCE, path)) == 1


@pytest.mark.parametrize(("whole", "depth"), [(RESULTS, 3), (SIMULATION, 2)], ids=["document", "simulation"])
def test_mutations(tmp_path, whole, depth):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, document(whole), depth=depth)


def test_results_without_a_call(tmp_path):
    """A result nobody asked for is kept, and answers nothing."""
    simulation = {**SIMULATION, "messages": [tool("x", "lost")]}
    events = only(SOURCE, written(tmp_path, document({**RESULTS, "simulations": [simulation]})))
    assert len(of_kind(events, ToolResult)) == 1
    assert pairs(events) == []
