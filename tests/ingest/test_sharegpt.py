"""ShareGPT: LLaMA-Factory's calls and observations, Hermes' tags, ToolBench's words, preferences, and the real file."""

import json

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
from trackway.ingest.formats.sharegpt import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantText, AssistantToolCall, Context, Label, ToolResult, User


def turn(speaker, value, **more):
    """One turn."""
    return {"from": speaker, "value": value, **more}


FACTORY = {
    "conversations": [
        turn("human", "Make it float"),
        turn("function_call", '<think>first</think>{"name": "look", "arguments": {"at":  "hull"}}'),
        turn("observation", "wet"),
        turn("function_call", '[{"name": "look", "arguments": {}}, {"name": "mend", "arguments": "{\\"a\\": 1}"}]'),
        turn("observation", "[dry, mended]"),
        turn("function_call", '{"name": "check", "arguments": {}}'),
        turn("observation", "fine"),
        turn("gpt", "It floats."),
    ],
    "system": "You build boats.",
    "tools": '[{"name": "look"}]',
}
HERMES = {
    "id": "r-1",
    "conversations": [
        turn("system", "You are a function calling AI model."),
        turn("human", "What do they cost?"),
        turn("gpt", "I ask.\n<tool_call>\n{'arguments': {'name': 'a'}, 'name': 'price'}\n</tool_call>\n"
             '<tool_call>\n{"name": "stock", "arguments": {"name":  "b"}}\n</tool_call>'),
        turn("tool", '<tool_response>\n{"name": "stock", "content": 3}\n</tool_response>\n'
             '<tool_response>\n{"name": "price", "content": 7}\n</tool_response>'),
        turn("gpt", "Seven, three left."),
    ],
}  # fmt: skip


def test_detected(tmp_path):
    """Turns with from and value, in a list or in lines."""
    assert sign(SOURCE, written(tmp_path, document([FACTORY]))).confidence == 0.8
    assert sign(SOURCE, written(tmp_path, lines(HERMES, HERMES))).confidence == 0.8
    assert sign(SOURCE, written(tmp_path, lines({"conversations": [{"role": "user", "content": "x"}]}))) is None
    assert sign(SOURCE, written(tmp_path, lines({"conversations": []}))) is None


def test_llama_factory(tmp_path):
    """Calls are JSON in a text, behind a thought or in a list; the oldest that waits is answered, and no later one."""
    events = only(SOURCE, written(tmp_path, document([FACTORY])))
    assert says(events) == [
        ("context", None), ("context", "You build boats."), ("user", "Make it float"), ("assistant_thinking", "first"),
        ("assistant_tool_call", "look"), ("tool_result", "wet"), ("assistant_tool_call", "look"),
        ("assistant_tool_call", "mend"), ("tool_result", "[dry, mended]"), ("assistant_tool_call", "check"),
        ("tool_result", "fine"), ("assistant_text", "It floats."),
    ]  # fmt: skip
    assert [(each.call.args, each.result and each.result.content) for each in pairs(events)] == [
        (b'{"at":  "hull"}', "wet"), (b"{}", "[dry, mended]"), (b'{"a": 1}', None), (b"{}", "fine"),
    ]  # fmt: skip
    assert [each.batch for each in of_kind(events, AssistantToolCall)] == [None, 1, 1, None]
    assert of_kind(events, Context)[0].tools == [{"name": "look"}]


def test_hermes(tmp_path):
    """Calls between tags, printed or dumped; answers find the call whose tool they name."""
    events = only(SOURCE, written(tmp_path, lines(HERMES)))
    assert [(each.call.name, each.call.args, each.result.content) for each in pairs(events)] == [
        ("price", b'{"name":"a"}', '{"name": "price", "content": 7}'),
        ("stock", b'{"name":  "b"}', '{"name": "stock", "content": 3}'),
    ]
    assert of_kind(events, AssistantText)[0].content == "I ask.\n"
    assert events[0].native.fields["entry"] == {"id": "r-1"}


def test_words_are_calls_only_where_something_came_back(tmp_path):
    """What ToolBench's models ask for in words is a call where a function answered; else it is text."""
    said = 'Thought: x\nAction: look\nAction Input: {"at":  1}'
    talk = [turn("user", "Go"), turn("assistant", said), turn("function", "wet"), turn("assistant", said)]
    events = only(SOURCE, written(tmp_path, lines({"conversations": talk})))
    assert [(each.call.name, each.call.args, each.result.content) for each in pairs(events)] == [
        ("look", b'{"at":  1}', "wet")
    ]
    assert [each.content for each in of_kind(events, AssistantText)] == [said, said]


def test_calls_that_are_no_json(tmp_path):
    """A call that cannot be read stays a call, with all that stands there as its arguments."""
    talk = [turn("human", "Go"), turn("function_call", "look(at=1)"), turn("observation", "wet")]
    events = only(SOURCE, written(tmp_path, lines({"conversations": talk})))
    assert [(each.call.name, each.call.args, each.result.content) for each in pairs(events)] == [
        ("function_call", b"look(at=1)", "wet")
    ]


def test_preferences(tmp_path):
    """What was chosen and what was not are two episodes of one task; a label is one."""
    row = {"conversations": [turn("human", "Go")], "chosen": turn("gpt", "Yes."), "rejected": turn("gpt", "No.")}
    chosen, rejected = read(SOURCE, written(tmp_path, document([row]))).values()
    assert [each[-1].tag for each in (chosen, rejected)] == ["chosen", "rejected"]
    assert [of_kind(each, AssistantText)[0].content for each in (chosen, rejected)] == ["Yes.", "No."]
    assert chosen[0].header.task_key == rejected[0].header.task_key
    events = only(SOURCE, written(tmp_path, lines({**FACTORY, "label": True})))
    assert of_kind(events, Label)[0].tag == "desirable"


def test_odd_turns(tmp_path):
    """A speaker nobody knows is a note with all of the turn; what is no row is said."""
    talk = [
        turn("human", "Go"),
        turn("narrator", "Later", mood=1),
        7,
        {"role": "user", "content": "Hm"},
        turn("gpt", 5),
    ]
    path = written(tmp_path, lines({"conversations": talk}, {"conversations": 7}, [1]))
    events = only(SOURCE, path)
    assert says(events) == [
        ("user", "Go"),
        ("note", "narrator"),
        ("note", "turn"),
        ("user", "Hm"),
        ("assistant_text", "5"),
    ]
    assert events[2].native.fields["entry"]["mood"] == 1
    assert len(troubles(SOURCE, path)) == 2


def test_one_row_over_many_lines(tmp_path):
    """A row that somebody made readable is one; lines whose first is broken are lines."""
    assert len(of_kind(only(SOURCE, written(tmp_path, document(FACTORY, indent=2))), AssistantToolCall)) == 4
    path = written(tmp_path, lines(HERMES)[:50] + b"\n" + lines(HERMES, FACTORY))
    assert len(read(SOURCE, path)) == 2
    assert len(troubles(SOURCE, path)) == 1


def test_growth(tmp_path):
    """Rows that are added leave the others as they were."""
    check_growth(SOURCE, tmp_path, lines(FACTORY, HERMES, FACTORY))
    check_longer(SOURCE, tmp_path, [[FACTORY, HERMES, FACTORY][:i] for i in range(1, 4)])


@pytest.mark.parametrize("row", [FACTORY, HERMES], ids=["factory", "hermes"])
def test_mutations(tmp_path, row):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, lines(row))


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("sharegpt/*/*.json"), ids=lambda path: path.name)
def test_the_real_file(path):
    """Turns, calls, results and pairs are those that plain counting finds; no call waits."""
    rows = json.loads(path.read_text())
    found = read(SOURCE, path)
    assert len(found) == len(rows)
    for row, events in zip(rows, found.values(), strict=True):
        by = {name: [each["value"] for each in row["conversations"] if each["from"] == name] for name in (
            "human", "gpt", "function_call", "observation")}  # fmt: skip
        assert [each.content for each in of_kind(events, User)] == by["human"]
        assert [each.content for each in of_kind(events, AssistantText)] == by["gpt"]
        assert [each.content for each in of_kind(events, ToolResult)] == by["observation"]
        calls = [json.loads(each) for each in by["function_call"]]
        assert [(each.name, json.loads(each.args)) for each in of_kind(events, AssistantToolCall)] == [
            (each["name"], each["arguments"]) for each in calls
        ]
        assert [each.result.content for each in pairs(events)] == by["observation"]
        tools = json.loads(row["tools"])
        assert [each.tools for each in of_kind(events, Context)] == ([tools] if tools else [])
