"""Antigravity: steps, whose calls and results know nothing of each other."""

from tests.ingest.agent_checks import FEW, check_growth, check_mutations, lines, of_kind, only, read, sign, written
from trackway.ingest.formats.antigravity import SOURCE
from trackway.read.pairs import pairs
from trackway.schema.events import Context, FileChange, Note, ToolResult, User

ID = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"


def step(number, source, kind, **fields):
    """A step."""
    at = f"2026-06-26T21:16:{number:02}Z"
    return {"step_index": number, "source": source, "type": kind, "status": "DONE", "created_at": at, **fields}


def asked(name, **given):
    """A call: its arguments are JSON inside of JSON."""
    return {"name": name, "args": {key: f'"{value}"' for key, value in given.items()}}


STEPS = [
    step(0, "USER_EXPLICIT", "USER_INPUT", content=(
        "<USER_REQUEST>\nMend the boat\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>\n"
        "The user changed setting `Model Selection` from None to Gemini 3.5 Flash (Medium).\n</USER_SETTINGS_CHANGE>")),
    step(1, "SYSTEM", "CONVERSATION_HISTORY"),
    step(2, "MODEL", "PLANNER_RESPONSE", thinking="hm", tool_calls=[
        asked("run_command", CommandLine="make"), asked("list_dir", DirectoryPath="/tmp"), asked("new_tool")]),
    step(3, "MODEL", "LIST_DIRECTORY", content="a.txt"),
    step(4, "MODEL", "VIEW_FILE", content="seen", truncated_fields=["content"]),
    step(5, "MODEL", "RUN_COMMAND", status="ERROR", content="The command failed with exit code: 2\nOutput: x"),
    step(6, "MODEL", "PLANNER_RESPONSE", content="Now I write", tool_calls=[
        asked("write_to_file", TargetFile="/tmp/n.md", CodeContent="hello")]),
    step(7, "MODEL", "CODE_ACTION", content="Created file"),
    step(8, "SYSTEM", "CHECKPOINT", content="In short"),
    step(9, "SYSTEM", "SYSTEM_MESSAGE", content="Mind the tide"),
    step(10, "MODEL", "RUN_COMMAND", status="RUNNING"),
]  # fmt: skip


def test_results_find_their_calls_by_what_tools_make(tmp_path):
    """A step that no open call makes is a result without a call; one that may be of any tool is not given away."""
    events = only(SOURCE, written(tmp_path, lines(*STEPS)))
    assert [(each.call.name, each.result and each.result.content[:5]) for each in pairs(events)] == [
        ("run_command", "The c"), ("list_dir", "a.txt"), ("new_tool", "seen"), ("write_to_file", "Creat"),
    ]  # fmt: skip
    assert [(each.status, each.exit_code) for each in of_kind(events, ToolResult)] == [
        ("ok", None), ("ok", None), ("error", 2), ("ok", None),
    ]  # fmt: skip
    rows = [STEPS[0], step(1, "MODEL", "PLANNER_RESPONSE", tool_calls=[asked("list_dir")]), STEPS[4]]
    alone = only(SOURCE, written(tmp_path, lines(*rows)))
    assert [each.result for each in pairs(alone)] == [None]
    assert of_kind(alone, ToolResult)[0].call_id == "step-4"


def test_what_a_person_asked_is_told_from_what_was_put_around_it(tmp_path):
    """The model that was chosen stands there; checkpoints and the system's words are context."""
    events = only(SOURCE, written(tmp_path, lines(*STEPS)))
    assert (events[0].header.task, events[0].header.model) == ("Mend the boat", "Gemini 3.5 Flash (Medium)")
    assert [each.content for each in of_kind(events, User)] == ["Mend the boat"]
    assert [(each.op, each.text[:8]) for each in of_kind(events, Context)] == [
        ("inject", "<USER_SE"), ("compact", "In short"), ("inject", "Mind the"),
    ]  # fmt: skip
    assert [each.topic for each in of_kind(events, Note)] == ["CONVERSATION_HISTORY", "RUN_COMMAND"]
    (change,) = of_kind(events, FileChange)
    assert (change.path, change.after.size) == ("/tmp/n.md", 5)


def test_the_conversation_is_named_by_its_folder(tmp_path):
    """A file that was taken out of it has no name."""
    path = written(tmp_path, lines(*STEPS), f"brain/{ID}/.system_generated/logs/transcript.jsonl")
    assert list(read(SOURCE, path)) == [ID]
    assert list(read(SOURCE, written(tmp_path, lines(*STEPS)))) == [""]


def test_it_is_told_by_its_steps(tmp_path):
    """Notes in Markdown, and other lines, are none of it."""
    assert sign(SOURCE, written(tmp_path, lines(*STEPS))).confidence == 0.95
    assert sign(SOURCE, written(tmp_path, b"# A plan\n\nMend it.\n", "plan.md")) is None
    assert sign(SOURCE, written(tmp_path, lines({"step_index": 1, "type": "x"}))) is None


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*STEPS))
    assert check_mutations(SOURCE, tmp_path, lines(*STEPS[:6]), depth=4, odd=FEW) > 50


def test_homes(tmp_path):
    """The conversations of both of its programs."""
    (tmp_path / ".gemini/antigravity-cli/brain").mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".gemini/antigravity-cli/brain"]
