"""ToolBench's search trees: every node, branches by parent, chains, and the real files."""

import json

import pytest

from tests.ingest.agent_checks import check_mutations, of_kind, only, sign, written
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.writing import document
from trackway.ingest.formats.toolbench import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantThinking, AssistantToolCall, Context, EpisodeEnd, ToolResult, User


def node(kind, description="", *children, **more):
    """A node of the tree."""
    found = {"is_terminal": False, "pruned": False, "finished": False, "depth": 1, "node_type": kind,
             "description": description, "Elo": 1000.0, "child_count": len(children), "expand_num": 1}  # fmt: skip
    return {**found, **more, "children": list(children)}


def act(name, args, observation, *children, code=0, **more):
    """A call: the tool, and its arguments with what came back below it."""
    below = node("Action Input", args, *children, observation=observation, observation_code=code, io_state={}, **more)
    return node("Action", name, below)


TREE = node(
    "Action Input", "",
    act("look", '{"at":  1}', "wet",
        node("Thought", "Try again.", act("look", "{}", "no such tool", code=1, pruned=True)),
        act("Finish", '{"return_type": "give_answer"}', "done", code=3)),
)  # fmt: skip
ANSWER = {
    "valid_data": True, "query": "Does it float?", "function": [{"name": "look"}], "finish_type": "give_answer",
    "train_messages": [[{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Q"}]],
}  # fmt: skip
SEARCH = {
    "win": True, "tree": {"size": 7, "max_length": 5, "tree": TREE}, "forward_args": {"tree_beam_size": 2},
    "compare_candidates": [], "answer_generation": ANSWER,
}  # fmt: skip


def test_a_search_is_an_episode(tmp_path):
    """Query, prompt, tools, every node in the order it was tried, and how it ended."""
    path = written(tmp_path, document(SEARCH))
    assert sign(SOURCE, path).confidence == 0.95
    events = only(SOURCE, path)
    assert says(events) == [
        ("context", "Use tools."), ("user", "Does it float?"), ("assistant_tool_call", "look"), ("tool_result", "wet"),
        ("assistant_thinking", "Try again."), ("assistant_tool_call", "look"), ("tool_result", "no such tool"),
        ("assistant_tool_call", "Finish"), ("tool_result", "done"), ("episode_end", "success"),
    ]  # fmt: skip
    assert [(each.call.args, each.failed) for each in pairs(events)] == [
        (b'{"at":  1}', False), (b"{}", True), (b'{"return_type": "give_answer"}', False),
    ]  # fmt: skip
    assert (of_kind(events, EpisodeEnd)[0].reason, of_kind(events, Context)[0].tools) == (
        "give_answer",
        [{"name": "look"}],
    )
    assert of_kind(events, AssistantToolCall)[1].native.fields["entry"]["pruned"] is True


def test_branches_follow_their_parent(tmp_path):
    """What is tried after going back follows the node it was tried from, not the one tried before it."""
    events = only(SOURCE, written(tmp_path, document(SEARCH)))
    first, thought, _, finish = (each for each in events if each.kind in ("assistant_tool_call", "assistant_thinking"))
    result = of_kind(events, ToolResult)[0]
    assert finish.parent == f"{result.writer}:{result.n}"
    assert thought.parent is None
    assert first.parent is None


def test_chains(tmp_path):
    """Tries one after the other are branches from the query."""
    chain = [node("Thought", "Hm."), node("Action", "look"), node("Action Input", "{}", observation="wet")]
    flat = [{key: each for key, each in one.items() if key != "children"} for one in chain]
    tried = {"win": False, "try_count": 2, "trys": [{"chain": flat, "win": False}] * 2, "forward_args": {},
             "answer_generation": {**ANSWER, "finish_type": "give_up"}}  # fmt: skip
    events = only(SOURCE, written(tmp_path, document(tried)))
    assert [each.kind for each in events[3:]] == [
        *["assistant_thinking", "assistant_tool_call", "tool_result"] * 2, "episode_end",
    ]  # fmt: skip
    query = of_kind(events, User)[0]
    assert of_kind(events, AssistantThinking)[1].parent == f"{query.writer}:{query.n}"
    assert of_kind(events, EpisodeEnd)[0].outcome == "failure"


def test_odd_nodes(tmp_path):
    """A tool without arguments is a call; a kind of node nobody knows is a note; deep trees are read."""
    deep = node("Thought", "end")
    for _ in range(200):
        deep = node("Thought", "more", deep)
    tree = node("Action Input", "", node("Action", "look"), node("Reflection", "So."), deep)
    events = only(SOURCE, written(tmp_path, document({**SEARCH, "tree": {"tree": tree}})))
    assert says(events)[2:4] == [("assistant_tool_call", "look"), ("note", "So.")]
    assert len(of_kind(events, AssistantThinking)) == 201


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, document(SEARCH), depth=4)


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("toolbench_tree/*.json"), ids=lambda path: path.name)
def test_the_real_files(path):
    """Thoughts, calls with their arguments, and results are those that plain walking finds; no call waits."""
    whole = json.loads(path.read_text())
    thoughts, calls = [], []

    def walk(one, above=None):
        if one["node_type"] == "Thought":
            thoughts.append(one["description"])
        if one["node_type"] == "Action Input" and above and above["node_type"] == "Action":
            calls.append((above["description"], one["description"], one["observation"]))
        for each in one["children"]:
            walk(each, one)

    walk(whole["tree"]["tree"])
    events = only(SOURCE, path)
    assert [each.content for each in of_kind(events, AssistantThinking)] == thoughts
    assert [(each.call.name, each.call.args.decode(), each.result.content) for each in pairs(events)] == calls
    assert of_kind(events, EpisodeEnd)[0].outcome == ("success" if whole["win"] else "failure")
    assert [each.content for each in of_kind(events, User)] == [whole["answer_generation"]["query"]]
