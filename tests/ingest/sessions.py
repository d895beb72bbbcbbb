"""Invented sessions of a client, as its files have them: for tests of what becomes of files, whatever their format."""

import json
import uuid

AT = "2026-03-01T10:{:02d}:{:02d}.000Z"


def session_id(number=1):
    """The id of the session of that number."""
    return str(uuid.UUID(int=0x5E55_0000_0000_4000_8000_0000_0000_0000 + number))


def pi_lines(turns=3, number=1, said="look at page"):
    """A pi session: in each turn a prompt, a call of a tool, its result, an answer; one line each, with line ends."""
    lines = [{"type": "session", "version": 3, "id": session_id(number), "timestamp": AT.format(0, 0), "cwd": "/work"}]
    parent = None

    def add(name, minute, second, message):
        nonlocal parent
        entry = {"type": "message", "id": name, "parentId": parent, "timestamp": AT.format(minute, second)}
        lines.append({**entry, "message": message})
        parent = name

    for turn in range(turns):
        usage = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15}
        model = {"role": "assistant", "api": "x", "provider": "y", "model": "m-1", "usage": usage}
        call = {"type": "toolCall", "id": f"call{turn}", "name": "bash", "arguments": {"command": f"cat {turn}"}}
        text = [{"type": "text", "text": f"{said} {turn}"}]
        add(f"{turn:04x}a", turn % 60, 1, {"role": "user", "content": text})
        add(f"{turn:04x}b", turn % 60, 2, {**model, "stopReason": "toolUse", "content": [call]})
        result = {"role": "toolResult", "toolCallId": f"call{turn}", "toolName": "bash", "isError": False}
        add(f"{turn:04x}c", turn % 60, 3, {**result, "content": [{"type": "text", "text": f"page {turn}"}]})
        answer = [{"type": "text", "text": f"it is page {turn}"}]
        add(f"{turn:04x}d", turn % 60, 4, {**model, "stopReason": "stop", "content": answer})
    return [json.dumps(each).encode() + b"\n" for each in lines]
