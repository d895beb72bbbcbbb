"""What the newest releases of agents were found to write, when they were driven by scripted models: invented again."""

import json
from pathlib import Path

from trackway.ingest.formats import claude_code, codex, gemini_cli, openai_agents, opencode, pydantic_ai, qwen
from trackway.ingest.original import Original
from trackway.ingest.parse import events_of
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

SESSION = "5b0c1d2e-0000-4000-8000-000000000001"


def lines(folder: Path, *entries, name="session.jsonl"):
    """A file of lines."""
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


def read(path, source):
    """The events of a file that holds one session."""
    (events,) = events_of(source.SOURCE, Original(path)).values()
    return events


def of(events, kind):
    """The events of a kind."""
    return [each for each in events if isinstance(each, kind)]


# --- Claude Code 2.1.325 ----------------------------------------------------------------------------------------------


def claude(number, kind, *, second=0, **fields):
    """An entry of a session."""
    uuid = f"5b0c1d2e-0000-4000-9000-{number:012}"
    at = f"2026-01-02T03:04:{second or number:02}.000Z"
    entry = {"type": kind, "uuid": uuid, "parentUuid": None, "isSidechain": False, "timestamp": at}
    return entry | {"sessionId": SESSION} | fields


def prompt(number=1, said="Plant a tree", **fields):
    """What a human said."""
    return claude(number, "user", message={"role": "user", "content": said}, **fields)


def reply(number, call, *blocks, **fields):
    """A block of a response."""
    usage = fields.pop("usage", {"input_tokens": 10, "output_tokens": 40})
    message = {"id": call, "role": "assistant", "model": "m", "content": list(blocks), "usage": usage}
    return claude(number, "assistant", message=message | {"stop_reason": "end_turn"}, **fields)


def attachment(number, kind, *, rendered=None, **fields):
    """What was put beside a prompt."""
    told = {} if rendered is None else {"rendered": [{"content": rendered}], "renderedRole": "system"}
    return claude(number, "attachment", attachment={"type": kind, **fields}, **told)


def of_request(kind, **fields):
    """What the client keeps of its requests: these have no uuid."""
    return {"type": kind, "sessionId": SESSION, "timestamp": "2026-01-02T03:04:05.000Z", **fields}


def shape(name, prompt, *tools, **fields):
    """A system prompt and tools, as they were sent."""
    system = [{"type": "text", "text": each} for each in prompt]
    told = {"system": system, "tools": [{"name": each} for each in tools]}
    return of_request("api-request-shape", shapeHash=name, shape=told, **fields)


def test_claude_rendered_attachment(tmp_path):
    """An attachment of any kind that says how it was rendered was seen by the model, as it was rendered."""
    path = lines(
        tmp_path,
        prompt(),
        attachment(2, "weather", rendered="<system-reminder>It rains.</system-reminder>", sky="grey"),
        attachment(3, "weather", sky="blue"),
    )
    events = read(path, claude_code)
    (seen,) = of(events, Context)
    assert (seen.op, seen.text) == ("inject", "<system-reminder>It rains.</system-reminder>")
    assert seen.detail == {"type": "weather", "sky": "grey"}
    assert [each.topic for each in of(events, Note)] == ["attachment.weather"]


def test_claude_snapshot_sets_prompt(tmp_path):
    """A snapshot of the prompt is the system prompt and the tools, where nothing says how they were sent."""
    tool = {"name": "Dig", "description": "digs", "schema": {"name": "Dig", "input_schema": {}}}
    path = lines(
        tmp_path, prompt(), attachment(2, "prompt_snapshot", systemPrompt=["Be kind.", "Be brief."], tools=[tool])
    )
    (told,) = of(read(path, claude_code), Context)
    assert (told.op, told.system_prompt, told.tools) == ("set", "Be kind.\n\nBe brief.", [tool["schema"]])


def test_claude_shape_sets_prompt(tmp_path):
    """A request's shape is the system prompt and the tools, for the agent whose it is, whenever a request has it."""
    path = lines(
        tmp_path,
        prompt(),
        shape("aa", ["You dig.", "Be kind."], "Dig"),
        attachment(2, "prompt_snapshot", systemPrompt=["Be kind."]),
        shape("bb", ["You dig."], "Dig", "Rake"),
        of_request("api-request", shapeHash="bb", id="r1"),
        of_request("api-request", shapeHash="aa", id="r2"),
        shape("cc", ["You rake."], agentId="a1"),
    )
    told = of(read(path, claude_code), Context)
    assert [(each.system_prompt, len(each.tools), each.agent) for each in told] == [
        ("You dig.\nBe kind.", 1, None),
        ("You dig.", 2, None),
        ("You dig.\nBe kind.", 1, None),
        ("You rake.", 0, "a1"),
    ]


def test_claude_sub_agent_edits(tmp_path):
    """A sub-agent's edits are told by its calls alone: they are inferred, and none is made up of a call that failed."""
    side = {"isSidechain": True, "agentId": "a1"}

    def call(number, name, **given):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        return reply(number, f"msg_{number}", block, **side)

    def result(number, of_call, said, **more):
        block = {"type": "tool_result", "tool_use_id": f"toolu_{of_call}", "content": said, **more}
        return claude(number, "user", message={"role": "user", "content": [block]}, **side)

    path = lines(
        tmp_path,
        prompt(1, **side),
        call(2, "Write", file_path="/a.txt", content="one\n"),
        result(3, 2, "File created successfully at: /a.txt"),
        call(4, "Edit", file_path="/a.txt", old_string="one", new_string="two"),
        result(5, 4, "The file /a.txt has been updated."),
        call(6, "Write", file_path="/b.txt", content="no"),
        result(7, 6, "not allowed", is_error=True),
    )
    changes = of(read(path, claude_code), FileChange)
    told = [
        (each.op, each.path, each.after and each.after.size, each.cause, each.exact, each.agent) for each in changes
    ]
    assert told == [
        ("create", "/a.txt", 4, "toolu_2", False, "a1"),
        ("modify", "/a.txt", None, "toolu_4", False, "a1"),
    ]


def test_claude_change_of_a_sub_agent(tmp_path):
    """A file that a sub-agent may have changed was not changed from outside; one that changes later was."""

    def result(number, **returned):
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok"}
        return claude(number, "user", message={"role": "user", "content": [block]}, toolUseResult=returned)

    path = lines(
        tmp_path,
        prompt(),
        result(2, type="create", filePath="/a.txt", content="one\n"),
        result(3, status="completed", agentId="a1"),
        attachment(4, "edited_text_file", filename="/a.txt", snippet="1 two"),
        attachment(5, "edited_text_file", filename="/a.txt", snippet="1 three"),
    )
    changes = of(read(path, claude_code), FileChange)
    assert [(each.cause, each.at // 10**9 % 60) for each in changes] == [("toolu_2", 2), ("external", 5)]


def test_claude_id_of_another_request(tmp_path):
    """An id that comes again of another request is another call, and is counted by itself."""
    text = {"type": "text", "text": "Done."}
    path = lines(
        tmp_path,
        prompt(),
        reply(2, "msg_1", text, requestRef="r1"),
        reply(3, "msg_1", text, requestRef="r1"),
        reply(4, "msg_1", text, requestRef="r2", usage={"input_tokens": 90, "output_tokens": 80}),
    )
    events = read(path, claude_code)
    assert len({each.id for each in of(events, ModelCall)}) == 2
    assert [each.usage["input_tokens"] for each in of(events, ModelResult)] == [10, 90]


def test_claude_fork_without_a_mark(tmp_path):
    """A fork that begins with its own prompt, and then has older responses, did not pay for these."""
    text = {"type": "text", "text": "Done."}
    begun = {"type": "queue-operation", "operation": "enqueue", "content": "Go on", "sessionId": SESSION}
    path = lines(
        tmp_path,
        begun | {"timestamp": "2026-01-02T03:04:30.000Z"},
        prompt(1),
        reply(2, "msg_1", text),
        prompt(31, "Go on"),
        reply(32, "msg_2", text),
    )
    assert [each.id for each in of(read(path, claude_code), ModelCall)] == ["msg_2"]


def test_claude_copy_without_counts(tmp_path):
    """A response that is written once more with all its counts taken out costs what it did."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Dig", "input": {}}
    first = reply(2, "msg_1", call)
    again = reply(2, "msg_1", call, usage={"input_tokens": 0, "output_tokens": 0}, slug="quiet-oak")
    events = read(lines(tmp_path, prompt(), first, again), claude_code)
    assert of(events, ModelResult)[-1].usage["output_tokens"] == 40
    assert len(of(events, AssistantToolCall)) == 1


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
