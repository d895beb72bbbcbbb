"""What the newest Claude Code was found to write, when it was driven by a scripted model: invented again."""

from tests.ingest.unseen import SESSION, lines, of, read
from trackway.ingest.formats import claude_code
from trackway.schema.events import AssistantToolCall, Context, FileChange, ModelCall, ModelResult, Note

# --- Claude Code 2.1.325 ----------------------------------------------------------------------------------------------


def claude(number, kind, *, second=0, **fields):
    """An entry of a session."""
    uuid = f"5b0c1d2e-0000-4000-9000-{number:012}"
    at = f"2026-01-02T03:04:{second or number:02}.000Z"
    entry = {"type": kind, "uuid": uuid, "parentUuid": None, "isSidechain": False, "timestamp": at}
    return entry | {"sessionId": SESSION} | fields


def prompt(number=1, said="Plant a tree", **fields):
    """What a human said."""
    return claude(number, "user", message={"role": "user", "content": said}, **fields)


def reply(number, call, *blocks, **fields):
    """A block of a response."""
    usage = fields.pop("usage", {"input_tokens": 10, "output_tokens": 40})
    message = {"id": call, "role": "assistant", "model": "m", "content": list(blocks), "usage": usage}
    return claude(number, "assistant", message=message | {"stop_reason": "end_turn"}, **fields)


def attachment(number, kind, *, rendered=None, **fields):
    """What was put beside a prompt."""
    told = {} if rendered is None else {"rendered": [{"content": rendered}], "renderedRole": "system"}
    return claude(number, "attachment", attachment={"type": kind, **fields}, **told)


def of_request(kind, **fields):
    """What the client keeps of its requests: these have no uuid."""
    return {"type": kind, "sessionId": SESSION, "timestamp": "2026-01-02T03:04:05.000Z", **fields}


def shape(name, prompt, *tools, **fields):
    """A system prompt and tools, as they were sent."""
    system = [{"type": "text", "text": each} for each in prompt]
    told = {"system": system, "tools": [{"name": each} for each in tools]}
    return of_request("api-request-shape", shapeHash=name, shape=told, **fields)


def test_claude_rendered_attachment(tmp_path):
    """An attachment of any kind that says how it was rendered was seen by the model, as it was rendered."""
    path = lines(
        tmp_path,
        prompt(),
        attachment(2, "weather", rendered="<system-reminder>It rains.</system-reminder>", sky="grey"),
        attachment(3, "weather", sky="blue"),
    )
    events = read(path, claude_code)
    (seen,) = of(events, Context)
    assert (seen.op, seen.text) == ("inject", "<system-reminder>It rains.</system-reminder>")
    assert seen.detail == {"type": "weather", "sky": "grey"}
    assert [each.topic for each in of(events, Note)] == ["attachment.weather"]


def test_claude_snapshot_sets_prompt(tmp_path):
    """A snapshot of the prompt is the system prompt and the tools, where nothing says how they were sent."""
    tool = {"name": "Dig", "description": "digs", "schema": {"name": "Dig", "input_schema": {}}}
    path = lines(
        tmp_path, prompt(), attachment(2, "prompt_snapshot", systemPrompt=["Be kind.", "Be brief."], tools=[tool])
    )
    (told,) = of(read(path, claude_code), Context)
    assert (told.op, told.system_prompt, told.tools) == ("set", "Be kind.\n\nBe brief.", [tool["schema"]])


def test_claude_shape_sets_prompt(tmp_path):
    """A request's shape is the system prompt and the tools, for the agent whose it is, whenever a request has it."""
    path = lines(
        tmp_path,
        prompt(),
        shape("aa", ["You dig.", "Be kind."], "Dig"),
        attachment(2, "prompt_snapshot", systemPrompt=["Be kind."]),
        shape("bb", ["You dig."], "Dig", "Rake"),
        of_request("api-request", shapeHash="bb", id="r1"),
        of_request("api-request", shapeHash="aa", id="r2"),
        shape("cc", ["You rake."], agentId="a1"),
    )
    told = of(read(path, claude_code), Context)
    assert [(each.system_prompt, len(each.tools), each.agent) for each in told] == [
        ("You dig.\nBe kind.", 1, None),
        ("You dig.", 2, None),
        ("You dig.\nBe kind.", 1, None),
        ("You rake.", 0, "a1"),
    ]


def test_claude_sub_agent_edits(tmp_path):
    """A sub-agent's edits are told by its calls alone: they are inferred, and none is made up of a call that failed."""
    side = {"isSidechain": True, "agentId": "a1"}

    def call(number, name, **given):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        return reply(number, f"msg_{number}", block, **side)

    def result(number, of_call, said, **more):
        block = {"type": "tool_result", "tool_use_id": f"toolu_{of_call}", "content": said, **more}
        return claude(number, "user", message={"role": "user", "content": [block]}, **side)

    path = lines(
        tmp_path,
        prompt(1, **side),
        call(2, "Write", file_path="/a.txt", content="one\n"),
        result(3, 2, "File created successfully at: /a.txt"),
        call(4, "Edit", file_path="/a.txt", old_string="one", new_string="two"),
        result(5, 4, "The file /a.txt has been updated."),
        call(6, "Write", file_path="/b.txt", content="no"),
        result(7, 6, "not allowed", is_error=True),
    )
    changes = of(read(path, claude_code), FileChange)
    told = [
        (each.op, each.path, each.after and each.after.size, each.cause, each.exact, each.agent) for each in changes
    ]
    assert told == [
        ("create", "/a.txt", 4, "toolu_2", False, "a1"),
        ("modify", "/a.txt", None, "toolu_4", False, "a1"),
    ]


def test_claude_old_notebook_edit(tmp_path):
    """An edit whose result names no file is inferred from its call, but not where it was held back, or failed."""

    def edited(number, **returned):
        given = {"notebook_path": "/n.ipynb", "cell_id": "a", "new_source": "1"}
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "NotebookEdit", "input": given}
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "Updated cell a with 1"}
        told = {"new_source": "1", "cell_type": "code", "edit_mode": "replace", "cell_id": "a", **returned}
        message = {"role": "user", "content": [block]}
        return [
            reply(number, f"msg_{number}", call),
            claude(number + 1, "user", message=message, toolUseResult=told),
        ]

    path = lines(tmp_path, prompt(), *edited(2, error=""), *edited(4, staged=True), *edited(6, error="no such cell"))
    changes = of(read(path, claude_code), FileChange)
    assert [(each.path, each.op, each.exact, each.cause) for each in changes] == [
        ("/n.ipynb", "modify", False, "toolu_2"),
    ]


def test_claude_change_of_a_sub_agent(tmp_path):
    """A file that a sub-agent may have changed was not changed from outside; one that changes later was."""

    def result(number, **returned):
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok"}
        return claude(number, "user", message={"role": "user", "content": [block]}, toolUseResult=returned)

    path = lines(
        tmp_path,
        prompt(),
        result(2, type="create", filePath="/a.txt", content="one\n"),
        result(3, status="completed", agentId="a1"),
        attachment(4, "edited_text_file", filename="/a.txt", snippet="1 two"),
        attachment(5, "edited_text_file", filename="/a.txt", snippet="1 three"),
    )
    changes = of(read(path, claude_code), FileChange)
    assert [(each.cause, each.at // 10**9 % 60) for each in changes] == [("toolu_2", 2), ("external", 5)]


def test_claude_id_of_another_request(tmp_path):
    """An id that comes again of another request is another call, and is counted by itself."""
    text = {"type": "text", "text": "Done."}
    path = lines(
        tmp_path,
        prompt(),
        reply(2, "msg_1", text, requestRef="r1"),
        reply(3, "msg_1", text, requestRef="r1"),
        reply(4, "msg_1", text, requestRef="r2", usage={"input_tokens": 90, "output_tokens": 80}),
    )
    events = read(path, claude_code)
    assert len({each.id for each in of(events, ModelCall)}) == 2
    assert [each.usage["input_tokens"] for each in of(events, ModelResult)] == [10, 90]


def test_claude_fork_without_a_mark(tmp_path):
    """A fork that begins with its own prompt, and then has older responses, did not pay for these."""
    text = {"type": "text", "text": "Done."}
    begun = {"type": "queue-operation", "operation": "enqueue", "content": "Go on", "sessionId": SESSION}
    path = lines(
        tmp_path,
        begun | {"timestamp": "2026-01-02T03:04:30.000Z"},
        prompt(1),
        reply(2, "msg_1", text),
        prompt(31, "Go on"),
        reply(32, "msg_2", text),
    )
    assert [each.id for each in of(read(path, claude_code), ModelCall)] == ["msg_2"]


def test_claude_copy_without_counts(tmp_path):
    """A response that is written once more with all its counts taken out costs what it did."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Dig", "input": {}}
    first = reply(2, "msg_1", call)
    again = reply(2, "msg_1", call, usage={"input_tokens": 0, "output_tokens": 0}, slug="quiet-oak")
    events = read(lines(tmp_path, prompt(), first, again), claude_code)
    assert of(events, ModelResult)[-1].usage["output_tokens"] == 40
    assert len(of(events, AssistantToolCall)) == 1
