"""The third part of `samples`: other agents' clients, kits, and rows of datasets."""

from tests.ingest.writing import SESSION, at, document, lines

_TASK = "Make the boat float"


def copilot():
    """Events with their parents."""

    def event(number, kind, **said):
        return {"type": kind, "data": said, "id": f"e{number}", "timestamp": at(number), "parentId": f"e{number - 1}"}

    request = {"toolCallId": "k-1", "name": "bash", "arguments": {"command": "ls"}, "type": "function"}
    return {f"{SESSION}/events.jsonl": lines(
        event(1, "session.start", sessionId=SESSION, version=1, producer="copilot-agent", copilotVersion="1.0.11",
              startTime=at(0), context={"cwd": "/boat"}),
        event(2, "user.message", content=_TASK, transformedContent=_TASK, attachments=[]),
        event(3, "assistant.turn_start", turnId="0"),
        event(4, "assistant.message", messageId="m-1", content="I look.", toolRequests=[request], outputTokens=12),
        event(5, "tool.execution_start", toolCallId="k-1", toolName="bash", arguments={"command": "ls"}),
        event(6, "tool.execution_complete", toolCallId="k-1", success=True, result={"content": "hull.py"}),
        event(7, "assistant.turn_end", turnId="0"),
        event(8, "session.truncation", tokenLimit=9),
    )}  # fmt: skip


def cursor():
    """Messages of blocks without ids."""
    use = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "hull.py"}]}
    return {"session.jsonl": lines(
        {"role": "user", "message": {"content": [{"type": "text", "text": _TASK}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "I look."}, use]}},
        {"role": "user", "message": {"content": [back]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "It floats."}]}},
        {"type": "turn_ended", "status": "success"},
    )}  # fmt: skip


def droid():
    """A session's store."""

    def message(number, role, *blocks):
        return {"type": "message", "id": f"m{number}", "parentId": f"m{number - 1}", "timestamp": at(number),
                "message": {"role": role, "content": list(blocks)}}  # fmt: skip

    return {"session.jsonl": lines(
        {"type": "session_start", "id": SESSION, "title": "Boat", "cwd": "/boat", "owner": "user", "version": 2},
        message(1, "user", {"type": "text", "text": f"<system-reminder>\nBe brief.\n</system-reminder>\n\n{_TASK}"}),
        message(2, "assistant", {"type": "tool_use", "id": "k-1", "name": "Execute", "input": {"command": "ls"}}),
        message(3, "user", {"type": "tool_result", "tool_use_id": "k-1", "content": "Error: (exit code: 1)"}),
        message(4, "assistant", {"type": "text", "text": "It floats."}),
    )}  # fmt: skip


def kimi():
    """A wire with the loop's events."""

    def loop(number, kind, **said):
        return {"type": "context.append_loop_event", "event": {"type": kind, "turnId": "0", "step": 1, **said},
                "time": 1772359200000 + number}  # fmt: skip

    said = {"role": "user", "content": [{"type": "text", "text": _TASK}], "toolCalls": [], "origin": {"kind": "user"}}
    return {"wire.jsonl": lines(
        {"type": "metadata", "protocol_version": "1.4", "created_at": 1772359200000},
        {"type": "config.update", "profileName": "agent", "systemPrompt": "You build boats.", "time": 1772359200000},
        {"type": "turn.prompt", "input": said["content"], "origin": {"kind": "user"}, "time": 1772359200001},
        {"type": "context.append_message", "message": said, "time": 1772359200001},
        loop(2, "step.begin", uuid="s-1"),
        {"type": "llm.request", "kind": "loop", "provider": "kimi", "model": "m-1", "time": 1772359200003},
        loop(4, "content.part", uuid="p-1", stepUuid="s-1", part={"type": "think", "think": "Look first."}),
        loop(5, "tool.call", uuid="Bash_0", stepUuid="s-1", toolCallId="Bash_0", name="Bash", args={"command": "ls"}),
        loop(6, "tool.result", parentUuid="Bash_0", toolCallId="Bash_0", result={"output": "hull.py"}),
        loop(7, "step.end", uuid="s-1", usage={"inputOther": 9, "output": 3}, finishReason="tool_use"),
        {"type": "usage.record", "model": "m-1", "usage": {"inputOther": 9, "output": 3}, "time": 1772359200008},
    )}  # fmt: skip


def qwen():
    """Messages of parts."""

    def entry(number, kind, *parts, **more):
        role = "model" if kind == "assistant" else "user"
        return {"uuid": f"q-{number}", "parentUuid": f"q-{number - 1}" if number > 1 else None, "sessionId": SESSION,
                "timestamp": at(number), "type": kind, "cwd": "/boat", "version": "0.21.13",
                "message": {"role": role, "parts": list(parts)}, **more}  # fmt: skip

    return {f"{SESSION}.jsonl": lines(
        entry(1, "user", {"text": _TASK}, systemPayload={"displayText": _TASK}),
        entry(2, "assistant", {"text": "Look.", "thought": True},
              {"functionCall": {"id": "k-1", "name": "ls", "args": {}}}, model="m-1",
              usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 3}),
        entry(3, "tool_result", {"functionResponse": {"id": "k-1", "name": "ls", "response": {"output": "hull.py"}}},
              toolCallResult={"status": "success"}),
        entry(4, "system", subtype="rewind", systemPayload={"targetUuid": "q-1"}),
        entry(5, "assistant", {"text": "It floats."}, model="m-1"),
    )}  # fmt: skip


def grok():
    """A line a message; its session's summary lies beside it."""
    call = {"id": "k-1", "name": "read_file", "arguments": '{"target_file": "hull.py"}'}
    about = {"info": {"id": SESSION, "cwd": "/boat"}, "session_summary": "Boat", "created_at": at(0),
             "updated_at": at(9), "current_model_id": "m-1", "chat_format_version": 1}  # fmt: skip
    return {
        "chat_history.jsonl": lines(
            {"type": "system", "content": "You build boats."},
            {"type": "user", "content": [{"type": "text", "text": "<user_info>"}], "synthetic_reason": "context"},
            {"type": "user", "content": [{"type": "text", "text": _TASK}], "prompt_index": 0},
            {"type": "reasoning", "id": "r-1", "summary": [{"type": "summary_text", "text": "Look."}]},
            {"type": "assistant", "content": "I look.", "tool_calls": [call], "model_id": "m-1"},
            {"type": "tool_result", "tool_call_id": "k-1", "content": "wet"},
            {"type": "backend_tool_call", "kind": {"tool_type": "web_search", "id": "w-1", "status": "completed"}},
        ),
        "summary.json": document(about, indent=2),
    }  # fmt: skip


def hermes():
    """A document with a conversation."""
    call = {"id": "k-1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": _TASK},
        {"role": "assistant", "content": "I look.", "tool_calls": [call], "reasoning": "Look first."},
        {"role": "tool", "tool_call_id": "k-1", "content": "hull.py", "name": "shell"},
        {"role": "assistant", "content": "It floats.", "finish_reason": "stop"},
    ]
    return {"session.json": document({
        "session_id": "20260301_boat", "model": "m-1", "platform": "cli", "session_start": at(0), "last_updated": at(9),
        "message_count": 4, "system_prompt": "You build boats.", "tools": [], "messages": messages,
    }, indent=2)}  # fmt: skip


def openclaw():
    """A tree like pi's, with entries of its own."""
    call = {"type": "toolCall", "id": "k-1", "name": "shell_exec", "arguments": {"command": "ls"}}
    back = {"role": "toolResult", "toolCallId": "k-1", "toolName": "shell_exec", "content": "hull.py", "isError": False}
    return {"session.jsonl": lines(
        {"type": "session", "id": "boat", "version": 3, "timestamp": at(0), "cwd": "/boat"},
        {"type": "custom_message", "customType": "openclaw.runtime-context", "content": "Be kind.", "display": False,
         "id": "c-1", "parentId": None, "timestamp": at(1)},
        {"type": "message", "id": "m1", "parentId": "c-1", "timestamp": at(2),
         "message": {"role": "user", "content": [{"type": "text", "text": _TASK}]}},
        {"type": "message", "id": "m2", "parentId": "m1", "timestamp": at(3),
         "message": {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}},
        {"type": "message", "id": "m3", "parentId": "m2", "timestamp": at(4), "message": back},
    )}  # fmt: skip


def antigravity():
    """Steps, of which a plan names the calls."""

    def step(number, source, kind, **more):
        return {
            "step_index": number,
            "source": source,
            "type": kind,
            "status": "DONE",
            "created_at": at(number),
            **more,
        }

    call = {"name": "list_dir", "args": {"DirectoryPath": '"/boat"'}}
    return {"trajectory.jsonl": lines(
        step(0, "USER_EXPLICIT", "USER_INPUT", content=f"<USER_REQUEST>\n{_TASK}\n</USER_REQUEST>"),
        step(1, "SYSTEM", "CONVERSATION_HISTORY"),
        step(2, "MODEL", "PLANNER_RESPONSE", thinking="Look first.", tool_calls=[call]),
        step(3, "MODEL", "LIST_DIRECTORY", content="hull.py"),
        step(4, "SYSTEM", "CHECKPOINT", content="# Resuming from a compaction"),
        step(5, "MODEL", "PLANNER_RESPONSE", content="It floats."),
    )}  # fmt: skip


def opencode():
    """A session, its messages and their parts, a file each."""
    tool = {"id": "p-2", "sessionID": "ses_boat", "messageID": "msg_2", "type": "tool", "callID": "k-1", "tool": "bash",
            "state": {"status": "completed", "input": {"command": "ls"}, "output": "hull.py", "metadata": {"exit": 0},
                      "time": {"start": 1772359200000, "end": 1772359201000}}}  # fmt: skip
    text = {"id": "p-1", "sessionID": "ses_boat", "messageID": "msg_1", "type": "text", "text": _TASK}
    return {
        "storage/session/boat/ses_boat.json": document(
            {"id": "ses_boat", "version": "1.3.17", "projectID": "boat", "directory": "/boat", "title": "Boat",
             "time": {"created": 1772359200000, "updated": 1772359209000}}),
        "storage/message/ses_boat/msg_1.json": document(
            {"id": "msg_1", "sessionID": "ses_boat", "role": "user", "time": {"created": 1772359200000}}),
        "storage/message/ses_boat/msg_2.json": document(
            {"id": "msg_2", "sessionID": "ses_boat", "role": "assistant", "time": {"created": 1772359200000},
             "modelID": "m-1", "tokens": {"input": 9, "output": 3}}),
        "storage/part/msg_1/p-1.json": document(text),
        "storage/part/msg_2/p-2.json": document(tool),
    }  # fmt: skip


def pydantic_ai():
    """Requests and responses of parts."""
    call = {"tool_name": "look", "args": '{"at": "hull"}', "tool_call_id": "k-1", "part_kind": "tool-call"}
    back = {
        "tool_name": "look",
        "content": {"wet": 1},
        "tool_call_id": "k-1",
        "part_kind": "tool-return",
        "timestamp": at(3),
    }
    return {"messages.json": document([
        {"parts": [{"content": "You build boats.", "part_kind": "system-prompt", "timestamp": at(1)},
                   {"content": _TASK, "part_kind": "user-prompt", "timestamp": at(1)}], "kind": "request"},
        {"parts": [{"content": "Look.", "signature": "c2ln", "part_kind": "thinking"}, call], "kind": "response",
         "usage": {"input_tokens": 9, "output_tokens": 3}, "model_name": "m-1", "timestamp": at(2)},
        {"parts": [back], "kind": "request"},
        {"parts": [{"content": "It floats.", "part_kind": "text"}], "kind": "response", "model_name": "m-1"},
    ])}  # fmt: skip


def openai_agents():
    """Spans of a trace."""
    call = {"arguments": '{"at": "hull"}', "call_id": "k-1", "name": "look", "type": "function_call", "id": "f-1"}

    def span(number, **said):
        return {"ev": "span_end", "data": {
            "object": "trace.span", "id": f"span_{number}", "trace_id": "trace_1", "parent_id": None, "error": None,
            "started_at": at(number), "ended_at": at(number + 1), "span_data": said}}  # fmt: skip

    return {"trace.jsonl": lines(
        {"ev": "trace_start", "data": {"object": "trace", "id": "trace_1", "workflow_name": "Agent workflow"}},
        span(1, type="generation", input=[{"role": "user", "content": _TASK}], output=[call], model="m-1", usage=None),
        span(2, type="function", name="look", input='{"at": "hull"}', output="wet"),
        span(3, type="agent", name="builder", handoffs=[], tools=["look"], output_type="str"),
        {"ev": "trace_end", "data": {"object": "trace", "id": "trace_1", "workflow_name": "Agent workflow"}},
    )}  # fmt: skip


def reflexion():
    """Tasks with what was learnt on the way."""
    row = {"task_id": "Boat/0", "prompt": "def float():\n", "entry_point": "float", "canonical_solution": "",
           "test": "", "solution": "pass", "is_solved": True, "reflections": ["It was wet."],
           "implementations": ["x"]}  # fmt: skip
    return {"rows.jsonl": lines(row, {**row, "task_id": "Boat/1", "is_solved": False})}


def toolbench():
    """A tree of thoughts, actions and inputs."""

    def node(kind, text, *children, **more):
        return {"is_terminal": False, "pruned": False, "finished": False, "depth": 1, "node_type": kind,
                "description": text, "Elo": 1000.0, "child_count": len(children), "children": list(children),
                **more}  # fmt: skip

    seen = node("Action Input", '{"at": "hull"}', node("Thought", "It is wet."), observation="wet", observation_code=0)
    tree = node("Action Input", "", node("Action", "look", seen), io_state={})
    told = {"valid_data": True, "query": _TASK, "function": [], "train_messages": [], "final_answer": "floats"}
    return {"0_DFS.json": document({
        "win": True, "tree": {"size": 4, "max_length": 4, "tree": tree}, "forward_args": {}, "compare_candidates": [],
        "answer_generation": told,
    })}  # fmt: skip


def tau_few_shot():
    """Chats as texts."""
    said = f"user: {_TASK}\nassistant: None\ntool: Error: wet\nassistant: It floats.\nIt does.\nuser: ###STOP###"
    return {"few_shot.jsonl": lines({"messages_display": said}, {"messages_display": said + "!"})}


def seed_sharegpt():
    """Seed 001's lines."""
    turns = [
        {"from": "human", "value": _TASK},
        {"from": "gpt", "value": "<think>Look first.</think>"},
        {"from": "function_call", "value": {"name": "look", "arguments": {"at": "hull"}, "call_id": "k-1"}},
        {"from": "observation", "value": "wet", "call_id": "k-1", "is_error": False},
        {"from": "gpt", "value": "It floats."},
    ]
    return {"traces.jsonl": lines(
        {"trace_id": "t-1", "timestamp": 1772359200, "model": "m-1", "tools": [], "conversations": turns}
    )}  # fmt: skip


def pack():
    """Our own."""
    return {"boat.pack": lines(
        {"trackway_pack": 1, "episode": SESSION, "schema": 1},
        {"kind": "episode_start", "writer": "w", "at": "2026-03-01T10:00:00.000000000Z", "header": {"task": _TASK}},
        {"trackway_pack_end": 1, "events": 1, "blobs": 0, "missing": 0, "hash": "blake3:00"},
    )}  # fmt: skip


ALL = (
    copilot, cursor, droid, kimi, qwen, grok, hermes, openclaw, antigravity, opencode, pydantic_ai, openai_agents,
    reflexion, toolbench, tau_few_shot, seed_sharegpt, pack,
)  # fmt: skip
