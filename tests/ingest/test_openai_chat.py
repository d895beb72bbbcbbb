"""OpenAI's chat messages: rows with tools, preferences, lists and documents, ReAct in text, and the real files."""

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
from trackway.ingest.formats.openai_chat import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeStart,
    Label,
    Note,
    ToolResult,
    User,
)

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def ask(*calls, content=None):
    """A message with calls: ids, and the text of their arguments."""
    made = [
        {"id": own, "type": "function", "function": {"name": "look", "arguments": arguments}}
        for own, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


CHAT = [
    {"role": "system", "content": "You build boats."},
    {"role": "user", "content": "Make it float"},
    ask(("k1", '{"at":  "hull"}'), ("k2", "{broken"), content="I look."),
    {"role": "tool", "tool_call_id": "k2", "content": "dry"},
    {"role": "tool", "tool_call_id": "k1", "content": "wet"},
    {"role": "assistant", "content": "It floats.", "weight": 0},
]
ROW = {"messages": CHAT, "tools": TOOLS, "parallel_tool_calls": True}


@pytest.mark.parametrize(
    "body",
    [lines(ROW), document([ROW]), document(CHAT), document(ROW, indent=1), lines(*CHAT), lines(CHAT, CHAT)],
    ids=["rows", "list of rows", "list of messages", "document", "a message a line", "a list a line"],
)
def test_detected(tmp_path, body):
    """Every shape a chat is kept in is taken, less surely than by those who know more of a file."""
    assert 0.3 < sign(SOURCE, written(tmp_path, body)).confidence <= 0.6
    assert all(of_kind(each, AssistantText) for each in read(SOURCE, written(tmp_path, body)).values())


@pytest.mark.parametrize(
    "body",
    [
        lines({"prompt": "a", "completion": "b"}), lines({"prompt": "a", "chosen": "b", "rejected": "c"}),
        lines({"messages": ["a"]}), lines({"messages": [{"role": "pirate", "content": "arr"}]}), document([1, 2]),
        lines({"role": "user"}), lines({"a": 1}), b"", b"hello", document({"messages": {}}),
    ],
)  # fmt: skip
def test_nobodys(tmp_path, body):
    """Plain texts without roles, and whatever else has no messages, are not taken."""
    assert sign(SOURCE, written(tmp_path, body)) is None


def test_a_row_is_an_episode(tmp_path):
    """System prompt, tools, turns, parallel calls with the model's own bytes, results by id; the rest is kept."""
    events = only(SOURCE, written(tmp_path, lines(ROW)))
    assert of_kind(events, EpisodeStart)[0].header.task == "Make it float"
    assert [(each.op, each.system_prompt, each.tools) for each in of_kind(events, Context)] == [
        ("set", None, TOOLS), ("set", "You build boats.", None),
    ]  # fmt: skip
    assert [(each.call.args, each.call.batch, each.result.content) for each in pairs(events)] == [
        (b'{"at":  "hull"}', 1, "wet"), (b"{broken", 1, "dry"),
    ]  # fmt: skip
    assert events[0].native.fields["entry"] == {"parallel_tool_calls": True}
    assert of_kind(events, AssistantText)[-1].native.fields["entry"] == {"weight": 0}
    assert all(each.call is None for each in events)


def test_older_calls(tmp_path):
    """A function_call without an id is answered by the function's message; developer is a system prompt."""
    chat = [
        {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Look"},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "wet"},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "[]"}},
        {"role": "function", "name": "look", "content": "dry"},
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, lines({"messages": chat, "functions": [{"name": "look"}]})))
    assert [(each.call.args, each.result.content) for each in pairs(events)] == [(b"{}", "wet"), (b"[]", "dry")]
    assert of_kind(events, Context)[0].tools == [{"name": "look"}]
    assert of_kind(events, Context)[1].native.fields["entry"] == {"role": "developer"}


def test_content_of_other_kinds(tmp_path):
    """Blocks, images, refusals, reasoning and Anthropic's blocks: text is text, the rest is kept beside it."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    chat = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": None, "refusal": "I cannot.", "reasoning_content": "Hm."},
        {"role": "user", "content": "Try"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "So.", "signature": "s=="}, {"type": "text", "text": "I try."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no"}], "is_error": True},
            {"type": "text", "text": "And?"},
        ]},
        {"role": "assistant", "content": ""}, {"role": "narrator", "content": "The end."}, 7,
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, lines({"messages": chat})))
    assert says(events) == [
        ("user", "What is this?"), ("assistant_thinking", "Hm."), ("assistant_text", "I cannot."), ("user", "Try"),
        ("assistant_thinking", "So."), ("assistant_text", "I try."), ("assistant_tool_call", "look"),
        ("tool_result", "no"), ("user", "And?"), ("assistant_text", ""), ("note", "narrator"), ("note", "message"),
    ]  # fmt: skip
    assert of_kind(events, User)[0].native.fields["entry"]["content"][1] == image
    assert of_kind(events, AssistantThinking)[1].state == {"signature": "s=="}
    assert pairs(events)[0].failed
    assert of_kind(events, Note)[0].native.fields["entry"]["content"] == "The end."


def test_later_system_messages_are_put_in(tmp_path):
    """Only the first says what the model is; what comes later is put into the conversation."""
    chat = [*CHAT[:2], {"role": "system", "content": "Hurry."}]
    found = of_kind(only(SOURCE, written(tmp_path, lines({"messages": chat}))), Context)
    assert [(each.op, each.system_prompt, each.text) for each in found] == [
        ("set", "You build boats.", None), ("inject", None, "Hurry."),
    ]  # fmt: skip


def test_tags_in_text(tmp_path):
    """Thoughts and calls between tags are what they are, also where a template wrote the first tag; JSON decides."""
    chat = [
        {"role": "user", "content": "Look"},
        {"role": "assistant",
         "content": 'so</think>I look.<tool_call>\n{"name": "look", "arguments": {"a":  1}}\n</tool_call>'},
        {"role": "user", "content": "<tool_response>\nwet\n</tool_response>"},
        {"role": "assistant", "content": "The tag <tool_call>is text</tool_call>, and so is <think>this</think>."},
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, lines({"messages": chat})))
    assert says(events) == [
        ("user", "Look"), ("assistant_thinking", "so"), ("assistant_text", "I look."), ("assistant_tool_call", "look"),
        ("tool_result", "wet"), ("assistant_text", chat[3]["content"]),
    ]  # fmt: skip
    assert pairs(events)[0].call.args == b'{"a":  1}'
    assert pairs(events)[0].result.content == "wet"


def test_react_stays_text(tmp_path):
    """Actions in words are no calls; what comes back is the harness's, and opens no turn."""
    chat = [
        {"role": "user", "content": "How old is it?"},
        {"role": "assistant", "content": "Thought: I search.\nAction: search[it]"},
        {"role": "user", "content": "Observation: ten"},
        {"role": "assistant", "content": "Ten."},
        {"role": "user", "content": "Observation of mine: it is old"},
    ]
    events = only(SOURCE, written(tmp_path, lines({"messages": chat})))
    assert [(each.actor, each.turn) for each in of_kind(events, User)] == [("human", 1), ("harness", 1), ("human", 2)]
    assert not of_kind(events, AssistantToolCall)


def test_preferences(tmp_path):
    """A preference is two episodes of one task, labelled; the prompt may stand in both, or before them."""
    good, bad = [{"role": "assistant", "content": "Yes."}], [{"role": "assistant", "content": "No."}]
    rows = [
        {"prompt": CHAT[:2], "chosen": good, "rejected": bad},
        {"input": {"messages": CHAT[:2], "tools": TOOLS}, "preferred_output": good, "non_preferred_output": bad},
        {"chosen": [*CHAT[:2], *good], "rejected": [*CHAT[:2], *bad]},
    ]
    for row in rows:
        path = written(tmp_path, lines(row))
        assert sign(SOURCE, path).confidence == 0.6
        chosen, rejected = read(SOURCE, path).values()
        assert [of_kind(each, Label)[0].tag for each in (chosen, rejected)] == ["chosen", "rejected"]
        assert [of_kind(each, AssistantText)[0].content for each in (chosen, rejected)] == ["Yes.", "No."]
        assert [each[0].header.variant for each in (chosen, rejected)] == ["chosen", "rejected"]
        assert chosen[0].header.task_key == rejected[0].header.task_key is not None
        assert chosen[0].header.task == "Make it float"


def test_labelled_rows(tmp_path):
    """A row that says whether it is wanted bears a label; a completion follows its prompt."""
    row = {"prompt": CHAT[:2], "completion": [{"role": "assistant", "content": "Yes."}], "label": False}
    events = only(SOURCE, written(tmp_path, lines(row)))
    assert of_kind(events, Label)[0].tag == "undesirable"
    assert of_kind(events, AssistantText)[0].content == "Yes."


def test_one_chat(tmp_path):
    """A list, a document and lines of messages are one episode without a name; what surrounds it is kept."""
    whole = {**ROW, "model": "m-1", "title": "Boats"}
    for body in (document(CHAT), document(whole, indent=1), document(whole), lines(*CHAT)):
        found = read(SOURCE, written(tmp_path, body, "chat.json"))
        assert list(found) == [""]
        assert len(pairs(found[""])) == 2
    events = read(SOURCE, written(tmp_path, document(whole), "chat.json"))[""]
    assert (events[0].header.model, events[0].native.fields["entry"]["title"]) == ("m-1", "Boats")
    assert list(read(SOURCE, written(tmp_path, document(whole), "chat.jsonl"))) != [""]


def test_growth(tmp_path):
    """Rows and messages that are added leave what was there as it was."""
    check_growth(SOURCE, tmp_path, lines(ROW, ROW, {**ROW, "tools": []}, {"messages": CHAT[:2]}))
    check_growth(SOURCE, tmp_path, lines(*CHAT))
    check_longer(SOURCE, tmp_path, [CHAT[:i] for i in range(2, len(CHAT) + 1)])
    check_longer(SOURCE, tmp_path, [{**ROW, "messages": CHAT[:i]} for i in range(2, len(CHAT) + 1)])
    check_longer(SOURCE, tmp_path, [[ROW] * i for i in range(1, 4)])


def test_odd_rows(tmp_path):
    """What is no row is said, and the others are read."""
    path = written(tmp_path, lines(ROW, {"messages": []}, 7, {"a": 1}) + b'{"messages": [')
    assert len(read(SOURCE, path)) == 1
    assert len(troubles(SOURCE, path)) == 4


@pytest.mark.parametrize(
    "body", [lines(ROW), document(CHAT), lines({"prompt": CHAT[:1], "chosen": CHAT, "rejected": CHAT})]
)
def test_mutations(tmp_path, body):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, body, depth=3)


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("openai_messages/*/*.jsonl"), ids=lambda path: path.name)
def test_the_real_files(path):
    """Each row's messages are its events, texts and arguments letter for letter; a call that waits ends its row."""
    rows = [json.loads(each) for each in path.read_text().splitlines()]
    found = read(SOURCE, path)
    assert len(found) == len(rows)
    for row, events in zip(rows, found.values(), strict=True):
        said = [each["content"] for each in row["messages"] if each["role"] == "user"]
        assert [each.content for each in of_kind(events, User)] == said
        texts = [each["content"] for each in row["messages"] if each["role"] == "assistant" and each.get("content")]
        assert [each.content for each in of_kind(events, AssistantText)] == texts
        calls = [one["function"] for each in row["messages"] for one in each.get("tool_calls") or ()]
        assert [(each.name, each.args.decode()) for each in of_kind(events, AssistantToolCall)] == [
            (each["name"], each["arguments"]) for each in calls
        ]
        assert not of_kind(events, ToolResult)
        assert not calls or row["messages"][-1].get("tool_calls")
