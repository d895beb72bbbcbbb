"""OpenClaw: sessions in pi's form that name it."""

from tests.ingest.agent_checks import FEW, check_growth, check_mutations, counted, lines, of_kind, only, sign, written
from trackway.ingest.formats import pi
from trackway.ingest.formats.openclaw import SOURCE
from trackway.schema.events import Context, Note

AT = "2026-02-24T10:00:00Z"
SESSION = [
    {"type": "session", "id": "5f1c2f7e-0000-4000-8000-00000000000a", "version": 3, "timestamp": AT, "cwd": "/tmp"},
    {"type": "custom", "id": "a", "parentId": None, "timestamp": AT, "customType": "openclaw.state", "data": {"n": 2}},
    {"type": "custom_message", "id": "b", "parentId": "a", "timestamp": AT, "customType": "openclaw.runtime-context",
     "content": "Mind the tide", "display": False},
    {"type": "message", "id": "c", "parentId": "b", "timestamp": AT, "message": {"role": "user", "content": "Mend it"}},
    {"type": "message", "id": "d", "parentId": "c", "timestamp": AT, "message": {"role": "assistant", "content": [
        {"type": "toolCall", "id": "t1", "name": "shell", "arguments": {"command": "ls"}}]}},
    {"type": "message", "id": "e", "parentId": "t1", "timestamp": AT, "message": {
        "role": "toolResult", "toolCallId": "t1", "toolName": "shell", "content": "x", "isError": False}},
    {"type": "compact", "id": "f", "parentId": "e", "timestamp": AT, "note": "old"},
]  # fmt: skip


def test_a_session(tmp_path):
    """It is read as pi's is; what it has beside that is kept."""
    events = only(SOURCE, written(tmp_path, lines(*SESSION)))
    assert counted(events) == {"turns": 1, "calls": 1, "results": 1, "pairs": 1}
    assert (events[0].header.task, events[0].header.agent, events[0].header.source) == (
        "Mend it",
        "openclaw",
        "openclaw",
    )
    assert [each.text for each in of_kind(events, Context)] == ["Mind the tide"]
    assert [each.topic for each in of_kind(events, Note)] == ["custom openclaw.state", "compact"]


def test_it_is_surer_than_pi_where_it_is_named_and_silent_where_it_is_not(tmp_path):
    """A session that names nobody is pi's, and says the same."""
    path = written(tmp_path, lines(*SESSION))
    assert sign(SOURCE, path).confidence > sign(pi.SOURCE, path).confidence
    plain = written(tmp_path, lines(SESSION[0], *SESSION[3:]), "plain.jsonl")
    assert sign(SOURCE, plain) is None
    assert counted(only(pi.SOURCE, plain)) == counted(only(SOURCE, path))


def test_growth_and_mutations(tmp_path):
    """The first lines say what they say in the whole; nothing raises, whatever stands where."""
    check_growth(SOURCE, tmp_path, lines(*SESSION))
    assert check_mutations(SOURCE, tmp_path, lines(*SESSION[:3]), depth=2, odd=FEW) > 50


def test_homes(tmp_path):
    """The sessions of each of its agents, under either of its names."""
    for each in (".openclaw/agents/main/sessions", ".clawdbot/agents/old/sessions", ".openclaw/agents/main/agent"):
        (tmp_path / each).mkdir(parents=True)
    assert SOURCE.homes(tmp_path, {}) == [
        tmp_path / ".openclaw/agents/main/sessions", tmp_path / ".clawdbot/agents/old/sessions",
    ]  # fmt: skip
    assert SOURCE.homes(tmp_path, {"OPENCLAW_STATE_DIR": "/nowhere"}) == []
