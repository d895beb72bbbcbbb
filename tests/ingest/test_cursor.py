"""Cursor: transcripts whose lines have neither ids nor times."""

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
from trackway.ingest.formats.cursor import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantToolCall, Note, ToolResult

ID = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"


def said(role, *blocks, **fields):
    """A line."""
    return {"role": role, "message": {"content": list(blocks)}} | fields


def text(words):
    """A block of words."""
    return {"type": "text", "text": words}


def asked(name, **given):
    """A block that calls, without an id."""
    return {"type": "tool_use", "name": name, "input": given}


CHAT = [
    said("user", text("<user_query>\nMend the boat\n</user_query>")),
    said("assistant", text("I look"), asked("Shell", command="ls"), asked("Write", path="a", contents="b")),
    said("assistant", asked("Read", path="a"), asked("Read", path="b")),
    said("user", {"type": "tool_result", "tool_use_id": "t1", "content": [text("x")]},
         {"type": "tool-result", "name": "Read", "content": "y"}),
    said("assistant", {"type": "custom_block", "text": "new"}, model="auto"),
    {"type": "turn_ended", "status": "success"},
]  # fmt: skip


def test_results_are_those_of_the_calls_the_model_waited_for(tmp_path):
    """Calls that were never answered stay so: their place is not taken by later results."""
    events = only(SOURCE, written(tmp_path, lines(*CHAT)))
    assert [(each.call.name, each.result and each.result.content) for each in pairs(events)] == [
        ("Shell", None), ("Write", None), ("Read", "x"), ("Read", "y"),
    ]  # fmt: skip
    assert events[0].header.task == "Mend the boat"
    assert [each.topic for each in of_kind(events, Note)] == ["custom_block", "turn_ended"]


def test_the_session_is_named_by_its_file(tmp_path):
    """A file called otherwise is an episode without a name."""
    assert list(read(SOURCE, written(tmp_path, lines(*CHAT), f"{ID}.jsonl"))) == [ID]
    assert list(read(SOURCE, written(tmp_path, lines(*CHAT), "x.jsonl"))) == [""]


def test_a_sub_agent_is_inside_its_session(tmp_path):
    """It is begun as that one is, and speaks under its own name."""
    own = only(SOURCE, written(tmp_path, lines(*CHAT), f"{ID}/{ID}.jsonl"))
    child = [said("user", text("Look around")), said("assistant", text("Done"), asked("Ls"))]
    found = read(SOURCE, written(tmp_path, lines(*child), f"{ID}/subagents/abc.jsonl"))
    assert list(found) == [ID]
    start = next(each for each in found[ID] if each.kind == "episode_start")
    assert start.header == own[0].header
    assert {each.agent for each in found[ID] if each is not start} == {"abc"}
    assert counted(found[ID])["turns"] == 0
    loose = only(SOURCE, written(tmp_path, lines(*child), "plain/subagents/abc.jsonl"))
    assert loose[0].header.task == "Look around"


def test_it_is_told_from_claude_code_and_chats(tmp_path):
    """By what its lines have, and by what they have not."""
    assert sign(SOURCE, written(tmp_path, lines(*CHAT))).confidence == 0.85
    for other in (
        {"role": "user", "content": "x"}, {"role": "user", "message": {"role": "user", "content": [text("x")]}},
        CHAT[0] | {"uuid": "u", "sessionId": "s"}, {"type": "user"} | CHAT[0], {"role": "user", "message": "x"}, {},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_calls_are_kept_apart_by_their_place(tmp_path):
    """Their ids are ours, and are the same each time."""
    events = only(SOURCE, written(tmp_path, lines(*CHAT)))
    assert [each.call_id for each in of_kind(events, AssistantToolCall)] == ["call-1", "call-2", "call-3", "call-4"]
    assert [each.call_id for each in of_kind(events, ToolResult)] == ["call-3", "call-4"]
    assert json.loads(of_kind(events, AssistantToolCall)[0].args) == {"command": "ls"}


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*CHAT))
    assert check_mutations(SOURCE, tmp_path, lines(*CHAT), odd=FEW) > 50


def test_homes(tmp_path):
    """The transcripts of every project, and nothing else of what lies there."""
    (tmp_path / ".cursor/projects/a/agent-transcripts").mkdir(parents=True)
    (tmp_path / ".cursor/projects/b/mcps").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".cursor/projects/a/agent-transcripts"]
