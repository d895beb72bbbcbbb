"""Codex rollouts: calls, how they ended, and what changed in what the model sees."""

import json

import pytest

from tests.ingest.agent_checks import of_kind
from tests.ingest.codex_lines import done, event, events_of, item, legacy, line, meta, paginated, said, when
from trackway.read.pairs import pairs
from trackway.schema.events import Context, ModelCall, Note, ToolResult

# --- what is done -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [legacy, paginated])
def test_calls_and_their_results(tmp_path, shape):
    """Arguments are the model's own bytes; exit codes and times come from wherever they are told."""
    events = events_of(tmp_path, *shape())
    first, second = pairs(events)
    assert (first.call.args, first.call.name) == (b'{"cmd" :"ls"}', "exec_command")
    assert (first.result.exit_code, first.result.status, first.result.duration_ms) == (0, "ok", 1500)
    assert (second.result.exit_code, second.result.status, second.result.is_error) == (1, "error", True)
    assert first.call.call == second.call.call == of_kind(events, ModelCall)[0].id
    assert [each.model for each in of_kind(events, ModelCall)] == ["m-1", "m-1"]
    # The end that came behind its output is a note; the one before it is in the result.
    (note,) = [each for each in of_kind(events, Note) if each.topic == "command_end"]
    assert note.detail["exit_code"] == 1


OUTPUTS = [
    ('{"output":"no\\n","metadata":{"exit_code":2,"duration_seconds":0.25}}', 2, "error", 250),
    ("Exit code: 0\nWall time: 0.5 seconds\nOutput:\nProcess exited with code 9\n", 0, "ok", 500),
    ("Chunk ID: a\nWall time: 3 seconds\nProcess running with session ID 4\nOutput:\n", None, "ok", 3000),
    (
        "Exit code: 124\nWall time: 1 seconds\nOutput:\ncommand timed out after 1000 milliseconds\n",
        124,
        "timeout",
        1000,
    ),
    ("Wall time: 2.0 seconds\naborted by user", None, "interrupted", 2000),
    ("aborted by user after 1.5s", None, "interrupted", None),
    ("exec command rejected by user", None, "denied", None),
    ("unsupported call: fly", None, "error", None),
    ('{"metadata": "none of it"}', None, "ok", None),
    ("Process exited with code 3 is what I printed", 3, "error", None),
    ({"content": "no", "success": False}, None, "error", None),
    ({"content": "yes", "success": True}, None, "ok", None),
    ([{"type": "input_text", "text": "Exit code: 1\nWall time: 0 seconds\nOutput:\n"}], 1, "error", 0),
    (None, None, "ok", None),
    (7, None, "ok", None),
]


@pytest.mark.parametrize(("output", "exit_code", "status", "took"), OUTPUTS)
def test_outputs_of_every_generation(tmp_path, output, exit_code, status, took):
    """What an output says of itself is believed above its text, and nowhere else."""
    call = item(1, "function_call", name="shell", arguments="{}", call_id="c")
    (pair,) = pairs(events_of(tmp_path, meta(), call, item(2, "function_call_output", call_id="c", output=output)))
    found = (pair.result.exit_code, pair.result.status, pair.result.duration_ms)
    assert found == (exit_code, status, took)
    if isinstance(output, str):
        assert pair.result.content == output


def test_what_the_model_did_not_see_is_kept_beside(tmp_path):
    """An output that was cut for the model is whole in ``returned``; one that was not is there once."""
    long = "plank\n" * 9
    ends = [event(2, "exec_command_end", call_id=each, aggregated_output=long, exit_code=0) for each in "ab"]
    calls = [item(1, "function_call", name="shell", arguments="{}", call_id=each) for each in "ab"]
    cut = item(3, "function_call_output", call_id="a", output="Output:\nplank\n…8 more…")
    full = item(3, "function_call_output", call_id="b", output=f"Output:\n{long}")
    first, second = pairs(events_of(tmp_path, meta(), *calls, *ends, cut, full))
    assert first.result.returned == {"aggregated_output": long}
    assert second.result.returned is None
    assert (first.result.exit_code, second.result.exit_code) == (0, 0)


def test_every_kind_of_call(tmp_path):
    """Whatever ends in ``_call`` is an action, and what ends in ``_output`` its result; a search has none."""
    action = {"type": "exec", "command": ["ls"]}
    events = events_of(
        tmp_path, meta(),
        item(1, "local_shell_call", call_id="l", status="completed", action=action),
        item(2, "function_call_output", call_id="l", output="x"),
        item(3, "web_search_call", id="w", status="completed", action={"type": "search", "query": "boats"}),
        event(3, "web_search_end", call_id="w", query="boats"),
        item(4, "tool_search_call", call_id="t", arguments={"query": "q"}),
        item(5, "tool_search_output", call_id="t", tools=[{"name": "saw"}]),
        item(6, "image_generation_call", id="i", status="completed", revised_prompt="a boat", result="AAAA"),
        item(7, "hammer_call", call_id="h", name="hammer", input="nail it"),
        item(8, "hammer_output", call_id="h", output="done"),
        item(9, "custom_tool_call", call_id="m", name="lathe", input="not { JSON"),
        event(9, "mcp_tool_call_end", call_id="m", duration={"secs": 2, "nanos": 0}, result={"Err": "no"}),
        item(9, "custom_tool_call_output", call_id="m", output=[{"type": "input_image", "image_url": "data:"}]),
    )  # fmt: skip
    found = {each.call.name: each for each in pairs(events)}
    assert list(found) == ["local_shell", "web_search", "tool_search", "image_generation", "hammer", "lathe"]
    assert json.loads(found["local_shell"].call.args) == action
    assert found["web_search"].result is None
    assert found["tool_search"].result.content == '[{"name":"saw"}]'
    assert found["image_generation"].result.returned == "AAAA"
    assert found["lathe"].call.args == b"not { JSON"
    assert (found["lathe"].result.status, found["lathe"].result.duration_ms) == ("error", 2000)
    assert found["lathe"].result.returned == [{"type": "input_image", "image_url": "data:"}]


def test_an_aborted_call_has_no_result(tmp_path):
    """Nothing is made up for a call that was interrupted; how it ended is said when its turn is over."""
    call = item(1, "function_call", name="shell", arguments="{}", call_id="c")
    end = event(2, "exec_command_end", call_id="c", exit_code=137, aggregated_output="half")
    events = events_of(tmp_path, meta(), call, end, event(3, "turn_aborted", reason="interrupted"))
    assert of_kind(events, ToolResult) == []
    notes = {each.topic: each for each in of_kind(events, Note)}
    assert notes["command_end"].detail == {"call_id": "c", "exit_code": 137}
    assert notes["command_end"].native.fields["entry"]["aggregated_output"] == "half"
    assert notes["turn_aborted"].text == "interrupted"


def test_what_the_model_sees_changes(tmp_path):
    """Compactions and rewinds are told as such, with all they hold."""
    history = [{"type": "message", "role": "user", "content": []}]
    events = events_of(
        tmp_path, meta(), said(1, "user", "hi"), line(2, "compacted", message="so far", replacement_history=history),
        event(3, "thread_rolled_back", num_turns=2), item(4, "compaction", encrypted_content="z"),
    )  # fmt: skip
    first, second, third = of_kind(events, Context)
    assert (first.op, first.text, first.detail) == ("compact", "so far", {"replacement_history": history})
    assert (second.op, second.detail) == ("rewind", {"num_turns": 2})
    assert (third.op, third.detail) == ("compact", {"encrypted_content": "z"})


def test_what_nobody_knows_is_kept(tmp_path):
    """A type of line, event or item that is not known is a note with all of it."""
    events = events_of(
        tmp_path, meta(), line(1, "tide_table", high=[1]), event(2, "gull_seen", size=3), item(3, "anchor", weight=4),
        done(4, "SlackTide", id="s", depth=5), {"timestamp": when(5), "kind": 6},
    )  # fmt: skip
    notes = {each.topic: each.native.fields["entry"] for each in of_kind(events, Note)}
    assert notes["tide_table"] == {"high": [1]}
    assert notes["gull_seen"] == {"size": 3}
    assert notes["anchor"] == {"weight": 4}
    assert notes["slack_tide"]["depth"] == 5
    assert notes["entry"] == {"timestamp": when(5), "kind": 6}
