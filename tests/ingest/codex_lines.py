"""Rollouts of Codex as its tests write them: lines, and whole small sessions in each shape."""

from tests.ingest.agent_checks import lines, only, written
from trackway.ingest.formats.codex import SOURCE
from trackway.schema.events import AssistantText, AssistantThinking, User

THREAD = "01a1ddfa-efdf-7582-bf7d-9496766d869a"
OTHER = "01a1ddfa-0000-7582-bf7d-9496766d869a"


def when(second):
    """A time as Codex writes it."""
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000Z"


def line(second, kind, **payload):
    """A line of a rollout."""
    return {"timestamp": when(second), "type": kind, "payload": payload}


def item(second, kind, **fields):
    """A response item."""
    return line(second, "response_item", type=kind, **fields)


def event(second, kind, **fields):
    """An event."""
    return line(second, "event_msg", type=kind, **fields)


def done(second, kind, **fields):
    """A completed item, as a paginated rollout has it."""
    return event(second, "item_completed", thread_id=THREAD, turn_id="t", item={"type": kind, **fields})


def said(second, role, *texts, **fields):
    """A message."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, "message", role=role, content=[{"type": kind, "text": each} for each in texts], **fields)


def meta(second=0, **fields):
    """The first line."""
    base = {"id": THREAD, "timestamp": when(second), "cwd": "/boat", "originator": "codex_cli_rs"}
    return line(second, "session_meta", **{**base, "cli_version": "0.126.0", "source": "cli", **fields})


ENVIRONMENT = "<environment_context>\n  <cwd>/boat</cwd>\n</environment_context>"
COMMAND = {"process_id": "7", "turn_id": "t", "command": ["bash", "-lc", "ls"], "cwd": "/boat", "status": "completed"}


def legacy():
    """A session of an older client: most texts stand in it twice."""
    return [
        meta(base_instructions={"text": "You build boats."}, git={"branch": "main", "commit_hash": "abc"}),
        event(1, "task_started", turn_id="t"),
        said(1, "developer", "Be brief.", "Ask first."),
        said(1, "user", "# AGENTS.md instructions for /boat\n\n<INSTRUCTIONS>\nfloat\n</INSTRUCTIONS>", ENVIRONMENT),
        line(1, "turn_context", turn_id="t", cwd="/boat", model="m-1", effort="high"),
        said(2, "user", "Make the boat float"),
        event(2, "user_message", message="Make the boat float", images=[], local_images=[], text_elements=[]),
        event(3, "agent_reasoning", text="**Look**"),
        item(3, "reasoning", summary=[{"type": "summary_text", "text": "**Look**"}], encrypted_content="x"),
        event(4, "agent_message", message="I look.", phase="commentary", memory_citation=None),
        said(4, "assistant", "I look.", phase="commentary"),
        item(5, "function_call", name="exec_command", arguments='{"cmd" :"ls"}', call_id="c-1"),
        item(5, "function_call", name="exec_command", arguments='{"cmd":"false"}', call_id="c-2"),
        event(6, "exec_command_end", call_id="c-1", aggregated_output="hull\n", stdout="", stderr="", exit_code=0,
              duration={"secs": 1, "nanos": 500_000_000}, **COMMAND),
        item(6, "function_call_output", call_id="c-1",
             output="Chunk ID: 1\nWall time: 1.5 seconds\nProcess exited with code 0\nOutput:\nhull\n"),
        item(7, "function_call_output", call_id="c-2",
             output="Chunk ID: 2\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n"),
        event(8, "exec_command_end", call_id="c-2", aggregated_output="", exit_code=1, **COMMAND),
        event(9, "agent_message", message="It floats.", phase="final_answer"),
        said(9, "assistant", "It floats.", phase="final_answer"),
        event(10, "task_complete", turn_id="t", last_agent_message="It floats.", duration_ms=9000),
    ]  # fmt: skip


def paginated():
    """The same session after its client had migrated it."""
    found = [{**each, **_completed(each["payload"]), "ordinal": i} for i, each in enumerate(legacy())]
    found[0]["payload"] = {**found[0]["payload"], "session_id": THREAD, "history_mode": "paginated"}
    return found


def _completed(payload):
    """An event as it is in a paginated rollout."""
    kind = payload.get("type")
    if kind == "user_message":
        made = done(0, "UserMessage", id="item-1", content=[{"type": "text", "text": payload["message"]}])
    elif kind == "agent_message":
        made = done(0, "AgentMessage", id="item-2", content=[{"type": "Text", "text": payload["message"]}])
    elif kind == "agent_reasoning":
        made = done(0, "Reasoning", id="item-3", summary_text=[payload["text"]], raw_content=[])
    elif kind == "exec_command_end":
        fields = {name: value for name, value in payload.items() if name not in ("type", "call_id", "turn_id")}
        made = done(0, "CommandExecution", id=payload["call_id"], **fields)
    else:
        return {}
    return {"payload": made["payload"]}


def events_of(tmp_path, *entries):
    """The events of a rollout of these lines."""
    return only(SOURCE, written(tmp_path, lines(*entries)))


def texts(events):
    """Who said what."""
    kinds = (User, AssistantText, AssistantThinking)
    return [(each.kind, each.content) for each in events if isinstance(each, kinds)]


def bare():
    """A rollout of mid-2025: items without an envelope."""
    return [
        {"id": THREAD, "timestamp": when(0), "instructions": "be brief", "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ENVIRONMENT}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "float"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"","metadata":{"exit_code":0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "float"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    ]
