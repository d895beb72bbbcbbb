"""Codex rollouts: the files a patch changed, exactly where that is known, and those someone else changed meanwhile."""

import json

import pytest

from tests.ingest.agent_checks import lines, of_kind, written
from tests.ingest.codex_lines import done, event, events_of, item, meta
from trackway.ingest.formats._codex_edits import patched
from trackway.ingest.formats.codex import SOURCE
from trackway.ingest.making import file_state
from trackway.ingest.original import Original
from trackway.ingest.source import Entry
from trackway.schema.events import FileChange, Note

HULL = "/boat/hull.py"


def applied(second, changes, **fields):
    """What a patch changed, as a legacy rollout tells it."""
    return event(second, "patch_apply_end", **{"call_id": f"c-{second}", "success": True, "changes": changes, **fields})


def update(diff, moved=None):
    """A file that was changed."""
    return {"type": "update", "unified_diff": diff, "move_path": moved}


def changes_of(tmp_path, *entries):
    """The changes of files in a rollout."""
    return of_kind(events_of(tmp_path, meta(), *entries), FileChange)


def test_what_was_added_and_deleted_is_whole(tmp_path):
    """A file that is added or deleted stands in the rollout, and its bytes go with the entry."""
    line = applied(1, {HULL: {"type": "add", "content": "dry\n"}, "/boat/leak": {"type": "delete", "content": "w\r\n"}})
    added, deleted = changes_of(tmp_path, line)
    assert (added.op, added.path, added.after, added.before) == ("create", HULL, file_state(b"dry\n"), None)
    assert (deleted.op, deleted.before, deleted.after) == ("delete", file_state(b"w\r\n"), None)
    assert added.exact
    assert deleted.exact
    assert added.cause == "c-1"
    path = written(tmp_path, lines(meta(), line))
    contents = [one for each in SOURCE.read(Original(path)) if isinstance(each, Entry) for one in each.contents]
    assert contents == [b"dry\n", b"w\r\n"]


def test_an_update_is_exact_where_the_session_wrote_the_file(tmp_path):
    """A difference that fits what was written before gives what is there now; moves and older forms included."""
    add = applied(1, {HULL: {"add": {"content": "a\nb\nc\n"}}})
    change = applied(2, {HULL: {"update": {"unified_diff": "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "move_path": None}}})
    move = done(
        3, "FileChange", id="c-3", status="completed", changes={HULL: update("@@ -1 +1 @@\n-a\n+A\n", "/boat/k")}
    )
    again = applied(4, {"/boat/k": update("@@ -3 +3 @@\n-c\n+C\n")})
    first, second, third, fourth = changes_of(tmp_path, add, change, move, again)
    assert (second.op, second.before, second.after) == ("modify", first.after, file_state(b"a\nB\nc\n"))
    assert (third.op, third.new_path, third.after) == ("rename", "/boat/k", file_state(b"A\nB\nc\n"))
    assert (fourth.before, fourth.after, fourth.exact) == (third.after, file_state(b"A\nB\nC\n"), True)
    assert all(each.exact for each in (first, second, third))


def test_nothing_is_made_up(tmp_path):
    """Of a file the session never wrote only the difference is known; a patch that failed changed nothing."""
    known = update("@@ -1 +1 @@\n-a\n+b\n")
    events = events_of(
        tmp_path, meta(), applied(1, {HULL: known}), applied(2, {HULL: known}, success=False),
        done(3, "FileChange", id="c-3", status="declined", changes={HULL: known}), applied(4, {}),
        applied(5, {HULL: 7}),
    )  # fmt: skip
    (first,) = of_kind(events, FileChange)
    assert (first.op, first.before, first.after, first.exact) == ("modify", None, None, False)
    assert first.native.fields["entry"]["changes"] == {HULL: known}
    notes = [each.detail["success"] for each in of_kind(events, Note) if each.topic == "patch_end"]
    assert notes == [False, False, True, True]


def test_drift_is_told(tmp_path):
    """A difference that does not fit, or another content that is deleted: someone else was there in between."""
    add = applied(1, {HULL: {"type": "add", "content": "a\n"}})
    other = applied(2, {HULL: update("@@ -1 +1 @@\n-z\n+y\n")})
    _, drift, change = changes_of(tmp_path, add, other)
    assert (drift.cause, drift.before, drift.after, drift.exact) == ("external", file_state(b"a\n"), None, False)
    assert (change.cause, change.before, change.exact) == ("c-2", None, False)
    gone = applied(2, {HULL: {"type": "delete", "content": "b\n"}})
    _, drift, change = changes_of(tmp_path, add, gone)
    assert (drift.cause, drift.before, drift.after) == ("external", file_state(b"a\n"), file_state(b"b\n"))
    assert (change.op, change.before, change.exact) == ("delete", file_state(b"b\n"), True)


PATCH = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: hull.py
*** Move to: keel.py
@@
-wet
+dry
*** Delete File: leak
*** End Patch"""
GONE_WELL = '{"output":"Success. Updated the following files:\\n","metadata":{"exit_code":0}}'


def patch_call(name, given):
    """A call with a patch in it, and that it went well."""
    kind, field = ("custom_tool_call", "input") if name == "apply_patch" else ("function_call", "arguments")
    call = item(1, kind, name=name, call_id="c", **{field: given})
    return [call, item(2, f"{kind}_output", call_id="c", output=GONE_WELL)]


WAYS = [
    ("apply_patch", PATCH),
    ("shell", json.dumps({"command": ["apply_patch", PATCH]})),
    ("exec_command", json.dumps({"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n", "workdir": "/boat"})),
]


@pytest.mark.parametrize(("name", "given"), WAYS)
def test_a_patch_nothing_else_is_told_of_is_inferred(tmp_path, name, given):
    """Older rollouts hold the patch and that it went well: what it asked for is told, and called inferred."""
    found = changes_of(tmp_path, *patch_call(name, given))
    assert [(each.op, each.path, each.new_path) for each in found] == [
        ("create", "new.py", None), ("rename", "hull.py", "keel.py"), ("delete", "leak", None),
    ]  # fmt: skip
    assert found[0].after == file_state(b"one\ntwo\n")
    assert not any(each.exact for each in found)
    assert {each.cause for each in found} == {"c"}


def test_a_patch_is_told_once(tmp_path):
    """Where an event tells what changed, the patch adds nothing; nor does one that failed."""
    call, output = patch_call("apply_patch", PATCH)
    event_of = event(1, "patch_apply_end", call_id="c", success=True, changes={HULL: update("@@ -1 +1 @@\n-a\n+b\n")})
    assert [each.path for each in changes_of(tmp_path, call, event_of, output)] == [HULL]
    failed = item(2, "custom_tool_call_output", call_id="c", output="apply_patch verification failed: no such lines")
    assert changes_of(tmp_path, call, failed) == []


DIFFERENCES = [
    (b"a\nb\nc\nd\n", "@@ -2 +2,2 @@\n-b\n+B\n+BB\n@@ -4 +5 @@\n-d\n+D\n", b"a\nB\nBB\nc\nD\n"),
    (b"a\n", "@@ -1 +1,2 @@\n a\n+b\n", b"a\nb\n"),
    (b"", "@@ -0,0 +1 @@\n+a\n", b"a\n"),
    (b"a\nb\n", "@@ -1,0 +2 @@\n+x\n", b"a\nx\nb\n"),
    (b"a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", b"a\n"),
    (b"a\n", "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", b"b"),
    (b"a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", b"a\r\nc\r\n"),
    (b"\n\nx\n", "@@ -2,2 +2,2 @@\n\n-x\n+y\n", b"\n\ny\n"),
    (b"\xff\na\n", "@@ -2 +2 @@\n-a\n+b\n", b"\xff\nb\n"),
    (b"a\n", "@@ -2 +2 @@\n-a\n+b\n", None),
    (b"a\nb\n", "@@ -2 +2 @@\n-b\n+c\n@@ -1 +1 @@\n-a\n+z\n", None),
    (b"a\n", "[cut]", None),
    (b"a\n", "", None),
]


@pytest.mark.parametrize(("before", "diff", "after"), DIFFERENCES)
def test_differences_fit_to_the_letter(before, diff, after):
    """Where every line that goes is there, at its place, the rest follows; else nothing does."""
    assert patched(before, diff) == after
