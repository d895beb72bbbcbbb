"""Gemini CLI: a document that is written anew, a log in which messages are replaced, and what was taken back."""

import json

import pytest

from tests.ingest.agent_checks import (
    check_growth,
    check_mutations,
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
from tests.ingest.gemini_lines import (
    META,
    SESSION,
    TOKENS,
    at,
    call,
    changed,
    conversation,
    document,
    log,
    message,
    said,
)
from trackway.ingest.formats.gemini_cli import SOURCE, homes
from trackway.read.pairs import pairs
from trackway.read.usage import usage
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeStart,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)


@pytest.mark.parametrize("body", [
    document(*conversation()), document(*conversation(), indent=2), log(*conversation()),
    json.dumps({"messages": conversation(), **META}).encode(),
])  # fmt: skip
def test_a_session_in_each_shape(tmp_path, body):
    """One object on a line, over many, with its id at the end, or a line for each message: the same is said."""
    path = written(tmp_path, body, "session.jsonl")
    assert sign(SOURCE, path).confidence == 0.95
    assert troubles(SOURCE, path) == []
    events = read(SOURCE, path)[SESSION]
    assert said(events) == ["Make the boat float", "Look\nLook first.", "I look.", "It floats."]
    assert [(each.call.call_id, each.result.content) for each in pairs(events)] == [("c-1", "wet"), ("c-2", "dry")]
    assert [each.text for each in of_kind(events, Note)] == ["An update is there."]
    first, second = of_kind(events, AssistantToolCall)
    assert (first.call, first.batch, first.args) == ("m-2", second.batch, b'{"path":"hull"}')
    assert [each.id for each in of_kind(events, ModelCall)] == ["m-2", "m-4"]
    spent = usage(events)
    assert (spent.calls, spent.total, spent.input, spent.cache_read, spent.output) == (2, 1826, 200, 1600, 26)
    header = of_kind(events, EpisodeStart)[0].header
    assert (header.task, header.agent, header.source) == ("Make the boat float", "gemini", "gemini_cli")


def test_a_document_and_its_log_are_one_session(tmp_path):
    """A session that was migrated from one shape to the other has the same entries: none is said twice."""
    kept = [entries(SOURCE, written(tmp_path, body)) for body in (document(*conversation()), log(*conversation()))]
    assert kept[0] == kept[1]


def test_a_longer_version_begins_the_same(tmp_path):
    """A document written anew says what it said before, then what was added: also to its last message."""
    whole = entries(SOURCE, written(tmp_path, document(*conversation())))
    asked, answer, *_ = conversation()
    without = {name: value for name, value in answer.items() if name != "toolCalls"}
    for shorter in ([asked], [asked, without], [asked, answer], conversation()[:3]):
        found = entries(SOURCE, written(tmp_path, document(*shorter, lastUpdated=at(1))))
        assert found == whole[: len(found)]


def test_a_message_that_comes_again(tmp_path):
    """What is new in it is added; a text that changed is said again, behind a rewind that says what it replaces."""
    first = message("m-2", "gemini", "I look.", 2)
    more = {**first, "tokens": TOKENS, "toolCalls": [call("c-1", result=None, status="executing")]}
    done = {**more, "toolCalls": [call("c-1")]}
    events = only(SOURCE, written(tmp_path, log(conversation()[0], first, more, done, done)))
    assert said(events) == ["Make the boat float", "I look."]
    assert len(of_kind(events, ModelCall)) == len(of_kind(events, ModelResult)) == 1
    assert [each.result.content for each in pairs(events)] == ["wet"]
    masked = {**done, "toolCalls": [call("c-1", result="(masked)")]}
    events = only(SOURCE, written(tmp_path, log(conversation()[0], done, {**done, "content": "I see."}, masked)))
    assert said(events) == ["Make the boat float", "I look.", "I see.", "I look."]
    rewinds = [each.detail for each in of_kind(events, Context) if each.op == "rewind"]
    assert rewinds == [{"replaces": "m-2"}, {"replaces": "m-2"}]
    (compact,) = [each for each in of_kind(events, Context) if each.op == "compact"]
    assert (compact.text, compact.detail) == ("(masked)", {"replaces": "c-1"})
    assert len(of_kind(events, ToolResult)) == 1


def test_what_was_taken_back_stays(tmp_path):
    """A rewind names what it removes and hangs on what stays; ids that come again are new then."""
    asked, answer, note, last = conversation()
    path = written(tmp_path, log(asked, answer, note, {"$rewindTo": "m-2"}, last, answer, {"$rewindTo": "?"}, asked))
    events = only(SOURCE, path)
    first, second = [each for each in of_kind(events, Context) if each.op == "rewind"]
    assert first.detail == {"to": "m-2", "removed": ["m-2", "m-3"]}
    assert second.detail == {"to": "?", "removed": ["m-1", "m-4", "m-2"]}
    assert said(events).count("I look.") == 2
    assert said(events).count("Make the boat float") == 2
    (user, _) = of_kind(events, User)
    assert first.parent == f"{user.writer}:{user.n}"
    assert second.parent == f"{events[0].writer}:0"


def test_messages_set_anew(tmp_path):
    """A list of messages that replaces the history is a compaction; what was said before is not said again."""
    asked, answer, *_ = conversation()
    snapshot = message("s-1", "user", [{"text": "<state_snapshot>it floats</state_snapshot>"}])
    sent = message(
        "r-1", "user", [{"functionResponse": {"id": "c-1", "name": "read_file", "response": {"output": "wet"}}}]
    )
    late = message("r-2", "user", [{"functionResponse": {"id": "c-9", "name": "saw", "response": {"error": "no"}}}])
    asks = message("m-9", "gemini", [{"functionCall": {"id": "c-9", "name": "saw", "args": {}}}, {"text": "I saw."}])
    events = only(SOURCE, written(tmp_path, log(
        asked, answer, {"$set": {"lastUpdated": at(6)}}, {"$set": {"messages": [snapshot, answer, sent, asks, late]}},
        {"$set": {"summary": "A boat", "directories": ["/boat"]}},
    )))  # fmt: skip
    first, second = of_kind(events, Context)
    assert (first.op, first.detail["dropped"]) == ("compact", ["m-1"])
    assert (second.op, second.text) == ("compact", "<state_snapshot>it floats</state_snapshot>")
    assert [(each.call.name, each.result.status) for each in pairs(events)][-1] == ("saw", "error")
    assert len(of_kind(events, ToolResult)) == 3
    assert len(of_kind(events, User)) == 1
    notes = {each.topic: each for each in of_kind(events, Note)}
    assert notes["summary"].text == "A boat"
    assert notes["metadata"].detail == {"directories": ["/boat"]}


def test_a_chat_saved_by_hand(tmp_path):
    """A history of roles and parts has no id: it is known by its content; thoughts keep their signatures."""
    history = [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
        {"role": "user", "parts": [{"text": "Look: "}, {"inlineData": {"data": "AA"}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "s"}, {"text": "A boat."}]},
    ]
    path = written(tmp_path, json.dumps({"history": history}).encode(), "checkpoint.json")
    assert sign(SOURCE, path).confidence == 0.7
    events = read(SOURCE, path)[""]
    assert said(events) == ["Look: ", "hm", "A boat."]
    assert of_kind(events, AssistantThinking)[0].state == {"thoughtSignature": "s"}
    assert of_kind(events, User)[0].native.fields["entry"]["content"] == history[1]["parts"]
    assert [each.op for each in of_kind(events, Context)] == ["inject"]


def test_zero_tokens_are_a_placeholder(tmp_path):
    """A usage that counts nothing was written where none was told; a sub-agent's prompt is no person's."""
    nothing = dict.fromkeys(TOKENS, 0)
    body = lines({**META, "kind": "subagent"}, conversation()[0], message("m", "gemini", "x", tokens=nothing))
    events = only(SOURCE, written(tmp_path, body))
    assert [each.usage_from for each in of_kind(events, ModelResult)] == ["placeholder"]
    assert [each.actor for each in of_kind(events, User)] == ["harness"]


def test_told_by_content(tmp_path):
    """Other lists of messages, and the files beside the chats, are nobody's session; a piece of one still is."""
    for other in (
        b'{"messages": [{"role": "user", "content": "hi"}]}',
        b'[{"sessionId": "1", "messageId": 0, "type": "user", "message": "hi"}]',
        b'{"sessionId": "1", "messages": []}',
        b'{"history": [{"role": "user", "content": "hi"}]}',
        lines({"sessionId": SESSION, "type": "user", "uuid": "1"}),
        b"",
    ):
        assert sign(SOURCE, written(tmp_path, other)) is None
    assert sign(SOURCE, written(tmp_path, lines(*conversation()))).confidence == 0.6
    assert sign(SOURCE, written(tmp_path, lines(META))).confidence == 0.95


def test_homes(tmp_path):
    """Chats are below the user's home."""
    assert homes(tmp_path, {}) == []
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    assert homes(tmp_path, {}) == [tmp_path / ".gemini" / "tmp"]


def grown():
    """A log with everything in it."""
    asked, answer, note, last = conversation()
    return log(
        asked, {**answer, "toolCalls": []}, answer, {"$set": {"summary": "s"}}, note, {"$rewindTo": "m-3"}, last,
        {"$set": {"messages": [answer, last]}}, message("w", "gemini", "", toolCalls=[changed("/h", "a", "b", 7)]),
    )  # fmt: skip


def test_steady_under_growth(tmp_path):
    """Each beginning of a log says the beginning of what the whole says."""
    check_growth(SOURCE, tmp_path, grown())


def test_nothing_raises(tmp_path):
    """Whatever stands in a field: what makes sense is taken."""
    assert check_mutations(SOURCE, tmp_path, grown(), depth=2) > 500
    assert check_mutations(SOURCE, tmp_path, document(*conversation()) + b"\n", depth=4) > 500


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("gemini_cli/**/session.json") + files("many_agents/**/gemini/*"), ids=str)
def test_real_sessions(path):
    """Counted by hand: prompts, thoughts, calls, results and tokens."""
    body = path.read_text()
    rows = [json.loads(body)] if path.suffix == ".json" else [json.loads(each) for each in body.splitlines()]
    found = [one for each in rows for one in each.get("messages") or each.get("history") or [each]]
    users = [each for each in found if "user" in (each.get("type"), each.get("role"))]
    calls = [one for each in found for one in each.get("toolCalls", ())]
    events = only(SOURCE, path)
    assert len(of_kind(events, User)) == len(users)
    assert len(of_kind(events, AssistantThinking)) == sum(len(each.get("thoughts", ())) for each in found)
    assert [each.call_id for each in of_kind(events, AssistantToolCall)] == [each["id"] for each in calls]
    assert [each.call_id for each in of_kind(events, ToolResult)] == [each["id"] for each in calls if each["result"]]
    tokens = sum(each["tokens"]["total"] for each in found if each.get("tokens"))
    assert (usage(events).total or 0) == tokens


def test_a_model_by_another_name(tmp_path):
    """Clients made of this one call their model's messages differently: thoughts, tokens and calls tell them."""
    body = document(conversation()[0], message("m", "qwen", "Aye.", tokens=TOKENS))
    events = only(SOURCE, written(tmp_path, body))
    assert said(events) == ["Make the boat float", "Aye."]
    assert usage(events).total == 913
