"""Claude Code: what its file tools did, exactly or as far as it is told, and what somebody else did in between."""

import pytest

from tests.ingest.agent_checks import lines, of_kind, only, read, written
from tests.ingest.claude_lines import Log, edit, shown, text, use
from trackway.ingest.formats.claude_code import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.source import Entry
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileChange, ToolResult

HULL = "/tmp/boat/hull"


def changes(tmp_path, *results, **fields):
    """The changes of files that results tell of, with the contents they name in place of the names."""
    log = Log(**fields)
    log.says("Build")
    for number, each in enumerate(results):
        log.answers(use(f"t{number}", "Edit"), call=f"msg_{number}")
        if isinstance(each, dict) and "add" in each:
            log.add(**each["add"])
        else:
            log.result(f"t{number}", "done", each)
    path = written(tmp_path, lines(*log.entries))
    bodies = {
        hash_bytes(body): body.decode("utf-8", "surrogatepass")
        for entry in SOURCE.read(Original(path))
        if isinstance(entry, Entry)
        for body in entry.contents
    }
    found = of_kind(only(SOURCE, path), FileChange)
    states = [[None if state is None else bodies[state.hash] for state in (each.before, each.after)] for each in found]
    return [(each.op, *state, each.cause, each.exact) for each, state in zip(found, states, strict=True)]


@pytest.mark.parametrize(
    ("result", "change"),
    [
        (edit(HULL, "wood\nwood\n", "wood\nw", "tar\nw"), ("modify", "wood\nwood\n", "tar\nwood\n", "t0", True)),
        (edit(HULL, "wood\nwood\n", "wood", "tar", every=True), ("modify", "wood\nwood\n", "tar\ntar\n", "t0", True)),
        (edit(HULL, "\t£\r\n", "£", "ß"), ("modify", "\t£\r\n", "\tß\r\n", "t0", True)),
        (edit(HULL, "wood", "tar", "wax"), ("modify", "wood", None, "t0", False)),
        (edit(HULL, "wood wood", "wood", "tar"), ("modify", "wood wood", None, "t0", False)),
        (edit(HULL, None, "wood", "tar"), ("modify", None, None, "t0", False)),
        (edit(HULL, "", "", "wood"), ("create", None, "wood", "t0", True)),
        (edit(HULL, None, "", "wood"), ("create", None, "wood", "t0", True)),
        (edit(HULL, "w\ufffdd", "w", "r"), ("modify", "w\ufffdd", "r\ufffdd", "t0", False)),
        (edit(HULL, "wood", "wood", "tar", userModified=True), ("modify", "wood", "tar", "t0", True)),
        (
            {"type": "create", "filePath": HULL, "content": "wood", "structuredPatch": []},
            ("create", None, "wood", "t0", True),
        ),
        (
            {"type": "update", "filePath": HULL, "content": "tar", "originalFile": "wood"},
            ("modify", "wood", "tar", "t0", True),
        ),
        ({"type": "update", "filePath": HULL, "content": "tar"}, ("modify", None, "tar", "t0", False)),
        (
            {
                "filePath": HULL,
                "originalFileContents": "a b",
                "edits": [
                    {"old_string": "a", "new_string": "b c"},
                    {"old_string": "b", "new_string": "d", "replace_all": True},
                ],
            },
            ("modify", "a b", "d c d", "t0", True),
        ),
        (
            {"notebook_path": HULL, "new_source": "x", "original_file": "{}", "updated_file": "[]"},
            ("modify", "{}", "[]", "t0", True),
        ),
        ({"notebook_path": HULL, "new_source": "x", "edit_mode": "insert"}, ("modify", None, None, "t0", False)),
    ],
)  # fmt: skip
def test_what_a_tool_did(tmp_path, result, change):
    """A file before and after is what the result holds; where it does not say, nothing is made up."""
    assert changes(tmp_path, result) == [change]


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        (("-wood", " tar"), "tar\n"),
        (("-wood", "+", " tar"), "\ntar\n"),
        ((), None),
    ],
)
def test_a_deletion_up_to_the_end_of_a_line(tmp_path, patch, after):
    """Whether the line break went too is told by the count of lines; without one it is not claimed."""
    result = edit(HULL, "wood\ntar\n", "wood", "", patch=patch)
    assert changes(tmp_path, result) == [("modify", "wood\ntar\n", after, "t0", after is not None)]


@pytest.mark.parametrize(
    "result",
    [
        edit(HULL, "wood", "wood", "tar", staged=True),
        {"type": "create", "filePath": HULL, "content": "wood", "staged": True},
        {"notebook_path": HULL, "new_source": "x", "error": "no such cell"},
        "Error: String to replace not found in file.",
        [text("done")],
        shown(HULL, "wood"),
    ],
)
def test_what_changed_nothing(tmp_path, result):
    """What was held back, failed, or only looked, is no change."""
    assert changes(tmp_path, result) == []


def test_drift(tmp_path):
    """A file that is another than it was left, at the next edit or look, was changed by somebody else."""
    found = changes(
        tmp_path,
        {"type": "create", "filePath": HULL, "content": "wood"},
        edit(HULL, "oak", "oak", "tar"),
        edit(HULL, "tar", "tar", "wax"),
        shown(HULL, "glue"),
        shown(HULL, "glue"),
        {"type": "update", "filePath": HULL, "content": "x", "originalFile": "glue"},
    )
    assert found == [
        ("create", None, "wood", "t0", True),
        ("modify", "wood", "oak", "external", True),
        ("modify", "oak", "tar", "t1", True),
        ("modify", "tar", "wax", "t2", True),
        ("modify", "wax", "glue", "external", True),
        ("modify", "glue", "x", "t5", True),
    ]


def test_drift_after_a_look(tmp_path):
    """A whole file that was read is known; a part of one is not."""
    assert changes(tmp_path, shown(HULL, "wood"), edit(HULL, "oak", "oak", "tar"))[0] == (
        "modify", "wood", "oak", "external", True,
    )  # fmt: skip
    for part in (shown(HULL, "wood", start=2), shown(HULL, "wood", more=9)):
        assert len(changes(tmp_path, part, edit(HULL, "oak", "oak", "tar"))) == 1


def test_drift_of_a_whole_file(tmp_path):
    """A file that is new, and was there before, was deleted by somebody else."""
    created = {"type": "create", "filePath": HULL, "content": "wood"}
    assert changes(tmp_path, created, created)[1] == ("delete", "wood", None, "external", True)


def test_line_ends_are_no_drift(tmp_path):
    """A file that is shown with other line ends is the same one."""
    assert len(changes(tmp_path, edit(HULL, "a\r\nb", "a", "c"), edit(HULL, "c\nb", "b", "d"))) == 2


def test_drift_that_the_client_noticed(tmp_path):
    """The client's own word for it is kept as it is: what the file became is not told."""
    noticed = {
        "add": {"sort": "attachment", "attachment": {"type": "edited_text_file", "filename": HULL, "snippet": "x"}}
    }
    found = changes(tmp_path, edit(HULL, "wood", "wood", "tar"), noticed, edit(HULL, "oak", "oak", "elm"))
    assert found[1] == ("modify", None, None, "external", False)
    assert len(found) == 3


def test_drift_while_a_sub_agent_is_at_work(tmp_path):
    """What a sub-agent may have changed is not said to be somebody else's, until it has ended."""
    first, other = edit(HULL, "wood", "wood", "tar"), edit(HULL, "oak", "oak", "elm")
    done = {"status": "completed", "agentId": "a1", "content": []}
    assert len(changes(tmp_path, first, done, other)) == 2
    going_on = {"status": "async_launched", "isAsync": True, "agentId": "a1"}
    third = edit(HULL, "ash", "ash", "fir")
    assert len(changes(tmp_path, going_on, first, other)) == 2
    told = {
        "add": {"sort": "user", "message": {"role": "user", "content": "<task-notification>a1</task-notification>"}}
    }
    assert [each[3] for each in changes(tmp_path, going_on, first, told, other, third)] == [
        "t1",
        "t3",
        "external",
        "t4",
    ]


def test_contents_are_kept_once(tmp_path):
    """What a change holds is not kept again with what was returned; a text for the model is not, either."""
    log = Log()
    log.says("Build")
    log.answers(use("t0", "Edit"))
    log.result("t0", "done", edit(HULL, "wood", "wood", "tar", userModified=True))
    log.answers(use("t1", "Write"), call="msg_2")
    log.result("t1", "done", {"type": "create", "filePath": HULL, "content": "wood", "structuredPatch": []})
    found = of_kind(next(iter(read(SOURCE, written(tmp_path, lines(*log.entries))).values())), ToolResult)
    assert "originalFile" not in found[0].returned
    assert found[0].returned["userModified"] is True
    assert "content" not in found[1].returned
