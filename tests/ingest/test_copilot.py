"""GitHub Copilot CLI: events of a session, its sub-agents among them."""

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
from trackway.ingest.formats.copilot import SOURCE
from trackway.read.usage import usage
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    FileChange,
    ModelCall,
    Note,
    ToolResult,
    User,
)

ID = "aaaabbbb-1111-4222-8333-ccccddddeeee"


def event(number, kind, /, **fields):
    """An event, after the one before it."""
    at = f"2026-03-26T17:50:{number:02}.000Z"
    return {"type": kind, "data": fields, "id": f"e{number}", "timestamp": at, "parentId": f"e{number - 1}"}


def request(call, name, args):
    """A call in a message."""
    return {"toolCallId": call, "name": name, "arguments": args, "type": "function", "intentionSummary": "why"}


METRIC = {"requests": {"count": 2}, "usage": {"inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 800}}
SESSION = [
    event(1, "session.start", sessionId=ID, copilotVersion="1.0.11", startTime="2026-03-26T17:50:00.000Z",
          context={"cwd": "/tmp/boat", "branch": "main"}, selectedModel="m-1"),
    event(2, "system.message", role="system", content="You are Copilot"),
    event(3, "user.message", content="Mend the boat", transformedContent="<now>x</now> Mend the boat", attachments=[]),
    event(4, "assistant.reasoning", reasoningId="r", content="hm"),
    event(5, "assistant.message", messageId="m", apiCallId="a1", content="I look", reasoningText="hm", outputTokens=12,
          model="m-1", toolRequests=[request("c1", "bash", '{"command":"ls"}'),
                                     request("c2", "create", {"path": "a", "file_text": "b"})]),
    event(6, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
    event(7, "tool.execution_start", toolCallId="c2", toolName="create", arguments={"path": "a", "file_text": "b"}),
    event(9, "tool.execution_complete", toolCallId="c1", success=True,
          result={"content": "x\n<exited with exit code 3>", "detailedContent": "more"}),
    event(10, "tool.execution_complete", toolCallId="c2", success=True, result={"content": "made"}),
    event(11, "tool.execution_start", toolCallId="c3", toolName="early", arguments={}),
    event(12, "assistant.message", messageId="m2", content="", toolRequests=[request("c3", "early", {})]),
    event(13, "tool.execution_complete", toolCallId="c3", success=False, error={"code": "denied", "message": "no"}),
    event(14, "subagent.started", toolCallId="c9", agentName="explore"),
    event(15, "assistant.message", messageId="m3", parentToolCallId="c9", content="below",
          toolRequests=[request("d1", "ls", {})]),
    event(16, "tool.execution_complete", parentToolCallId="c9", toolCallId="d1", success=True, result={"content": "y"}),
    event(17, "session.compaction_complete", success=True, summaryContent="In short", preCompactionTokens=9),
    event(18, "session.snapshot_rewind", upToEventId="e5", eventsRemoved=3),
    event(19, "user.message", content="Go on", source="skill"),
    event(20, "session.error", message="off", errorType="query"),
    event(21, "session.shutdown", modelMetrics={"m-1": METRIC}),
    event(22, "session.wings", number=2),
]  # fmt: skip


def test_a_session(tmp_path):
    """Every call once, in whichever order it is told; how each ended; sub-agents under the call that made them."""
    events = read(SOURCE, written(tmp_path, lines(*SESSION)))[ID]
    header = events[0].header
    assert (header.task, header.model, header.metadata["cwd"]) == ("Mend the boat", "m-1", "/tmp/boat")
    assert counted(events) == {"turns": 1, "calls": 4, "results": 4, "pairs": 4}
    found = of_kind(events, ToolResult)
    assert [(each.status, each.exit_code, each.duration_ms) for each in found] == [
        ("error", 3, 3000), ("ok", None, 3000), ("denied", None, 2000), ("ok", None, None),
    ]  # fmt: skip
    assert found[0].returned == {"detailedContent": "more"}
    assert [each.agent for each in of_kind(events, AssistantToolCall)] == [None, None, None, "c9"]
    assert [each.path for each in of_kind(events, FileChange)] == ["a"]
    assert [each.content for each in of_kind(events, AssistantThinking)] == ["hm"]
    assert [(each.content, each.actor) for each in of_kind(events, User)] == [
        ("Mend the boat", "human"),
        ("Go on", "harness"),
    ]
    assert [each.op for each in of_kind(events, Context)] == ["set", "compact", "rewind"]
    assert [each.text for each in of_kind(events, Note) if each.topic == "session.error"] == ["off"]
    kept = json.dumps([each.native.fields for each in events if each.native])
    assert all(said in kept for said in ("<now>x</now>", '"number": 2', "why"))


def test_tokens_that_messages_told_are_not_counted_again_at_the_end(tmp_path):
    """The sum of a session is what it says when it is shut down."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    told = usage(events)
    assert (told.output, told.input, told.cache_read) == (50, 200, 800)
    assert [each.id for each in of_kind(events, ModelCall)] == ["a1", "m2", "m3"]


def test_it_is_told_from_others(tmp_path):
    """By an envelope that nobody else has."""
    assert sign(SOURCE, written(tmp_path, lines(*SESSION))).confidence == 0.95
    assert sign(SOURCE, written(tmp_path, lines(*SESSION[3:]))).confidence == 0.8
    for other in (
        {"type": "session.start", "id": "x"}, {"type": "x.y", "data": {}, "id": "1", "timestamp": 1, "parentId": None},
        {"type": "session.start", "data": "x", "id": "1", "timestamp": 1, "parentId": None}, {},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*SESSION))
    assert check_mutations(SOURCE, tmp_path, lines(*(SESSION[i] for i in (0, 2, 4, 7, 11, 19))), depth=3, odd=FEW) > 50


def test_homes(tmp_path):
    """The state of its sessions."""
    (tmp_path / ".copilot/session-state").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".copilot/session-state"]
