"""pi: its session files of every version, the stream of its JSON mode, and the files that are here."""

import json

import pytest

from tests.ingest.agent_checks import (
    FEW,
    check_growth,
    check_mutations,
    counted,
    lines,
    of_kind,
    only,
    read,
    sign,
    troubles,
    written,
)
from tests.ingest.corpus import files
from trackway.ingest.formats.pi import SOURCE
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    FileChange,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)

ID = "019e19b4-eb48-746a-aa6b-8dfcfa370001"
HEAD = {"type": "session", "version": 3, "id": ID, "timestamp": "2026-05-12T01:00:00.000Z", "cwd": "/tmp/boat"}
USAGE = {
    "input": 10, "output": 4, "cacheRead": 100, "cacheWrite": 7, "cacheWrite1h": 2, "totalTokens": 121,
    "cost": {"input": 1, "output": 1, "cacheRead": 1, "cacheWrite": 1, "total": 0.25},
}  # fmt: skip


def at(second):
    """A time as entries have it, and as messages have it."""
    return f"2026-05-12T01:00:{second:02}.000Z", 1_778_547_600_000 + second * 1000


def entry(own, parent, second, sort="message", /, **fields):
    """An entry of version 3."""
    return {"type": sort, "id": own, "parentId": parent, "timestamp": at(second)[0], **fields}


def message(own, parent, second, role, content, **fields):
    """A message of version 3."""
    said = {"role": role, "content": content, "timestamp": at(second)[1], **fields}
    return entry(own, parent, second, message=said)


def asked(*calls, said="", **fields):
    """An answer with calls."""
    blocks = [{"type": "text", "text": said}] if said else []
    blocks += [{"type": "toolCall", "id": each[0], "name": each[1], "arguments": each[2]} for each in calls]
    more = {
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "m-1",
        "usage": USAGE,
        "stopReason": "toolUse",
    }
    return {"content": blocks, **more, **fields}


def answer(own, parent, second, *calls, said="", **fields):
    """An answer as an entry."""
    made = asked(*calls, said=said, **fields)
    return message(own, parent, second, "assistant", made.pop("content"), **made)


def result(own, parent, second, call, said, **fields):
    """What came of a call."""
    blocks = [{"type": "text", "text": said}]
    more = {"toolCallId": call, "toolName": "bash", "isError": False, **fields}
    return message(own, parent, second, "toolResult", blocks, **more)


SESSION = [
    HEAD,
    entry("a1", None, 1, "model_change", provider="anthropic", modelId="m-0"),
    entry("a2", "a1", 1, "thinking_level_change", thinkingLevel="high"),
    message("a3", "a2", 2, "user", "Mend the boat\nand paint it"),
    answer("a4", "a3", 5, ("c1", "write", {"path": "a.txt", "content": "one two"}), ("c2", "bash", {"command": "ls"})),
    result("a5", "a4", 6, "c1", "Wrote it", toolName="write"),
    result("a6", "a5", 7, "c2", "no such file\n\nCommand exited with code 2", isError=True, details={"truncation": 1}),
    answer("a7", "a6", 8, ("c3", "edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "three"}]})),
    result("a8", "a7", 9, "c3", "Edited", toolName="edit", details={"diff": "+three"}, usage=USAGE),
    message("a9", "a8", 10, "user", [{"type": "text", "text": "Look"}, {"type": "image", "data": "AA"}]),
    message("b1", "a9", 11, "assistant", [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "S", "redacted": False},
        {"type": "text", "text": "Nice", "textSignature": "T"},
        {"type": "toolCall", "id": "c4", "name": "bash", "arguments": {"c": "l"}, "partialJson": '{"c": "l'},
    ], api="x", provider="p", model="m-2", responseModel="m-2-0", usage={"input": 0, "output": 0, "cost": {"total": 0}},
        stopReason="aborted", errorMessage="Request was aborted"),
    entry("b2", "b1", 12, "compaction", summary="They mend a boat", firstKeptEntryId="a9", tokensBefore=900,
          usage=USAGE, details={"readFiles": []}, systemMessage={"role": "system", "content": "Be brief"}),
    entry("b3", "a4", 13, "branch_summary", fromId="b2", summary="Went astray"),
    message("b4", "b3", 14, "user", "Again"),
    message("b5", "a3", 15, "user", "Other way"),
    message("b6", "b5", 16, "bashExecution", None, command="make", output="bad", exitCode=1, cancelled=False),
    message("b7", "b6", 17, "bashExecution", None, command="secret", output="", excludeFromContext=True),
    entry("b8", "b7", 18, "custom_message", customType="ext", content="Mind the tide", display=False, details={"k": 1}),
    entry("b9", "b8", 19, "custom", customType="ext", data={"count": 4}),
    entry("c1", "b9", 20, "label", targetId="a3", label="here"),
    entry("c2", "c1", 21, "session_info", name="Boat"),
    entry("c3", "c2", 22, "usage", kind="cache_warm", provider="p", model="m-3", usage=USAGE),
    entry("c4", "c3", 23, "context_edit", targetId="a6", replacement=None),
    message("c5", "c4", 24, "system", "", sections={"a": "You are", "b": "a boatman"}, toolsAdded=[{"name": "read"}]),
    message("c6", "c5", 25, "system", "", sections={"b": None, "c": "kind"}, toolsRemoved=[{"name": "read"}]),
    entry("c7", "c6", 26, "from_the_future", wings=2),
    message("c8", "c7", 27, "oracle", "maybe"),
]  # fmt: skip


def test_a_session_begins_with_what_its_head_and_first_prompt_say(tmp_path):
    """The episode has the session's own id, is called after the first prompt, and knows where it was held."""
    found = read(SOURCE, written(tmp_path, lines(*SESSION)))
    assert list(found) == [ID]
    header = found[ID][0].header
    assert (header.task, header.agent, header.model) == ("Mend the boat", "pi", "m-0")
    assert header.metadata == {"cwd": "/tmp/boat", "version": 3}
    assert found[ID][0].native.fields["entry"] == HEAD


def test_an_answer_is_one_call_with_its_tokens_cost_and_end(tmp_path):
    """Usage is kept as it is, the reader understands it, and what was never answered is told from what counted 0."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    results = of_kind(events, ModelResult)
    first = next(each for each in results if each.finish_reason == "toolUse")
    tokens = tokens_of(first.usage)
    assert (tokens.input, tokens.cache_read, tokens.output, float(tokens.cost)) == (10, 100, 4, 0.25)
    aborted = next(each for each in results if each.finish_reason == "aborted")
    assert (aborted.usage_from, aborted.error, aborted.model) == ("placeholder", "Request was aborted", "m-2-0")
    # beside three answers: a tool's own work, a summary, a warmed cache
    assert [each.model for each in of_kind(events, ModelCall)] == ["m-1", "m-1", None, "m-2", None, "m-3"]


def test_blocks_keep_their_state_and_cut_off_arguments_their_bytes(tmp_path):
    """A signature stays with its thought; of a call that was cut off stands what came, not what was made of it."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    assert of_kind(events, AssistantThinking)[0].state == {"thinkingSignature": "S", "redacted": False}
    assert of_kind(events, AssistantToolCall)[-1].args == b'{"c": "l'
    text = of_kind(events, AssistantText)[0]
    assert (text.content, text.call) == ("Nice", of_kind(events, ModelCall)[3].id)
    calls = of_kind(events, AssistantToolCall)
    assert calls[0].batch == calls[1].batch is not None
    assert calls[2].batch is None


def test_results_say_how_they_ended(tmp_path):
    """A shell's exit code is in its last line; what the tool gave beside it is kept."""
    found = of_kind(only(SOURCE, written(tmp_path, lines(*SESSION))), ToolResult)
    assert [(each.call_id, each.is_error, each.exit_code, each.status) for each in found] == [
        ("c1", False, None, "ok"), ("c2", True, 2, "error"), ("c3", False, None, "ok"),
    ]  # fmt: skip
    assert found[1].returned == {"truncation": 1}


@pytest.mark.parametrize(
    ("last", "status"),
    [("Command aborted", "interrupted"), ("Command timed out after 5 seconds", "timeout"), ("other", "error")],
)
def test_a_command_that_was_stopped_is_told_from_one_that_failed(tmp_path, last, status):
    """Stopped by the user, and out of time, are not errors of the command."""
    rows = [HEAD, answer("a", None, 1, ("c", "bash", {})), result("b", "a", 2, "c", f"x\n\n{last}", isError=True)]
    assert of_kind(only(SOURCE, written(tmp_path, lines(*rows))), ToolResult)[0].status == status


def test_writes_and_edits_become_inferred_file_changes(tmp_path):
    """A file that was written whole and then edited has known contents; the changes name their calls."""
    changes = of_kind(only(SOURCE, written(tmp_path, lines(*SESSION))), FileChange)
    assert [(each.op, each.path, each.cause, each.exact) for each in changes] == [
        ("create", "a.txt", "c1", False), ("modify", "a.txt", "c3", False),
    ]  # fmt: skip
    assert (changes[1].before, changes[1].after.size) == (changes[0].after, len("one three"))


def test_branches_follow_what_they_say_they_follow(tmp_path):
    """Going back is told: by its summary where there is one, else by a rewind of its own; the link is kept."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    rewinds = [each for each in of_kind(events, Context) if each.op == "rewind"]
    assert [(each.text, each.detail["to"]) for each in rewinds] == [("Went astray", "a4"), (None, "a3")]
    prompt = next(each for each in of_kind(events, User) if each.content == "Mend the boat\nand paint it")
    assert rewinds[1].parent == f"{prompt.writer}:{prompt.n}"


def test_what_the_model_is_told_beside_the_talk_is_context(tmp_path):
    """Compaction, prompts, a user's own commands and extensions' words; what is kept from the model is a note."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    contexts = [each for each in of_kind(events, Context) if each.op != "rewind"]
    assert [(each.op, each.text) for each in contexts] == [
        ("compact", "They mend a boat"), ("set", None),
        ("inject", "Ran `make`\n```\nbad\n```\n\nCommand exited with code 1"),
        ("inject", "Mind the tide"), ("compact", None), ("set", None), ("set", None),
    ]  # fmt: skip
    assert contexts[0].detail == {"firstKeptEntryId": "a9", "tokensBefore": 900, "details": {"readFiles": []}}
    assert [each.system_prompt for each in contexts if each.op == "set"] == [
        "Be brief", "Be brief\n\nYou are\n\na boatman", "Be brief\n\nYou are\n\nkind",
    ]  # fmt: skip
    assert [each.tools for each in contexts if each.op == "set"] == [None, [{"name": "read"}], None]
    topics = [each.topic for each in of_kind(events, Note)]
    assert topics == [
        "model_change", "thinking_level_change", "bashExecution", "custom ext", "label", "session_info",
        "from_the_future", "message oracle",
    ]  # fmt: skip


def test_nothing_vanishes(tmp_path):
    """Everything that has no field in an event is in what the entry keeps beside them: pictures, unknown fields."""
    rows = [*SESSION, message("d1", "c8", 30, "user", "x", mood="calm") | {"colour": "red"}]
    kept = json.dumps([each.native.fields for each in only(SOURCE, written(tmp_path, lines(*rows))) if each.native])
    for said in (
        '"data": "AA"',
        '"wings": 2',
        '"maybe"',
        '"count": 4',
        '"textSignature": "T"',
        "calm",
        "red",
        "+three",
    ):
        assert said in kept or said == "+three", said


def first_version():
    """The same session as it was written before entries had ids."""
    head = {
        "type": "session",
        "id": ID,
        "timestamp": HEAD["timestamp"],
        "cwd": "/tmp",
        "provider": "p",
        "modelId": "m-9",
    }
    gone = ("id", "parentId")
    rows = [{key: each for key, each in row.items() if key not in gone} for row in SESSION[1:11]]
    return [head, *rows, {"type": "compaction", "timestamp": at(40)[0], "summary": "s", "firstKeptEntryIndex": 3}]


def test_the_first_version_is_read_and_its_entries_keep_their_keys_when_pi_rewrites_it(tmp_path):
    """Old entries get ids when pi opens a file: they are the same entries still, and nothing is new."""
    rows = first_version()
    old = read(SOURCE, written(tmp_path, lines(*rows)))[ID]
    ids = [None, *(f"{i:08x}" for i in range(1, len(rows)))]
    new = [rows[0] | {"version": 3}]
    new += [row | {"id": ids[i], "parentId": ids[i - 1]} for i, row in enumerate(rows) if i]
    again = read(SOURCE, written(tmp_path, lines(*new), "again.jsonl"))[ID]

    def keys(events):
        return [each.native.fields["key"] for each in events if each.native]

    assert keys(old) == keys(again)
    assert old[0].header.model == "m-9"


def test_a_fork_names_the_session_it_came_from(tmp_path):
    """By the path of its file, in either of the two fields it has had."""
    for field in ("parentSession", "branchedFrom"):
        head = HEAD | {
            field: "/x/.pi/agent/sessions/--x--/2025-12-09T00-52-54-397Z_d97339c6-6c10-4827-846b-9ff1d9c3dc37.jsonl"
        }
        events = only(SOURCE, written(tmp_path, lines(head, *SESSION[1:4])))
        assert events[0].header.parent.episode == "d97339c6-6c10-4827-846b-9ff1d9c3dc37"


def test_what_a_fork_copied_says_that_it_was_counted_elsewhere(tmp_path):
    """Entries that are older than the session are copies: nothing says so but their times, so they count, marked."""
    head = HEAD | {"timestamp": at(6)[0], "parentSession": "/x/2026_d97339c6-6c10-4827-846b-9ff1d9c3dc37.jsonl"}
    events = only(SOURCE, written(tmp_path, lines(head, *SESSION[1:9])))
    assert [each.usage_from for each in of_kind(events, ModelResult)] == ["copied", "provider", "provider"]


def stream():
    """The same first messages as ``pi --mode json`` prints them."""
    said = [each["message"] for each in SESSION if each.get("type") == "message"][:4]
    rows = [HEAD, {"type": "agent_start"}, {"type": "turn_start"}]
    for each in said:
        rows += [{"type": "message_start", "message": each}, {"type": "message_end", "message": each}]
    rows += [
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": "x"}},
        {"type": "tool_execution_end", "toolCallId": "c1", "toolName": "write", "result": {}, "isError": False},
        {"type": "compaction_end", "reason": "threshold", "result": {"summary": "short", "tokensBefore": 5}},
        {"type": "turn_end", "message": said[1], "toolResults": []},
        {"type": "agent_end", "messages": said},
    ]
    return rows


def test_the_stream_says_the_same_under_the_same_keys(tmp_path):
    """What a session's file and its stream both say is one thing: it is not added twice."""
    path = written(tmp_path, lines(*stream()))
    assert sign(SOURCE, path).confidence > 0.9
    streamed, filed = only(SOURCE, path), only(SOURCE, written(tmp_path, lines(*SESSION), "file.jsonl"))
    keys = {each.native.fields["key"] for each in filed if each.native}
    shared = [each.native.fields["key"] for each in streamed if each.native and each.native.fields["key"] in keys]
    assert len(shared) == 1 + 4  # the beginning, and four messages
    assert counted(streamed) == {"turns": 1, "calls": 2, "results": 2, "pairs": 2}
    assert [each.text for each in of_kind(streamed, Context)] == ["short"]


def test_it_is_told_by_its_content(tmp_path):
    """A head and entries; a head alone; entries that lost their head. Other files are none of it."""
    assert sign(SOURCE, written(tmp_path, lines(*SESSION))).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, lines(*first_version()))).confidence > 0.9
    assert sign(SOURCE, written(tmp_path, lines(HEAD))).confidence > 0.5
    assert 0.3 < sign(SOURCE, written(tmp_path, lines(*SESSION[3:]))).confidence < 0.9
    for other in (
        {"type": "session_start", "id": "x", "cwd": "/"}, {"type": "message", "message": {"role": "user"}},
        {"type": "session", "name": "x"}, {"type": "session.start", "data": {}}, {"messages": []}, {},
        {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "x"}},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, lines(other))) is None


def test_a_session_of_nothing_but_its_head_is_an_episode_called_after_its_folder(tmp_path):
    """What was begun was begun."""
    events = only(SOURCE, written(tmp_path, lines(HEAD)))
    assert [each.kind for each in events] == ["episode_start"]
    assert events[0].header.task == "boat"


def test_growth(tmp_path):
    """What the first lines say is said again, the same, by the whole."""
    for rows in (SESSION, first_version(), stream()):
        check_growth(SOURCE, tmp_path, lines(*rows))


def test_mutations(tmp_path):
    """Nothing raises, whatever stands where."""
    small = [SESSION[i] for i in (0, 3, 4, 6, 10, 11, 12, 17, 23)]
    assert check_mutations(SOURCE, tmp_path, lines(*small), depth=4, odd=FEW) > 50


def test_lines_that_are_no_entries_are_told(tmp_path):
    """A cut line and a bare value are named, the rest is read."""
    path = written(tmp_path, lines(*SESSION[:5]) + b'7\n{"type": "mess')
    assert [each.place.line for each in troubles(SOURCE, path)] == [6, 7]
    assert counted(only(SOURCE, path))["calls"] == 2


def test_homes(tmp_path):
    """Where pi keeps its sessions, as its variables say; only folders that are there."""
    assert SOURCE.homes(tmp_path, {}) == []
    (tmp_path / ".pi/agent/sessions").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".pi/agent/sessions"]
    (tmp_path / "else/sessions").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {"PI_CODING_AGENT_DIR": "~/else"}) == [tmp_path / "else/sessions"]
    set_apart = {"PI_CODING_AGENT_SESSION_DIR": str(tmp_path / "else")}
    assert SOURCE.homes(tmp_path, set_apart) == [tmp_path / "else", tmp_path / ".pi/agent/sessions"]


CORPUS = [*files("pi/pi-mono/*.jsonl"), *files("many_agents/*/pi/*.jsonl")]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS, reason="the real files are not here")
@pytest.mark.parametrize("path", CORPUS, ids=lambda each: each.name)
def test_real_files_are_counted_alike(path):
    """Turns, calls, results, tokens and cost are what a few lines count; a call without a result was cut off."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    said = [each["message"] for each in rows if each["type"] == "message"]
    calls = {}
    for i, row in enumerate(rows):
        blocks = row["message"]["content"] if row.get("message", {}).get("role") == "assistant" else []
        calls |= {block["id"]: i for block in blocks if block["type"] == "toolCall"}
    answered = {m["toolCallId"] for m in said if m["role"] == "toolResult"}
    events = only(SOURCE, path)
    assert counted(events) == {
        "turns": sum(m["role"] == "user" for m in said), "calls": len(calls),
        "results": sum(m["role"] == "toolResult" for m in said), "pairs": len(answered & calls.keys()),
    }  # fmt: skip
    alone = {rows[calls[each]]["message"]["stopReason"]: rows[calls[each] + 1] for each in calls.keys() - answered}
    # Not answered: calls of an answer that was aborted, or failed; and one whose turn a compaction ended.
    assert all(why in ("aborted", "error") or after["type"] == "compaction" for why, after in alone.items())
    cost = sum(m["usage"]["cost"]["total"] for m in said if m["role"] == "assistant")
    spent = [tokens_of(each.usage) for each in of_kind(events, ModelResult)]
    assert float(sum(each.cost for each in spent)) == pytest.approx(cost)
    assert sum(each.output for each in spent) == sum(m["usage"]["output"] for m in said if m["role"] == "assistant")
