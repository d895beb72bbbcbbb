"""One small, complete file of each format, invented: what mutations start from, and what benchmarks repeat.

``SAMPLES`` maps a name to the files of a sample by their path, the one that is read first; all sessions are about a
small boat, and none of it was ever said by anybody.
"""

import zstandard

from tests.ingest import samples_agents, samples_scored
from tests.ingest.writing import SESSION, at, document, lines

# --- Claude Code, Codex -----------------------------------------------------------------------------------------------


def _claude(number, kind, session=SESSION, **fields):
    parent = f"u-{number - 1}" if number > 1 else None
    base = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/boat", "sessionId": session}
    return {**base, "version": "2.1.42", "gitBranch": "main", "type": kind, "uuid": f"u-{number}",
            "timestamp": at(number), **fields}  # fmt: skip


def _claude_says(number, call, *blocks, **fields):
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 40}
    message = {"id": call, "type": "message", "role": "assistant", "model": "m-1", "content": list(blocks),
               "stop_reason": "tool_use", "usage": usage}  # fmt: skip
    return _claude(number, "assistant", message=message, requestId=f"req-{call}", **fields)


def _claude_result(number, call, said, returned, **fields):
    block = {"type": "tool_result", "tool_use_id": call, "content": said, **fields}
    return _claude(number, "user", message={"role": "user", "content": [block]}, toolUseResult=returned)


def _use(call, name, **args):
    return {"type": "tool_use", "id": call, "name": name, "input": args}


def claude_code():
    """Parallel calls, an edit, an error, a compaction, an attachment, a snapshot, a title; a sub-agent beside it."""
    edit = {"filePath": "/boat/hull.py", "oldString": "wet", "newString": "dry", "originalFile": "wet = 1\n",
            "structuredPatch": [], "userModified": False, "replaceAll": False}  # fmt: skip
    main = lines(
        {"type": "file-history-snapshot", "messageId": "u-1", "snapshot": {"trackedFileBackups": {}}},
        _claude(1, "user", message={"role": "user", "content": "Make the boat float"}),
        _claude_says(2, "msg-1", {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}),
        _claude_says(3, "msg-1", {"type": "text", "text": "I look at the hull."}),
        _claude_says(4, "msg-1", _use("t-1", "Read", file_path="/boat/hull.py")),
        _claude_says(5, "msg-1", _use("t-2", "Bash", command="ls -l — ß 会")),
        _claude_result(6, "t-1", "1\twet = 1", {"type": "text", "file": {"filePath": "/boat/hull.py"}}),
        _claude_result(7, "t-2", "Exit code 2\nno", "Error: Exit code 2", is_error=True),
        _claude_says(8, "msg-2", _use("t-3", "Edit", file_path="/boat/hull.py", old_string="wet", new_string="dry")),
        _claude_result(9, "t-3", "The file was updated.", edit),
        _claude(10, "attachment", attachment={"type": "edited_text_file", "filename": "/boat/a", "snippet": "x"}),
        _claude(11, "system", subtype="compact_boundary", logicalParentUuid="u-9", compactMetadata={"trigger": "auto"}),
        _claude(12, "user", isCompactSummary=True, message={"role": "user", "content": "It floats, mostly."}),
        _claude_says(13, "msg-3", {"type": "text", "text": "Done."}),
        {"type": "ai-title", "sessionId": SESSION, "aiTitle": "Floating"},
        {"type": "summary", "summary": "A boat that floats", "leafUuid": "u-13"},
    )
    side = lines(
        _claude(1, "user", agentId="a1", isSidechain=True, message={"role": "user", "content": "Count the planks"}),
        _claude_says(2, "msg-9", _use("t-9", "Bash", command="wc -l"), agentId="a1", isSidechain=True),
    )
    return {f"{SESSION}.jsonl": main, f"{SESSION}/subagents/agent-a1.jsonl": side}


def claude_pair(number):
    """A call and its result, both with the mark ``mark-NUMBER-``."""
    call, said = f"t-mark-{number}", f"mark-{number}-"
    return [
        _claude_says(number, f"msg-mark-{number}", _use(call, "Bash", command=said)) | {"uuid": f"call-{number}"},
        _claude_result(number, call, said, {"stdout": said}) | {"uuid": f"result-{number}"},
    ]


def _item(second, kind, **payload):
    return {"timestamp": at(second), "type": "response_item", "payload": {"type": kind, **payload}}


def _event(second, kind, **payload):
    return {"timestamp": at(second), "type": "event_msg", "payload": {"type": kind, **payload}}


def _codex_said(second, role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return _item(second, "message", role=role, content=[{"type": kind, "text": text}])


def _codex_meta(mode="legacy"):
    payload = {"id": SESSION, "timestamp": at(0), "cwd": "/boat", "originator": "codex_cli_rs",
               "cli_version": "0.126.0", "source": "cli", "model_provider": "openai", "history_mode": mode,
               "git": {"branch": "main"}, "base_instructions": {"text": "You build boats."}}  # fmt: skip
    return {"timestamp": at(0), "type": "session_meta", "payload": payload}


_PATCH = "*** Begin Patch\n*** Update File: hull.py\n@@\n-wet\n+dry\n*** End Patch"


def _codex_work():
    return [
        _item(3, "reasoning", summary=[{"type": "summary_text", "text": "Look first."}], encrypted_content="opaque"),
        _item(4, "function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c-1"),
        _item(5, "function_call_output", call_id="c-1", output="Process exited with code 0\nhull.py"),
        _item(6, "custom_tool_call", name="apply_patch", input=_PATCH, call_id="c-2", status="completed"),
        _item(
            7, "custom_tool_call_output", call_id="c-2", output='{"output": "Success", "metadata": {"exit_code": 0}}'
        ),
    ]


def codex_legacy():
    """Instructions, a prompt in both its places, a call, a patch, tokens, a compaction, an aborted turn."""
    usage = {"input_tokens": 900, "cached_input_tokens": 800, "output_tokens": 20, "total_tokens": 920}
    return {"rollout.jsonl": lines(
        _codex_meta(),
        _event(1, "task_started", turn_id="1"),
        _codex_said(1, "developer", "Be brief."),
        _codex_said(1, "user", "<environment_context>\n<cwd>/boat</cwd>\n</environment_context>"),
        {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": "/boat", "model": "m-1", "effort": "high"}},
        _codex_said(2, "user", "Make the boat float"),
        _event(2, "user_message", message="Make the boat float", images=[]),
        *_codex_work(),
        _event(7, "patch_apply_end", call_id="c-2", success=True, stdout="", stderr="",
               changes={"/boat/hull.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-wet\n+dry\n"}}),
        _event(8, "token_count", info={"total_token_usage": usage, "last_token_usage": usage}),
        _codex_said(9, "assistant", "It floats."),
        _event(9, "agent_message", message="It floats."),
        {"timestamp": at(10), "type": "compacted", "payload": {"message": "It floats.", "replacement_history": []}},
        _event(11, "turn_aborted", reason="interrupted"),
    )}  # fmt: skip


def codex_paginated():
    """The same in the other mode, compressed: items completed instead of messages repeated."""
    done = {"type": "CommandExecution", "id": "c-1", "command": ["ls"], "cwd": "/boat", "aggregated_output": "hull.py",
            "exit_code": 0, "duration": {"secs": 0, "nanos": 5}}  # fmt: skip
    text = lines(
        _codex_meta("paginated"),
        _codex_said(2, "user", "Make the boat float"),
        _event(2, "item_completed", item={"type": "UserMessage", "id": "i-1", "content": [{"type": "text"}]}),
        *_codex_work(),
        _event(5, "item_completed", item=done),
        {"timestamp": at(8), "type": "token_usage_record", "payload": {"input_tokens": 9, "output_tokens": 2}},
        _codex_said(9, "assistant", "It floats."),
    )
    return {"rollout.jsonl.zst": zstandard.ZstdCompressor().compress(text)}


def codex_pair(number):
    """A call and its result, both with the mark ``mark-NUMBER-``."""
    call, said = f"c-mark-{number}", f"mark-{number}-"
    return [
        _item(5, "function_call", name="exec_command", arguments=f'{{"cmd": "{said}"}}', call_id=call),
        _item(5, "function_call_output", call_id=call, output=said),
    ]


# --- Gemini CLI, pi ---------------------------------------------------------------------------------------------------


def _gemini_messages():
    call = {"id": "g-1", "name": "read_file", "args": {"path": "hull.py"}, "status": "success", "timestamp": at(3),
            "result": [{"functionResponse": {"id": "g-1", "name": "read_file", "response": {"output": "wet"}}}],
            "resultDisplay": "wet"}  # fmt: skip
    tokens = {"input": 900, "output": 10, "cached": 800, "thoughts": 3, "tool": 0, "total": 913}
    return [
        {"id": "m-1", "timestamp": at(1), "type": "user", "content": [{"text": "Make the boat float"}]},
        {"id": "m-2", "timestamp": at(2), "type": "gemini", "content": "I look.", "tokens": tokens, "model": "m-1",
         "thoughts": [{"subject": "Look", "description": "Look first.", "timestamp": at(2)}], "toolCalls": [call]},
        {"id": "m-3", "timestamp": at(4), "type": "info", "content": "Request cancelled."},
        {"id": "m-4", "timestamp": at(5), "type": "gemini", "content": "It floats.", "tokens": tokens, "model": "m-1"},
    ]  # fmt: skip


_GEMINI = {"sessionId": SESSION, "projectHash": "ab" * 32, "startTime": at(0), "lastUpdated": at(9)}


def gemini_json():
    """A session as one document."""
    return {"session-1.json": document({**_GEMINI, "messages": _gemini_messages()}, indent=2)}


def gemini_jsonl():
    """A session as a log: a message said twice, a patch of the metadata, a rewind, a list set anew."""
    first, second, *others = _gemini_messages()
    again = {**second, "content": "I look closely."}
    return {"session-1.jsonl": lines(
        {**_GEMINI, "kind": "main"}, first, second, again, {"$set": {"lastUpdated": at(6)}}, *others,
        {"$rewindTo": "m-4"}, {**others[-1], "id": "m-5"}, {"$set": {"messages": [first, again]}},
    )}  # fmt: skip


def pi():
    """A tree with a branch, a call, a compaction and a change of model."""
    usage = {"input": 5, "output": 7, "cacheRead": 90, "cacheWrite": 8, "totalTokens": 110, "cost": {"total": 0.01}}
    said = {"role": "assistant", "provider": "p", "model": "m-1", "usage": usage, "api": "x"}
    call = {"type": "toolCall", "id": "p-1", "name": "bash", "arguments": {"command": "ls"}}
    text = {"type": "text", "text": "It floats."}

    def entry(own, parent, kind, **fields):
        return {"type": kind, "id": own, "parentId": parent, "timestamp": at(int(own[1:])), **fields}

    def message(own, parent, **fields):
        return entry(own, parent, "message", message=fields)

    return {"session.jsonl": lines(
        {"type": "session", "version": 3, "id": SESSION, "timestamp": at(0), "cwd": "/boat"},
        entry("e1", None, "model_change", provider="p", modelId="m-1"),
        message("e2", "e1", role="user", content=[{"type": "text", "text": "Make the boat float"}]),
        message("e3", "e2", **said, content=[{"type": "thinking", "thinking": "Look."}, call], stopReason="toolUse"),
        message("e4", "e3", role="toolResult", toolCallId="p-1", toolName="bash", content=[text], isError=False),
        message("e5", "e4", **said, content=[text], stopReason="stop"),
        entry("e6", "e5", "compaction", summary="It floats.", firstKeptEntryId="e2", tokensBefore=100),
        message("e7", "e2", role="user", content="Another way"),
    )}  # fmt: skip


def pi_pair(number):
    """A call and its result, both with the mark ``mark-NUMBER-``."""
    call, said = f"p-mark-{number}", f"mark-{number}-"
    use = {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": said}}
    asked = {"role": "assistant", "provider": "p", "model": "m-1", "content": [use], "stopReason": "toolUse"}
    back = {"role": "toolResult", "toolCallId": call, "toolName": "bash", "isError": False,
            "content": [{"type": "text", "text": said}]}  # fmt: skip
    return [
        {"type": "message", "id": f"a-{number}", "parentId": "e2", "timestamp": at(20), "message": asked},
        {"type": "message", "id": f"b-{number}", "parentId": f"a-{number}", "timestamp": at(21), "message": back},
    ]


def codex_trace():
    """A bundle: a manifest, events in order, and their payloads beside them."""
    return {
        "trace-1/trace.jsonl": lines(
            {"schema_version": 2, "seq": 1, "wall_time_unix_ms": 1772359200000, "rollout_id": SESSION,
             "thread_id": SESSION, "codex_turn_id": None,
             "payload": {"type": "rollout_started", "trace_id": "t-1", "root_thread_id": SESSION}},
            {"schema_version": 2, "seq": 2, "wall_time_unix_ms": 1772359201000, "rollout_id": SESSION,
             "thread_id": SESSION, "codex_turn_id": "1", "payload": {"type": "something_new"}},
        ),
        "trace-1/manifest.json": document({
            "schema_version": 2, "trace_id": "t-1", "rollout_id": SESSION, "root_thread_id": SESSION,
            "started_at_unix_ms": 1772359200000, "raw_event_log": "trace.jsonl", "payloads_dir": "payloads",
        }),
        "trace-1/payloads/1.json": document({"input": [], "tools": []}),
    }  # fmt: skip


SAMPLES = {
    each.__name__: each()
    for each in (
        claude_code, codex_legacy, codex_paginated, codex_trace, gemini_json, gemini_jsonl, pi,
        *samples_scored.ALL, *samples_agents.ALL,
    )
}  # fmt: skip
