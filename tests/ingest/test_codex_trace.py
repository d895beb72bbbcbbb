"""Codex's trace bundles: whole requests, what came of them, and what the tools did; read with the files beside them."""

import json

import pytest

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, sign, troubles
from tests.ingest.corpus import files
from trackway.ingest.formats.codex_trace import SOURCE
from trackway.ingest.making import file_state
from trackway.ingest.original import Original
from trackway.read.context import contexts
from trackway.read.pairs import pairs
from trackway.read.usage import usage
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    Context,
    EpisodeEnd,
    EpisodeStart,
    FileChange,
    ModelResult,
    Note,
    User,
)

ROOT, CHILD = "01a1ddfa-efdf-7582-bf7d-9496766d869a", "01a1ddfa-0000-7582-bf7d-9496766d869a"
MANIFEST = {"schema_version": 2, "trace_id": "t-1", "rollout_id": ROOT, "root_thread_id": ROOT,
            "raw_event_log": "trace.jsonl", "payloads_dir": "payloads"}  # fmt: skip
TOOLS = [{"type": "function", "name": "saw"}]


def message(role, text, **fields):
    """A message of a request."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}], **fields}


class Bundle:
    """A bundle under way: its events, and the payloads they name."""

    def __init__(self):
        self.events, self.payloads = [], {}

    def ref(self, value):
        """A payload, and the reference to it."""
        number = len(self.payloads) + 1
        self.payloads[f"payloads/{number}.json"] = json.dumps(value).encode()
        return {"raw_payload_id": f"raw_payload:{number}", "kind": {"type": "x"}, "path": f"payloads/{number}.json"}

    def add(self, kind, thread=ROOT, /, **payload):
        """An event."""
        number = len(self.events) + 1
        self.events.append({
            "schema_version": 2, "seq": number, "wall_time_unix_ms": 1_772_359_200_000 + number * 100,
            "rollout_id": ROOT, "thread_id": thread, "codex_turn_id": "1", "payload": {"type": kind, **payload},
        })  # fmt: skip

    def asks(self, call, messages, thread=ROOT, **mode):
        """A request."""
        request = {
            "model": "m-1",
            "instructions": "You build boats.",
            "input": messages,
            "tools": TOOLS,
            "store": False,
        }
        self.add("inference_started", thread, inference_call_id=call, thread_id=thread, model="m-1", provider_name="p",
                 request_payload=self.ref(request), **mode)  # fmt: skip

    def answers(self, call, *items, thread=ROOT):
        """What came of it."""
        tokens = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2, "total_tokens": 12}
        answer = {"response_id": f"resp-{call}", "token_usage": tokens, "output_items": list(items)}
        self.add("inference_completed", thread, inference_call_id=call, response_id=f"resp-{call}",
                 response_payload=self.ref(answer))  # fmt: skip

    def runs(self, call_id, ended, output):
        """A tool from its start to what the model was given back."""
        given = {"tool_name": "saw", "payload": {"type": "function", "arguments": "{}"}}
        self.add("tool_call_started", tool_call_id=call_id, model_visible_call_id=call_id,
                 requester={"type": "model"}, kind={"type": "saw"}, invocation_payload=self.ref(given))  # fmt: skip
        self.add("tool_call_runtime_ended", tool_call_id=call_id, status="completed", runtime_payload=self.ref(ended))
        item = {"type": "function_call_output", "call_id": call_id, "output": output}
        self.add("tool_call_ended", tool_call_id=call_id, status="completed",
                 result_payload=self.ref({"type": "direct_response", "response_item": item}))  # fmt: skip

    def written(self, folder):
        """The bundle on the disk; gives its trace."""
        for path, body in {"manifest.json": json.dumps(MANIFEST).encode(), **self.payloads}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(body)
        (folder / "trace.jsonl").write_bytes(lines(*self.events))
        return folder / "trace.jsonl"


def sawn():
    """Two calls of tools, a patch among them, and an answer."""
    found = Bundle()
    found.add("rollout_started", None, trace_id="t-1", root_thread_id=ROOT)
    found.add("thread_started", None, thread_id=ROOT, agent_path="/root", metadata_payload=found.ref({"cwd": "/boat"}))
    asked = [message("developer", "Be brief."), message("user", "<environment_context>x</environment_context>"),
             message("user", "Make the boat float", id="msg-1")]  # fmt: skip
    found.asks("i-1", asked)
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Saw."}]}
    calls = [
        {"type": "function_call", "name": "saw", "arguments": '{"a" :1}', "call_id": each} for each in ("c-1", "c-2")
    ]
    found.answers("i-1", thought, *calls)
    found.runs("c-1", {"exit_code": 3, "aggregated_output": "crack", "status": "failed"}, "Process exited with code 3")
    patch = {"success": True, "changes": {"/boat/hull": {"type": "add", "content": "dry\n"}}}
    found.runs("c-2", patch, "Success")
    outputs = [{"type": "function_call_output", "call_id": each, "output": "x"} for each in ("c-1", "c-2")]
    found.asks("i-2", [*asked, thought, *calls, *outputs])
    found.answers(
        "i-2", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    )
    found.add("history_item_accepted", item_id="msg-9")
    found.add("rollout_ended", None, status="completed")
    return found


def test_requests_are_whole(tmp_path):
    """A call has its messages, tools, parameters and system prompt, the second as a difference to the first."""
    events = only(SOURCE, sawn().written(tmp_path))
    first, second = contexts(events)
    assert (first.call.system, first.call.tools, first.call.parameters) == ("You build boats.", TOOLS, {"store": False})
    assert len(first.messages) == 3
    assert second.call.base == "i-1"
    assert second.call.reuse == ((0, 0, 3),)
    assert second.messages[:3] == first.messages
    assert len(second.messages) == 8
    results = of_kind(events, ModelResult)
    assert [each.latency_ms for each in results] == [100.0, 100.0]
    assert results[0].response["response_id"] == "resp-i-1"
    assert usage(events).total == 24


def test_what_was_said_and_done(tmp_path):
    """Prompts, thoughts, answers, calls with their ends, files: as a rollout has them, and in a session of its own."""
    events = only(SOURCE, sawn().written(tmp_path))
    assert [(each.content, each.actor) for each in of_kind(events, User)] == [("Make the boat float", "human")]
    assert [each.content for each in of_kind(events, AssistantThinking)] == ["Saw."]
    assert [each.content for each in of_kind(events, AssistantText)] == ["Done."]
    first, second = pairs(events)
    assert (first.call.args, first.call.call) == (b'{"a" :1}', "i-1")
    assert (first.result.exit_code, first.result.status, first.result.duration_ms) == (3, "error", 200)
    assert first.result.returned == {"aggregated_output": "crack"}
    assert second.result.status == "ok"
    (change,) = of_kind(events, FileChange)
    assert (change.after, change.cause, change.exact) == (file_state(b"dry\n"), "c-2", True)
    header = of_kind(events, EpisodeStart)[0].header
    assert (header.task, header.model, header.source, header.metadata["cwd"]) == (
        "Make the boat float", "m-1", "codex_trace", "/boat",
    )  # fmt: skip
    (end,) = of_kind(events, EpisodeEnd)
    assert (end.outcome, end.reason) == (None, "completed")


def test_requests_sent_as_differences(tmp_path):
    """A request that goes on from a response holds what that request held, and what was answered."""
    found = Bundle()
    found.add("rollout_started", None, trace_id="t-1", root_thread_id=ROOT)
    found.asks("i-1", [message("user", "hi")])
    call = {"type": "function_call", "name": "saw", "arguments": "{}", "call_id": "c"}
    found.answers("i-1", call)
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    found.asks("i-2", [output], request_input_mode={"type": "incremental", "previous_response_id": "resp-i-1"})
    prefix = found.ref({"input": [message("user", "before")]})
    found.asks("i-3", [message("user", "on")], request_input_mode={
        "type": "incremental_with_untraced_prefix", "previous_response_id": "resp-?", "prefix_payload": prefix,
    })  # fmt: skip
    first, second, third = contexts(only(SOURCE, found.written(tmp_path)))
    assert second.messages == [*first.messages, call, output]
    assert [each["content"][0]["text"] for each in third.messages] == ["before", "on"]


def test_sub_agents_are_inside(tmp_path):
    """A thread that the root started is an agent of the same episode, and its prompt is no person's."""
    found = sawn()
    found.add("thread_started", None, thread_id=CHILD, agent_path="/main/counter", metadata_payload=None)
    found.asks("i-9", [message("user", "count the planks")], thread=CHILD)
    found.answers("i-9", message("assistant", "Nine."), thread=CHILD)
    events = only(SOURCE, found.written(tmp_path))
    theirs = [each for each in events if each.agent == "/main/counter"]
    assert [each.actor for each in theirs if isinstance(each, User)] == ["harness"]
    assert {each.kind for each in theirs} == {"note", "user", "model_call", "model_result", "assistant_text"}


def test_what_failed_and_what_nobody_knows(tmp_path):
    """A request that failed says so; a compaction is told; events of other kinds are notes with their payloads."""
    found = sawn()
    found.asks("i-8", [message("user", "again")])
    found.add("inference_failed", inference_call_id="i-8", error="overloaded", partial_response_payload=None)
    found.add("compaction_installed", compaction_id="k", checkpoint_payload=found.ref({"kept": 1}))
    found.add("protocol_event_observed", event_type="gull_seen", event_payload=found.ref({"size": 3}))
    found.add("tide_table", payloads=[found.ref([1])])
    events = only(SOURCE, found.written(tmp_path))
    assert of_kind(events, ModelResult)[-1].error == "overloaded"
    assert [(each.op, each.detail) for each in of_kind(events, Context)] == [("compact", {"kept": 1})]
    notes = {each.topic: each.native.fields["entry"] for each in of_kind(events, Note)}
    assert notes["gull_seen"]["event_payload"] == {"size": 3}
    assert notes["tide_table"]["payloads"] == [[1]]


def test_payloads_that_are_missing_or_lead_elsewhere(tmp_path):
    """What is not there is a trouble, and nothing outside the bundle is ever opened."""
    found = sawn()
    (tmp_path / "secret.json").write_text('{"cwd": "/secret"}')
    for path in ("payloads/99.json", "../secret.json", "/etc/passwd"):
        found.add("protocol_event_observed", event_type="x", event_payload={"raw_payload_id": "r", "path": path})
    trace = found.written(tmp_path / "bundle")
    (trace.parent / "payloads" / "2.json").write_bytes(b"{")
    assert len(troubles(SOURCE, trace)) == 4
    assert "/secret" not in str(only(SOURCE, trace))


def test_told_by_content(tmp_path):
    """The trace is read; the manifest and the payloads beside it are parts; other numbered files are nobody's."""
    trace = sawn().written(tmp_path / "bundle")
    assert not sign(SOURCE, trace).is_part
    assert sign(SOURCE, trace.parent / "manifest.json").is_part
    assert sign(SOURCE, trace.parent / "payloads" / "1.json").is_part
    other = tmp_path / "payloads" / "1.json"
    other.parent.mkdir()
    other.write_text("{}")
    assert sign(SOURCE, other) is None
    original = Original(trace)
    list(SOURCE.read(original))
    assert {each.name for each in original.companions} >= {"manifest.json", "1.json"}


def test_steady_and_patient(tmp_path):
    """Each beginning of a trace says the beginning of the whole, and nothing that stands in a field raises."""
    found = sawn()
    found.written(tmp_path)
    body = lines(*found.events)
    check_growth(SOURCE, tmp_path, body, "trace.jsonl")
    assert check_mutations(SOURCE, tmp_path, body, "trace.jsonl", depth=2) > 300


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("generated/codex-*/trace-*/trace.jsonl"), ids=str)
def test_a_real_bundle(path):
    """Every request has as many messages as its payload; tokens and calls are those of the responses."""
    told = [json.loads(each)["payload"] for each in path.read_text().splitlines()]
    inputs, tokens = [], 0
    for each in told:
        for name in ("request_payload", "response_payload"):
            if name in each:
                value = json.loads((path.parent / each[name]["path"]).read_text())
                inputs += [value["input"]] if "input" in value else []
                tokens += value.get("token_usage", {}).get("total_tokens", 0)
    events = only(SOURCE, path)
    assert [each.messages for each in contexts(events)] == inputs
    assert usage(events).total == tokens
    assert len(pairs(events)) == sum(each["type"] == "tool_call_started" for each in told)
    assert all(each.result is not None for each in pairs(events))
