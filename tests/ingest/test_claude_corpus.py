"""Claude Code's real sessions: calls, results, turns, tokens and files, counted a second time by plain code."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import check_growth, counted
from tests.ingest.corpus import DATA, files
from trackway.ingest.formats.claude_code import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.parse import events_of
from trackway.ingest.source import Entry
from trackway.read.pairs import pairs
from trackway.read.usage import usage
from trackway.schema.canonical import hash_bytes
from trackway.schema.events import FileChange

pytestmark = pytest.mark.corpus

FILES = files("claude_code/**/*.jsonl")
INTERRUPTED = {"4c-02af2759b6-0"}
"""Sessions that were stored while a call was at work: its result had not come."""


def objects(path):
    """Every object of a file, two on a line if need be."""
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8").split("\n"):
        at = 0
        while at < len(line):
            value, at = decoder.raw_decode(line, at)
            yield value


def distinct(path):
    """Entries with a uuid, each once, by session."""
    met = {}
    for each in objects(path):
        if "uuid" in each and each["uuid"] not in met:
            met[each["uuid"]] = each
    return met.values()


def blocks(entry, sort):
    """The blocks of one type in an entry."""
    content = (entry.get("message") or {}).get("content")
    return [each for each in content if each["type"] == sort] if isinstance(content, list) else []


def is_human(entry):
    """Whether a person wrote it."""
    if entry["type"] == "attachment":
        queued = entry["attachment"]
        return queued["type"] == "queued_command" and "<task-notification>" not in str(queued["prompt"])
    if entry["type"] != "user" or any(entry.get(name) for name in ("isMeta", "isSidechain", "isCompactSummary")):
        return False
    content = entry["message"]["content"]
    texts = [content] if isinstance(content, str) else [each["text"] for each in blocks(entry, "text")]
    own = [each for each in texts if not each.startswith(("<local-command", "<ide_", "<task-", "[Request interrupted"))]
    return bool(own) or (not texts and not blocks(entry, "tool_result"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem[:8]}")
def test_counts(path):
    """Calls, results, pairs and people's turns are those of an independent count; what has no pair has a reason."""
    calls, results, turns = set(), set(), 0
    for each in distinct(path):
        calls |= {(each["sessionId"], block["id"]) for block in blocks(each, "tool_use") if each["type"] == "assistant"}
        results |= {(each["sessionId"], block["tool_use_id"]) for block in blocks(each, "tool_result")}
        turns += is_human(each)
    found = events_of(SOURCE, Original(path))
    ours = sum((counted(each) for each in found.values()), Counter())
    assert ours == Counter(turns=turns, calls=len(calls), results=len(results), pairs=len(calls & results))
    open_calls = [each for events in found.values() for each in pairs(events) if each.result is None]
    assert not open_calls or path.parent.name in INTERRUPTED


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem[:8]}")
def test_tokens(path):
    """Tokens are those of the responses, each counted once by its last usage."""
    last = {}
    for each in objects(path):
        message = each.get("message") or {}
        if each["type"] == "assistant" and message["model"] != "<synthetic>":
            last[each["sessionId"], message["id"]] = message["usage"]
    for session, events in events_of(SOURCE, Original(path)).items():
        told = [each for (name, _), each in last.items() if name == session]
        spent = usage(events)
        assert spent.calls == len(told)
        assert [spent.input or 0, spent.cache_read or 0, spent.cache_write or 0, spent.output or 0] == [
            sum(each.get(name) or 0 for each in told)
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        ]


def test_files_rebuilt():
    """Every edit that tells what the file was is rebuilt exactly; files that others changed are found."""
    told = Counter()
    for path in FILES:
        bodies, changes = contents(path)
        drift = [each for each in changes if each.cause == "external"]
        ours = {each.cause: each for each in changes if each.cause != "external"}
        told += Counter(changes=len(ours), exact=sum(each.exact for each in ours.values()), drift=len(drift))
        assert all(each.before is None or each.before.hash in bodies for each in changes)
        for call, before, after in edits(path):
            change = ours[call]
            assert change.exact
            assert (bodies[change.before.hash], bodies[change.after.hash]) == (before, after)
            told["edits"] += 1
        assert len([each for each in drift if each.exact]) == len(list(drifts(path)))
    print(dict(told))
    assert told >= Counter(changes=166, exact=163, drift=4, edits=125)


def contents(path):
    """The contents of files by their names, and the changes that name them."""
    entries = [each for each in SOURCE.read(Original(path)) if isinstance(each, Entry)]
    bodies = {hash_bytes(body): body.decode() for each in entries for body in each.contents}
    return bodies, [event for each in entries for event in each.events if isinstance(event, FileChange)]


def results(path):
    """What tools returned, with the calls they were of; and that a sub-agent has ended."""
    for each in distinct(path):
        if "<task-notification>" in str(each.get("attachment")):
            yield "", {"agentId": "ended"}
        returned = each.get("toolUseResult")
        if each["type"] == "user" and isinstance(returned, dict) and blocks(each, "tool_result"):
            yield blocks(each, "tool_result")[0]["tool_use_id"], returned


def edits(path):
    """Every edit that tells what the file was: its call, and the file before and after."""
    for call, told in results(path):
        if isinstance(told.get("originalFile"), str) and "oldString" in told:
            before, times = told["originalFile"], -1 if told["replaceAll"] else 1
            yield call, before, before.replace(told["oldString"], told["newString"], times)


def drifts(path):
    """Every time that a file is not what it was when it was last seen."""
    known = {}
    after_edits = {call: after for call, _, after in edits(path)}
    for call, told in results(path):
        if "agentId" in told:
            known = {}
        file, name = told.get("file") or {}, told.get("filePath")
        if told.get("type") == "text" and file.get("startLine") == 1 and file["numLines"] == file["totalLines"]:
            name, now = file["filePath"], file["content"]
            if known.get(name, now) != now:
                yield name
            known[name] = now
        elif name and ("oldString" in told or told.get("type") in ("create", "update") or "edits" in told):
            now = told.get("originalFile")
            if now is not None and known.get(name, now) != now:
                yield name
            known.pop(name, None)
            if call in after_edits or "content" in told:
                known[name] = after_edits.get(call, told.get("content"))


@pytest.mark.parametrize("path", FILES[:: max(1, len(FILES) // 4)], ids=lambda path: path.parent.name)
def test_growth(path, tmp_path):
    """The beginning of a real file says the beginning of what all of it says."""
    body = path.read_bytes()
    check_growth(SOURCE, tmp_path, b"".join(body.splitlines(keepends=True)[:120]), "grown.jsonl")


def test_nobody_elses():
    """Of all other files that are here, only those of the same client are taken for its own."""
    others = [each for each in files("**/*") if not each.is_relative_to(DATA / "claude_code")]
    taken = {each for each in others if SOURCE.detect(Original(each).head()) is not None}
    assert all("claude" in each.parts for each in taken)
