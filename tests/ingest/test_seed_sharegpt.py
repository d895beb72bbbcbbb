"""Seed 001's exported lines: ShareGPT whose calls are objects, and whose results name their call."""

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, read, sign, troubles, written
from tests.ingest.dataset_checks import says
from trackway.ingest.formats import sharegpt
from trackway.ingest.formats.seed_sharegpt import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import Context

LINE = {
    "trace_id": "trace-17", "timestamp": 1_760_000_000, "model": "m-1", "tools": [{"name": "look"}],
    "conversations": [
        {"from": "system", "value": "You build boats."},
        {"from": "human", "value": "Make it float"},
        {"from": "gpt", "value": "<think>I look first.</think>"},
        {"from": "function_call", "value": {"name": "look", "arguments": {"at": "hull"}, "id": "c1"}},
        {"from": "function_call", "value": {"name": "look", "arguments": {"at": "deck"}, "id": "c2"}},
        {"from": "observation", "value": "wet", "tool_call_id": "c2", "is_error": False},
        {"from": "observation", "value": "denied", "tool_call_id": "c1", "is_error": True},
        {"from": "gpt", "value": "It does not."},
    ],
}  # fmt: skip


def test_a_line_is_an_episode(tmp_path):
    """Thoughts, calls, results by their ids, errors, model, tools and time come from the line."""
    path = written(tmp_path, lines(LINE))
    assert sign(SOURCE, path).confidence > sign(sharegpt.SOURCE, path).confidence
    events = only(SOURCE, path)
    assert says(events) == [
        ("context", None), ("context", "You build boats."), ("user", "Make it float"),
        ("assistant_thinking", "I look first."), ("assistant_tool_call", "look"), ("assistant_tool_call", "look"),
        ("tool_result", "wet"), ("tool_result", "denied"), ("assistant_text", "It does not."),
    ]  # fmt: skip
    assert [(each.call.call_id, each.result.content, each.failed) for each in pairs(events)] == [
        ("c1", "denied", True), ("c2", "wet", False),
    ]  # fmt: skip
    assert (events[0].header.model, of_kind(events, Context)[0].tools) == ("m-1", [{"name": "look"}])
    assert events[-1].at == 1_760_000_000 * 10**9


def test_arguments_are_the_bytes_of_the_line(tmp_path):
    """What stands in a call's object is kept as it is spelled."""
    body = (
        b'{"trace_id":"t","conversations":[{"from":"human","value":"x"},'
        b'{"from":"function_call","value":{"name":"a","arguments":{"b":  1.0, "a": 1e3},"id":"1","odd":2}}]}\n'
    )
    events = only(SOURCE, written(tmp_path, body))
    assert pairs(events)[0].call.args == b'{"b":  1.0, "a": 1e3}'
    assert events[-1].native.fields["entry"] == {"value": {"odd": 2}}


def test_plain_turns_among_them(tmp_path):
    """A call that is a text, and a result without an id, are read as ShareGPT has them."""
    talk = [
        {"from": "human", "value": "x"}, {"from": "function_call", "value": '{"name": "look", "arguments": {}}'},
        {"from": "observation", "value": "wet"}, {"from": "ghost", "value": "boo"},
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, lines({**LINE, "conversations": talk})))
    assert pairs(events)[0].result.content == "wet"
    assert events[-1].kind == "note"


def test_names_and_growth(tmp_path):
    """Lines are known by trace and second; those that are added leave the others as they were."""
    body = lines(LINE, LINE, {**LINE, "model": "m-2"}, {**LINE, "timestamp": 3})
    assert len(read(SOURCE, written(tmp_path, body))) == 3
    check_growth(SOURCE, tmp_path, body)
    path = written(tmp_path, lines(LINE, {"trace_id": "t"}, 7))
    assert len(troubles(SOURCE, path)) == 2


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, lines(LINE))
