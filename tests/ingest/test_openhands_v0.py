"""OpenHands V0: lists of actions and observations, folders of them, lines, and the real files."""

import json

import pytest

from tests.ingest.agent_checks import check_longer, check_mutations, entries, lines, of_kind, only, read, sign, written
from tests.ingest.corpus import files
from tests.ingest.openhands_v0_events import (
    METADATA,
    RAN,
    action,
    evaluation,
    event,
    message,
    observed,
    response,
    stream,
)
from tests.ingest.swe_cases import document
from trackway.ingest.formats.openhands_v0 import SOURCE
from trackway.ingest.making import file_state
from trackway.ingest.original import Original
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantText,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    FileChange,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)


def events(folder, value):
    """The events of a list."""
    return only(SOURCE, document(folder, value))


def test_detected_by_content(tmp_path):
    """Lists of events, pairs, one event's file, rows; what only looks a little like it is not claimed."""
    row = {"instance_id": "a__b-1", "instruction": "x", "history": stream(), "metadata": {"llm_config": {}}}
    for value in (stream(), {"trajectory": stream()}, row, [row], row | {"history": [stream()[2:4]]}):
        for indent in (None, 2):
            found = sign(SOURCE, document(tmp_path, value, indent=indent))
            assert found.confidence > 0.9
            assert not found.is_part
    assert sign(SOURCE, written(tmp_path, lines(row, row))).confidence > 0.9
    long = [message(0, "x" * 9000), *stream()[1:]] * 60
    assert sign(SOURCE, document(tmp_path, long, indent=2)).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, lines(row | {"history": long}))).confidence > 0.9
    for other in (
        [],
        [{"action": "x"}],
        [{"observation": "x"}],
        {"history": []},
        {"instance_id": "x"},
        {"action": "a"},
    ):
        assert sign(SOURCE, document(tmp_path, other)) is None


def test_what_a_session_says(tmp_path):
    """Who said what, calls with the model's own arguments, results by their cause, the exit code, times and turns."""
    found = events(tmp_path, stream())
    assert (found[0].header.task, found[0].header.agent) == ("Make it float", "openhands")
    assert [(each.content, each.actor) for each in of_kind(found, User)] == [
        ("Make it float\nplease", "human"), ("Thanks", "human"),
    ]  # fmt: skip
    assert [each.content for each in of_kind(found, AssistantText)] == ["I look.", "Done.", "Welcome."]
    first, last = pairs(found)
    assert (first.call.name, first.call.args, first.call.call_id) == ("execute_bash", b'{"command": "ls"}', "c1")
    assert (first.result.content, first.result.exit_code, first.result.is_error) == ("a.py", 1, True)
    assert (last.call.name, last.result) == ("finish", None)
    assert first.result.native.fields["entry"] == {"extras": {"command": "ls", "metadata": METADATA}}
    assert sorted(each.at for each in found) == [each.at for each in found]
    assert first.call.at == of_kind(found, ModelCall)[0].at > 0
    assert max(each.turn for each in found) == 2
    assert not of_kind(found, EpisodeEnd)


def test_a_response_is_one_call(tmp_path):
    """It stands with every action and every observation: its tokens and its words are said once, its calls together."""
    told = response("r1", "Both.", ("a", "look", "{bad"), ("b", "look", "{}"))
    one, two = action(3, "run", "a", told, command="x"), action(4, "read", "b", told, path="y")
    found = events(tmp_path, [
        message(0, "Go"), one, two, observed(5, 4, "read", "y!", two), observed(6, 3, "run", "x!", one),
    ])  # fmt: skip
    assert [each.id for each in of_kind(found, ModelCall)] == ["r1"]
    assert [each.usage["prompt_tokens"] for each in of_kind(found, ModelResult)] == [9]
    assert len(of_kind(found, AssistantText)) == 1
    assert [(each.call.args, each.result.content) for each in pairs(found)] == [(b"{bad", "x!"), (b"{}", "y!")]
    assert {(each.call, each.batch) for each in of_kind(found, AssistantToolCall)} == {("r1", 1)}
    kept = [each.native.fields.get("entry", {}) for each in found if each.native]
    assert sum("tool_call_metadata" in each for each in kept) == 0
    assert kept[2]["response"] == {"service_tier": "std"}


@pytest.mark.parametrize(
    ("kind", "content", "extras", "expected"),
    [
        ("run", "x", {"metadata": {"exit_code": 0}}, ("ok", 0, False)),
        ("run", "x", {"exit_code": 2}, ("error", 2, True)),
        ("run", "x", {"metadata": {"exit_code": -1, "suffix": "\n[The command timed out after 9 seconds.]"}},
         ("timeout", None, True)),
        ("run", "x", {"metadata": {"exit_code": -1}}, ("ok", None, False)),
        ("error", "broken", {"error_id": "E"}, ("error", None, True)),
        ("user_rejected", "no", {}, ("denied", None, False)),
        ("edit", "ERROR:\nNo replacement", {"path": "/a"}, ("error", None, True)),
        ("browse", "page", {"error": True}, ("error", None, True)),
    ],
)  # fmt: skip
def test_how_it_went(tmp_path, kind, content, extras, expected):
    """Exit codes wherever a version puts them (-1 is none), errors, refusals, timeouts."""
    found = events(tmp_path, [message(0, "Go"), RAN, observed(4, 3, kind, content, RAN, **extras)])
    result = of_kind(found, ToolResult)[0]
    assert (result.status, result.exit_code, result.is_error) == expected


def edits(folder, kind, args, content="done", **extras):
    """The change told by one edit, and what the model saw."""
    told = response("r", "", ("e", "str_replace_editor", "{}"))
    edit = action(3, kind, "e", told, path="/w/a.py", **args)
    path = document(folder, [message(0, "Go"), edit, observed(4, 3, kind, content, edit, path="/w/a.py", **extras)])
    contents = [each.contents for each in SOURCE.read(Original(path)) if each.key == "4"]
    found = only(SOURCE, path)
    return of_kind(found, FileChange), of_kind(found, ToolResult)[0], contents[0]


def test_edits_that_tell_the_whole_file(tmp_path):
    """Where an LLM rewrote it, and in 0.19 to 0.22, both contents are whole: the change is exact."""
    before, after = b"old\n", b"new\n"
    whole = {"old_content": "old\n", "new_content": "new\n", "prev_exist": True}
    for extras in ({"impl_source": "llm_based_edit"}, {"impl_source": "oh_aci", "formatted_output_and_error": "Done."}):
        (change,), result, contents = edits(tmp_path, "edit", {}, "--- diff", **whole, **extras)
        assert (change.op, change.path, change.cause, change.exact) == ("modify", "/w/a.py", "e", True)
        assert (change.before, change.after) == (file_state(before), file_state(after))
        assert contents == (before, after)
    assert (result.content, result.returned) == ("Done.", "--- diff")
    new = {"old_content": None, "new_content": "new\n", "prev_exist": False, "formatted_output_and_error": "Made."}
    (change,), _, contents = edits(tmp_path, "edit", {}, **new, impl_source="oh_aci")
    assert (change.op, change.before, change.exact, contents) == ("create", None, True, (after,))


def test_edits_that_tell_a_fragment(tmp_path):
    """Later the editor's arguments stand where contents did: no exact change is made of them, and none of a failure."""
    fragment = {"old_content": "a", "new_content": "b", "prev_exist": False, "impl_source": "oh_aci"}
    replace = {"command": "str_replace", "old_str": "a", "new_str": "b"}
    (change,), _, contents = edits(tmp_path, "edit", replace, diff="@@", **fragment)
    assert (change.op, change.exact, change.before, change.after, contents) == ("modify", False, None, None, ())
    assert edits(tmp_path, "edit", replace, diff="", **fragment)[0] == []
    assert edits(tmp_path, "edit", replace, "ERROR:\nno", diff="@@", **fragment)[0] == []
    made = {"old_content": None, "new_content": None, "impl_source": "oh_aci", "diff": ""}
    (change,), _, contents = edits(tmp_path, "edit", {"command": "create", "file_text": "hi\n"}, **made)
    assert (change.op, change.exact, contents) == ("create", True, (b"hi\n",))
    (change,), _, contents = edits(tmp_path, "write", {"content": "x", "start": 0})
    assert (change.op, change.exact, contents) == ("modify", False, ())


def test_what_else_is_in_a_stream(tmp_path):
    """System prompts, condensations, recalled knowledge and errors are context; states are notes; people act too."""
    found = events(tmp_path, [
        event(0, action="system", args={"content": "Be good.", "tools": [{"name": "t"}], "openhands_version": "0.35",
                                        "agent_class": "CodeActAgent"}),
        message(1, "Go"), event(2, "user", action="recall", args={"query": "Go"}),
        observed(3, 2, "recall", "Added", recall_type="knowledge"),
        event(4, action="condensation", args={"summary": "So far", "forgotten_event_ids": [1, 2]}),
        event(5, observation="error", content="Parameter missing", extras={"error_id": ""}),
        event(6, "user", action="run", args={"command": "pwd"}), observed(7, 6, "run", "/w"),
        event(8, "environment", action="run", args={"command": "setup"}), event(9, something="new"),
    ])  # fmt: skip
    assert found[0].header.metadata == {"version": "0.35", "agent_class": "CodeActAgent"}
    context = of_kind(found, Context)
    assert [(each.op, each.text) for each in context] == [
        ("set", None), ("inject", "Added"), ("compact", "So far"), ("inject", "Parameter missing"), ("inject", "/w"),
    ]  # fmt: skip
    assert (context[0].system_prompt, context[0].tools) == ("Be good.", [{"name": "t"}])
    assert context[2].detail == {"forgotten_event_ids": [1, 2]}
    assert [each.content for each in of_kind(found, User)] == ["Go", "pwd"]
    assert [each.topic for each in of_kind(found, Note)] == ["recall", "run", "event"]
    assert not of_kind(found, AssistantToolCall)
    assert found[-1].native.fields["entry"]["something"] == "new"


def test_delegation(tmp_path):
    """Between a delegation and what came of it the other agent acts, under its own name."""
    told = response("r1", "", ("d", "delegate_to_browsing_agent", "{}"))
    asked = action(1, "delegate", "d", told, agent="BrowsingAgent", inputs={"task": "look"})
    found = events(tmp_path, [
        message(0, "Go"), asked, message(2, "TASK: look"), RAN, observed(4, 3, "run", "x", RAN),
        observed(5, 1, "delegate", "found it", asked, outputs={}), message(6, "Good.", "agent"),
    ])  # fmt: skip
    assert [(each.agent, each.actor) for each in of_kind(found, User)] == [
        (None, "human"),
        ("BrowsingAgent", "harness"),
    ]
    assert [(each.call.agent, each.result.content) for each in pairs(found)] == [
        (None, "found it"), ("BrowsingAgent", "x"),
    ]  # fmt: skip
    assert found[-1].agent is None


def test_an_action_that_is_missing(tmp_path):
    """A result whose action is not in the file stays one, with the response it came from."""
    found = events(tmp_path, [message(0, "Go"), observed(4, 3, "run", "x", RAN)])
    assert [each.call_id for each in of_kind(found, ToolResult)] == ["c1"]
    assert found[-1].native.fields["entry"]["tool_call_metadata"]["model_response"]["id"] == "r1"


def test_a_folder_of_events(tmp_path):
    """A session's files, one an event: the first stands for all, in the order of their numbers."""
    folder = tmp_path / "sessions" / "s-1" / "events"
    for each in stream():
        document(folder, each, f"{each['id']}.json")
    first, second = folder / "0.json", folder / "11.json"
    assert (sign(SOURCE, first).is_part, sign(SOURCE, second).is_part) == (False, True)
    found = read(SOURCE, first)
    assert list(found) == ["s-1"]
    assert [each.n for each in found["s-1"]] == [each.n for each in events(tmp_path, stream())]
    original = Original(first)
    list(SOURCE.read(original))
    assert first not in original.companions
    assert len(original.companions) == len(stream()) - 1


def test_a_list_grows(tmp_path):
    """A longer list says first what the shorter one said."""
    check_longer(SOURCE, tmp_path, [stream()[:count] for count in range(1, len(stream()) + 1)])


def test_lines_of_events(tmp_path):
    """The same events a line each are the same episode."""
    path = written(tmp_path, lines(*stream()))
    assert [each[1:] for each in entries(SOURCE, path)] == [
        each[1:] for each in entries(SOURCE, document(tmp_path, stream()))
    ]


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    edit = [action(3, "edit", path="/a", command="create", file_text="x"), observed(4, 3, "edit", "ok", path="/a")]
    for value in (stream()[:4], [message(0, "x"), *edit], evaluation(history=stream()[:2])):
        assert check_mutations(SOURCE, tmp_path, lines(value), "a.json", depth=4) > 200


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("openhands/v0*/*.json*"), ids=lambda path: path.stem)
def test_corpus(path):
    """Actions, observations, pairs, turns, responses and edits counted without our code are ours, row by row."""
    text = path.read_text()
    listed = text.lstrip().startswith("[")
    told = [{"history": json.loads(text)}] if listed else [json.loads(line) for line in text.splitlines()]
    found = list(read(SOURCE, path).values())
    assert len(found) == len(told)
    for row, ours in zip(told, found, strict=True):
        history = row["history"]
        acted = [
            e for e in history if e.get("action") not in (None, "message", "system", "recall", "change_agent_state")
        ]
        seen = [e for e in history if e.get("observation") in ("run", "read", "edit", "think", "run_ipython")]
        assert len(of_kind(ours, AssistantToolCall)) == len(acted)
        assert len(of_kind(ours, ToolResult)) == len(seen)
        waiting = [each.call.name for each in pairs(ours) if each.result is None]
        assert waiting == [each["action"] for each in acted if each["action"] == "finish"]
        told_by = [each["tool_call_metadata"] for each in acted if "tool_call_metadata" in each]
        assert len(of_kind(ours, ModelCall)) == len({each["model_response"]["id"] for each in told_by})
        assert [e.content for e in of_kind(ours, User)] == [
            (e.get("args") or e)["content"]
            for e in history
            if e.get("action") == "message" and e.get("source") != "agent"
        ]
        changed = [e for e in history if e.get("observation") == "edit" and not e["content"].startswith("ERROR:")]
        exact = [e for e in changed if "formatted_output_and_error" in e["extras"]]
        assert len(of_kind(ours, FileChange)) == len(changed)
        assert sum(each.exact for each in of_kind(ours, FileChange)) >= len(exact)
        assert [each.outcome for each in of_kind(ours, EpisodeEnd)] == (
            [] if listed else [{True: "success", None: None}[row.get("success")]]
        )
