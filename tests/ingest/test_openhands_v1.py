"""OpenHands V1: events of a conversation a line each, in a list, a file each in a folder, and in evaluation rows."""

import json

import pytest

from tests.ingest.agent_checks import (
    check_growth,
    check_mutations,
    entries,
    lines,
    of_kind,
    only,
    read,
    sign,
    troubles,
    written,
)
from tests.ingest.corpus import files
from tests.ingest.swe_cases import document
from trackway.ingest.formats.openhands_v1 import SOURCE
from trackway.ingest.making import file_state
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Original
from trackway.read.order import name_of
from trackway.read.pairs import pairs
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    FileChange,
    ModelCall,
    ModelResult,
    Note,
    Reward,
    ToolResult,
    User,
)

CONVERSATION = "0b0a7000-0000-4000-8000-000000000009"


def event(name, kind, source="environment", parent=None, **fields):
    """An event's envelope."""
    made = {"id": name, "timestamp": "2026-03-01T10:00:01.5", "source": source, "kind": kind, **fields}
    return made if parent is None else made | {"parent_id": parent}


def blocks(*texts):
    """Text as messages hold it."""
    return [{"cache_prompt": False, "type": "text", "text": each} for each in texts]


def said(name, role, *texts, source=None, parent=None, **message):
    """A message."""
    told = {"role": role, "content": blocks(*texts), "thinking_blocks": [], **message}
    answer = {"llm_response_id": f"resp-{name}"} if role == "assistant" else {}
    source = source or ("agent" if role == "assistant" else "user")
    return event(name, "MessageEvent", source, parent, llm_message=told, activated_skills=[], **answer)


def action(name, call, arguments="{}", response="resp-1", parent=None, **fields):
    """A tool call."""
    written_as = {"id": call, "name": "terminal", "arguments": arguments, "origin": "completion"}
    return event(
        name, "ActionEvent", "agent", parent, thought=fields.pop("thought", []), tool_name="terminal",
        tool_call_id=call, tool_call=written_as, llm_response_id=response, thinking_blocks=[],
        action={"command": "ls", "kind": "TerminalAction"}, **fields,
    )  # fmt: skip


def observed(name, call, content="a.py", of="a1", **fields):
    """What came of a call."""
    told = {"content": blocks(content), "is_error": False, "kind": "TerminalObservation", **fields}
    return event(name, "ObservationEvent", observation=told, action_id=of, tool_name="terminal", tool_call_id=call)


def conversation():
    """A prompt, two calls of one answer, what came of them, a last word."""
    return [
        event("s", "SystemPromptEvent", "agent", system_prompt=blocks("Be good.")[0], tools=[{"kind": "TerminalTool"}],
              dynamic_context=blocks("Host: here")[0]),
        said("m", "user", "Make it float\nplease"),
        action("a1", "c1", '{"command":  "ls"}', thought=blocks("I look."), reasoning_content="First look.",
               summary="looking", security_risk="LOW"),
        action("a2", "c2", "{bad"),
        observed("o2", "c2", "x", "a2", exit_code=2, metadata={"exit_code": 2, "pid": -1}),
        observed("o1", "c1", metadata={"exit_code": 0}),
        said("f", "assistant", "It floats."),
    ]  # fmt: skip


def events(folder, *made):
    """The events of a file of these lines."""
    return only(SOURCE, written(folder, lines(*made)))


def base(**fields):
    """A conversation's state."""
    return {
        "id": CONVERSATION, "agent": {"kind": "Agent", "llm": {"model": "m-1"}}, "persistence_dir": "/p",
        "workspace": {"working_dir": "/w", "kind": "LocalWorkspace"}, "execution_status": "finished",
        "stats": {"usage_to_metrics": {"agent": {"token_usages": [
            {"model": "m-1", "prompt_tokens": 50, "completion_tokens": 5, "cache_read_tokens": 40,
             "cache_write_tokens": 0, "response_id": "resp-1"},
        ]}}}, **fields,
    }  # fmt: skip


def folder_of(folder, made, state=None):
    """A conversation's folder."""
    folder = folder / CONVERSATION.replace("-", "")
    if state is not None:
        document(folder, state, "base_state.json")
    for i, each in enumerate(made):
        document(folder / "events", each, f"event-{i:05}-{i:08x}-0000.json")
    return folder


def test_detected_by_content(tmp_path):
    """Lines, lists, pages of events, a folder's state, rows; other things with a ``kind`` are not claimed."""
    row = {"instance_id": "a__b-1", "instruction": "x", "history": conversation(), "test_result": {}}
    for body in (lines(*conversation()), lines(row, row), lines(conversation()), lines({"items": conversation()})):
        found = sign(SOURCE, written(tmp_path, body, "x.bin"))
        assert found.confidence > 0.9
        assert not found.is_part
    for value in (conversation(), base(), row):
        assert sign(SOURCE, document(tmp_path, value, "x.json", indent=2)).confidence >= 0.9
    for other in (
        [{"kind": "user", "id": 1, "timestamp": 1, "source": "user"}], [{"kind": "Pod", "id": "x"}],
        [{"type": "user", "uuid": "1"}], [{"id": 1, "source": "agent", "action": "run", "args": {}}],
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(*other), "events.jsonl")) is None


def test_what_a_conversation_says(tmp_path):
    """Prompts, thoughts, words, calls with the model's own arguments, results by call, exit codes, turns."""
    found = events(tmp_path, *conversation())
    assert (found[0].header.task, found[0].header.agent) == ("Make it float", "openhands")
    assert [each.content for each in of_kind(found, User)] == ["Make it float\nplease"]
    assert [each.content for each in of_kind(found, AssistantThinking)] == ["First look."]
    assert [each.content for each in of_kind(found, AssistantText)] == ["I look.", "It floats."]
    assert [(each.call.args, each.result.content, each.result.exit_code) for each in pairs(found)] == [
        (b'{"command":  "ls"}', "a.py", 0), (b"{bad", "x", 2),
    ]  # fmt: skip
    assert [each.status for each in of_kind(found, ToolResult)] == ["error", "ok"]
    assert [(each.op, each.system_prompt, each.text) for each in of_kind(found, Context)] == [
        ("set", "Be good.", None), ("inject", None, "Host: here"),
    ]  # fmt: skip
    assert max(each.turn for each in found) == 1
    assert found[-1].at > 0
    assert not of_kind(found, EpisodeEnd)


def test_a_response_is_one_call(tmp_path):
    """Actions of one response share its call and its batch; what has no home of an action is kept."""
    found = events(tmp_path, *conversation())
    assert [each.id for each in of_kind(found, ModelCall)] == ["resp-1", "resp-f"]
    assert {(each.call, each.batch) for each in of_kind(found, AssistantToolCall)} == {("resp-1", 1)}
    kept = of_kind(found, ModelCall)[0].native.fields["entry"]
    assert kept == {
        "summary": "looking", "security_risk": "LOW", "action": {"command": "ls", "kind": "TerminalAction"},
        "tool_call": {"origin": "completion"},
    }  # fmt: skip


def test_thoughts_keep_what_the_provider_wants_back(tmp_path):
    """Signatures, redacted blocks and encrypted items are state; a text that stands twice is said once."""
    thinking = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "xx"},
    ]  # fmt: skip
    first = said("x", "assistant", "A", thinking_blocks=thinking, reasoning_content="hm")
    second = said("y", "assistant", "B", reasoning_content="oh", responses_reasoning_item={"encrypted_content": "e"})
    found = of_kind(events(tmp_path, said("m", "user", "Go"), first, second), AssistantThinking)
    assert [(each.content, each.state) for each in found] == [
        ("hm", {"type": "thinking", "signature": "sig"}), ("", {"type": "redacted_thinking", "data": "xx"}),
        ("oh", {"encrypted_content": "e"}),
    ]  # fmt: skip


def test_what_came_instead_of_a_result(tmp_path):
    """Errors of the scaffold, refusals, timeouts; a result whose action is not in the file stays one."""
    refused = event("r", "UserRejectObservation", tool_call_id="c2", action_id="a2", rejection_reason="no!")
    error = event("e", "AgentErrorEvent", "agent", tool_call_id="c1", tool_name="terminal", error="no such tool")
    late = observed("l", "c3", "slow", exit_code=-1, timeout=True)
    found = events(tmp_path, said("m", "user", "Go"), action("a1", "c1"), action("a2", "c2"), error, refused, late)
    assert [(each.content, each.status, each.is_error, each.exit_code) for each in of_kind(found, ToolResult)] == [
        ("no such tool", "error", True, None), ("no!", "denied", False, None), ("slow", "timeout", True, None),
    ]  # fmt: skip
    assert len(pairs(found)) == 2


def test_edits(tmp_path):
    """The editor tells the whole file before and after: exact; nothing is made of a view or of a failure."""
    whole = {"path": "/w/a", "old_content": "old", "new_content": "new", "prev_exist": True, "command": "str_replace"}
    new = {"path": "/w/b", "new_content": "b", "prev_exist": False, "command": "create"}
    path = written(tmp_path, lines(
        said("m", "user", "Go"), action("a1", "c1"), observed("o1", "c1", **whole), observed("o2", "c2", **new),
        observed("o3", "c3", **(whole | {"is_error": True})), observed("o4", "c4", **(whole | {"command": "view"})),
        observed("o5", "c5", **(whole | {"old_content": None})),
    ))  # fmt: skip
    changes = of_kind(only(SOURCE, path), FileChange)
    assert [(each.op, each.path, each.cause, each.exact) for each in changes] == [
        ("modify", "/w/a", "c1", True), ("create", "/w/b", "c2", True), ("modify", "/w/a", "c5", False),
    ]  # fmt: skip
    assert (changes[0].before, changes[0].after) == (file_state(b"old"), file_state(b"new"))
    contents = {each.key: each.contents for each in SOURCE.read(Original(path)) if each.contents}
    assert contents == {"o1": (b"old", b"new"), "o2": (b"b",), "o5": (b"new",)}


def test_what_else_happens(tmp_path):
    """Condensations, injected context, token ids of the last answer, calls another agent reports, and the unknown."""
    found = events(
        tmp_path,
        said("m", "user", "Go") | {"extended_content": blocks("a skill")},
        action("a1", "c1"),
        event("t", "TokenEvent", "agent", prompt_token_ids=[1, 2], response_token_ids=[3]),
        event("k", "Condensation", summary="So far", forgotten_event_ids=["m"], llm_response_id="resp-k"),
        event("h", "HookExecutionEvent", "hook", additional_context="mind the gap", exit_code=0),
        event("p", "ACPToolCallEvent", "agent", tool_call_id="z", title="Read a", tool_kind="read", raw_input={"p": 1}),
        event(
            "q", "ACPToolCallEvent", "agent", tool_call_id="z", title="Read a", status="completed", raw_output="text"
        ),
        event("w", "BrandNewEvent", novelty=[1]),
        said("n", "user", "told by a hook", source="hook"),
    )
    context = [(each.op, each.text, each.call) for each in of_kind(found, Context)]
    assert context == [("inject", "a skill", None), ("compact", "So far", "resp-k"), ("inject", "mind the gap", None)]
    assert [(each.id, each.token_ids) for each in of_kind(found, ModelResult)] == [
        ("resp-1", {"prompt_token_ids": [1, 2], "response_token_ids": [3]}),
    ]  # fmt: skip
    reported = pairs(found)[1]
    assert (reported.call.name, reported.call.reported, reported.result.content) == ("read", True, "text")
    assert of_kind(found, Note)[-1].topic == "BrandNewEvent"
    assert of_kind(found, Note)[-1].native.fields["entry"] == {"novelty": [1]}
    assert [each.actor for each in of_kind(found, User)] == ["human", "harness"]


def test_branches_hang_where_they_belong(tmp_path):
    """A parent that is not simply the event before is kept, so that abandoned branches can be told."""
    found = events(
        tmp_path, said("m", "user", "Go"), said("x", "assistant", "One", parent="m"),
        said("y", "assistant", "Two", parent="m"), said("z", "user", "On", parent="y"),
        said("r", "user", "Anew", parent="__root__"), said("u", "assistant", "?", parent="gone"),
    )  # fmt: skip
    prompt = of_kind(found, User)[0]
    assert [each.parent for each in of_kind(found, ModelCall)] == [None, name_of(prompt), None]
    assert [each.parent for each in of_kind(found, User)] == [None, None, None]


def test_a_folder(tmp_path):
    """``base_state.json`` stands for all: its id is the conversation's, the tokens of each call are in it."""
    folder = folder_of(tmp_path, conversation(), base())
    state, first = folder / "base_state.json", min((folder / "events").iterdir())
    assert (sign(SOURCE, state).is_part, sign(SOURCE, first).is_part) == (False, True)
    document(folder / "events", {"no": "event"}, "other.json")
    original = Original(state)
    assert len({each.session for each in SOURCE.read(original)}) == 1
    assert len(original.companions) == len(conversation())
    found = read(SOURCE, state)[CONVERSATION]
    assert episode_id(SOURCE.name, CONVERSATION, keeps_ids=SOURCE.keeps_ids) == CONVERSATION
    start = found[0].header
    assert (start.model, start.metadata) == ("m-1", {"cwd": "/w", "agent_class": "Agent"})
    assert "stats" not in found[0].native.fields["entry"]
    (result,) = of_kind(found, ModelResult)
    tokens = tokens_of(result.usage)
    assert (result.id, tokens.input, tokens.cache_read, tokens.output) == ("resp-1", 10, 40, 5)
    assert all(each.parent is None for each in found)


def test_a_folder_without_its_state(tmp_path):
    """Then the first event's file stands for all, and the folder's name for the conversation."""
    folder = folder_of(tmp_path, conversation())
    first, second, *_ = sorted((folder / "events").iterdir())
    assert (sign(SOURCE, first).is_part, sign(SOURCE, second).is_part) == (False, True)
    found = read(SOURCE, first)
    assert list(found) == [CONVERSATION.replace("-", "")]
    assert len(of_kind(next(iter(found.values())), AssistantToolCall)) == 2
    second.write_text("{")
    assert len(troubles(SOURCE, first)) == 1


def test_a_folder_grows(tmp_path):
    """More files say more behind the same beginning; tokens that were counted late come with their call's name."""
    whole = entries(SOURCE, folder_of(tmp_path / "whole", conversation(), base()) / "base_state.json")
    for count in range(2, len(conversation())):
        part = folder_of(tmp_path / str(count), conversation()[:count], base())
        found = entries(SOURCE, part / "base_state.json")
        assert found == whole[: len(found)]
    late = folder_of(tmp_path / "late", conversation(), base(stats={}))
    missing = {each[1] for each in whole} - {each[1] for each in entries(SOURCE, late / "base_state.json")}
    assert missing == {"usage/resp-1"}


def test_lists_and_lines_say_the_same(tmp_path):
    """A list, a page and lines of the same events are the same episode."""
    wanted = entries(SOURCE, written(tmp_path, lines(*conversation())))
    for value in (conversation(), {"items": conversation()}):
        assert entries(SOURCE, document(tmp_path, value)) == wanted


def test_rows(tmp_path):
    """An evaluation's rows: the harness asks, a program answers, a verdict is the outcome, tokens by response."""
    usages = base()["stats"]["usage_to_metrics"]["agent"]
    row = {
        "instance_id": "a__b-1", "instruction": "Make it float\nplease", "history": conversation(), "error": None,
        "metadata": {"llm": {"model": "m-9"}}, "metrics": usages, "test_result": {"report": {"resolved": True}},
    }  # fmt: skip
    (found,) = read(SOURCE, written(tmp_path, lines(row), "output.jsonl")).values()
    assert (found[0].header.task_key, found[0].header.model) == ("a__b-1", "m-9")
    assert [each.actor for each in of_kind(found, User)] == ["harness"]
    assert len(of_kind(found, ModelResult)) == 1
    assert [each.value for each in of_kind(found, Reward)] == [1.0]
    assert of_kind(found, EpisodeEnd)[0].outcome == "success"


def test_an_episode_nobody_asked_for(tmp_path):
    """A slice without a prompt is called after the first thing said in it."""
    assert events(tmp_path, *conversation()[2:])[0].header.task == "I look."


def test_lines_grow(tmp_path):
    """Each beginning of the lines says the beginning of what all of them say."""
    check_growth(SOURCE, tmp_path, lines(*conversation()))


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    assert check_mutations(SOURCE, tmp_path, lines(*conversation()), depth=4) > 500
    folder = folder_of(tmp_path, conversation(), base())
    assert check_mutations(SOURCE, folder, lines(base()), "base_state.json", depth=6) > 100


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("openhands/v1*/*.jsonl"), ids=lambda path: path.stem)
def test_corpus(path):
    """Actions, results, pairs and responses counted without our code are ours; a result may be of what is not here."""
    told = [json.loads(line) for line in path.read_text().splitlines()]
    found = only(SOURCE, path)
    acted = [each for each in told if each["kind"] == "ActionEvent"]
    seen = [each for each in told if each["kind"] == "ObservationEvent"]
    assert [each.args.decode() for each in of_kind(found, AssistantToolCall)] == [
        each["tool_call"]["arguments"] for each in acted
    ]
    assert [each.call_id for each in of_kind(found, ToolResult)] == [each["tool_call_id"] for each in seen]
    both = {each["tool_call_id"] for each in acted} & {each["tool_call_id"] for each in seen}
    assert sum(each.result is not None for each in pairs(found)) == len(both) == len(acted)
    assert len(of_kind(found, ModelCall)) == len({each["llm_response_id"] for each in acted})
    assert len(of_kind(found, Note)) == len(told) - len(acted) - len(seen)
