"""Traces: whole turns in seed 001's form, and traces that were added."""

import pytest

from trackway.read.trace import trace
from trackway.schema import events as kinds
from trackway.schema.events import Event, Header
from trackway.schema.trace import FullTrace, ToolCallStep, ToolResultStep, UserStep

CALL, RESULT = kinds.AssistantToolCall, kinds.ToolResult


def added(whole: FullTrace) -> list[Event]:
    """The events an added trace is recorded as."""
    metadata = {"trace_id": whole.trace_id, "timestamp": whole.timestamp}
    if whole.tools_schema is None:
        metadata["tools_schema"] = None
    header = Header(id="e1", task="t", source="full_trace", model=whole.model or None, metadata=metadata)
    events: list[Event] = [kinds.EpisodeStart(header=header)]
    events.append(kinds.Context(op="set", system_prompt=whole.system_prompt, tools=whole.tools_schema))
    kind_of = {"user": kinds.User, "assistant_thinking": kinds.AssistantThinking, "assistant_text": kinds.AssistantText}
    for step in whole.steps:
        if isinstance(step, ToolCallStep):
            args = step.args_text.encode() if step.args_text else bytes(step.args)
            events.append(CALL(name=step.name, args=args, call_id=step.call_id, turn=1, batch=1))
        elif isinstance(step, ToolResultStep):
            events.append(RESULT(call_id=step.call_id, content=step.content, is_error=step.is_error, turn=1))
        else:
            events.append(kind_of[step.kind](content=step.content, turn=1))
    return events


def interleaved() -> FullTrace:
    """A trace whose results stand between calls."""
    whole = FullTrace(trace_id="trace-1", model="m", system_prompt="s", tools_schema=[{"name": "x"}], timestamp=17)
    whole.push_user("go")
    whole.push_thinking("hm")
    whole.push_tool_call("a", {"x": 1}, "c1")
    whole.push_tool_result("c1", "no", True)
    whole.push_tool_call("b", {"y": [None]}, "c2")
    whole.push_tool_result("c2", "yes", False)
    whole.push_assistant_text("done")
    return whole


@pytest.mark.parametrize(
    "whole",
    [
        interleaved(),
        FullTrace(trace_id="empty"),
        FullTrace(trace_id="null", tools_schema=None, timestamp=3),
        FullTrace(trace_id="object", tools_schema={"a": 1}, system_prompt="only this"),
        FullTrace(trace_id="one", model="m", steps=[UserStep("hi")]),
    ],
    ids=lambda whole: whole.trace_id,
)
def test_an_added_trace_comes_back_equal(whole: FullTrace) -> None:
    """Id, timestamp, null and empty schemas, steps in their order, and one trace even without steps."""
    [found] = trace(added(whole))

    assert found == whole
    assert found.to_json() == whole.to_json()


def test_calls_of_one_batch_stand_together_before_their_results() -> None:
    """The model asked for all of them at once and saw the results after; the rest keeps its place."""
    events = [
        kinds.User(content="go", turn=1, n=0),
        CALL(name="a", args=b"{}", call_id="1", batch=1, turn=1, n=1),
        RESULT(call_id="1", content="one", turn=1, n=2),
        kinds.AssistantText(content="meanwhile", turn=1, n=3),
        CALL(name="b", args=b"{}", call_id="2", batch=1, turn=1, n=4),
        RESULT(call_id="2", content="two", turn=1, n=5),
        CALL(name="c", args=b"{}", call_id="3", batch=2, turn=1, n=6),
        CALL(name="d", args=b"{}", call_id="4", turn=1, n=7),
        RESULT(call_id="4", content="four", turn=1, n=8),
    ]

    [whole] = trace(events)

    assert [getattr(each, "call_id", each.kind) for each in whole.steps] == [
        "user", "1", "assistant_text", "2", "1", "2", "3", "4", "4",
    ]  # fmt: skip


def test_a_turn_that_broke_off_is_there() -> None:
    """Aborted, timed out, never answered: each turn has its trace with what was recorded."""
    events = [
        kinds.User(content="one", turn=1, n=0),
        CALL(name="a", args=b"{", call_id="1", turn=1, n=1),
        RESULT(call_id="1", content="", is_error=True, status="timeout", turn=1, n=2),
        CALL(name="b", args=b"{}", call_id="2", turn=1, n=3),
        kinds.User(content="two", turn=2, n=4),
        kinds.EpisodeEnd(outcome="abandoned", turn=2, n=5),
    ]

    one, two = trace(events)

    assert [each.kind for each in one.steps] == ["user", "assistant_tool_call", "tool_result", "assistant_tool_call"]
    assert one.steps[2].is_error
    assert two.step_count() == 1


def test_a_sub_agents_context_is_its_own() -> None:
    """Its model and prompt do not become the main agent's; what it was not told is the episode's."""
    events = [
        kinds.EpisodeStart(header=Header(id="e", task="t", model="big"), n=0),
        kinds.Context(op="set", system_prompt="main", tools=["x"], n=1),
        kinds.User(content="sub", agent="sub", turn=1, n=2),
        kinds.ModelCall(id="1", model="small", system="sub", agent="sub", turn=1, n=3),
        kinds.User(content="main", turn=1, n=4),
    ]

    sub, main = trace(events)

    assert (sub.model, sub.system_prompt, sub.tools_schema) == ("small", "sub", ["x"])
    assert (main.model, main.system_prompt, main.tools_schema) == ("big", "main", ["x"])
