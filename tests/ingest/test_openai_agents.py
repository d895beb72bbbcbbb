"""The OpenAI Agents SDK: traces in every wrapping, functions without ids, lists of items, and the real files."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import (
    check_growth,
    check_longer,
    check_mutations,
    lines,
    of_kind,
    only,
    read,
    sign,
    troubles,
    written,
)
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.writing import at, document
from trackway.ingest.formats.openai_agents import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)

TRACE = {"object": "trace", "id": "trace_1", "workflow_name": "Boats", "group_id": "g", "metadata": None}


def span(number, second, error=None, **own):
    """A span."""
    return {"object": "trace.span", "id": f"span_{number}", "trace_id": "trace_1", "parent_id": "span_9",
            "started_at": at(second), "ended_at": at(second + 1), "span_data": own, "error": error}  # fmt: skip


def asked(call_id, arguments, name="look"):
    """An item that is a call."""
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def said(text):
    """An item that is an answer."""
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}  # fmt: skip


USER = {"role": "user", "content": "Make it float"}
FIRST = [asked("c1", '{"at":  1}'), asked("c2", '{"at": 2}')]
SPANS = [
    span(1, 1, type="generation", input=[USER], output=FIRST, model="m-1", model_config={"temperature": 0},
         usage={"input_tokens": 9, "output_tokens": 2}),
    span(2, 3, type="function", name="look", input='{"at":2}', output="dry"),
    span(3, 3, {"message": "it broke", "data": {}}, type="function", name="look", input='{"at":  1}', output=None),
    span(4, 5, type="handoff", from_agent="a", to_agent="b"),
    span(5, 6, type="generation", model="m-1", usage=None,
         input=[USER, *FIRST, {"type": "function_call_output", "call_id": "c1", "output": "x"}],
         output=[said("It floats.")]),
    span(6, 7, type="response", response_id="resp_1", usage={"input_tokens": 5, "output_tokens": 1}),
    span(7, 8, type="function", name="alone", input="{}", output="yes"),
    span(9, 0, type="agent", name="builder", tools=["look"]),
]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        lines(TRACE, *SPANS), lines({"data": [TRACE, *SPANS]}), document([TRACE, *SPANS]),
        lines(*({"ev": "end", "data": each} for each in [TRACE, *SPANS])),
        document({"data": [TRACE, *SPANS]}, indent=1),
    ],
    ids=["bare", "a batch a line", "a list", "wrapped", "one batch"],
)  # fmt: skip
def test_a_trace_is_an_episode(tmp_path, body):
    """However spans are wrapped: new input once, calls, results by tool and arguments, usage, errors."""
    path = written(tmp_path, body)
    assert sign(SOURCE, path).confidence == 0.9
    assert list(read(SOURCE, path)) == ["trace_1"]
    events = only(SOURCE, path)
    assert [(each.call.call_id, each.result.content, each.failed) for each in pairs(events)] == [
        ("c1", "it broke", True), ("c2", "dry", False), ("span_7", "yes", False),
    ]  # fmt: skip
    assert [each.content for each in of_kind(events, User)] == ["Make it float"]
    assert (events[0].header.task, events[0].header.metadata["workflow_name"]) == ("Make it float", "Boats")
    assert [each.usage for each in of_kind(events, ModelResult)] == [
        {"input_tokens": 9, "output_tokens": 2}, None, {"input_tokens": 5, "output_tokens": 1},
    ]  # fmt: skip
    assert of_kind(events, ModelCall)[0].parameters == {"temperature": 0}
    assert of_kind(events, ToolResult)[0].duration_ms == 1000
    assert [each.text for each in of_kind(events, Note)] == ["Boats", "a → b", "builder"]


def test_a_trace_nobody_prompted(tmp_path):
    """Without a prompt it is called after its workflow."""
    assert only(SOURCE, written(tmp_path, lines(TRACE, SPANS[3])))[0].header.task == "Boats"


def test_a_list_of_items(tmp_path):
    """Messages, reasoning, calls of every kind and their outputs; tools of the provider's own; notes."""
    items = [
        {"role": "developer", "content": "Be kind."}, USER,
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
         "encrypted_content": "e"},
        *FIRST, {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "dry"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "wet"},
        {"type": "custom_tool_call", "call_id": "p1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "p1", "output": "ok"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "telepathy", "id": "t"}, said("It floats."),
    ]  # fmt: skip
    path = written(tmp_path, document(items))
    assert sign(SOURCE, path).confidence > 0.6
    events = only(SOURCE, path)
    assert [(each.call.name, each.call.args, each.result.content) for each in pairs(events)] == [
        ("look", b'{"at":  1}', "wet"), ("look", b'{"at": 2}', "dry"), ("patch", b"*** Begin", "ok"),
        ("web_search", b'{"type":"search","query":"q"}', ""),
    ]  # fmt: skip
    assert of_kind(events, AssistantThinking)[0].state == {"id": "rs_1", "encrypted_content": "e"}
    assert of_kind(events, Context)[0].system_prompt == "Be kind."
    assert says(events)[-2:] == [("note", "telepathy"), ("assistant_text", "It floats.")]
    check_longer(SOURCE, tmp_path, [items[:i] for i in range(4, len(items) + 1)])


def test_not_ours(tmp_path):
    """Plain messages are nobody's of ours; what is neither trace nor span is said."""
    assert sign(SOURCE, written(tmp_path, document([USER, {"role": "assistant", "content": "x"}]))) is None
    assert sign(SOURCE, written(tmp_path, lines({"object": "chat.completion", "id": "x"}))) is None
    assert len(troubles(SOURCE, written(tmp_path, lines(TRACE, {"x": 1}, 7)))) == 2


def test_growth(tmp_path):
    """Spans that are added leave the others as they were."""
    check_growth(SOURCE, tmp_path, lines(TRACE, *SPANS, TRACE))


@pytest.mark.parametrize("body", [lines(TRACE, SPANS[0], SPANS[2], SPANS[4]), document([USER, *FIRST, said("x")])])
def test_mutations(tmp_path, body):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, body, depth=3)


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("generated/openai_agents/*"), ids=lambda path: path.name)
def test_the_real_files(path):
    """Calls, results and turns are those that plain counting finds; every call has its result."""
    text = path.read_text()
    events = only(SOURCE, path)
    if path.suffix == ".json":
        kinds = Counter(each.get("type", each.get("role")) for each in json.loads(text))
        expected = (kinds["function_call"], kinds["function_call_output"])
    else:
        own = [json.loads(each)["data"].get("span_data", {}) for each in text.splitlines()]
        outputs = [one for each in own for one in each.get("output") or () if each["type"] == "generation"]
        expected = (
            sum(each["type"] == "function_call" for each in outputs),
            sum(each.get("type") == "function" for each in own),
        )
    assert (len(of_kind(events, AssistantToolCall)), len(of_kind(events, ToolResult))) == expected
    assert all(each.result is not None for each in pairs(events))
    assert len(of_kind(events, User)) == 1
