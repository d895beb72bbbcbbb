"""Droid: its session files with their settings, and the lines of an execution."""

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
from trackway.ingest.formats.droid import SOURCE
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    Context,
    FileChange,
    ModelResult,
    Note,
    ToolResult,
    User,
)

ID = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
HEAD = {"type": "session_start", "id": ID, "title": "Boats", "cwd": "/tmp/boat", "version": 2, "owner": "x"}


def message(own, parent, role, *blocks):
    """A message of a session file."""
    at = "2025-12-26T00:00:00.000Z"
    return {
        "type": "message",
        "id": own,
        "parentId": parent,
        "timestamp": at,
        "message": {"role": role, "content": blocks},
    }


SESSION = [
    HEAD,
    message("m1", ID, "user", {"type": "text", "text": "<system-reminder>be kind</system-reminder>\n\nMend it"}),
    message("m2", "m1", "assistant", {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "tool_use", "id": "t1", "name": "Execute", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "t2", "name": "Create", "input": {"file_path": "a", "content": "b"}}),
    message("m3", "m2", "user",
            {"type": "tool_result", "tool_use_id": "t1", "content": "Error: Command failed (exit code: 2)\nno"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "made"}]}),
    message("m4", "m3", "assistant", {"type": "text", "text": "Done"}, {"type": "wings", "number": 2}),
    {"type": "todo_state", "id": "x1", "timestamp": "2025-12-26T00:00:00.000Z", "todos": []},
    {"type": "compaction_state", "id": "x2", "timestamp": "2025-12-26T00:00:00.000Z", "summaryText": "In short"},
]  # fmt: skip


def test_a_session_file(tmp_path):
    """Persons, the client's reminders, calls and results with exit codes; what is not known is kept."""
    found = read(SOURCE, written(tmp_path, lines(*SESSION)))
    assert list(found) == [ID]
    events = found[ID]
    assert (events[0].header.task, events[0].header.metadata["cwd"]) == ("Mend it", "/tmp/boat")
    assert counted(events) == {"turns": 1, "calls": 2, "results": 2, "pairs": 2}
    assert [(each.op, each.text) for each in of_kind(events, Context)] == [
        ("inject", "<system-reminder>be kind</system-reminder>"), ("compact", "In short"),
    ]  # fmt: skip
    assert [each.exit_code for each in of_kind(events, ToolResult)] == [2, None]
    assert of_kind(events, AssistantThinking)[0].state == {"signature": "S"}
    assert [(each.op, each.path) for each in of_kind(events, FileChange)] == [("create", "a")]
    assert [each.topic for each in of_kind(events, Note)] == ["wings", "todo_state"]
    assert '"number": 2' in json.dumps([each.native.fields for each in events if each.native])


def test_the_settings_beside_it_have_the_model_and_all_tokens(tmp_path):
    """They are a part; a later sum takes the place of an earlier one, under one name."""
    used = {"inputTokens": 10, "outputTokens": 3, "cacheReadTokens": 900}
    settings = {"model": "m-1", "reasoningEffort": "high", "tokenUsage": used}
    beside = written(tmp_path, json.dumps(settings).encode(), "session.settings.json")
    assert sign(SOURCE, beside).is_part
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    assert events[0].header.model == "m-1"
    (first,) = of_kind(events, ModelResult)
    assert (first.usage, first.usage_from) == (used, "session")
    beside.write_text(json.dumps(settings | {"tokenUsage": used | {"outputTokens": 4}}))
    (later,) = of_kind(only(SOURCE, tmp_path / "session.jsonl"), ModelResult)
    assert later.id == first.id
    assert later.native.fields["key"] != first.native.fields["key"]


def line(kind, second, **fields):
    """A line of an execution."""
    return {"type": kind, "session_id": "sid-1", "timestamp": 1767812640000 + second, **fields}


STREAM = [
    line("system", 0, subtype="init", model="m-1", cwd="/tmp/boat", tools=["Execute"], id="s"),
    line("message", 1, role="user", text="Mend it", id="m1"),
    line("reasoning", 2, text="hm", id="r1"),
    line("tool_call", 3, toolCallId="c1", toolName="Execute", parameters={"command": "ls"}),
    line("tool_result", 4, toolCallId="c1", value={"stdout": "x", "stderr": "y", "exitCode": 1}),
    line("tool_call", 5, id="c2", toolId="Read", parameters={}),
    line("tool_result", 6, id="c2", toolId="Read", isError=True, value="no such file"),
    line("message", 7, role="assistant", text="Done", id="m2"),
    line("completion", 8, finalText="Done", usage={"input_tokens": 5, "output_tokens": 2}),
    line("error", 9, source="cli", message="off"),
    line("wings", 10, number=2),
]


def test_an_execution(tmp_path):
    """Calls are paired by either name of their id; the last words are not said twice."""
    path = written(tmp_path, lines(*STREAM))
    assert sign(SOURCE, path).confidence == 0.9
    events = read(SOURCE, path)["sid-1"]
    assert counted(events) == {"turns": 1, "calls": 2, "results": 2, "pairs": 2}
    first, second = of_kind(events, ToolResult)
    assert (first.content, first.exit_code, second.is_error, second.content) == ("x\ny", 1, True, "no such file")
    assert [each.content for each in of_kind(events, AssistantText)] == ["Done"]
    assert (events[0].header.model, events[0].header.task) == ("m-1", "Mend it")
    assert [each.content for each in of_kind(events, User)] == ["Mend it"]


def test_it_is_told_from_others(tmp_path):
    """Pi's sessions, Claude's streams and plain messages are none of it."""
    assert sign(SOURCE, written(tmp_path, lines(*SESSION))).confidence > 0.9
    for other in (
        {"type": "session", "id": "x", "cwd": "/"}, {"type": "session_start", "at": 1}, {"model": "x", "usage": {}},
        {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "timestamp": 1},
        {"type": "message", "session_id": "s", "timestamp": 1, "role": "user", "text": "x"},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    for rows in (SESSION, STREAM):
        check_growth(SOURCE, tmp_path, lines(*rows))
        assert check_mutations(SOURCE, tmp_path, lines(*rows[:6]), odd=FEW) > 50


def test_homes(tmp_path):
    """Its sessions."""
    (tmp_path / ".factory/sessions").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".factory/sessions"]
