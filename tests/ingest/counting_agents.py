"""What other agents' clients and kits leave behind, counted for `counting`: no code of trackway."""

import json

from tests.ingest.tally import blocks_of, lines_of, text_of


def copilot(path, tally):
    """Requests in messages, and the start and end of what was done; a start without a request is one."""
    session = None
    for event in lines_of(path):
        kind, said = event.get("type"), event.get("data") or {}
        session = said.get("sessionId", session) if kind == "session.start" else session
        tally.episode(session)
        for call_id in [each["toolCallId"] for each in said.get("toolRequests") or ()]:
            if not tally.waiting[session, None, call_id]:
                tally.call(session, call_id)
        if kind == "tool.execution_start" and not tally.waiting[session, None, said["toolCallId"]]:
            tally.call(session, said["toolCallId"])
        if kind == "tool.execution_complete":
            tally.result(session, said["toolCallId"])
        if kind == "user.message":
            tally.turn(session)


def cursor(path, tally):
    """Messages of blocks; calls have no ids, so results answer in order."""
    for entry in lines_of(path):
        tally.episode(0)
        for block in blocks_of(entry.get("message")):
            kind = block.get("type", "").replace("-", "_")
            if kind in ("tool_use", "tool_call"):
                tally.call(0, None, why="the client keeps no results")
            if kind == "tool_result":
                tally.result(0, None)
            if entry.get("role") == "user" and kind == "text":
                tally.turn(0)


def droid(path, tally):
    """A session's store has messages of blocks; a stream has a line for each thing."""
    session = None
    for entry in lines_of(path):
        kind = entry.get("type")
        session = (
            entry.get("session_id") or entry.get("sessionId") or (entry["id"] if kind == "session_start" else session)
        )
        tally.episode(session)
        if kind == "tool_call":
            tally.call(session, entry.get("toolCallId") or entry["id"])
        if kind == "tool_result":
            tally.result(session, entry.get("toolCallId") or entry["id"])
        _droid_message(entry, session, tally)


def _droid_message(entry, session, tally):
    message = entry.get("message") if isinstance(entry.get("message"), dict) else {}
    for block in blocks_of(message):
        if block.get("type") == "tool_use":
            tally.call(session, block["id"])
        if block.get("type") == "tool_result":
            tally.result(session, block["tool_use_id"])
    texts = [each for each in blocks_of(message) if each.get("type") == "text"] or entry.get("text")
    if entry.get("type") == "message" and texts and "user" in (message.get("role"), entry.get("role")):
        tally.turn(session)


def kimi(path, tally):
    """Events of the loop inside a line each; what is put before the model says who it is from."""
    for entry in lines_of(path):
        tally.episode(0)
        event = entry.get("event") or {}
        if event.get("type") == "tool.call":
            tally.call(0, event["toolCallId"])
        if event.get("type") == "tool.result":
            tally.result(0, event["toolCallId"])
        message = entry.get("message") or {}
        if entry.get("type") == "context.append_message" and message.get("role") == "user":
            (tally.turn if (message.get("origin") or {}).get("kind") == "user" else tally.given)(0)


def qwen(path, tally):
    """Messages of parts."""
    for entry in lines_of(path):
        session = entry["sessionId"]
        tally.episode(session)
        for part in (entry.get("message") or {}).get("parts") or ():
            if "functionCall" in part:
                tally.call(session, part["functionCall"].get("id"))
            if "functionResponse" in part:
                tally.result(session, part["functionResponse"].get("id"))
        if entry.get("type") == "user":
            (tally.given if entry.get("subtype") == "notification" else tally.turn)(session)


def grok(path, tally):
    """A line a message; what the provider searched for itself has no result."""
    for entry in lines_of(path):
        tally.episode(0)
        for call in entry.get("tool_calls") or ():
            tally.call(0, call["id"])
        if entry.get("type") == "backend_tool_call":
            tally.call(0, entry["kind"]["id"], why="the provider searched by itself")
        if entry.get("type") == "tool_result":
            tally.result(0, entry["tool_call_id"])
        if entry.get("type") == "user":
            (tally.given if entry.get("synthetic_reason") else tally.turn)(0)


def hermes(path, tally):
    """A document with a conversation."""
    for message in json.loads(text_of(path))["messages"]:
        tally.episode(0)
        for call in message.get("tool_calls") or ():
            tally.call(0, call["id"])
        if message["role"] == "tool":
            tally.result(0, message.get("tool_call_id"))
        if message["role"] == "user":
            tally.turn(0)


def antigravity(path, tally):
    """Steps; a call is told by the planner, its result is the next step of the model that is no plan."""
    for step in lines_of(path):
        tally.episode(0)
        for _ in step.get("tool_calls") or ():
            tally.call(0, None)
        if step["source"] == "MODEL" and step["type"] != "PLANNER_RESPONSE":
            tally.result(0, None)
        if step["type"] == "USER_INPUT":
            tally.turn(0)


def opencode(path, tally):
    """A session, the messages in a folder of its name, the parts of each in another; a call has its result with it."""
    session = json.loads(text_of(path))["id"]
    tally.episode(session)
    storage = path.parents[2]
    for file in sorted((storage / "message" / session).glob("*.json")):
        message = json.loads(text_of(file))
        if message["role"] == "user":
            tally.turn(session)
        parts = [json.loads(text_of(each)) for each in sorted((storage / "part").rglob("*.json"))]
        for part in parts:
            owner = part.get("messageID", None)
            if owner == message["id"] and part["type"] == "tool":
                tally.call(session, part["callID"])
                if part["state"].get("output") is not None:
                    tally.result(session, part["callID"])


def codex_trace(path, tally):
    """Starts and ends of tools; the prompt is in what the model was sent first."""
    for event in lines_of(path):
        kind = event["payload"]["type"]
        tally.episode(0)
        if kind == "tool_call_started":
            tally.call(0, event["payload"]["tool_call_id"])
        if kind == "tool_call_ended":
            tally.result(0, event["payload"]["tool_call_id"])
        if kind == "codex_turn_started":
            tally.turn(0)


def openai_agents_items(path, tally):
    """A list of items."""
    for item in json.loads(text_of(path)):
        if item.get("role") == "user":
            tally.turn(0)
        if item.get("type") == "function_call":
            tally.call(0, item["call_id"])
        if item.get("type") == "function_call_output":
            tally.result(0, item["call_id"])


def openai_agents_trace(path, tally):
    """Spans: a generation holds the calls, a function what came of one, without its id; the prompt comes each time."""
    for line in lines_of(path):
        span = line["data"].get("span_data") or {}
        tally.given(0)
        for item in span.get("output") or () if span.get("type") == "generation" else ():
            if item.get("type") == "function_call":
                tally.call(0, None)
        if span.get("type") == "function":
            tally.result(0, None)


def pydantic_ai(path, tally):
    """Requests and responses of parts."""
    for message in json.loads(text_of(path)):
        for part in message["parts"]:
            kind = part["part_kind"]
            if kind == "tool-call":
                tally.call(0, part["tool_call_id"])
            if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
                tally.result(0, part["tool_call_id"])
            if kind == "user-prompt":
                tally.turn(0)


def reflexion(path, tally):
    """A task a row; no tools."""
    for row, _ in enumerate(lines_of(path)):
        tally.turn(row)


def toolbench(path, tally):
    """A tree: an action and, below it, its input with what was observed."""
    tally.turn(0)
    nodes = [json.loads(text_of(path))["tree"]["tree"]]
    while nodes:
        node = nodes.pop()
        nodes += node["children"]
        if node["node_type"] == "Action":
            tally.call(0, id(node))
            below = [each for each in node["children"] if each["node_type"] == "Action Input"]
            if below and below[0].get("observation") is not None:
                tally.result(0, id(node))
