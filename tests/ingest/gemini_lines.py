"""Sessions of Gemini CLI as its tests write them."""

import json

from tests.ingest.agent_checks import lines
from trackway.schema.events import AssistantText, AssistantThinking, User

SESSION = "3f0c2a6e-0d2b-4a57-9f5c-0d6f0a1b2c3d"
META = {"sessionId": SESSION, "projectHash": "ab" * 32, "startTime": "2026-03-01T10:00:00.000Z",
        "lastUpdated": "2026-03-01T10:09:00.000Z"}  # fmt: skip
TOKENS = {"input": 900, "output": 10, "cached": 800, "thoughts": 3, "tool": 0, "total": 913}


def at(second):
    """A time as Gemini CLI writes it."""
    return f"2026-03-01T10:00:{second:02}.000Z"


def message(named, kind, content, second=1, **fields):
    """A message."""
    return {"id": named, "timestamp": at(second), "type": kind, "content": content, **fields}


def call(named, name="read_file", result="wet", second=3, **fields):
    """A call of a tool, with what came of it."""
    answer = {"functionResponse": {"id": named, "name": name, "response": {"output": result}}}
    base = {"id": named, "name": name, "args": {"path": "hull"}, "status": "success", "timestamp": at(second)}
    return {**base, "result": None if result is None else [answer], "displayName": "Read", **fields}


def conversation():
    """Thoughts, calls at once, a note for people, an answer."""
    thought = {"subject": "Look", "description": "Look first.", "timestamp": at(1)}
    return [
        message("m-1", "user", [{"text": "Make the boat float"}]),
        message("m-2", "gemini", "I look.", 2, thoughts=[thought], tokens=TOKENS, model="g-1",
                toolCalls=[call("c-1"), call("c-2", result="dry")]),
        message("m-3", "info", "An update is there.", 4),
        message("m-4", "gemini", "It floats.", 5, thoughts=[], tokens=TOKENS, model="g-1"),
    ]  # fmt: skip


def document(*messages, indent=None, **more):
    """A session as one object."""
    return json.dumps({**META, "messages": list(messages), **more}, indent=indent).encode()


def log(*rest):
    """A session as lines."""
    return lines({**META, "kind": "main"}, *rest)


def said(events):
    """Who said what."""
    return [each.content for each in events if isinstance(each, (User, AssistantThinking, AssistantText))]


def changed(path, before, after, second, **fields):
    """A call that wrote a file, as it was shown to people."""
    shown = {"fileDiff": "…", "fileName": path.rsplit("/", 1)[-1], "originalContent": before, "newContent": after}
    return call(f"w-{second}", "write_file", "ok", second, args={"file_path": path}, resultDisplay={**shown, **fields})
