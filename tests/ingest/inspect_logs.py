"""Inspect's logs as its writers lay them out, with contents of our own: one document, a zip, a zip of chunks, zstd."""

import io
import json
import struct
import zipfile
import zlib

import zstandard

from tests.ingest.writing import at

EVAL = {
    "run_id": "run-1", "eval_id": "eval-1", "created": at(0), "task": "floating", "task_id": "t-1", "model": "mock/m-1",
    "solver": "react", "dataset": {"name": "boats"}, "config": {}, "model_generate_config": {"seed": 5},
}  # fmt: skip
LONG = "please " * 40
TOOLS = [{"name": "look", "description": "Look.", "parameters": {"type": "object"}}]
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 18, "input_tokens_cache_read": 3}


def message(own, role, content, **more):
    """A message."""
    return {"id": own, "role": role, "content": content, **more}


SYSTEM = message("m0", "system", "You build boats.")
PROMPT = message("m1", "user", "attachment://aa", source="input")
CALLS = [
    {"id": "c1", "function": "look", "arguments": {"at": "hull"}, "type": "function"},
    {"id": "c2", "function": "ask", "arguments": {}, "type": "function"},
]
BLOCKS = [{"type": "reasoning", "reasoning": "Hm.", "signature": "s=="}, {"type": "text", "text": "I look."}]
ANSWER = message("m2", "assistant", BLOCKS, tool_calls=CALLS, source="generate")
RESULTS = [
    message("m3", "tool", "wet", tool_call_id="c1", function="look"),
    message("m4", "tool", "asked", tool_call_id="c2", function="ask"),
]
NUDGE = message("m5", "user", "Go on.")
DONE = message("m6", "assistant", "It floats.", source="generate")
HELP = message("m7", "user", "Help them.")
HELPED = message("m8", "assistant", "I helped.", source="generate")
POOL = [SYSTEM, PROMPT, ANSWER, *RESULTS, NUDGE, HELP]


def event(kind, second, **fields):
    """An event."""
    return {"event": kind, "uuid": f"u-{kind}-{second}", "timestamp": at(second), "working_start": 1.0, **fields}


def begin(own, kind, name, second, parent=None):
    """A span begins."""
    return event("span_begin", second, span_id=own, id=own, type=kind, name=name, parent_id=parent)


def end(own, second):
    """A span ends."""
    return event("span_end", second, span_id=own, id=own)


def model(second, span, given, said, **more):
    """A model was called; what it was given is named by its place in the pool."""
    output = {"model": "m-1", "choices": [{"message": said, "stop_reason": "stop"}], "usage": USAGE, "time": 0.5}
    fields = {"model": "mock/m-1", "input": [], "tools": TOOLS, "tool_choice": "auto", "config": {"temperature": 0},
              "output": output, "working_time": 0.5, "span_id": span, "completed": at(second + 1)}  # fmt: skip
    return event("model", second, **{**fields, "input_refs": given, **more})


def tool(second, span, call, result, **more):
    """A tool was called."""
    return event("tool", second, type="function", span_id=span, id=call["id"], function=call["function"],
                 arguments=call["arguments"], result=result, working_time=0.25, completed=at(second + 1),
                 events=[], **more)  # fmt: skip


EVENTS = [
    event("sample_init", 1, sample={"input": "attachment://aa"}, state={}),
    begin("s1", "solver", "react", 2), begin("s2", "agent", "react", 2, "s1"),
    model(3, "s2", [[0, 2]], ANSWER, call={"request": {"model": "m-1", "messages": [{"role": "user"}]}}),
    begin("s3", "tool", "look", 4, "s2"), tool(5, "s2", CALLS[0], "wet", message_id="m3"),
    event("sandbox", 6, action="exec", cmd="ls", span_id="s3"), end("s3", 7),
    begin("s4", "tool", "ask", 8, "s2"), tool(9, "s2", CALLS[1], "asked", message_id="m4", agent="aide"),
    begin("s5", "agent", "aide", 10, "s4"), model(11, "s5", [[1, 2], [6, 7]], HELPED, tools=[]), end("s5", 12),
    end("s4", 13), event("compaction", 14, type="summary", span_id="s2"),
    event("score", 15, score={"value": 0.25}, intermediate=True, scorer="halfway", span_id="s2"),
    model(16, "s2", [[0, 6]], DONE, call={"request": {"model": "m-1", "messages": [{"role": "user"}, {"role": "tool"}]},
                                          "response": {"a": 1}}),
    end("s2", 17), end("s1", 17), begin("s6", "scorer", "grader", 18),
    model(19, "s6", None, message("g", "assistant", "GRADE: C"), input=[message("g0", "user", "Grade it.")], tools=[]),
    event("score", 20, score={"value": "C"}, intermediate=False, scorer="grader", span_id="s6"), end("s6", 21),
    event("telepathy", 22, range=3), event("error", 23, error={"message": "late"}),
]  # fmt: skip
SAMPLE = {
    "id": "b/1", "epoch": 2, "uuid": "sample-1", "input": "attachment://aa", "target": "yes",
    "messages": [SYSTEM, PROMPT, ANSWER, *RESULTS, NUDGE, DONE, message("m9", "user", "Bye.")],
    "output": {"model": "m-1", "choices": []}, "scores": {"grader": {"value": "C", "explanation": "yes"}},
    "metadata": {"level": 1}, "store": {}, "events": EVENTS, "model_usage": {"mock/m-1": USAGE},
    "started_at": at(1), "completed_at": at(30), "attachments": {"aa": f"Make it float, {LONG}"},
    "events_data": {"messages": POOL, "calls": []},
}  # fmt: skip
HEADER = {"version": 2, "status": "success", "eval": EVAL, "plan": {"name": "plan", "steps": [{"solver": "react"}]}}


def json_log(*samples, **more):
    """One document."""
    return json.dumps({**HEADER, "samples": list(samples), **more}).encode()


def name_of(sample):
    """The member a sample is."""
    return f"samples/{sample['id']}_epoch_{sample['epoch']}"


def members_of(*samples, ended=True):
    """The members of a log: while it is written, it has no header yet."""
    found = {"_journal/start.json": {"version": 2, "eval": EVAL, "plan": HEADER["plan"]}}
    for each in samples:
        found[f"{name_of(each)}.json"] = each
    return {**found, "summaries.json": [], "header.json": HEADER} if ended else found


def chunked(sample, size=3):
    """The members of a sample in its newest layout: a shell, and four sequences cut into chunks."""
    prefix = name_of(sample)
    names = list(sample["attachments"])

    def numbered(value):
        text = json.dumps(value)
        for i, name in enumerate(names):
            text = text.replace(f"attachment://{name}", f"attachment://{i}")
        return json.loads(text)

    messages = [*sample["events_data"]["messages"]]
    refs = []
    for each in sample["messages"]:
        if each not in messages:
            messages.append(each)
        refs.append([messages.index(each), messages.index(each) + 1])
    apart = ("messages", "events", "attachments", "events_data", "metadata")
    shell = {key: each for key, each in sample.items() if key not in apart}
    found = {f"{prefix}/sample.json": numbered({**shell, "message_refs": refs}),
             f"{prefix}/metadata.json": sample["metadata"], f"{prefix}/skeleton.json": {},
             f"{prefix}/events/stats.json": {}, f"{prefix}/events/uuids.json": []}  # fmt: skip
    sequences = {"messages": numbered(messages), "events": numbered(sample["events"]), "calls": [],
                 "attachments": list(sample["attachments"].values())}  # fmt: skip
    for key, items in sequences.items():
        for start in range(0, len(items), size):
            found[f"{prefix}/{key}/{start}.json"] = items[start : start + size]
    return found


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """A zip of values, or of bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return file.getvalue()


def zstd_zipped(members):
    """The same, compressed with zstd, which this Python's zipfile cannot write: two frames a member, by hand."""
    body, index = b"", b""
    for name, value in members.items():
        plain = value if isinstance(value, bytes) else json.dumps(value).encode()
        half = len(plain) // 2
        packed = zstandard.compress(plain[:half]) + zstandard.compress(plain[half:])
        fixed = struct.pack("<HHHHHIIIHH", 20, 0, 93, 0, 33, zlib.crc32(plain), len(packed), len(plain),
                            len(name.encode()), 0)  # fmt: skip
        index += (
            b"PK\x01\x02" + struct.pack("<H", 20) + fixed + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        )
        body += b"PK\x03\x04" + fixed + name.encode() + packed
    count = len(members)
    return body + index + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(index), len(body), 0)
