"""Qwen Code: chats, sub-agents' files, and what is told by their contents."""

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
from trackway.ingest.formats.qwen import SOURCE
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    FileChange,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)

ID = "019f0000-0000-7000-8000-0000000000aa"
USAGE = {"promptTokenCount": 50, "candidatesTokenCount": 5, "cachedContentTokenCount": 40, "thoughtsTokenCount": 2}


def record(own, parent, kind, parts=None, **fields):
    """A record; ``parts`` make a message."""
    role = "model" if kind == "assistant" else "user"
    said = {} if parts is None else {"message": {"role": role, "parts": parts}}
    base = {"uuid": own, "parentUuid": parent, "sessionId": ID, "timestamp": "2026-08-17T12:00:00.000Z", "type": kind}
    return base | {"cwd": "/tmp/boat", "version": "0.21.13"} | said | fields


def asked(call, name, args):
    """A part that calls."""
    return {"functionCall": {"id": call, "name": name, "args": args}}


def came(call, name, **response):
    """A part that answers."""
    return {"functionResponse": {"id": call, "name": name, "response": response}}


DIFF = {"fileDiff": "@@", "fileName": "a.txt", "originalContent": "old", "newContent": "new"}
CHAT = [
    record("u0", None, "system", subtype="slash_command", systemPayload={"rawCommand": "/about"}),
    record("u1", "u0", "user", [
        {"text": "Mend the boat"}, {"text": "<qwen:user-prompt-submit-context>\nx\n</qwen:user-prompt-submit-context>"},
        {"inlineData": {"mimeType": "image/png", "data": "AA"}},
    ], systemPayload={"displayText": "Mend the boat"}),
    record("u2", "u1", "assistant", [{"text": "hm", "thought": True, "thoughtSignature": "S"}]),
    record("u2", "u1", "assistant", [
        asked("c1", "edit", {"file_path": "/tmp/a.txt", "old_string": "old", "new_string": "new"}),
        asked("c2", "run_shell_command", {"command": "ls"}),
    ], model="m-1", usageMetadata=USAGE),
    record("u3", "u2", "tool_result", [came("c1", "edit", output="Edited")],
           toolCallResult={"callId": "c1", "status": "success", "resultDisplay": DIFF, "durationMs": 12}),
    record("u4", "u3", "tool_result", [came("c2", "run_shell_command", error="no")],
           toolCallResult={"callId": "c2", "status": "cancelled", "resultDisplay": "no"}),
    record("u5", "u4", "user", [{"text": "A bell rang"}], subtype="notification"),
    record("u6", "u1", "system", subtype="rewind", systemPayload={"truncatedCount": 3}),
    record("u7", "u6", "user", [{"text": "Other way"}], subtype="mid_turn_user_message"),
    record("u8", "u7", "system", subtype="chat_compression", systemPayload={
        "info": {"originalTokenCount": 9}, "compressedHistory": [{"role": "user", "parts": [{"text": "In short"}]}]}),
    record("u9", "u8", "system", subtype="custom_title", systemPayload={"customTitle": "Boats"}),
    record("v1", "u9", "wings", colour="red"),
]  # fmt: skip


def test_a_chat_says_who_said_what(tmp_path):
    """Persons, the client and hooks are told apart; the episode has the chat's own id and prompt."""
    found = read(SOURCE, written(tmp_path, lines(*CHAT)))
    assert list(found) == [ID]
    events = found[ID]
    assert (events[0].header.task, events[0].header.metadata["cwd"]) == ("Mend the boat", "/tmp/boat")
    assert [(each.content, each.actor) for each in of_kind(events, User)] == [
        ("Mend the boat", "human"), ("A bell rang", "harness"), ("Other way", "human"),
    ]  # fmt: skip
    assert [each.op for each in of_kind(events, Context)] == ["inject", "rewind", "compact"]
    assert of_kind(events, Context)[2].text == "In short"
    assert '"data": "AA"' in json.dumps([each.native.fields for each in events if each.native])
    assert [each.topic for each in of_kind(events, Note)] == ["system slash_command", "system custom_title", "wings"]


def test_records_that_share_a_uuid_are_one_call(tmp_path):
    """Both are kept, the call is begun once, and its tokens are counted once."""
    events = only(SOURCE, written(tmp_path, lines(*CHAT)))
    assert [each.id for each in of_kind(events, ModelCall)] == ["u2"]
    (result,) = of_kind(events, ModelResult)
    assert (result.model, tokens_of(result.usage).input, tokens_of(result.usage).output) == ("m-1", 10, 7)
    assert of_kind(events, AssistantThinking)[0].state == {"thoughtSignature": "S"}
    assert counted(events) == {"turns": 2, "calls": 2, "results": 2, "pairs": 2}
    calls = of_kind(events, AssistantToolCall)
    assert calls[0].batch == calls[1].batch is not None


def test_results_and_exact_changes(tmp_path):
    """How a call ended, how long it took; a change with the contents of its file, under the path that was asked for."""
    events = only(SOURCE, written(tmp_path, lines(*CHAT)))
    first, second = of_kind(events, ToolResult)
    assert (first.content, first.duration_ms, first.returned) == ("Edited", 12, DIFF)
    assert (second.is_error, second.status, second.returned) == (True, "interrupted", None)
    (change,) = of_kind(events, FileChange)
    assert (change.path, change.exact, change.before.size) == ("/tmp/a.txt", True, 3)
    cut = DIFF | {"truncatedForSession": True}
    rows = [*CHAT[:4], CHAT[4] | {"toolCallResult": {"status": "success", "resultDisplay": cut}}]
    (change,) = of_kind(only(SOURCE, written(tmp_path, lines(*rows))), FileChange)
    assert (change.exact, change.after) == (False, None)


def sidechain():
    """A sub-agent's file: words and calls of one answer in records of their own."""
    mine = {"agentId": "explore-1", "agentName": "Explore", "isSidechain": True}
    return [
        record("s1", None, "user", [{"text": "Look around"}], **mine),
        record("s2", "s1", "assistant", [{"text": "I look"}], usageMetadata=USAGE, agentRound=1, **mine),
        record("s3", "s2", "assistant", [asked("c1", "ls", {})], **mine),
        record("s4", "s3", "assistant", [asked("c9", "ls", {})], **mine),
        record("s5", "s4", "tool_result", [came("c1", "ls", output="x")], toolCallResult={"callId": "c1"}, **mine),
        record("s6", "s5", "tool_result", [came("c9", "ls", output="y")], toolCallResult={"callId": "c9"}, **mine),
        record("s7", "s6", "assistant", [{"text": "Done"}], usageMetadata=USAGE, agentRound=2, **mine),
    ]


def test_a_sub_agent_is_inside_its_session(tmp_path):
    """Its file begins the session as the chat does, under a writer of its own, and speaks as the agent."""
    chat = written(tmp_path, lines(*CHAT), f"chats/{ID}.jsonl")
    below = written(tmp_path, lines(*sidechain()), f"subagents/{ID}/agent-explore-1.jsonl")
    meta = json.dumps({"agentId": "explore-1", "agentType": "explore", "parentSessionId": ID}).encode()
    assert sign(SOURCE, written(tmp_path, meta, f"subagents/{ID}/agent-explore-1.meta.json")).is_part
    own, events = only(SOURCE, chat), only(SOURCE, below)
    start = next(each for each in events if each.kind == "episode_start")
    assert start.header == own[0].header
    assert {each.agent for each in events if each is not start} == {"explore-1"}
    assert events[0].writer != own[0].writer
    assert [each.id for each in of_kind(events, ModelCall)] == ["s2", "s7"]
    assert counted(events) == {"turns": 0, "calls": 2, "results": 2, "pairs": 2}


def test_a_fork_and_a_sub_session_name_where_they_come_from(tmp_path):
    """Both say it in a field of their own."""
    other = "019f0000-0000-7000-8000-0000000000bb"
    for fields in (
        {"forkedFrom": {"sessionId": other, "messageUuid": "x"}},
        {"subtype": "parent_session", "systemPayload": {"parentSessionId": other}},
    ):
        rows = [record("a", None, "system", **fields), *CHAT[1:3]]
        assert only(SOURCE, written(tmp_path, lines(*rows)))[0].header.parent.episode == other
    copied = [each | {"forkedFrom": {"sessionId": other}} for each in CHAT[:6]]
    events = only(SOURCE, written(tmp_path, lines(*copied, *CHAT[6:])))
    assert of_kind(events, ModelCall) == []  # it was paid for there
    assert counted(events)["pairs"] == 2


def test_it_is_told_from_claude_code_and_others(tmp_path):
    """By the parts of its messages and its payloads; the fields of a record alone say nothing."""
    assert sign(SOURCE, written(tmp_path, lines(*CHAT))).confidence > 0.9
    claude = {"uuid": "u", "parentUuid": None, "sessionId": ID, "type": "user"}
    for other in (
        claude | {"message": {"role": "user", "content": "x"}}, claude | {"type": "system", "content": "x"}, {},
        {"role": "model", "parts": [{"text": "x"}]}, {"sessionId": "x", "message": {"parts": []}},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*CHAT))
    check_growth(SOURCE, tmp_path, lines(*sidechain()))
    assert check_mutations(SOURCE, tmp_path, lines(*(CHAT[i] for i in (1, 3, 4, 9))), depth=6, odd=FEW) > 50


def test_homes(tmp_path):
    """Its projects, where its variable says, and where they are without it."""
    (tmp_path / ".qwen/projects").mkdir(parents=True)
    (tmp_path / "q/projects").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".qwen/projects"]
    assert SOURCE.homes(tmp_path, {"QWEN_HOME": "~/q"}) == [tmp_path / "q/projects", tmp_path / ".qwen/projects"]
