"""What the newest releases of other agents were found to write, driven by scripted models: invented again."""

import json

from tests.ingest.unseen import SESSION, lines, of, read
from trackway.ingest.formats import codex, copilot, gemini_cli, inspect, openai_agents, opencode, pydantic_ai, qwen
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

# --- Codex 0.166.0 ----------------------------------------------------------------------------------------------------


def codex_line(second, kind, **payload):
    """A line of a rollout."""
    return {"timestamp": f"2026-01-02T03:04:{second:02}.000Z", "type": kind, "payload": payload}


def test_codex_calls_made_at_once(tmp_path):
    """The calls of one response are a batch, those of the next another; an agent that is none is an error."""
    meta = codex_line(1, "session_meta", id=SESSION, cwd="/", originator="codex_exec", cli_version="0.166.0")

    def call(second, name):
        return codex_line(second, "response_item", type="function_call", name=name, arguments="{}", call_id=name)

    def output(second, name, said):
        return codex_line(second, "response_item", type="function_call_output", call_id=name, output=said)

    path = lines(
        tmp_path,
        meta,
        call(2, "wait_agent"),
        call(3, "look"),
        output(4, "wait_agent", "invalid agent id x: Error"),
        output(5, "look", "a tree"),
        call(6, "dig"),
    )
    events = read(path, codex)
    first, second, third = of(events, AssistantToolCall)
    assert first.batch == second.batch != third.batch
    assert [each.status for each in of(events, ToolResult)] == ["error", "ok"]


def test_codex_items_behind_their_tokens(tmp_path):
    """A text whose item comes only behind the response's tokens is said once; the same text of a later turn again."""

    def told(second, **payload):
        return codex_line(second, "event_msg", **payload)

    def item(second, role, said):
        content = [{"type": "input_text" if role == "user" else "output_text", "text": said}]
        return codex_line(second, "response_item", type="message", role=role, content=content)

    def tokens(second, count):
        sums = {"input_tokens": count, "output_tokens": count, "total_tokens": 2 * count}
        return told(second, type="token_count", info={"total_token_usage": sums, "last_token_usage": sums})

    def turn(second, count):
        return [
            item(second, "user", "Dig"),
            told(second + 1, type="agent_message", message="Done."),
            tokens(second + 2, count),
            item(second + 3, "assistant", "Done."),
        ]

    meta = codex_line(1, "session_meta", id=SESSION, cwd="/", originator="codex_exec", cli_version="0.58.0")
    events = read(lines(tmp_path, meta, *turn(2, 10), *turn(8, 30)), codex)
    assert [each.content for each in of(events, AssistantText)] == ["Done.", "Done."]
    assert len(of(events, ModelCall)) == 2


# --- Gemini CLI 0.61.0 ------------------------------------------------------------------------------------------------


def gemini(number, kind, content, **fields):
    """A message."""
    return {
        "id": f"m{number}",
        "timestamp": f"2026-01-02T03:04:{number:02}.000Z",
        "type": kind,
        "content": content,
    } | fields


def test_gemini_picture_beside_results(tmp_path):
    """A picture that stands beside results is the tool's, and nobody's prompt."""
    head = {"sessionId": SESSION, "projectHash": "ab", "startTime": "2026-01-02T03:04:00.000Z"}
    answer = {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "a picture"}}}
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    call = {"id": "c1", "name": "look", "args": {}, "status": "success"}
    first, later = gemini(2, "gemini", "", toolCalls=[call | {"result": [answer, picture]}]), [answer, picture]
    path = lines(tmp_path, head, gemini(1, "user", "Look"), first, gemini(3, "user", later))
    events = read(path, gemini_cli)
    assert [each.content for each in of(events, User)] == ["Look"]
    (result,) = of(events, ToolResult)
    assert result.returned == [picture]
    untold = gemini(2, "gemini", [{"functionCall": {"id": "c1", "name": "look", "args": {}}}])
    events = read(lines(tmp_path, head, gemini(1, "user", "Look"), untold, gemini(3, "user", later)), gemini_cli)
    assert [each.content for each in of(events, User)] == ["Look"]
    assert [each.detail for each in of(events, Context)] == [{"parts": [picture]}]


def test_gemini_resumed(tmp_path):
    """A session that is taken up again begins with an empty list: nothing was dropped, and nothing is said twice."""
    head = {"sessionId": SESSION, "projectHash": "ab", "startTime": "2026-01-02T03:04:00.000Z"}
    told = gemini(0, "user", [{"text": "<session_context>\nOn a Monday"}])
    said = gemini(2, "gemini", "Done.", thoughts=[{"subject": "", "description": "Dig."}])
    again = gemini(2, "gemini", [{"text": "Dig.", "thought": True}, {"text": "Done."}])
    path = lines(
        tmp_path,
        head,
        {"$set": {"messages": [told]}},
        gemini(1, "user", "Plant a tree"),
        said,
        head,
        {"$set": {"messages": [told]}},
        {"$set": {"messages": [told, gemini(1, "user", "Plant a tree"), again]}},
        gemini(3, "user", "Go on"),
        {"$set": {"messages": [told, gemini(3, "user", "Go on")]}},
    )
    events = read(path, gemini_cli)
    assert [each.content for each in of(events, User)] == ["Plant a tree", "Go on"]
    assert len(of(events, AssistantThinking)) == len(of(events, AssistantText)) == 1
    (dropped,) = [each for each in of(events, Context) if each.op == "compact"]
    assert dropped.detail == {"kept": ["m0", "m3"], "dropped": ["m1", "m2"]}


# --- Qwen Code 0.24.4, opencode 1.18.33 -------------------------------------------------------------------------------


def qwen_record(number, kind, parts, **fields):
    """A record of a chat."""
    at = f"2026-01-02T03:04:{number:02}.000Z"
    message = {"role": "user", "parts": parts}
    return {"uuid": f"u{number}", "sessionId": SESSION, "timestamp": at, "type": kind, "message": message} | fields


def test_qwen_exit_code_and_new_file(tmp_path):
    """A command's exit code is in its text; a file whose difference begins with nothing is new."""

    def call(name, **args):
        return {"functionCall": {"id": name, "name": name, "args": args}}

    def answer(number, name, said, **told):
        given = {"functionResponse": {"id": name, "name": name, "response": said}}
        return qwen_record(number, "tool_result", [given], toolCallResult={"callId": name, **told})

    shown = {"fileDiff": "--- a\n+++ a\n@@ -0,0 +1,1 @@\n+one\n", "originalContent": "", "newContent": "one\n"}
    path = lines(
        tmp_path,
        qwen_record(1, "user", [{"text": "Dig"}]),
        qwen_record(
            2,
            "assistant",
            [call("run_shell_command", command="dig"), call("write_file", file_path="/a", content="one\n")],
        ),
        answer(
            3, "run_shell_command", {"error": "Output: no\nError: (none)\nExit Code: 4\nSignal: (none)"}, status="error"
        ),
        answer(4, "write_file", {"output": "done"}, status="success", resultDisplay=shown),
    )
    events = read(path, qwen)
    assert [(each.exit_code, each.is_error) for each in of(events, ToolResult)] == [(4, True), (None, False)]
    (change,) = of(events, FileChange)
    assert (change.op, change.before, change.after.size) == ("create", None, 4)


def test_qwen_sub_agent_is_told_of_when_it_begins(tmp_path):
    """A sub-agent's file is told of at the time of its own first record, behind the session's beginning."""
    chats, subs = tmp_path / "chats", tmp_path / "subagents" / SESSION
    chats.mkdir()
    subs.mkdir(parents=True)
    lines(chats, qwen_record(1, "user", [{"text": "Dig"}]), name=f"{SESSION}.jsonl")
    first = qwen_record(9, "user", [{"text": "Look"}], agentId="a1", agentName="scout", isSidechain=True)
    events = read(lines(subs, first, name="agent-a1.jsonl"), qwen)
    assert [each.at // 10**9 % 60 for each in of(events, Note)] == [9]


def test_opencode_calls_that_failed(tmp_path):
    """A command that left with another code than 0 has failed, and so has a call that was none."""

    def tool(number, name, **state):
        about = {"id": f"prt_{number}", "messageID": "msg_2", "sessionID": "ses_1", "type": "tool", "tool": name}
        return about | {"callID": f"c{number}", "state": {"status": "completed", "input": {}, **state}}

    def message(number, role, *parts):
        about = {"id": f"msg_{number}", "sessionID": "ses_1", "role": role, "time": {"created": 1767323045000 + number}}
        return {"info": about, "parts": list(parts)}

    asked = {"id": "prt_0", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "Dig"}
    document = {
        "info": {
            "id": "ses_1",
            "directory": "/",
            "version": "1.18.33",
            "title": "t",
            "time": {"created": 1767323045000},
        },
        "messages": [
            message(1, "user", asked),
            message(
                2,
                "assistant",
                tool(1, "bash", output="no", metadata={"exit": 4}),
                tool(2, "invalid", output="no such tool", metadata={}),
                tool(3, "bash", output="yes", metadata={"exit": 0}),
            ),
        ],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document))
    told = [(each.exit_code, each.is_error, each.status) for each in of(read(path, opencode), ToolResult)]
    assert sorted(told, key=str) == [(0, False, "ok"), (4, True, "error"), (None, True, "error")]


# --- OpenAI Agents SDK 0.24.0, Pydantic AI 2.66.0 ---------------------------------------------------------------------


def test_openai_agents_result_in_span_and_input(tmp_path):
    """What a function's span told is not told again by the next input; a handoff's result stands in the input alone."""

    def call(name):
        return {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}

    def span(number, kind, **own):
        at = f"2026-01-02T03:04:{number:02}+00:00"
        told = {"object": "trace.span", "id": f"span_{number}", "trace_id": "t", "started_at": at, "ended_at": at}
        return told | {"span_data": {"type": kind, **own}}

    asked = {"role": "user", "content": "Dig"}
    said = {"role": "assistant", "content": None, "tool_calls": [call("dig"), call("transfer")]}
    given = [{"role": "tool", "tool_call_id": each, "content": each} for each in ("dig", "transfer")]
    path = lines(
        tmp_path,
        {"object": "trace", "id": "t", "workflow_name": "w"},
        span(1, "generation", input=[asked], output=[said]),
        span(2, "function", name="dig", input="{}", output="dig"),
        span(3, "generation", input=[asked, said, *given], output=[{"role": "assistant", "content": "Done."}]),
    )
    assert [each.call_id for each in of(read(path, openai_agents), ToolResult)] == ["dig", "transfer"]


def test_pydantic_ai_retried(tmp_path):
    """A call that has to be made again went wrong."""
    part = {
        "part_kind": "tool-return",
        "tool_name": "dig",
        "tool_call_id": "c1",
        "content": "again",
        "outcome": "retried",
    }
    call = {"part_kind": "tool-call", "tool_name": "dig", "tool_call_id": "c1", "args": {}}
    path = tmp_path / "messages.json"
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Dig"}]}
    path.write_text(json.dumps([asked, {"kind": "response", "parts": [call]}, {"kind": "request", "parts": [part]}]))
    (result,) = of(read(path, pydantic_ai), ToolResult)
    assert (result.is_error, result.status) == (True, "error")


# --- Copilot CLI 1.0.102, Inspect 0.3.285 -----------------------------------------------------------------------------


def test_copilot_calls_are_counted_one_by_one(tmp_path):
    """What each call cost is told with it, and the sum at the end tells of no more; a code other than 0 is an error."""

    def line(number, kind, **fields):
        return {"type": kind, "data": fields, "id": f"e{number}", "timestamp": f"2026-01-02T03:04:{number:02}.000Z"}

    def usage(call, count):
        return {"model": "m", "inputTokens": count, "outputTokens": 5, "apiCallId": call, "finishReason": "stop"}

    asked = {"toolCallId": "c1", "name": "bash", "arguments": {}}
    total = {"m": {"usage": {"inputTokens": 37, "outputTokens": 10, "cacheReadTokens": 0}}}
    path = lines(
        tmp_path,
        line(1, "session.start", sessionId=SESSION, producer="copilot-agent", version=1),
        line(2, "user.message", content="Dig"),
        line(3, "session.usage_record", usage=usage("a", 10)),
        line(4, "assistant.message", messageId="m1", apiCallId="a", model="m", content="", toolRequests=[asked]),
        line(5, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={}),
        line(6, "tool.execution_complete", toolCallId="c1", success=True, shellExecution={"exitCode": 4}, result={}),
        line(7, "session.usage_record", usage=usage("b", 20)),
        line(8, "assistant.message", messageId="m2", apiCallId="b", model="m", content="Done.", outputTokens=5),
        line(9, "session.shutdown", modelMetrics=total),
    )
    events = read(path, copilot)
    assert [each.id for each in of(events, ModelCall)] == ["a", "b"]
    told = [(each.usage, each.usage_from) for each in of(events, ModelResult)]
    assert told == [
        ({"inputTokens": 10, "outputTokens": 5}, "provider"),
        ({"inputTokens": 20, "outputTokens": 5}, "provider"),
        ({"inputTokens": 7}, "session"),
    ]
    (result,) = of(events, ToolResult)
    assert (result.is_error, result.status, result.exit_code) == (True, "error", 4)


def test_inspect_tags_and_metadata(tmp_path):
    """What an evaluation was given of tags, metadata and arguments is with each of its episodes."""
    about = {"task": "t", "model": "m", "tags": ["slow"], "metadata": {"who": "me"}, "task_args": {"n": 3}}
    sample = {"id": 1, "epoch": 1, "input": "Dig", "target": "", "messages": [], "events": []}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": about, "samples": [sample]}))
    header = read(path, inspect)[0].header
    assert header.tags == ("slow",)
    assert (header.metadata["metadata"], header.metadata["task_args"]) == ({"who": "me"}, {"n": 3})
