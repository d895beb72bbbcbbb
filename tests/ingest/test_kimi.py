"""Kimi: the journals of both of its programs, alone and in their folders."""

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
from trackway.ingest.formats.kimi import SOURCE
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantText,
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

ID = "1bcbe023-4f7e-4971-9dc9-43b8756045b0"
T = 1785612800000
USAGE = {"inputOther": 10, "output": 4, "inputCacheRead": 90, "inputCacheCreation": 0}


def line(kind, second, /, **fields):
    """A line of Kimi Code's journal."""
    return {"type": kind, "time": T + second * 1000, **fields}


def loop(second, kind, /, **fields):
    """A line of its loop."""
    return line("context.append_loop_event", second, event={"type": kind, **fields})


def added(second, words, kind="user", role="user"):
    """A message that is added to the context."""
    message = {"role": role, "content": [{"type": "text", "text": words}], "toolCalls": [], "origin": {"kind": kind}}
    return line("context.append_message", second, message=message)


CODE = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": T},
    line("config.update", 0, systemPrompt="You are Kimi", modelAlias="k-2"),
    line("llm.tools_snapshot", 1, hash="h", tools=[{"name": "Bash"}]),
    line("turn.prompt", 2, input=[{"type": "text", "text": "Mend the boat"}], origin={"kind": "user"}),
    added(2, "Mend the boat"),
    added(2, "<system-reminder>x</system-reminder>", "injection"),
    loop(3, "step.begin", uuid="s1", turnId="0", step=1),
    line("llm.request", 3, kind="loop", model="k-2.7"),
    loop(4, "content.part", uuid="p1", stepUuid="s1", part={"type": "think", "think": "hm", "encrypted": "E"}),
    loop(4, "content.part", uuid="p2", stepUuid="s1", part={"type": "text", "text": "I look"}),
    loop(5, "tool.call", uuid="Bash_0", toolCallId="Bash_0", name="Bash", args={"command": "ls"}, description="d"),
    loop(5, "tool.call", uuid="Write_1", toolCallId="Write_1", name="Write", args={"path": "a", "content": "b"}),
    loop(6, "tool.result", toolCallId="Bash_0", result={"output": "x", "isError": True, "durationMs": 12}),
    loop(6, "tool.result", toolCallId="Write_1", result={"output": "ok"}),
    line("usage.record", 7, model="k-2", usage=USAGE, usageScope="turn"),
    loop(7, "step.end", uuid="s1", usage=USAGE, finishReason="tool_use", messageId="c"),
    line("full_compaction.begin", 8, source="manual"),
    line("usage.record", 9, model="k-2", usage=USAGE | {"output": 50}, usageScope="session"),
    line("context.apply_compaction", 9, summary="s", contextSummary="In short", tokensBefore=9),
    line("context.undo", 10, count=1),
    line("wings", 11, number=2),
]  # fmt: skip


def test_a_journal_of_kimi_code(tmp_path):
    """A prompt is said once though it stands there twice; a step is one call, its tokens counted once."""
    events = only(SOURCE, written(tmp_path, lines(*CODE)))
    assert [(each.content, each.actor) for each in of_kind(events, User)] == [("Mend the boat", "human")]
    assert counted(events) == {"turns": 1, "calls": 2, "results": 2, "pairs": 2}
    assert [each.id for each in of_kind(events, ModelCall)] == ["s1", f"usage {(T + 9000) * 10**6}"]
    results = of_kind(events, ModelResult)
    assert [(each.id, each.finish_reason) for each in results][:2] == [("s1", None), ("s1", "tool_use")]
    assert (tokens_of(results[1].usage).input, tokens_of(results[1].usage).cache_read) == (10, 90)
    assert [(each.op, each.text) for each in of_kind(events, Context)] == [
        ("set", None), ("set", None), ("inject", "<system-reminder>x</system-reminder>"), ("compact", "In short"),
        ("rewind", None),
    ]  # fmt: skip
    first = of_kind(events, ToolResult)[0]
    assert (first.is_error, first.duration_ms, first.content) == (True, 12, "x")
    assert of_kind(events, AssistantThinking)[0].state == {"encrypted": "E"}
    assert [each.path for each in of_kind(events, FileChange)] == ["a"]
    assert "wings" in [each.topic for each in of_kind(events, Note)]
    assert (events[0].header.task, events[0].header.model) == ("Mend the boat", "k-2")


def test_usage_that_is_said_again_says_nothing_new(tmp_path):
    """In whichever order the two lines come."""
    rows = [*CODE[:14], CODE[15], CODE[14]]
    results = of_kind(only(SOURCE, written(tmp_path, lines(*rows))), ModelResult)
    assert [each.finish_reason for each in results] == ["tool_use"]


def test_sessions_are_named_by_their_folders_and_hold_their_sub_agents(tmp_path):
    """The state beside them says more; a sub-agent's file is begun as the session's is."""
    state = {"title": "hi", "workDir": "/tmp/boat", "agents": {"main": {"homedir": f"/x/session_{ID}/agents/main"}}}
    where = f"session_{ID}"
    assert sign(SOURCE, written(tmp_path, json.dumps(state).encode(), f"{where}/state.json")).is_part
    main = written(tmp_path, lines(*CODE), f"{where}/agents/main/wire.jsonl")
    child = [CODE[0], CODE[3] | {"origin": {"kind": "system_trigger"}}, added(3, "Look", "system_trigger"), *CODE[6:14]]
    below = written(tmp_path, lines(*child), f"{where}/agents/agent-0/wire.jsonl")
    own, found = read(SOURCE, main), read(SOURCE, below)
    assert list(own) == list(found) == [ID]
    assert own[ID][0].header.metadata["cwd"] == "/tmp/boat"
    start = next(each for each in found[ID] if each.kind == "episode_start")
    assert start.header == own[ID][0].header
    assert {each.agent for each in found[ID] if each is not start} == {"agent-0"}
    assert counted(found[ID]) == {"turns": 0, "calls": 2, "results": 2, "pairs": 2}
    keys = [each.native.fields["key"] for each in [*own[ID], *found[ID]] if each.native]
    assert len(set(keys)) == len(keys) - 1  # the beginning


def wired(second, kind, /, **payload):
    """A line of Kimi CLI's wire."""
    return {"timestamp": T / 1000 + second, "message": {"type": kind, "payload": payload}}


def called(call, name, args):
    """A call as both of its files have it."""
    return {"type": "function", "id": call, "function": {"name": name, "arguments": args}}


SUB = {"parent_tool_call_id": "c1", "agent_id": "a1"}
WIRE = [
    {"type": "metadata", "protocol_version": "1.3"},
    wired(1, "TurnBegin", user_input="Mend the boat"),
    wired(2, "StepBegin", n=1),
    wired(3, "ContentPart", type="think", think="hm"),
    wired(3, "ContentPart", type="text", text="I look"),
    wired(4, "ToolCall", **called("c1", "Shell", '{"command": "ls"}')),
    wired(5, "SubagentEvent", **SUB, event={"type": "ContentPart", "payload": {"type": "text", "text": "below"}}),
    wired(6, "ToolResult", tool_call_id="c1", return_value={"is_error": False, "output": "x", "message": "ran"}),
    wired(7, "StatusUpdate", token_usage={"input_other": 5, "output": 2, "input_cache_read": 3}),
    wired(8, "SteerInput", user_input=[{"type": "text", "text": "Faster"}]),
    wired(9, "Wings", number=2),
]  # fmt: skip
CONTEXT = [
    {"role": "_system_prompt", "content": "You are Kimi"},
    {"role": "_checkpoint", "id": 0},
    {"role": "user", "content": "Mend the boat"},
    {"role": "assistant", "content": [{"type": "think", "think": "hm"}, {"type": "text", "text": "I look"}],
     "tool_calls": [called("c1", "Shell", '{"command": "ls"}')]},
    {"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "c1"},
    {"role": "_usage", "token_count": 10},
]  # fmt: skip


def test_a_wire_of_kimi_cli(tmp_path):
    """With the system prompt from the context beside it, which is a part then."""
    path = written(tmp_path, lines(*WIRE), f"{ID}/wire.jsonl")
    context = written(tmp_path, lines(*CONTEXT), f"{ID}/context.jsonl")
    assert sign(SOURCE, context).is_part
    events = read(SOURCE, path)[ID]
    assert counted(events) == {"turns": 2, "calls": 1, "results": 1, "pairs": 1}
    assert of_kind(events, Context)[0].system_prompt == "You are Kimi"
    assert of_kind(events, AssistantToolCall)[0].args == b'{"command": "ls"}'
    assert of_kind(events, ToolResult)[0].content == "ran\nx"
    assert [(each.content, each.agent) for each in of_kind(events, AssistantText)] == [
        ("I look", None),
        ("below", "a1"),
    ]
    assert tokens_of(of_kind(events, ModelResult)[0].usage).input == 5


def test_a_sub_agent_with_a_file_of_its_own_is_told_there(tmp_path):
    """The wire of its session tells of it again: that is not said twice."""
    path = written(tmp_path, lines(*WIRE), f"{ID}/wire.jsonl")
    below = written(tmp_path, lines(*WIRE[:5]), f"{ID}/subagents/a1/wire.jsonl")
    assert [each.content for each in of_kind(read(SOURCE, path)[ID], AssistantText)] == ["I look"]
    found = read(SOURCE, below)[ID]
    assert {each.agent for each in found if each.kind != "episode_start"} == {"a1"}


def test_a_context_alone_is_an_episode(tmp_path):
    """It has no times, and everything else."""
    path = written(tmp_path, lines(*CONTEXT), f"{ID}/context.jsonl")
    assert not sign(SOURCE, path).is_part
    events = read(SOURCE, path)[ID]
    assert counted(events) == {"turns": 1, "calls": 1, "results": 1, "pairs": 1}


def test_it_is_told_from_others(tmp_path):
    """Plain chats and other wires are none of it."""
    for rows in (CODE, WIRE, CODE[4:], WIRE[1:]):
        assert sign(SOURCE, written(tmp_path, lines(*rows))).confidence >= 0.9
    for other in (
        {"role": "user", "content": "x"}, {"type": "metadata"}, {"timestamp": 1, "message": {"type": "x"}}, {},
        {"timestamp": "t", "type": "event_msg", "payload": {}}, {"agents": {"a": {}}}, {"version": 1, "approval": 1},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    for rows in (CODE, WIRE, CONTEXT):
        check_growth(SOURCE, tmp_path, lines(*rows))
    assert (
        check_mutations(SOURCE, tmp_path, lines(*(CODE[i] for i in (0, 1, 4, 9, 10, 12, 14, 15))), depth=3, odd=FEW)
        > 50
    )
    assert check_mutations(SOURCE, tmp_path, lines(*WIRE[4:9]), depth=4, odd=FEW) > 50
    assert check_mutations(SOURCE, tmp_path, lines(*CONTEXT[2:5]), odd=FEW) > 50


def test_homes(tmp_path):
    """The sessions of both programs."""
    for each in (".kimi-code/sessions", ".kimi/sessions"):
        (tmp_path / each).mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".kimi-code/sessions", tmp_path / ".kimi/sessions"]
    assert SOURCE.homes(tmp_path, {"KIMI_CODE_HOME": "/nowhere"}) == [tmp_path / ".kimi/sessions"]
