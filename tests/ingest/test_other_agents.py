"""Real files of command-line agents: each is told for what it is, and counted as a few plain lines count it."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import check_growth, counted, of_kind, read, troubles
from tests.ingest.corpus import DATA, files
from trackway.ingest.original import Original
from trackway.ingest.sources import detect, source_of
from trackway.read.pairs import pairs
from trackway.schema.events import EpisodeStart, Note

HERE = "many_agents/jazzyalex-agent-sessions"
ALL = files(f"{HERE}/**/*")
NO_EPISODE = {"LICENSE.upstream", "small.md", "migration"}
PARTS = ("state.json", "summary.json", "/message/", "/part/", ".meta.json")
CLIENTS = {"claude": "claude_code", "codex": "codex", "gemini": "gemini_cli"}

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not ALL, reason="the real files are not here")]


def rows(path):
    """The JSON values of a file, two on a line where there are two."""
    text, found, at = path.read_text(), [], 0
    decoder = json.JSONDecoder()
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def blocks(row):
    """The blocks of a message as Anthropic has them."""
    content = row.get("message", {}).get("content", []) if isinstance(row.get("message"), dict) else []
    return content if isinstance(content, list) else []


def kinds(found, *names):
    """How many blocks are of these kinds."""
    return sum(block.get("type", "").replace("-", "_") in names for row in found for block in blocks(row))


def qwen(found):
    """Turns, calls and results."""
    parts = [(row, part) for row in found for part in row.get("message", {}).get("parts", [])]
    asked = [row for row in found if row["type"] == "user" and row.get("subtype") != "notification"]
    return (
        len(asked),
        sum("functionCall" in part for _, part in parts),
        sum("functionResponse" in part for _, part in parts),
    )


def droid(found):
    """Turns, calls and results."""
    if found[0]["type"] == "session_start":
        typed = [row for row in found if row.get("message", {}).get("role") == "user" and kinds([row], "text")]
        return len(typed), kinds(found, "tool_use"), kinds(found, "tool_result")
    said = Counter(row["type"] for row in found)
    return sum(row.get("role") == "user" for row in found), said["tool_call"], said["tool_result"]


def kimi(found):
    """Turns, calls and results."""
    loop = Counter(row["event"]["type"] for row in found if row["type"] == "context.append_loop_event")
    added = [row["message"] for row in found if row["type"] == "context.append_message"]
    return sum(each["origin"]["kind"] == "user" for each in added), loop["tool.call"], loop["tool.result"]


def cursor(found):
    """Turns, calls and results."""
    typed = [row for row in found if row.get("role") == "user" and kinds([row], "text")]
    return len(typed), kinds(found, "tool_use", "tool_call"), kinds(found, "tool_result")


def grok(found):
    """Turns, calls and results."""
    said = Counter(row["type"] for row in found)
    calls = sum(len(row.get("tool_calls", [])) for row in found) + said["backend_tool_call"]
    return sum("prompt_index" in row for row in found), calls, said["tool_result"]


def copilot(found):
    """Turns, calls and results."""
    asked = Counter(each["toolCallId"] for row in found for each in row["data"].get("toolRequests", []))
    begun = Counter(row["data"]["toolCallId"] for row in found if row["type"] == "tool.execution_start")
    said = Counter(row["type"] for row in found)
    return said["user.message"], sum((asked | begun).values()), said["tool.execution_complete"]


def openclaw(found):
    """Turns, calls and results."""
    roles = Counter(row["message"]["role"] for row in found if "message" in row)
    return roles["user"], kinds(found, "toolCall"), roles["toolResult"]


def hermes(found):
    """Turns, calls and results."""
    said = found[0]["messages"]
    roles = Counter(each["role"] for each in said)
    return roles["user"], sum(len(each.get("tool_calls", [])) for each in said), roles["tool"]


def antigravity(found):
    """Turns, calls and results."""
    said = Counter(row["type"] for row in found)
    made = [row for row in found if row["source"] == "MODEL" and row["type"] != "PLANNER_RESPONSE"]
    return said["USER_INPUT"], sum(len(row.get("tool_calls", [])) for row in found), len(made)


COUNTERS = {
    "qwen": qwen, "droid": droid, "kimi": kimi, "cursor": cursor, "grok": grok, "copilot": copilot,
    "openclaw": openclaw, "pi": openclaw, "hermes": hermes, "antigravity": antigravity,
}  # fmt: skip
SESSIONS = [
    (name, path) for name in COUNTERS for path in ALL
    if f"/{name}/" in str(path) and path.name not in NO_EPISODE and not any(part in str(path) for part in PARTS)
]  # fmt: skip
UNPAIRED = {
    "qwen/019f0000-0000-7000-8000-000000000004.jsonl": 1,  # the file ends with the call
    "cursor/small.jsonl": 1, "cursor/subagent/parent.jsonl": 1,  # transcripts often have no results
    "grok/chat_history.jsonl": 1,  # a search of the provider's own: its result is not in the file
    "copilot/large.jsonl": 1, "copilot/small.jsonl": 1,  # the files end with the call
}  # fmt: skip
"""Calls without a result, by file, each with its reason."""


@pytest.mark.parametrize("path", ALL, ids=lambda each: str(each.relative_to(DATA / HERE)))
def test_each_file_is_told_for_what_it_is(path):
    """By nobody else more surely; parts are parts; what is no episode is nobody's."""
    found = detect(Original(path).head())
    if path.name in NO_EPISODE:
        assert found == []
        return
    client = path.relative_to(DATA / HERE).parts[0]
    assert found[0].source.name == CLIENTS.get(client, client)
    assert found[0].sign.is_part == any(part in str(path) for part in PARTS)
    assert all(each.sign.confidence < found[0].sign.confidence for each in found[1:])


@pytest.mark.parametrize(("name", "path"), SESSIONS, ids=lambda each: getattr(each, "name", each))
def test_each_session_is_counted_alike(name, path):
    """Turns, calls and results are those of the counter; a call without a result has its reason."""
    turns, calls, results = COUNTERS[name](rows(path))
    found = read(source_of(name), path)
    whole = Counter()
    for events in found.values():
        assert sum(isinstance(each, EpisodeStart) for each in events) == 1
        whole += counted(events)
    assert (whole["turns"], whole["calls"], whole["results"]) == (turns, calls, results)
    alone = sum(each.result is None for events in found.values() for each in pairs(events))
    assert alone == UNPAIRED.get(str(path.relative_to(DATA / HERE)), 0)
    glued = path.name.endswith("0005.jsonl")
    assert len(troubles(source_of(name), path)) == glued  # two values on a line, both read


@pytest.mark.parametrize(("name", "path"), SESSIONS, ids=lambda each: getattr(each, "name", each))
def test_each_session_grows_steadily(name, path, tmp_path):
    """The first lines of a real file say what they say in the whole."""
    if path.suffix == ".jsonl":
        check_growth(source_of(name), tmp_path, path.read_bytes(), path.name)


def test_what_is_not_known_yet_is_kept():
    """Files made to drift: entries of kinds that nobody knows are notes with everything in them."""
    drifted = DATA / HERE / "openclaw/schema_drift.jsonl"
    (events,) = read(source_of("openclaw"), drifted).values()
    note = next(each for each in of_kind(events, Note) if each.topic == "compact")
    assert note.native.fields["entry"]["agent"] == "openclaw"
    for path in (each for each in ALL if "schema_drift" in each.name):
        source = detect(Original(path).head())[0].source
        assert all(read(source, path).values())
