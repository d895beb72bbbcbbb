"""opencode: its storage folder in every layout, its export, its stream, and the files that are here."""

import json

import pytest

from tests.ingest.agent_checks import (
    FEW,
    ODD,
    check_growth,
    check_mutations,
    counted,
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
from trackway.errors import FileRefused
from trackway.ingest.formats.opencode import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.parse import parsed
from trackway.read.pairs import pairs
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

T = 1_760_000_000_000
MODEL = {"providerID": "p", "modelID": "m-1"}
INFO = {
    "id": "ses_a1", "version": "1.1.3", "projectID": "proj", "directory": "/tmp/boat", "title": "Boats",
    "time": {"created": T, "updated": T + 9000},
}  # fmt: skip
TOKENS = {"input": 10, "output": 4, "reasoning": 0, "cache": {"read": 100, "write": 5}}


def part(own, message, kind, **fields):
    """A part as the storage has it."""
    return {"id": own, "sessionID": "ses_a1", "messageID": message, "type": kind, **fields}


def tool(own, message, *asked, **state):
    """A call (id, name, input, when); and what came of it, where there is a time at which something did."""
    call, name, given, *times = asked
    time = dict(zip(("start", "end"), (T + each for each in times), strict=False))
    status = {"status": "running"} if len(times) == 1 else {"status": "completed", "output": "done", "metadata": {}}
    about = {"input": given, "time": time} | status | state
    return part(own, message, "tool", callID=call, tool=name, state=about)


def message(own, role, at, **fields):
    """A message as the storage has it."""
    time = fields.pop("time", {"created": T + at})
    return {"id": own, "sessionID": "ses_a1", "role": role, "time": time, **fields}


EDITED = {"filediff": {"file": "b.txt", "before": "old", "after": "new", "additions": 1}}
MOVED = {"files": [{"filePath": "c", "type": "move", "movePath": "d", "before": "x", "after": "y"}]}
SESSION = [
    (message("msg_1", "user", 1, agent="build", model=MODEL, system="Be brief"), [
        part("prt_01", "msg_1", "text", text="Mend the boat"),
        part("prt_02", "msg_1", "text", text="Contents of x", synthetic=True),
        part("prt_03", "msg_1", "file", filename="x.png", mime="image/png", url="data:AA"),
        part("prt_04", "msg_1", "text", text="please"),
    ]),
    (message("msg_2", "assistant", 2, modelID="m-1", providerID="p", time={"created": T + 2, "completed": T + 90},
             tokens=TOKENS, cost=0.5), [
        part("prt_05", "msg_2", "step-start", snapshot="s1"),
        part("prt_06", "msg_2", "reasoning", text="hm", metadata={"anthropic": {"signature": "S"}}, time={"start": T}),
        part("prt_07", "msg_2", "text", text="I look", time={"start": T + 3, "end": T + 4}),
        tool("prt_08", "msg_2", "c1", "bash", {"command": "ls"}, 10, 40, metadata={"exit": 2, "output": "done"}),
        tool("prt_09", "msg_2", "c2", "write", {"filePath": "a.txt", "content": "one"}, 11, 20),
        part("prt_10", "msg_2", "step-finish", reason="tool-calls", tokens=TOKENS, cost=0.25),
        part("prt_11", "msg_2", "step-start"),
        tool("prt_12", "msg_2", "c3", "edit", {"filePath": "b.txt"}, 50, 60, metadata=EDITED),
        tool("prt_13", "msg_2", "c4", "bash", {"command": "x"}, 61, 62, status="error",
             error="The user rejected permission to use this specific tool call."),
        part("prt_14", "msg_2", "step-finish", reason="stop", tokens=TOKENS, cost=0.25),
        part("prt_15", "msg_2", "patch", hash="h", files=["b.txt"]),
        part("prt_16", "msg_2", "wings", number=2),
    ]),
    (message("msg_3", "user", 100, model=MODEL), [part("prt_17", "msg_3", "compaction", auto=True)]),
    (message("msg_4", "assistant", 101, summary=True, mode="compaction", modelID="m-1", tokens=TOKENS, finish="stop"), [
        part("prt_18", "msg_4", "text", text="A boat is mended"),
    ]),
    (message("msg_5", "assistant", 110, modelID="m-1", error={"name": "Aborted", "data": {"message": "off"}}), [
        tool("prt_19", "msg_5", "c5", "apply_patch", {}, 111, 112, metadata=MOVED),
    ]),
]  # fmt: skip


def stored(folder, session=SESSION, info=INFO, layout="storage"):
    """The session in a storage folder; the path of its file."""
    own = info["id"]
    if layout == "project":
        top, name = folder / "project/boat/storage/session", f"info/{own}.json"
        part_of = "part/" + own + "/{}/{}.json"
    else:
        top, name = folder / "storage", f"session/proj/{own}.json"
        part_of = "part/{}/{}.json" if layout == "storage" else "part/{1}.json"
    for said, parts in session:
        written(top, json.dumps(said).encode(), f"message/{own}/{said['id']}.json")
        for each in parts:
            written(top, json.dumps(each).encode(), part_of.format(said["id"], each["id"]))
    return written(top, json.dumps(info).encode(), name)


@pytest.mark.parametrize("layout", ["storage", "project", "loose"])
def test_every_layout_says_the_same(tmp_path, layout):
    """Parts by message, by session and message, or side by side: the session is what it is."""
    path = stored(tmp_path, layout=layout)
    assert sign(SOURCE, path).confidence == 0.9
    events = read(SOURCE, path)["ses_a1"]
    assert counted(events) == {"turns": 1, "calls": 5, "results": 5, "pairs": 5}
    header = events[0].header
    assert (header.task, header.model, header.metadata["cwd"]) == ("Mend the boat", "m-1", "/tmp/boat")


def test_a_prompt_is_what_a_person_typed(tmp_path):
    """What the client adds to it is what the model was given beside it; a picture is kept."""
    events = only(SOURCE, stored(tmp_path))
    assert [each.content for each in of_kind(events, User)] == ["Mend the boat\nplease"]
    contexts = [(each.op, each.text, each.system_prompt) for each in of_kind(events, Context)]
    assert contexts == [
        ("set", None, "Be brief"), ("inject", "Contents of x", None), ("inject", "x.png", None),
        ("compact", "A boat is mended", None),
    ]  # fmt: skip
    assert "data:AA" in json.dumps([each.native.fields for each in events if each.native])


def test_each_step_is_one_call_and_its_tokens_are_counted_once(tmp_path):
    """What the message says in sum, its steps say in parts: only one of them counts."""
    events = only(SOURCE, stored(tmp_path))
    assert [each.id for each in of_kind(events, ModelCall)] == ["msg_2", "msg_2 2", "msg_4", "msg_5"]
    results = of_kind(events, ModelResult)
    assert [(each.id, each.finish_reason, each.error) for each in results] == [
        ("msg_2", "tool-calls", None), ("msg_2 2", "stop", None), ("msg_4", "stop", None), ("msg_5", None, "off"),
    ]  # fmt: skip
    tokens = tokens_of(results[0].usage)
    assert (tokens.input, tokens.cache_read, tokens.cache_write, float(tokens.cost)) == (10, 100, 5, 0.25)
    assert results[3].usage is None


def test_results_come_in_the_order_in_which_they_came(tmp_path):
    """Of calls made side by side the one that was done first is told first; how each ended is told."""
    events = only(SOURCE, stored(tmp_path))
    found = of_kind(events, ToolResult)
    assert [(each.call_id, each.status, each.exit_code) for each in found] == [
        ("c2", "ok", None), ("c1", "error", 2), ("c3", "ok", None), ("c4", "denied", None), ("c5", "ok", None),
    ]  # fmt: skip
    assert found[1].duration_ms == 30
    calls = of_kind(events, AssistantToolCall)
    assert calls[0].batch == calls[1].batch != calls[2].batch == calls[3].batch
    assert calls[4].batch is None


def test_changes_of_files_are_exact_where_the_tool_gave_the_contents(tmp_path):
    """An edit with before and after, a move; a write says only what it wrote."""
    changes = of_kind(only(SOURCE, stored(tmp_path)), FileChange)
    assert [(each.op, each.path, each.cause, each.exact) for each in changes] == [
        ("create", "a.txt", "c2", False), ("modify", "b.txt", "c3", True), ("rename", "c", "c5", True),
    ]  # fmt: skip
    assert (changes[1].before.size, changes[2].new_path) == (3, "d")


def test_thoughts_keep_their_state_and_unknown_parts_are_kept(tmp_path):
    """A signature is the provider's; a part of the future is a note with all of it."""
    events = only(SOURCE, stored(tmp_path))
    assert of_kind(events, AssistantThinking)[0].state == {"anthropic": {"signature": "S"}}
    wings = next(each for each in of_kind(events, Note) if each.topic == "wings")
    assert wings.native.fields["entry"]["number"] == 2


def test_what_grows_says_again_what_it_said(tmp_path):
    """A call that is under way has its result later; a text that is being written is told in whole when it is done."""
    growing = message("msg_9", "assistant", 200, modelID="m-1")
    began = [
        part("prt_50", "msg_9", "text", text="I am", time={"start": T + 201}),
        tool("prt_51", "msg_9", "c9", "bash", {"command": "a"}, 202),
        tool("prt_52", "msg_9", "c10", "bash", {"command": "b"}, 203, 204),
    ]
    before = entries(SOURCE, stored(tmp_path, [*SESSION, (growing, began)]))
    done = growing | {"time": {"created": T + 200, "completed": T + 300}}
    later = [
        part("prt_50", "msg_9", "text", text="I am done", time={"start": T + 201, "end": T + 202}),
        tool("prt_51", "msg_9", "c9", "bash", {"command": "a"}, 202, 290),
        began[2],
        part("prt_53", "msg_9", "step-finish", reason="stop", tokens=TOKENS, cost=1),
    ]
    path = stored(tmp_path, [*SESSION, (done, later), (message("msg_A", "user", 400), [])])
    after = {key: (session, said) for session, key, said in entries(SOURCE, path)}
    changed = [key for session, key, said in before if after.get(key) != (session, said)]
    assert len(changed) == 2  # the text that was not done, and the message that was not
    assert changed[1].startswith("prt_50 ")
    texts = [each.content for each in of_kind(only(SOURCE, path), AssistantText)]
    assert texts == ["I look", "I am done"]


def test_growth_by_messages(tmp_path):
    """Each beginning of a session says the beginning of what it says in the end."""
    whole = entries(SOURCE, stored(tmp_path / "whole"))
    for count in range(1, len(SESSION)):
        found = entries(SOURCE, stored(tmp_path / str(count), SESSION[:count]))
        assert [each[1] for each in found] == [each[1] for each in whole][: len(found)]


def child(own="ses_b2", parent="ses_a1"):
    """A session that another one gave a task to."""
    info = INFO | {"id": own, "parentID": parent, "title": "Look around (@explore subagent)"}
    said = [
        (message(f"{own}_1", "user", 30), [part(f"{own}_p1", f"{own}_1", "text", text="Look around")]),
        (message(f"{own}_2", "assistant", 31, modelID="m-2"), [
            tool(f"{own}_p2", f"{own}_2", "c1", "bash", {"command": "pwd"}, 32, 33),
        ]),
    ]  # fmt: skip
    return said, info


def test_a_task_given_to_another_session_is_inside_the_one_that_gave_it(tmp_path):
    """The sub-agent's file says the same beginning as the session's own, and everything else as its own agent."""
    top = stored(tmp_path)
    below = stored(tmp_path, *child())
    deeper = stored(tmp_path, *child("ses_c3", "ses_b2"))
    own = read(SOURCE, top)["ses_a1"]
    for path, name in ((below, "ses_b2"), (deeper, "ses_c3")):
        found = read(SOURCE, path)
        assert list(found) == ["ses_a1"]
        start = next(each for each in found["ses_a1"] if each.kind == "episode_start")
        assert start.header == own[0].header
        others = [each for each in found["ses_a1"] if each is not start]
        assert {each.agent for each in others} == {name}
        assert counted(others)["turns"] == 0  # nobody but an agent asked it
        assert {each.writer for each in others}.isdisjoint({each.writer for each in own})
        assert len([each for each in pairs([*own, *others]) if each.result]) == 6


def test_a_sub_agent_whose_session_is_not_here_is_an_episode_of_its_own(tmp_path):
    """It names the one it belongs to."""
    found = read(SOURCE, stored(tmp_path, *child()))
    assert list(found) == ["ses_b2"]
    header = found["ses_b2"][0].header
    assert header.parent is not None
    assert header.task == "Look around"


def test_messages_and_parts_are_read_with_their_session(tmp_path):
    """They are parts; what else lies in the storage is nothing."""
    stored(tmp_path)
    storage = tmp_path / "storage"
    for each in [*storage.glob("message/*/*.json"), *storage.glob("part/*/*.json")]:
        assert sign(SOURCE, each).is_part, each
    loose = written(
        tmp_path, json.dumps({"id": "p", "type": "text", "text": "x", "time": {"start": 1}}).encode(), "p.json"
    )
    assert sign(SOURCE, loose).is_part
    for other in (
        {"id": "x", "title": "y", "time": {"created": 1}}, {"type": "text", "text": "x"}, {"role": "user"},
        {"id": "c", "messages": [], "title": "x"}, {"info": {"id": "x"}, "messages": []}, [], {},
        {"id": "1", "sessionId": "s", "time": 1}, {"type": "tool", "id": "x"},
    ):  # fmt: skip
        assert sign(SOURCE, written(tmp_path, json.dumps(other).encode(), "other.json")) is None


def test_what_was_taken_back_is_a_rewind(tmp_path):
    """The session says from where on."""
    events = only(SOURCE, stored(tmp_path, info=INFO | {"revert": {"messageID": "msg_3", "diff": "long"}}))
    last = events[-1]
    assert (last.kind, last.op, last.detail) == ("context", "rewind", {"messageID": "msg_3"})


def exported(session=SESSION):
    """What ``opencode export`` writes."""
    return {"info": INFO, "messages": [{"info": said, "parts": parts} for said, parts in session]}


def test_an_export_says_what_the_storage_says(tmp_path):
    """Under the same keys, so that having both adds nothing."""
    path = written(tmp_path, json.dumps(exported()).encode(), "export.json")
    assert sign(SOURCE, path).confidence > 0.9
    assert entries(SOURCE, path) == entries(SOURCE, stored(tmp_path))


def stream():
    """What ``opencode run --format json`` prints."""
    kinds = {"step-start": "step_start", "step-finish": "step_finish", "tool": "tool_use"}
    rows = [
        {"type": kinds.get(each["type"], each["type"]), "timestamp": T + 500, "sessionID": "ses_a1", "part": each}
        for each in SESSION[1][1][:6]
    ]
    return [*rows, {"type": "error", "timestamp": T + 600, "sessionID": "ses_a1", "error": {"name": "APIError"}}]


def test_the_stream_has_the_keys_of_the_storage(tmp_path):
    """It has no prompt; what it has is the same."""
    path = written(tmp_path, lines(*stream()))
    assert sign(SOURCE, path).confidence == 0.9
    keys = {key for _, key, _ in entries(SOURCE, stored(tmp_path))}
    new = [key for _, key, _ in entries(SOURCE, path) if key not in keys]
    assert new == [f"error {T + 600}"]
    assert counted(only(SOURCE, path)) == {"turns": 0, "calls": 2, "results": 2, "pairs": 2}
    check_growth(SOURCE, tmp_path, lines(*stream()))


def test_mutations_of_an_export_and_of_a_stream(tmp_path):
    """Nothing raises, whatever stands where."""
    small = [(SESSION[0][0], SESSION[0][1][:2]), (SESSION[1][0], SESSION[1][1][5:8])]
    assert check_mutations(SOURCE, tmp_path, lines(exported(small)), "e.json", depth=6, odd=FEW) > 50
    assert check_mutations(SOURCE, tmp_path, lines(*stream()[3:]), depth=3, odd=FEW) > 50


def test_mutations_of_a_storage(tmp_path):
    """Any of its files may be anything, or nothing at all; the others are read."""
    path = stored(tmp_path)
    for each in sorted(tmp_path.rglob("*.json")):
        good = each.read_bytes()
        for odd in (b"", b"{", b"\xff\xfe\x00", *(json.dumps(one).encode() for one in ODD)):
            each.write_bytes(odd)
            try:
                list(parsed(SOURCE, Original(path)))
            except FileRefused:
                assert each == path
        each.write_bytes(good)


def test_a_part_that_cannot_be_read_is_told_by_name(tmp_path):
    """And the message it belongs to is read all the same."""
    path = stored(tmp_path)
    (tmp_path / "storage/part/msg_2/prt_08.json").write_text('{"id": "prt')
    told = troubles(SOURCE, path)
    assert len(told) == 1
    assert "prt_08.json" in told[0].reason
    assert counted(only(SOURCE, path))["calls"] == 4


def test_names_in_files_lead_nowhere_else(tmp_path):
    """An id that is a path does not leave the storage."""
    written(tmp_path, json.dumps(message("x", "user", 1)).encode(), "secret/x.json")
    path = stored(tmp_path, [])
    for odd in ("../../secret", "..", "/etc", "a/../../secret"):
        path.write_text(json.dumps(INFO | {"id": odd, "parentID": odd}))
        assert counted(only(SOURCE, path))["turns"] == 0


def test_homes(tmp_path):
    """The folders of sessions, old and new; never the one that holds the keys."""
    assert SOURCE.homes(tmp_path, {}) == []
    stored(tmp_path / ".local/share/opencode")
    stored(tmp_path / ".local/share/opencode", layout="project")
    top = tmp_path / ".local/share/opencode"
    assert SOURCE.homes(tmp_path, {}) == [top / "storage/session", top / "project/boat/storage/session/info"]
    assert SOURCE.homes(tmp_path, {"XDG_DATA_HOME": str(tmp_path / "else")}) == []


CORPUS = files("many_agents/*/opencode/storage_*/session/*/*.json")


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS, reason="the real files are not here")
@pytest.mark.parametrize("path", CORPUS, ids=lambda each: each.name)
def test_real_files_are_counted_alike(path):
    """User messages, tool parts and those of them that have an output."""
    storage, own = path.parents[2], json.loads(path.read_text())["id"]
    said = [json.loads(each.read_text()) for each in storage.glob(f"message/{own}/*.json")]
    names = {each["id"] for each in said}
    parts = [(each.parent.name, json.loads(each.read_text())) for each in storage.glob("part/**/*.json")]
    tools = [one for where, one in parts if one["type"] == "tool" and names & {where, one.get("messageID")}]
    done = sum("output" in each["state"] for each in tools)
    assert counted(only(SOURCE, path)) == {
        "turns": sum(each["role"] == "user" for each in said), "calls": len(tools), "results": done, "pairs": done,
    }  # fmt: skip
    assert troubles(SOURCE, path) == []
