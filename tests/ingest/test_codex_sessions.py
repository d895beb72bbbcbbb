"""Codex rollouts: where a session begins, whose it is, and in which shapes it is met."""

import json

import zstandard

from tests.ingest.agent_checks import lines, of_kind, only, read, sign, troubles, written
from tests.ingest.codex_lines import ENVIRONMENT, OTHER, THREAD, bare, done, events_of, legacy, meta, said, texts, when
from trackway.ingest.formats.codex import SOURCE
from trackway.ingest.original import Original
from trackway.read.pairs import pairs
from trackway.schema.events import Context, EpisodeStart, ModelCall, User

# --- sessions ---------------------------------------------------------------------------------------------------------


def test_the_beginning(tmp_path):
    """A session is called after its first prompt, and knows where it was held, by what and on which branch."""
    header = of_kind(events_of(tmp_path, *legacy()), EpisodeStart)[0].header
    assert (header.task, header.agent, header.model, header.source) == ("Make the boat float", "codex", "m-1", "codex")
    assert header.metadata["cwd"] == "/boat"
    assert (header.metadata["branch"], header.metadata["version"]) == ("main", "0.126.0")
    assert header.parent is None
    assert list(read(SOURCE, written(tmp_path, lines(*legacy())))) == [THREAD]


def test_sub_agents_and_forks_name_their_parents(tmp_path):
    """A thread that another one started, or that was forked, has it as its parent; its prompt is no person's."""
    source = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    events = events_of(tmp_path, meta(source=source, agent_nickname="Rope"), said(1, "user", "count the planks"))
    header = events[0].header
    assert (header.parent.episode, header.task, header.metadata["nickname"]) == (OTHER, "count the planks", "Rope")
    assert [each.actor for each in of_kind(events, User)] == ["harness"]
    inherited = [
        {**said(1, "user", "build"), "ordinal": 1},
        {**said(2, "user", "count"), "ordinal": 2},
    ]
    events = events_of(tmp_path, meta(parent_thread_id=OTHER, subagent_history_start_ordinal=2), *inherited)
    assert [each.actor for each in of_kind(events, User)] == ["human", "harness"]
    copied = meta(id=OTHER)
    events = events_of(
        tmp_path, meta(forked_from_id=OTHER), copied, said(1, "user", "build"), copied, said(2, "user", "on")
    )
    assert events[0].header.parent.episode == OTHER
    assert len(of_kind(events, User)) == 2


def test_two_rollouts_in_one_file_are_two_sessions(tmp_path):
    """What begins with another thread's first line is another session, and is warned of."""
    path = written(tmp_path, lines(*legacy(), meta(id=OTHER), said(1, "user", "another boat")))
    found = read(SOURCE, path)
    assert list(found) == [THREAD, OTHER]
    assert texts(found[OTHER]) == [("user", "another boat")]
    assert OTHER in troubles(SOURCE, path)[0].reason


def test_a_rollout_without_its_first_line(tmp_path):
    """A piece of a rollout is the thread that any line of it names, else one without a name."""
    named = done(1, "Plan", id="p", text="1. float")
    assert list(read(SOURCE, written(tmp_path, lines(said(1, "user", "hi"), named)))) == [THREAD]
    assert list(read(SOURCE, written(tmp_path, lines(said(1, "user", "hi"))))) == [""]


def test_bare_items(tmp_path):
    """Items without an envelope are read as such; the same words again are said again."""
    path = written(tmp_path, lines(*bare()))
    assert sign(SOURCE, path).confidence == 0.9
    events = read(SOURCE, path)[THREAD]
    said_texts = ["float", "ok", "float", "ok"]
    assert [text for _, text in texts(events)] == said_texts
    assert [each.text for each in of_kind(events, Context)] == ["be brief", ENVIRONMENT]
    assert [each.result.exit_code for each in pairs(events)] == [0]
    assert len({each.id for each in of_kind(events, ModelCall)}) == 3
    keys = [each.key for each in SOURCE.read(Original(path))]
    assert len(keys) == len(set(keys))


def test_the_first_clients_document(tmp_path):
    """The client in TypeScript wrote one object."""
    first, *items = [each for each in bare() if "record_type" not in each]
    document = json.dumps({"session": first, "items": items}, indent=1).encode()
    path = written(tmp_path, document, "rollout.json")
    assert sign(SOURCE, path).confidence == 0.9
    assert [text for _, text in texts(read(SOURCE, path)[THREAD])] == ["float", "ok", "float", "ok"]


def test_compressed(tmp_path):
    """A rollout that its client compressed says the same."""
    body = lines(*legacy())
    path = written(tmp_path, zstandard.ZstdCompressor().compress(body), "rollout.jsonl.zst")
    assert sign(SOURCE, path).confidence == 0.97
    assert texts(only(SOURCE, path)) == texts(events_of(tmp_path, *legacy()))


def test_detected_by_content_alone(tmp_path):
    """Files beside rollouts, and lines of others, are nobody's rollouts; a newer type of line does not matter."""
    for other in (
        lines({"session_id": THREAD, "ts": 1, "text": "hi"}),
        lines({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
        lines({"type": "event", "payload": {}, "timestamp": 1}),
        lines({"id": 1, "timestamp": 2}),
        lines({"type": ["session_meta"], "payload": {}}),
        b'{"items": []}',
        b"[]",
        b"",
    ):
        assert sign(SOURCE, written(tmp_path, other)) is None
    newer = lines({"timestamp": when(0), "type": "rope", "payload": {}}, said(1, "user", "hi"))
    assert sign(SOURCE, written(tmp_path, newer)).confidence == 0.5


def test_homes(tmp_path):
    """Rollouts are where ``CODEX_HOME`` says, else below the user's home; only what is there is named."""
    for each in (".codex/sessions", ".codex/archived_sessions", "elsewhere/sessions"):
        (tmp_path / each).mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [tmp_path / ".codex" / "sessions", tmp_path / ".codex" / "archived_sessions"]
    assert SOURCE.homes(tmp_path, {"CODEX_HOME": str(tmp_path / "elsewhere")}) == [tmp_path / "elsewhere" / "sessions"]
