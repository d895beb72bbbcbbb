"""Grok: histories without ids or times, their summaries, and sub-agents in folders of their own."""

import json

from tests.ingest.agent_checks import (
    FEW,
    check_growth,
    check_mutations,
    counted,
    lines,
    of_kind,
    only,
    read,
    sign,
    written,
)
from trackway.ingest.formats.grok import SOURCE
from trackway.schema.events import AssistantThinking, AssistantToolCall, Context, ModelCall, Note, ToolResult, User

ID = "019f6851-7ec4-7ef0-97d3-03f3eee30001"
CHILD = "019f6851-7ec4-7ef0-97d3-03f3eee30002"
SUMMARY = {
    "info": {"id": ID, "cwd": "/tmp/boat"}, "created_at": "2026-07-31T10:13:27.574131Z", "num_chat_messages": 4,
    "current_model_id": "g-4", "generated_title": "Boats", "head_branch": "main", "chat_format_version": 1,
}  # fmt: skip


def call(own, name, **given):
    """A call: its arguments are a text."""
    return {"id": own, "name": name, "arguments": json.dumps(given)}


CHAT = [
    {"type": "system", "content": "You are Grok"},
    {"type": "user", "content": [{"type": "text", "text": "<user_info>x</user_info>"}], "synthetic_reason": "e"},
    {"type": "user", "content": [{"type": "text", "text": "Mend the boat"}], "prompt_index": 0},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "E"},
    {"type": "backend_tool_call", "kind": {"tool_type": "web_search", "action": {"query": "boat"}, "id": "ws1"}},
    {"type": "assistant", "content": "I look", "model_id": "g-4",
     "tool_calls": [call("c1", "ls"), call("c2", "read", path="a")]},
    {"type": "tool_result", "tool_call_id": "c1", "content": "x"},
    {"type": "tool_result", "tool_call_id": "c2", "content": [{"type": "text", "text": "y"}], "images": ["data:AA"]},
    {"type": "assistant", "content": "Done", "tool_calls": [], "model_id": "g-4"},
    {"type": "wings", "number": 2},
]  # fmt: skip


def stored(folder, session=ID, chat=CHAT, summary=SUMMARY):
    """A session in its folder; the path of its history."""
    info = summary | {"info": summary["info"] | {"id": session}}
    assert sign(SOURCE, written(folder, json.dumps(info).encode(), f"{session}/summary.json")).is_part
    return written(folder, lines(*chat), f"{session}/chat_history.jsonl")


def test_a_history(tmp_path):
    """Thoughts and searches belong to the answer that follows; what the provider's tools found is not in the file."""
    events = read(SOURCE, stored(tmp_path))[ID]
    header = events[0].header
    assert (header.task, header.model, header.metadata["cwd"]) == ("Mend the boat", "g-4", "/tmp/boat")
    assert events[0].at > 0
    assert [each.id for each in of_kind(events, ModelCall)] == ["3", "8"]
    assert {each.call for each in of_kind(events, AssistantToolCall)} == {"3"}
    assert counted(events) == {"turns": 1, "calls": 3, "results": 2, "pairs": 2}
    assert [each.op for each in of_kind(events, Context)] == ["set", "inject"]
    assert of_kind(events, AssistantThinking)[0].state == {"id": "r1", "encrypted_content": "E"}
    assert [each.content for each in of_kind(events, ToolResult)] == ["x", "y"]
    assert [each.content for each in of_kind(events, User)] == ["Mend the boat"]
    assert of_kind(events, Note)[0].native.fields["entry"]["number"] == 2
    assert of_kind(events, AssistantToolCall)[2].args == b'{"path": "a"}'


def test_a_sub_agent_is_inside_the_session_that_tells_of_it(tmp_path):
    """It is named in the folder of that one alone; without it, it is an episode of its own."""
    child = [CHAT[0], CHAT[2], *CHAT[5:8]]
    below = stored(tmp_path, CHILD, child, SUMMARY | {"session_kind": "subagent"})
    assert list(read(SOURCE, below)) == [CHILD]
    own = read(SOURCE, stored(tmp_path))[ID]
    meta = {"parent_session_id": ID, "subagent_type": "explore", "description": "Look around"}
    assert sign(SOURCE, written(tmp_path, json.dumps(meta).encode(), f"{ID}/subagents/{CHILD}/meta.json")).is_part
    found = read(SOURCE, below)
    assert list(found) == [ID]
    start = next(each for each in found[ID] if each.kind == "episode_start")
    assert start.header == own[0].header
    assert {each.agent for each in found[ID] if each is not start} == {CHILD}


def test_a_history_alone_has_no_name(tmp_path):
    """Nothing in it says whose it is."""
    path = written(tmp_path, lines(*CHAT))
    assert sign(SOURCE, path).confidence == 0.9
    assert list(read(SOURCE, path)) == [""]
    assert only(SOURCE, path)[0].header.task == "Mend the boat"


def test_it_is_told_from_others(tmp_path):
    """Claude's streams and plain chats have some of its words, and not these."""
    for other in (
        {"type": "user", "content": "x"}, {"type": "assistant", "message": {}, "model_id": "x"}, {"info": {"id": "x"}},
        {"type": "user", "prompt_index": 0, "content": "x", "sessionId": "s"}, {"role": "user", "content": "x"}, {},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*CHAT))
    assert check_mutations(SOURCE, tmp_path, lines(*CHAT[2:8]), depth=3, odd=FEW) > 50


def test_homes(tmp_path):
    """Its sessions."""
    (tmp_path / "g/sessions").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == []
    assert SOURCE.homes(tmp_path, {"GROK_HOME": "~/g"}) == [tmp_path / "g/sessions"]
