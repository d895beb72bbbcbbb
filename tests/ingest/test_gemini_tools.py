"""Gemini CLI: what came of calls, and the files that they changed."""

from tests.ingest.agent_checks import of_kind, only, written
from tests.ingest.gemini_lines import call, changed, conversation, document, message
from trackway.ingest.formats.gemini_cli import SOURCE
from trackway.ingest.making import file_state
from trackway.ingest.original import Original
from trackway.read.pairs import pairs
from trackway.schema.events import FileChange


def test_results(tmp_path):
    """Errors, cancelled calls, a shell's exit code, parts that are no text; and calls that nothing came of."""
    shell = "Command: false\nOutput: (empty)\nExit Code: 1\nSignal: 0"
    image = {"inlineData": {"mimeType": "image/png", "data": "AA"}}
    answer = {"functionResponse": {"id": "e", "name": "saw", "response": {"planks": 9}, "parts": [image]}}
    other = {"functionResponse": {"id": "x", "name": "saw", "response": {"output": "not its own"}}}
    calls = [
        call("a", "run_shell_command", shell), call("b", result="no", status="error"),
        call("c", result="[Operation Cancelled]", status="cancelled"), call("d", result=None, status="cancelled"),
        call("e", "saw") | {"result": [answer, other]}, call("f", "saw") | {"result": "plain"},
        call("g", "saw") | {"result": [{"functionResponse": {"id": "g", "response": {"error": "broken"}}}]},
    ]  # fmt: skip
    events = only(SOURCE, written(tmp_path, document(conversation()[0], message("m", "gemini", "", toolCalls=calls))))
    found = {each.call.call_id: each.result for each in pairs(events)}
    assert (found["a"].exit_code, found["a"].status) == (1, "error")
    assert (found["b"].status, found["b"].is_error) == ("error", True)
    assert (found["c"].status, found["c"].is_error) == ("interrupted", False)
    assert found["d"] is None
    assert found["e"].content == '{"planks":9}'
    assert found["e"].returned[0]["parts"] == [image]
    assert found["f"].content == "plain"
    assert (found["g"].content, found["g"].status) == ("broken", "error")


def test_files_before_and_after(tmp_path):
    """What was shown holds the file whole, before and after; what does not fit was someone else's doing."""
    calls = [
        changed("/boat/hull", None, "a", 1),
        changed("/boat/hull", "a", "b", 2),
        changed("/boat/hull", "z", "c", 3),
    ]
    failed = {**changed("/boat/keel", None, "x", 4), "status": "error"}
    said_calls = message("m", "gemini", "", toolCalls=[*calls, failed])
    path = written(tmp_path, document(conversation()[0], said_calls))
    first, second, drift, third = of_kind(only(SOURCE, path), FileChange)
    assert (first.op, first.path, first.before, first.after) == ("create", "/boat/hull", None, file_state(b"a"))
    assert (second.op, second.before, second.after, second.cause) == (
        "modify", file_state(b"a"), file_state(b"b"), "w-2",
    )  # fmt: skip
    assert (drift.cause, drift.before, drift.after, drift.exact) == (
        "external", file_state(b"b"), file_state(b"z"), False,
    )  # fmt: skip
    assert (third.before, third.after, third.exact) == (file_state(b"z"), file_state(b"c"), True)
    assert all(each.exact for each in (first, second))
    contents = [one for each in SOURCE.read(Original(path)) for one in each.contents]
    assert contents == [b"a", b"a", b"b", b"b", b"z", b"z", b"c"]


def test_files_that_nobody_was_shown(tmp_path):
    """What a call was asked to write is inferred once it went well; an edit is followed as far as it fits."""
    calls = [
        call("a", "write_file", "Successfully created", args={"file_path": "h", "content": "wet wet"}),
        call("b", "replace", "ok", args={"file_path": "h", "old_string": "wet", "new_string": "dry"}),
        call("c", "replace", "ok", args={"file_path": "h", "old_string": "gone", "new_string": "x"}),
        call("d", "write_file", "Successfully overwrote file: k", args={"file_path": "k", "content": ""}),
    ]
    path = written(tmp_path, document(conversation()[0], message("m", "gemini", "", toolCalls=calls)))
    found = of_kind(only(SOURCE, path), FileChange)
    assert [(each.op, each.cause) for each in found] == [
        ("create", "a"), ("modify", "b"), ("modify", "external"), ("modify", "c"), ("modify", "d"),
    ]  # fmt: skip
    assert found[1].after == file_state(b"dry dry")
    assert (found[3].before, found[3].after) == (None, None)
    assert not any(each.exact for each in found)
