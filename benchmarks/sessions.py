"""Large files of the formats that are imported, written step by step: text of the workload, ids of their own.

A step is a thought, a sentence, a call and its result of 3 KB; a person says something every 20 steps. So a line of
Claude Code is of 2 KB, as in real files. The same size gives the same bytes.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.workload import Step, step

_KINDS = 500  # different steps; after them texts repeat, and ids do not
_TURN = 20
_TOOL = "search"
_SESSION = "0b0a7000-0000-4000-8000-0000000000b1"


class Shape(NamedTuple):
    """How a file is put together: what stands before, between and after what ``items`` gives for each step."""

    items: Callable[[int, Step], list[Any]]
    before: bytes = b""
    between: bytes = b"\n"
    after: bytes = b"\n"
    ending: str = "jsonl"


@cache
def _kinds() -> list[Step]:
    made = [step(0, i) for i in range(_KINDS)]
    return [{**each, "result": "\n".join([each["result"]] * 6)} for each in made]


def write(path: Path, name: str, size: int, session: str = _SESSION) -> Path:
    """A file of that format and at least that size, of that session."""
    shape = SHAPES[name]
    path = path / f"{name}-{size}-{session}.{shape.ending}"
    with path.open("wb") as file:
        file.write(shape.before)
        separator = b""
        for piece in _pieces(shape):
            file.write(separator + piece.replace(_SESSION.encode(), session.encode()))
            separator = shape.between
            if file.tell() >= size:
                break
        file.write(shape.after)
    return path


def _pieces(shape: Shape) -> Iterator[bytes]:
    kinds, i = _kinds(), 0
    while True:
        for each in shape.items(i, kinds[i % _KINDS]):
            yield json.dumps(each).encode()
        i += 1


def _at(i: int) -> str:
    return f"2026-03-{1 + i // 86400 % 28:02}T{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.000Z"


def _says(i: int) -> bool:
    return i % _TURN == 0


def _head(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


# --- logs of clients --------------------------------------------------------------------------------------------------


def _claude_code(i: int, each: Step) -> list[Any]:
    def entry(part: int, kind: str, **fields: Any) -> dict[str, Any]:
        before = (i, part - 1) if part else (i - 1, 4)
        base = {"parentUuid": _uuid(*before) if i or part else None, "isSidechain": False, "cwd": "/boat"}
        rest = {"sessionId": _SESSION, "version": "2.1.42", "gitBranch": "main", "timestamp": _at(i)}
        return {**base, **rest, "type": kind, "uuid": _uuid(i, part), **fields}

    usage = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 40}
    call = f"toolu_{i:08}"

    def says(part: int, block: dict[str, Any]) -> dict[str, Any]:
        message = {"id": f"msg_{i:08}", "role": "assistant", "model": "m-1", "content": [block], "usage": usage}
        return entry(part, "assistant", message=message, requestId=f"req_{i:08}")

    result = {"type": "tool_result", "tool_use_id": call, "content": each["result"]}
    return [
        *([entry(0, "user", message={"role": "user", "content": each["user"]})] if _says(i) else []),
        says(1, {"type": "thinking", "thinking": each["think"], "signature": f"sig_{i:08}"}),
        says(2, {"type": "text", "text": each["out"]}),
        says(3, {"type": "tool_use", "id": call, "name": _TOOL, "input": each["args"]}),
        entry(4, "user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": each["result"]}),
    ]


def _uuid(i: int, part: int) -> str:
    return f"0b0a7000-0000-4000-8{part:03}-{i:012}"


def _codex(i: int, each: Step) -> list[Any]:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": _at(i), "type": kind, "payload": payload}

    usage = {"input_tokens": 1005, "cached_input_tokens": 900, "output_tokens": 40, "total_tokens": 1045}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": each["user"]}]}
    person = [line("response_item", **said), line("event_msg", type="user_message", message=each["user"])]
    args = json.dumps(each["args"])
    return [
        *(person if _says(i) else []),
        line("response_item", type="reasoning", summary=[], encrypted_content=f"sig_{i:08}{each['think']}"),
        line("response_item", type="function_call", name=_TOOL, arguments=args, call_id=f"call_{i}"),
        line("response_item", type="function_call_output", call_id=f"call_{i}", output=each["result"]),
        line("event_msg", type="token_count", info={"last_token_usage": usage, "total_token_usage": usage}),
        line("event_msg", type="agent_message", message=each["out"]),
        line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": each["out"]}]),
    ]


def _pi(i: int, each: Step) -> list[Any]:
    usage = {
        "input": 5,
        "output": 40,
        "cacheRead": 900,
        "cacheWrite": 100,
        "totalTokens": 1045,
        "cost": {"total": 0.01},
    }
    call = {"type": "toolCall", "id": f"call_{i}", "name": _TOOL, "arguments": each["args"]}
    think = {"type": "thinking", "thinking": each["think"], "thinkingSignature": f"sig_{i:08}"}
    text = {"type": "text", "text": each["out"]}

    def entry(part: int, **message: Any) -> dict[str, Any]:
        parent = f"{i:07}{part - 1}" if part else f"{i - 1:07}2"
        return {"type": "message", "id": f"{i:07}{part}", "parentId": parent, "timestamp": _at(i), "message": message}

    asked = {"role": "assistant", "provider": "p", "model": "m-1", "usage": usage, "stopReason": "toolUse"}
    back = {"role": "toolResult", "toolCallId": f"call_{i}", "toolName": _TOOL, "isError": False}
    return [
        *([entry(0, role="user", content=[{"type": "text", "text": each["user"]}])] if _says(i) else []),
        entry(1, **asked, content=[think, text, call]),
        entry(2, **back, content=[{"type": "text", "text": each["result"]}]),
    ]


def _gemini_cli(i: int, each: Step) -> list[Any]:
    response = {"functionResponse": {"id": f"call_{i}", "name": _TOOL, "response": {"output": each["result"]}}}
    call = {"id": f"call_{i}", "name": _TOOL, "args": each["args"], "status": "success", "result": [response]}
    person = {"id": f"u-{i}", "timestamp": _at(i), "type": "user", "content": [{"text": each["user"]}]}
    said = {"id": f"g-{i}", "timestamp": _at(i), "type": "gemini", "content": each["out"], "model": "m-1"}
    tokens = {"input": 1005, "output": 40, "cached": 900, "thoughts": 9, "tool": 0, "total": 1045}
    thoughts = [{"subject": "Look", "description": each["think"], "timestamp": _at(i)}]
    return [*([person] if _says(i) else []), {**said, "thoughts": thoughts, "tokens": tokens, "toolCalls": [call]}]


# --- evaluations and datasets -----------------------------------------------------------------------------------------


def _openhands_v0(i: int, each: Step) -> list[Any]:
    base = {"timestamp": _at(i), "source": "agent"}
    told = {"function_name": "execute_bash", "tool_call_id": f"call_{i}", "total_calls_in_response": 1,
            "model_response": {"id": f"r-{i}", "model": "m-1", "usage": {"prompt_tokens": 9}}}  # fmt: skip
    args = {"command": each["args"]["query"], "thought": each["think"]}
    person = {"id": 3 * i, **base, "source": "user", "action": "message", "args": {"content": each["user"]}}
    return [
        *([person] if _says(i) else []),
        {"id": 3 * i + 1, **base, "message": each["out"], "action": "run", "args": args, "tool_call_metadata": told},
        {"id": 3 * i + 2, **base, "cause": 3 * i + 1, "observation": "run", "content": each["result"],
         "extras": {"metadata": {"exit_code": 0}}, "tool_call_metadata": told},
    ]  # fmt: skip


def _atif(i: int, each: Step) -> list[Any]:
    call = {"tool_call_id": f"call_{i}", "function_name": _TOOL, "arguments": each["args"]}
    metrics = {"prompt_tokens": 1005, "completion_tokens": 40, "cached_tokens": 900}
    return [
        {"step_id": 2 * i + 1, "timestamp": _at(i), "source": "user", "message": each["user"][:50]},
        {"step_id": 2 * i + 2, "timestamp": _at(i), "source": "agent", "model_name": "m-1", "message": each["out"],
         "reasoning_content": each["think"], "tool_calls": [call], "metrics": metrics,
         "observation": {"results": [{"source_call_id": f"call_{i}", "content": each["result"]}]}},
    ]  # fmt: skip


def _mini_swe_agent(i: int, each: Step) -> list[Any]:
    block = f"THOUGHT: {each['think']}\n\n```bash\n{each['args']['query']}\n```"
    answer = {"model": "m-1", "usage": {"prompt_tokens": 1005, "completion_tokens": 40, "total_tokens": 1045}}
    first = [{"role": "system", "content": "You build boats."}, {"role": "user", "content": each["user"]}]
    return [
        *(first if i == 0 else []),
        {"role": "assistant", "content": block, "extra": {"response": answer}},
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{each['result']}\n</output>"},
    ]


def _swe_agent(i: int, each: Step) -> list[Any]:
    return [{"action": each["args"]["query"], "observation": each["result"], "thought": each["think"],
             "response": each["out"], "execution_time": 0.1, "state": {"working_dir": "/boat"}}]  # fmt: skip


def _chat(i: int, each: Step) -> list[Any]:
    call = {"id": f"call_{i}", "type": "function", "function": {"name": _TOOL, "arguments": json.dumps(each["args"])}}
    return [
        {"role": "user", "content": each["user"]},
        {"role": "assistant", "content": each["think"], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{i}", "name": _TOOL, "content": each["result"]},
        {"role": "assistant", "content": each["out"]},
    ]


def _tau_bench(i: int, each: Step) -> list[Any]:
    return [
        {"task_id": i // 4, "trial": i % 4, "reward": float(i % 2), "info": {"user_cost": 0.1}, "traj": _chat(i, each)}
    ]


def _openai_chat(i: int, each: Step) -> list[Any]:
    return [{"messages": _chat(i, each)}]


def _sharegpt(i: int, each: Step) -> list[Any]:
    call = json.dumps({"name": _TOOL, "arguments": each["args"]})
    turns = [("human", each["user"]), ("function_call", call), ("observation", each["result"]), ("gpt", each["out"])]
    return [{"conversations": [{"from": who, "value": said} for who, said in turns], "tools": "[]"}]


SHAPES = {
    "claude_code": Shape(_claude_code),
    "codex": Shape(_codex, _head(timestamp=_at(0), type="session_meta", payload={"id": _SESSION, "cwd": "/boat"})),
    "gemini_cli": Shape(_gemini_cli, _head(sessionId=_SESSION, projectHash="ab" * 32, startTime=_at(0))),
    "pi": Shape(_pi, _head(type="session", version=3, id=_SESSION, timestamp=_at(0), cwd="/boat")),
    "atif": Shape(
        _atif, b'{"schema_version": "ATIF-v1.7", "session_id": "s-1", "agent": {"name": "a"}, "steps": [', b",",
        b"]}", "json",
    ),
    "mini_swe_agent": Shape(
        _mini_swe_agent, b'{"messages": [', b",",
        b'], "info": {"exit_status": "Submitted"}, "trajectory_format": "mini-swe-agent-1"}', "traj.json",
    ),
    "swe_agent": Shape(
        _swe_agent, b'{"environment": "boat", "trajectory": [', b",", b'], "history": [], "info": {}}', "traj"
    ),
    "openhands_v0": Shape(_openhands_v0, b"[", b",", b"]", "json"),
    "tau_bench": Shape(_tau_bench, b"[", b",", b"]", "json"),
    "openai_chat": Shape(_openai_chat),
    "sharegpt": Shape(_sharegpt),
}  # fmt: skip
