"""Hermes Agent: a session as a document, and exported a line each."""

import json

from tests.ingest.agent_checks import FEW, check_mutations, counted, entries, lines, of_kind, only, read, sign, written
from trackway.ingest.formats.hermes import SOURCE
from trackway.read.tokens import tokens_of
from trackway.schema.events import AssistantThinking, Context, ModelResult, Note, ToolResult

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "shell", "arguments": '{"command":"pwd"}'},
    "extra": {"n": 2},
}
DOCUMENT = {
    "session_id": "20260429_200500_abc", "model": "m-1", "platform": "cli", "session_start": "2026-04-29T20:05:00.000Z",
    "last_updated": "2026-04-29T20:05:12.000Z", "model_config": {"cwd": "/tmp/boat"}, "message_count": 4,
    "system_prompt": "You are Hermes", "tools": [{"type": "function", "function": {"name": "shell"}}],
    "messages": [
        {"role": "user", "content": "Mend the boat", "client": {"surface": "cli"}},
        {"role": "assistant", "content": "I look", "reasoning": "hm", "reasoning_content": "hm", "tool_calls": [CALL],
         "usage": {"prompt_tokens": 9, "completion_tokens": 2}, "finish_reason": "tool_calls"},
        {"role": "tool", "content": "no", "tool_call_id": "c1", "tool_name": "shell", "finish_reason": "error"},
        {"role": "assistant", "content": "Done", "finish_reason": "stop"},
        {"role": "session_meta"},
    ],
}  # fmt: skip


def test_a_document(tmp_path):
    """With the prompt and the tools that are in it; what calls have beside their arguments is kept."""
    path = written(tmp_path, json.dumps(DOCUMENT, indent=2).encode(), "s.json")
    assert sign(SOURCE, path).confidence == 0.9
    events = read(SOURCE, path)[DOCUMENT["session_id"]]
    assert (events[0].header.task, events[0].header.metadata["cwd"]) == ("Mend the boat", "/tmp/boat")
    assert counted(events) == {"turns": 1, "calls": 1, "results": 1, "pairs": 1}
    (context,) = of_kind(events, Context)
    assert (context.system_prompt, context.tools) == ("You are Hermes", DOCUMENT["tools"])
    assert of_kind(events, ToolResult)[0].is_error
    assert [each.content for each in of_kind(events, AssistantThinking)] == ["hm"]
    assert tokens_of(of_kind(events, ModelResult)[0].usage).input == 9
    assert [each.topic for each in of_kind(events, Note)] == ["session_meta"]
    kept = json.dumps([each.native.fields for each in events if each.native])
    assert all(said in kept for said in ('"n": 2', '"surface": "cli"'))


def test_a_document_that_is_written_again_with_more_says_the_same_first(tmp_path):
    """The client's own notes move to its end, and take no message's place."""
    more = [*DOCUMENT["messages"][:4], {"role": "user", "content": "Paint it"}, {"role": "session_meta"}]
    before = entries(SOURCE, written(tmp_path, json.dumps(DOCUMENT).encode(), "s.json"))
    after = entries(SOURCE, written(tmp_path, json.dumps(DOCUMENT | {"messages": more}).encode(), "s.json"))
    assert before[:-1] == after[: len(before) - 1]
    assert [each[1] for each in after if each not in before] == ["message 5"]


def test_exported_sessions_are_episodes_each(tmp_path):
    """A line each; their times and their names are in other fields."""
    row = {"id": "s1", "source": "cli", "model": "m", "started_at": 1777000000.5, "messages": DOCUMENT["messages"]}
    path = written(tmp_path, lines(row, row | {"id": "s2", "parent_session_id": "s1"}))
    assert sign(SOURCE, path).confidence == 0.9
    found = read(SOURCE, path)
    assert list(found) == ["s1", "s2"]
    assert found["s2"][0].header.parent is not None
    assert all(counted(events)["pairs"] == 1 for events in found.values())
    assert only(SOURCE, written(tmp_path, lines(row), "one.jsonl"))[0].at == 1777000000_500_000_000


def test_it_is_told_from_chats(tmp_path):
    """A list of messages, with or without a name, is not enough."""
    for other in (
        {"messages": [{"role": "user", "content": "x"}]}, {"session_id": "s", "messages": [], "model": "m"},
        {"id": "x", "messages": [], "created": 1}, {"session_id": 1, "platform": "x", "source": "y", "messages": []},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_mutations(tmp_path):
    """Nothing raises, whatever stands where."""
    assert check_mutations(SOURCE, tmp_path, lines(DOCUMENT), "s.json", odd=FEW) > 50
    assert check_mutations(SOURCE, tmp_path, lines(DOCUMENT, DOCUMENT), depth=2, odd=FEW) > 50


def test_homes(tmp_path):
    """Its sessions."""
    (tmp_path / ".hermes/sessions").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".hermes/sessions"]
