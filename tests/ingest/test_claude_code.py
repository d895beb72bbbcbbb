"""Claude Code: what each entry becomes, in the shapes of every version that was seen or is described."""

import json

import pytest

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, read, troubles, written
from tests.ingest.claude_lines import ID, USAGE, Log, text, use, whole
from trackway.ingest.formats.claude_code import SOURCE
from trackway.ingest.original import Original
from trackway.read.pairs import pairs
from trackway.read.usage import usage
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeStart,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)


def events(tmp_path, entries):
    """The events of a file that is one session."""
    return only(SOURCE, written(tmp_path, lines(*entries)))


def test_a_session(tmp_path):
    """A session is one episode under its own id, called after its first prompt, with nothing said twice."""
    found = events(tmp_path, whole())
    start = found[0]
    assert isinstance(start, EpisodeStart)
    assert (start.header.task, start.header.source, start.header.agent) == (
        "Make the boat float",
        "claude_code",
        "claude-code",
    )
    assert start.header.metadata == {"cwd": "/tmp/boat", "version": "2.1.119", "git_branch": "main"}
    assert [each.content for each in of_kind(found, User)] == ["Make the boat float"]
    assert [each.content for each in of_kind(found, AssistantText)] == ["I look.", "It floats."]
    assert [each.id for each in of_kind(found, ModelCall)] == ["msg_1", "msg_2", "msg_3"]
    assert all(each.result is not None for each in pairs(found))
    assert SOURCE.keeps_ids
    assert list(read(SOURCE, tmp_path / "session.jsonl")) == [ID]


def test_one_response_over_many_lines(tmp_path):
    """The lines of one response are one call; its tokens are told again only where they are known better."""
    found = events(tmp_path, whole())
    told = [each for each in of_kind(found, ModelResult) if each.id == "msg_1"]
    assert [(each.usage["output_tokens"], each.usage_from, each.finish_reason) for each in told] == [
        (2, "placeholder", None), (57, "provider", None), (57, "provider", "tool_use"),
    ]  # fmt: skip
    spent = usage(found)
    assert (spent.calls, spent.input, spent.cache_read, spent.cache_write, spent.output) == (3, 9, 300, 60, 171)
    calls = of_kind(found, AssistantToolCall)
    assert calls[0].batch == calls[1].batch != calls[2].batch
    assert {each.call for each in calls[:2]} == {"msg_1"}
    thought = of_kind(found, AssistantThinking)[0]
    assert (thought.content, thought.state) == ("Look.", {"signature": "c2ln"})


@pytest.mark.parametrize(
    ("count", "stop", "known"),
    [(1, None, "placeholder"), (31, None, "placeholder"), (300, None, "provider"), (4, "end_turn", "provider")],
)
def test_tokens_a_stream_began_with(tmp_path, count, stop, known):
    """A small count without a reason to stop is what the stream began with, and is said to be."""
    log = Log(version="2.1.12")
    log.says("Row")
    log.answers(text("I row."), usage=USAGE | {"output_tokens": count}, stop=stop)
    assert usage(events(tmp_path, log.entries)).known_from == {known: 1}


def test_what_is_not_the_models(tmp_path):
    """Errors and stand-ins that the client wrote are notes: no call, no tokens, no text of the model's."""
    log = Log()
    log.says("Row")
    log.answers(text("API Error: 529"), model="<synthetic>", call="uuid-1", isApiErrorMessage=True, apiErrorStatus=529)
    log.answers(text("No response requested."), model="<synthetic>", call="uuid-2")
    found = events(tmp_path, log.entries)
    assert not of_kind(found, ModelCall)
    assert not of_kind(found, AssistantText)
    assert [(each.topic, each.text) for each in of_kind(found, Note)] == [
        ("api_error", "API Error: 529"), ("synthetic", "No response requested."),
    ]  # fmt: skip


def test_who_spoke(tmp_path):
    """A human typed what nothing says was written by somebody else."""
    log = Log()
    log.says(
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    )
    log.says("<local-command-stdout></local-command-stdout>")
    log.says("Caveat: The messages below …", isMeta=True)
    log.says([text("<ide_opened_file>/tmp/a</ide_opened_file>"), text("Row to the island")])
    log.says([text("[Request interrupted by user]")])
    log.says("a1 has ended", origin={"kind": "task-notification"})
    log.says("Go on", origin={"kind": "human"})
    log.says("How nice", origin={"kind": "peer", "from": "x"})
    found = events(tmp_path, log.entries)
    humans = [each.content for each in of_kind(found, User) if each.actor == "human"]
    assert humans[1:] == ["Row to the island", "Go on"]
    assert humans[0].startswith("<command-name>/clear")
    assert len(of_kind(found, User)) == 8
    assert [each.text for each in of_kind(found, Context)] == ["<ide_opened_file>/tmp/a</ide_opened_file>"]
    assert found[0].header.task == "Row to the island"


def test_a_command_the_model_answers(tmp_path):
    """A session that begins with a command which the model answers is called after it."""
    log = Log()
    log.says(
        "<command-message>init</command-message>\n<command-name>/init</command-name>\n<command-args>all</command-args>"
    )
    log.says([text("Please look at everything.")], isMeta=True)
    log.answers(text("I look."))
    log.says("Thank you")
    assert events(tmp_path, log.entries)[0].header.task == "/init all"


def test_pictures(tmp_path):
    """What is no text stays with the entry as it is."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    log = Log()
    log.says([text("What is this?"), picture], imagePasteIds=[1])
    log.answers(use("t1", "Read", file_path="/tmp/a.png"))
    log.result("t1", [picture], {"type": "image", "file": {"base64": "aGk=", "type": "image/png"}})
    found = events(tmp_path, log.entries)
    assert of_kind(found, User)[0].native.fields["entry"]["message"] == {"blocks": [picture]}
    result = of_kind(found, ToolResult)[0]
    assert result.content == ""
    assert result.native.fields["entry"]["message"] == {"blocks": [{"content": [picture]}]}
    assert result.returned["file"]["base64"] == "aGk="


@pytest.mark.parametrize(
    ("content", "returned", "is_error", "ended"),
    [
        ("fine", {"stdout": "fine", "stderr": "", "interrupted": False}, None, ("ok", None)),
        ("Exit code 127\nnot found", "Error: Exit code 127\nnot found", True, ("error", 127)),
        ("Exit code 1", "Error: Exit code 1", True, ("error", 1)),
        ("Exit code 3 is what it says", {"stdout": "x"}, None, ("ok", None)),
        ("The user doesn't want to proceed with this tool use. It was rejected", "Error", True, ("denied", None)),
        ("Claude requested permissions to write to /a, but no.", "Error", True, ("denied", None)),
        ("Permission to use Bash with command rm has been denied.", "Error", True, ("denied", None)),
        ("Permission to boats/hull.git denied to rower.", "Error", True, ("error", None)),
        ("No, not like that", "User rejected tool use", True, ("denied", None)),
        ("Hook PreToolUse:Bash denied this tool", "Error", True, ("denied", None)),
        ("The user doesn't want to take this action right now. STOP", "Error", True, ("interrupted", None)),
        ("[Request interrupted by user for tool use]", "Error", True, ("interrupted", None)),
        ("part", {"stdout": "part", "interrupted": True}, None, ("interrupted", None)),
        ("Command timed out after 2m 0.0s", "Error: Command timed out", True, ("timeout", None)),
        ("Exit code 143\nCommand timed out after 2m", "Error", True, ("timeout", 143)),
        ("later", {"stdout": "", "backgroundTaskId": "b1", "timedOutAfterMs": 5000}, None, ("timeout", None)),
    ],
)  # fmt: skip
def test_how_a_call_ended(tmp_path, content, returned, is_error, ended):
    """Status and exit code are what the result says, and nothing else."""
    log = Log()
    log.says("Row")
    log.answers(use("t1"))
    log.result("t1", content, returned, is_error=is_error)
    found = of_kind(events(tmp_path, log.entries), ToolResult)[0]
    assert (found.content, found.is_error) == (content, bool(is_error))
    assert (found.status, found.exit_code) == ended


def test_a_denial_by_name(tmp_path):
    """Newer versions say that a call was not allowed in a field of its own."""
    log = Log(version="2.1.220")
    log.says("Row")
    log.answers(use("t1"))
    log.result("t1", "No.", is_error=True, toolDenialKind="user-rejected")
    assert of_kind(events(tmp_path, log.entries), ToolResult)[0].status == "denied"


def test_what_was_returned_besides(tmp_path):
    """What a tool returned is kept where it says more than the model saw: an object, a text or a list."""
    log = Log()
    log.says("Row")
    log.answers(*(use(f"t{i}") for i in range(5)))
    log.result("t0", "out", {"stdout": "out", "stderr": "", "interrupted": False, "isImage": False})
    log.result("t1", "out", {"stdout": "out", "stderr": "warned", "interrupted": False})
    log.result("t2", "<tool_use_error>no</tool_use_error>", "Error: no", is_error=True)
    log.result("t3", [text("a"), text("b")], [{"uri": "x"}])
    log.result(
        "t4", "done", {"status": "completed", "agentId": "a1", "content": [text("done")], "totalDurationMs": 900}
    )
    found = of_kind(events(tmp_path, log.entries), ToolResult)
    assert [each.returned for each in found[:4]] == [
        None, {"stderr": "warned", "interrupted": False}, "Error: no", [{"uri": "x"}],
    ]  # fmt: skip
    assert found[3].content == "a\nb"
    assert found[4].duration_ms == 900
    assert found[4].returned["agentId"] == "a1"


def test_results_and_words_in_one_entry(tmp_path):
    """Somebody who typed while a tool was at work is heard, after the result."""
    log = Log()
    log.says("Row")
    log.answers(use("t1"))
    log.says([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, text("not so fast")])
    found = [each for each in events(tmp_path, log.entries) if isinstance(each, (ToolResult, User))]
    assert [type(each).__name__ for each in found] == ["User", "ToolResult", "User"]
    assert (found[2].content, found[2].actor) == ("not so fast", "human")


def test_calls_without_ids(tmp_path):
    """Calls and results that bear no ids find each other by the entry that the result names."""
    log = Log(version="1.9.0")
    log.says("Row")
    asked = log.answers({"type": "tool_use", "name": "bash", "input": {"command": "a"}},
                        {"type": "tool_use", "name": "bash", "input": {"command": "b"}})  # fmt: skip
    for said in ("first", "second"):
        log.says([{"type": "tool_result", "content": said}], sourceToolAssistantUUID=asked)
    found = [(each.call.args, each.result.content) for each in pairs(events(tmp_path, log.entries))]
    assert found == [(b'{"command":"a"}', "first"), (b'{"command":"b"}', "second")]


def test_what_the_model_is_shown(tmp_path):
    """Attachments for the model are context; those for the client, and those nobody knows, are notes."""
    log = Log()
    log.says("Row")
    log.add("attachment", attachment={"type": "skill_listing", "content": "- row: rows", "skillCount": 1})
    log.add("attachment", attachment={"type": "deferred_tools_delta", "addedLines": ["A", "B"], "removedNames": []})
    log.add(
        "attachment", attachment={"type": "hook_additional_context", "content": ["be", "quick"], "hookEvent": "Stop"}
    )
    log.add("attachment", attachment={"type": "nested_memory", "path": "/a", "content": {"content": "read me"}})
    log.add("attachment", attachment={"type": "hook_success", "content": "seen", "exitCode": 0})
    log.add("attachment", attachment={"type": "command_permissions", "allowedTools": []})
    log.add("attachment", attachment={"type": "of_tomorrow", "text": "?"})
    found = events(tmp_path, log.entries)
    injected = of_kind(found, Context)
    assert [each.text for each in injected] == ["- row: rows", "A\nB", "be\nquick", None, "seen"]
    assert injected[0].detail == {"type": "skill_listing", "skillCount": 1}
    assert injected[3].detail["content"] == {"content": "read me"}
    assert [each.topic for each in of_kind(found, Note)] == ["attachment.command_permissions", "attachment.of_tomorrow"]


def test_messages_that_waited(tmp_path):
    """A message that was sent while the model was at work is a human's; a notification in its place is not."""
    log = Log()
    log.says("Row")
    log.add("attachment", attachment={"type": "queued_command", "prompt": "faster", "commandMode": "prompt"})
    log.add(
        "attachment", attachment={"type": "queued_command", "prompt": [text("and sing")], "origin": {"kind": "human"}}
    )
    said = "<task-notification>\n<task-id>a1</task-id></task-notification>"
    log.add("attachment", attachment={"type": "queued_command", "prompt": said, "commandMode": "task-notification"})
    log.aside("queue-operation", operation="remove", sessionId=ID, timestamp="2026-05-12T01:10:00Z")
    found = events(tmp_path, log.entries)
    assert [(each.content[:8], each.actor) for each in of_kind(found, User)] == [
        ("Row", "human"), ("faster", "human"), ("and sing", "human"), ("<task-no", "harness"),
    ]  # fmt: skip
    assert of_kind(found, Note)[0].topic == "queue-operation"


def test_compactions(tmp_path):
    """A summary takes the place of what came before; results may be blanked, or replaced, for the model alone."""
    log = Log()
    log.says("Row")
    log.add("system", subtype="microcompact_boundary", content="Context microcompacted",
            microcompactMetadata={"compactedToolIds": ["t1"], "tokensSaved": 7})  # fmt: skip
    log.aside("content-replacement", sessionId=ID, replacements=[{"toolUseId": "t1", "replacement": "short"}])
    log.add(
        "system", subtype="compact_boundary", content="Conversation compacted", compactMetadata={"trigger": "manual"}
    )
    log.says("We rowed.", isCompactSummary=True)
    found = of_kind(events(tmp_path, log.entries), Context)
    assert [each.op for each in found] == ["compact"] * 3
    assert found[0].detail == {"compactedToolIds": ["t1"], "tokensSaved": 7}
    assert found[1].detail["replacements"] == [{"toolUseId": "t1", "replacement": "short"}]
    assert (found[2].text, found[2].detail) == ("We rowed.", {"trigger": "manual"})


def test_taken_back(tmp_path):
    """A prompt in the place of another, and a response that was retracted, take back what came after."""
    log = Log()
    log.says("Row")
    log.answers(text("I row."))
    log.add("system", subtype="turn_duration", durationMs=5)
    fork = log.last
    log.says("Left")
    log.answers(text("To the left."), call="msg_2")
    log.says("Right", parentUuid=fork)
    log.answers(text("To the right."), call="msg_3")
    log.add("system", subtype="model_refusal_fallback", content="switched", retractedMessageUuids=["x"])
    found = events(tmp_path, log.entries)
    rewinds = [each for each in of_kind(found, Context) if each.op == "rewind"]
    assert [each.detail for each in rewinds] == [{"to": fork}, {"retracted": ["x"]}]
    right = next(each for each in found if isinstance(each, Context) and each.detail == {"to": fork})
    assert right.parent == f"{found[0].writer}:{found.index(of_kind(found, Note)[0])}"


def test_two_entries_on_a_line(tmp_path):
    """Entries with nothing between them are both read; the place is told."""
    entries = whole()
    body = lines(*entries[:5]) + json.dumps(entries[5]).encode() + json.dumps(entries[6]).encode() + b"\n"
    glued = written(tmp_path, body + lines(*entries[7:]), "glued.jsonl")
    plain = written(tmp_path, lines(*entries), "plain.jsonl")
    keys = [[each.key for each in SOURCE.read(Original(path)) if hasattr(each, "key")] for path in (glued, plain)]
    assert keys[0] == keys[1]
    assert [each.place.line for each in troubles(SOURCE, glued)] == [6]


def test_an_entry_again(tmp_path):
    """An entry that is copied is there once; one that says something else under its uuid is noted, not said again."""
    log = Log()
    log.says("Row")
    log.answers(text("I row."), use("t1"), usage=USAGE | {"output_tokens": 1})
    again = log.entries[1] | {"version": "2.1.200"}
    again["message"] = again["message"] | {"usage": USAGE, "stop_reason": "tool_use"}
    found = events(tmp_path, [*log.entries, log.entries[1], again])
    assert len(of_kind(found, AssistantToolCall)) == 1
    assert usage(found).output == 57
    note = of_kind(found, Note)[0]
    assert (note.topic, note.native.fields["entry"]["again"]["version"]) == ("repeated", "2.1.200")


def test_entries_nobody_knows(tmp_path):
    """What is new is a note with all of it kept, and so is what was always beside the talk."""
    log = Log()
    log.says("Row")
    log.aside("of-tomorrow", sessionId=ID, what={"ever": [1]})
    log.add("system", subtype="local_command", content="<command-name>/help</command-name>", level="info")
    log.add("progress", data={"type": "bash_progress", "output": "."}, toolUseID="t1")
    log.aside("ai-title", aiTitle="Rowing", sessionId=ID)
    log.answers(
        {"type": "fallback", "from": "a", "to": "b"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {"query": "oars"}},
        {"type": "web_search_tool_result", "tool_use_id": "w1", "content": [{"type": "web_search_result"}]},
    )
    found = events(tmp_path, log.entries)
    notes = of_kind(found, Note)
    assert [(each.topic, each.text) for each in notes] == [
        ("of-tomorrow", None), ("system.local_command", "<command-name>/help</command-name>"),
        ("progress.bash_progress", None), ("ai-title", "Rowing"), ("block.fallback", None),
    ]  # fmt: skip
    assert notes[0].native.fields["entry"]["what"] == {"ever": [1]}
    assert notes[4].detail == {"type": "fallback", "from": "a", "to": "b"}
    assert of_kind(found, AssistantThinking)[0].state == {"type": "redacted_thinking", "data": "xyz"}
    assert pairs(found)[0].result.returned == [{"type": "web_search_result"}]


def test_nothing_vanishes(tmp_path):
    """Every value of a file is in an event, or with it."""
    entries = whole()
    for number, each in enumerate(entries):
        each["extra"] = f"extra-{number}"
        if isinstance(each.get("message"), dict):
            each["message"]["more"] = f"more-{number}"
    kept = repr(read(SOURCE, written(tmp_path, lines(*entries))))
    assert all(f"extra-{number}" in kept for number in range(len(entries)))
    assert all(f"more-{number}" in kept for number, each in enumerate(entries) if "message" in each)


def test_growth(tmp_path):
    """Each beginning of a file says the beginning of what the whole file says."""
    check_growth(SOURCE, tmp_path, lines(*whole()), f"{ID}.jsonl")


def test_whatever_stands_there(tmp_path):
    """Fields of any type, fields missing, lines cut off or doubled: nothing raises."""
    assert check_mutations(SOURCE, tmp_path, lines(*whole()[7:14]), depth=4) > 1000
