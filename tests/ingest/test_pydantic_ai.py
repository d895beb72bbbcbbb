"""Pydantic AI's messages: every kind of part, dumps that overlap, and the real file."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import (
    check_longer,
    check_mutations,
    entries,
    of_kind,
    only,
    read,
    sign,
    troubles,
    written,
)
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.writing import SESSION, at, document
from trackway.ingest.formats.pydantic_ai import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantThinking, AssistantToolCall, Context, ModelResult, ToolResult, User


def request(*parts, second=1, **more):
    """What a model is given."""
    return {"kind": "request", "parts": list(parts), "timestamp": at(second), "conversation_id": SESSION, **more}


def response(*parts, second=2, **more):
    """What a model gave."""
    usage = {"input_tokens": 50, "output_tokens": 5, "cache_read_tokens": 10, "details": {}}
    return {"kind": "response", "parts": list(parts), "timestamp": at(second), "model_name": "m-1", "usage": usage,
            "conversation_id": SESSION, **more}  # fmt: skip


def part(kind, content=None, **more):
    """A part."""
    return {"part_kind": kind, "content": content, **more}


def call(call_id, args):
    """A part that is a call."""
    return {"part_kind": "tool-call", "tool_name": "look", "args": args, "tool_call_id": call_id}


TALK = [
    request(part("system-prompt", "Be kind."), part("user-prompt", "Make it float", timestamp=at(1))),
    response(part("thinking", "Hm.", signature="s=="), part("text", "I look."), call("c1", '{"at":  1}'),
             call("c2", {"b": 2}), finish_reason="tool_call", provider_response_id="r-1"),
    request(part("tool-return", {"wet": True}, tool_name="look", tool_call_id="c1", outcome="success"),
            part("retry-prompt", [{"type": "missing", "loc": ["at"]}], tool_name="look", tool_call_id="c2")),
    response(call("c3", None)),
    request(part("tool-return", "not allowed", tool_name="look", tool_call_id="c3", outcome="denied")),
    response(part("text", "It floats.")),
    request(part("retry-prompt", "Say it as JSON."), instructions="Be brief."),
    response(part("builtin-tool-call", tool_name="web", args={"q": 1}, tool_call_id="b1"),
             part("builtin-tool-return", "found", tool_name="web", tool_call_id="b1"), part("hologram", "?")),
    request(part("user-prompt", ["Look at this", {"kind": "image-url", "url": "http://x/y.png"}]),
            instructions="Be brief."),
]  # fmt: skip


def test_a_conversation_is_an_episode(tmp_path):
    """Prompts, thoughts, calls with the model's own bytes, results in every outcome, retries and notes."""
    path = written(tmp_path, document(TALK))
    assert sign(SOURCE, path).confidence == 0.95
    assert list(read(SOURCE, path)) == [SESSION]
    events = only(SOURCE, path)
    assert [each for each in says(events) if not each[0].startswith("model")] == [
        ("context", "Be kind."), ("user", "Make it float"), ("assistant_thinking", "Hm."),
        ("assistant_text", "I look."), ("assistant_tool_call", "look"), ("assistant_tool_call", "look"),
        ("tool_result", '{"wet":true}'),
        ("tool_result", '[{"type":"missing","loc":["at"]}]'), ("assistant_tool_call", "look"),
        ("tool_result", "not allowed"), ("assistant_text", "It floats."), ("context", "Be brief."),
        ("user", "Say it as JSON."), ("assistant_tool_call", "web"), ("tool_result", "found"), ("note", "?"),
        ("user", "Look at this"),
    ]  # fmt: skip
    assert [(each.call.args, each.result.status, each.call.batch) for each in pairs(events)] == [
        (b'{"at":  1}', "ok", 1), (b'{"b":2}', "error", 1), (b"{}", "denied", None), (b'{"q":1}', "ok", None),
    ]  # fmt: skip
    assert [each.actor for each in of_kind(events, User)] == ["human", "harness", "human"]
    assert of_kind(events, AssistantThinking)[0].state == {"signature": "s=="}
    assert (of_kind(events, ModelResult)[0].id, of_kind(events, ModelResult)[0].finish_reason) == ("r-1", "tool_call")
    assert of_kind(events, User)[2].native.fields["entry"]["parts"][0]["content"][1]["url"] == "http://x/y.png"


def test_instructions_are_told_when_they_change(tmp_path):
    """They stand on every request, and are what the model is told anew only where they differ."""
    talk = [request(part("user-prompt", str(i)), instructions=f"Rule {i // 2}") for i in range(4)]
    found = of_kind(only(SOURCE, written(tmp_path, document(talk))), Context)
    assert [each.system_prompt for each in found] == ["Rule 0", "Rule 1"]


def test_dumps_overlap(tmp_path):
    """What is new of a conversation, dumped alone, has the keys it has in the whole dump."""
    whole = entries(SOURCE, written(tmp_path, document(TALK), "a.json"))
    new = entries(SOURCE, written(tmp_path, document(TALK[4:]), "b.json"))
    assert {each[1] for each in new} <= {each[1] for each in whole}
    check_longer(SOURCE, tmp_path, [TALK[:i] for i in range(1, len(TALK) + 1)])


def test_conversations_without_ids(tmp_path):
    """Older dumps have none: the file is one nameless conversation; several ids are several episodes."""
    old = [{key: each for key, each in one.items() if key != "conversation_id"} for one in TALK]
    assert list(read(SOURCE, written(tmp_path, document(old)))) == [""]
    two = [TALK[0], {**TALK[1], "conversation_id": "other"}]
    assert list(read(SOURCE, written(tmp_path, document(two)))) == [SESSION, "other"]


def test_not_ours(tmp_path):
    """Lists of other messages are not taken; what is no message in ours is said."""
    assert sign(SOURCE, written(tmp_path, document([{"kind": "request", "parts": [{"text": "x"}]}]))) is None
    assert sign(SOURCE, written(tmp_path, document([{"role": "user", "parts": []}]))) is None
    assert len(troubles(SOURCE, written(tmp_path, document([*TALK, 7])))) == 1


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, document(TALK), depth=3)


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("generated/pydantic_ai/*.json"), ids=lambda path: path.name)
def test_the_real_file(path):
    """Parts are events, as plain counting finds them; every call has its result."""
    messages = json.loads(path.read_text())
    kinds = Counter(part["part_kind"] for each in messages for part in each["parts"])
    events = only(SOURCE, path)
    assert len(of_kind(events, AssistantToolCall)) == kinds["tool-call"]
    assert len(of_kind(events, ToolResult)) == kinds["tool-return"] + kinds["retry-prompt"]
    assert all(each.result is not None for each in pairs(events))
    assert len(of_kind(events, User)) == kinds["user-prompt"]
    assert len(of_kind(events, ModelResult)) == sum(each["kind"] == "response" for each in messages)
