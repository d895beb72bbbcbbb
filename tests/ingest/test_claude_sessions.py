"""Claude Code: which file is one, which session an entry is of, and what is between sessions: sub-agents, forks."""

import json

import pytest

from tests.ingest.agent_checks import lines, of_kind, only, read, sign, troubles, written
from tests.ingest.claude_lines import ID, OTHER, USAGE, Log, text, use, whole
from trackway.ingest.formats.claude_code import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.parse import Found, parsed
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantText, ModelCall, Note, User


def events(tmp_path, entries):
    """The events of a file that is one session."""
    return only(SOURCE, written(tmp_path, lines(*entries)))


def test_sub_agents_in_the_file(tmp_path):
    """Chains beside the main one are sub-agents': by their ids, or in the oldest files by where they begin."""
    log = Log(version="1.0.98")
    log.says("Row")
    log.answers(use("t1", "Task", prompt="Count the planks"))
    one = log.says("Count the planks", isSidechain=True, parentUuid=None)
    two = log.says("Count the nails", isSidechain=True, parentUuid=None)
    log.answers(use("s1"), call="msg_2", isSidechain=True, parentUuid=one)
    log.result("s1", "12", isSidechain=True)
    log.answers(text("None."), call="msg_3", isSidechain=True, parentUuid=two)
    log.answers(text("Many."), call="msg_4", isSidechain=True, agentId="a9")
    found = events(tmp_path, log.entries)
    assert found[0].header.task == "Row"
    first, second = f"side-{one[:8]}", f"side-{two[:8]}"
    assert [(each.agent, each.actor) for each in of_kind(found, User)] == [
        (None, "human"), (first, "harness"), (second, "harness"),
    ]  # fmt: skip
    assert [each.agent for each in of_kind(found, ModelCall)] == [None, first, second, "a9"]
    assert [each.call.agent for each in pairs(found) if each.result is not None] == [first]


@pytest.mark.parametrize(
    "layout", ["agent-a1.jsonl", f"{ID}/subagents/agent-a1.jsonl", f"{ID}/subagents/workflows/w1/agent-a1.jsonl"]
)
def test_sub_agents_in_files_of_their_own(tmp_path, layout):
    """A sub-agent's file is of the session that started it, called after what that was asked, in either layout."""
    written(tmp_path, lines(*whole()), f"{ID}.jsonl")
    log = Log(isSidechain=True, agentId="a1")
    log.says("Count the planks")
    log.answers(use("s1"), call="msg_9")
    log.result("s1", "12")
    path = written(tmp_path, lines(*log.entries), layout)
    told = {"agentType": "Explore", "toolUseId": "t1", "parentAgentId": None}
    beside = written(tmp_path, json.dumps(told).encode(), layout.replace(".jsonl", ".meta.json"))
    found = only(SOURCE, path)
    assert list(read(SOURCE, path)) == [ID]
    assert found[0].header.task == "Make the boat float"
    assert {each.agent for each in found[1:]} == {"a1"}
    note = of_kind(found, Note)[0]
    assert (note.topic, note.text, note.detail) == ("agent", "Explore", told)
    assert sign(SOURCE, beside).is_part
    assert sign(SOURCE, path).confidence > 0.9
    original = Original(path)
    assert list(parsed(SOURCE, original))
    assert [each.name for each in original.companions] == ["agent-a1.meta.json"]


def test_a_sub_agent_alone(tmp_path):
    """Without the session it is of, a sub-agent's file is called after its own prompt; what is beside it may be bad."""
    log = Log(isSidechain=True, agentId="a1")
    log.says("Count the planks")
    path = written(tmp_path, lines(*log.entries), "agent-a1.jsonl")
    written(tmp_path, b"{", "agent-a1.meta.json")
    assert only(SOURCE, path)[0].header.task == "Count the planks"
    assert len(troubles(SOURCE, path)) == 1


def test_a_fork(tmp_path):
    """A fork knows what it comes from; what it copied is said, and was paid for there."""
    log = Log(session=OTHER)
    log.says("Row", forkedFrom={"sessionId": ID, "messageUuid": "u1"})
    log.answers(text("I row."), forkedFrom={"sessionId": ID, "messageUuid": "u2"})
    log.says("Stop")
    log.answers(text("I stop."), call="msg_2")
    found = events(tmp_path, log.entries)
    assert found[0].header.parent.episode == ID
    assert [each.content for each in of_kind(found, AssistantText)] == ["I row.", "I stop."]
    assert [each.id for each in of_kind(found, ModelCall)] == ["msg_2"]
    assert of_kind(found, AssistantText)[0].native.fields["entry"]["message"]["usage"] == USAGE


def test_two_sessions_in_a_file(tmp_path):
    """Each entry is of the session it names; that there is another is said; one that goes on with it knows."""
    log = Log()
    log.says("Row")
    log.answers(text("I row."), sessionId=OTHER)
    log.aside("file-history-snapshot", messageId="m", snapshot={})
    log.add("progress", data={"type": "hook_progress"}, toolUseID="t", parentToolUseID="t")
    path = written(tmp_path, lines(*log.entries))
    found = read(SOURCE, path)
    assert {name: len(each) for name, each in found.items()} == {ID: 3, OTHER: 5}
    assert (found[OTHER][0].header.task, found[OTHER][0].header.parent.episode) == ("Row", ID)
    assert [(each.place.line, OTHER in each.reason) for each in troubles(SOURCE, path)] == [(2, True)]


@pytest.mark.parametrize(
    ("entries", "least"),
    [
        ([Log().base | {"type": "user", "uuid": "u", "parentUuid": None, "message": {}}], 0.9),
        ([{"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "x"}}], 0.7),
        ([{"type": "summary", "summary": "Boats", "leafUuid": "u"}], 0.6),
        ([{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}], 0.6),
        ([{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"}], 0.6),
    ],
)
def test_told_by_content(tmp_path, entries, least):
    """A file is told by what stands in it, whatever its name."""
    assert sign(SOURCE, written(tmp_path, lines(*entries), "any.txt")).confidence >= least


@pytest.mark.parametrize(
    "entries",
    [
        [{"type": "user", "message": "hello"}],
        [{"role": "user", "content": "hello"}],
        [{"type": "message", "id": "a", "parentId": None, "message": {"role": "user"}}],
        [{"uuid": "u", "parentUuid": None, "sessionId": "s", "type": "user", "message": {"role": "user", "parts": []}}],
        [{"agentType": 1, "messages": []}],
        [7, "x"],
    ],
)
def test_not_ours(tmp_path, entries):
    """What only looks like it, or is somebody else's, is left alone."""
    assert sign(SOURCE, written(tmp_path, lines(*entries))) is None


def test_a_file_without_a_session(tmp_path):
    """Notes that say no session are of the one the file is named after; without a name there is nothing to keep yet."""
    body = lines({"type": "summary", "summary": "Boats", "leafUuid": "u"})
    found = read(SOURCE, written(tmp_path, body, f"{ID}.jsonl"))
    assert [each.kind for each in found[ID]] == ["episode_start", "note"]
    assert found[ID][0].header.task == "Boats"
    unnamed = written(tmp_path, body, "full.jsonl")
    assert read(SOURCE, unnamed) == {}
    assert [each.place.line for each in troubles(SOURCE, unnamed)] == [1]


def test_homes(tmp_path):
    """Sessions are below the folder that the user chose, else below the usual one; only where it is there."""
    assert SOURCE.homes(tmp_path, {}) == []
    for each in (".claude/projects", "mine/projects"):
        (tmp_path / each).mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".claude/projects"]
    assert SOURCE.homes(tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "mine")}) == [tmp_path / "mine/projects"]


def test_a_session_cut_before_the_first_answer(tmp_path):
    """As long as only the client's own commands were typed, nobody knows what it is about: no episode, not another."""
    file = tmp_path / "a.jsonl"
    line = {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "5e550000-0000-4000-8000-000000000001",
        "timestamp": "2026-03-01T10:00:00Z", "cwd": "/work", "version": "2.1.0",
        "message": {"role": "user", "content": "<command-name>/review</command-name>"},
    }  # fmt: skip
    file.write_text(json.dumps(line) + "\n")

    assert not any(each.says for each in parsed(SOURCE, Original(file)) if isinstance(each, Found))
