"""Seed 001's traces: its own lines load, arguments byte for byte, whatever else a line holds is kept."""

import pytest

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, read, sign, troubles, written
from tests.ingest.dataset_checks import says
from trackway.ingest.formats.seed_trace import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantToolCall, Context
from trackway.schema.trace import FullTrace

TOOLS = [{"type": "function", "function": {"name": "look"}}]
STEPS = [
    {"kind": "user", "content": "Make it float"},
    {"kind": "assistant_thinking", "content": "I look first."},
    {"kind": "assistant_tool_call", "name": "look", "args": {"deep": {"er": 42}}, "call_id": "c1"},
    {"kind": "tool_result", "call_id": "c1", "content": "permission denied", "is_error": True},
    {"kind": "assistant_text", "content": "It does not."},
]
LINE = {
    "trace_id": "trace-17", "timestamp": 1_760_000_000, "model": "m-1", "system_prompt": "You build boats.",
    "tools_schema": TOOLS, "steps": STEPS,
}  # fmt: skip


def test_a_trace_of_our_own(tmp_path):
    """What ``FullTrace`` writes is read back: steps, model, prompt, tools, time, arguments as they were."""
    trace = FullTrace("t1", model="m-1", system_prompt="You build boats.", tools_schema=TOOLS, timestamp=1_760_000_000)
    trace.push_user("Make it float")
    trace.push_tool_call("look", {"at": "hull"}, "c1")
    trace.push_tool_result("c1", "wet", is_error=False)
    path = written(tmp_path, trace.to_json() + b"\n")
    assert sign(SOURCE, path).confidence == 0.95
    events = only(SOURCE, path)
    assert says(events)[1:] == [("user", "Make it float"), ("assistant_tool_call", "look"), ("tool_result", "wet")]
    assert (events[0].header.model, events[0].header.task) == ("m-1", "Make it float")
    assert {each.at for each in events} == {1_760_000_000 * 10**9}
    assert (of_kind(events, Context)[0].system_prompt, of_kind(events, Context)[0].tools) == ("You build boats.", TOOLS)


def test_the_five_kinds(tmp_path):
    """Each kind of step is the event of that kind; a failed result failed."""
    events = only(SOURCE, written(tmp_path, lines(LINE)))
    assert [each.kind for each in events[2:]] == [each["kind"] for each in STEPS]
    assert pairs(events)[0].failed


def test_arguments_are_the_bytes_of_the_line(tmp_path):
    """Spaces, numbers and the order of keys stay; arguments that are no JSON stand in a text of their own."""
    steps = (
        b'{"kind":"assistant_tool_call","name":"a","args":{"b":  1.0, "a": 1e3},"call_id":"1"},'
        b'{"kind":"assistant_tool_call","name":"a","args_text":"{no","call_id":"2"},'
        b'{"kind":"assistant_tool_call","name":"a","args":null,"call_id":"3"}'
    )
    body = b'{"trace_id":"t","timestamp":0,"model":"","system_prompt":"","tools_schema":[],"steps":[' + steps + b"]}\n"
    found = of_kind(only(SOURCE, written(tmp_path, body)), AssistantToolCall)
    assert [each.args for each in found] == [b'{"b":  1.0, "a": 1e3}', b"{no", b"null"]


def test_names(tmp_path):
    """A trace is its id and its second: the same line again adds nothing, another line under its name is another."""
    path = written(tmp_path, lines(LINE, LINE, {**LINE, "steps": STEPS[:1]}, {**LINE, "timestamp": 5}))
    assert list(read(SOURCE, path)) == ["trace-17@1760000000", "trace-17@1760000000#2", "trace-17@5"]


def test_newer_steps_and_fields(tmp_path):
    """A kind of step nobody knows is a note; fields nobody knows are kept."""
    line = {
        **LINE,
        "host": "h",
        "steps": [*STEPS, {"kind": "nap", "for": 3}, 7, {"kind": "user", "content": "x", "by": 1}],
    }
    events = only(SOURCE, written(tmp_path, lines(line)))
    assert [each.kind for each in events[-3:]] == ["note", "note", "user"]
    assert events[-3].native.fields["entry"] == {"kind": "nap", "for": 3}
    assert events[-1].native.fields["entry"] == {"by": 1}
    assert events[0].native.fields["entry"] == {"trace_id": "trace-17", "host": "h"}


def test_not_ours(tmp_path):
    """Lines of other programs that have traces or steps are not taken; what is no trace in ours is said."""
    assert sign(SOURCE, written(tmp_path, lines({"trace_id": "x", "spans": []}))) is None
    assert sign(SOURCE, written(tmp_path, lines({"trace_id": "x", "steps": [{"step_id": 1}]}))) is None
    path = written(tmp_path, lines(LINE, {"trace_id": "x"}) + b'{"trace_id": "cut')
    assert len(read(SOURCE, path)) == 1
    assert len(troubles(SOURCE, path)) == 2


def test_growth(tmp_path):
    """Lines that are added leave the others as they were."""
    check_growth(SOURCE, tmp_path, lines(LINE, {**LINE, "timestamp": 2}, LINE, {**LINE, "model": "m-2"}))


@pytest.mark.parametrize("line", [LINE])
def test_mutations(tmp_path, line):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, lines(line))
