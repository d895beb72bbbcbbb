"""Inspect's logs: every layout says the same; agents, tools, scores, limits, older logs, bombs, and the real files."""

import json
import zipfile
from itertools import pairwise

import pytest

from tests.ingest.agent_checks import by_session, check_mutations, entries, of_kind, only, read, sign, troubles, written
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.inspect_logs import (
    ANSWER,
    CALLS,
    EVAL,
    EVENTS,
    HEADER,
    LONG,
    NUDGE,
    POOL,
    PROMPT,
    RESULTS,
    SAMPLE,
    SYSTEM,
    USAGE,
    chunked,
    event,
    json_log,
    members_of,
    message,
    model,
    zipped,
    zstd_zipped,
)
from trackway.errors import FileRefused
from trackway.ingest.formats.inspect import SOURCE
from trackway.read.context import contexts
from trackway.read.pairs import pairs
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    ModelCall,
    ModelResult,
    Note,
    Reward,
    ToolResult,
    User,
)

CHUNKED = {key: each for key, each in members_of().items() if "samples" not in key} | chunked(SAMPLE)
OLDER = {key: each for key, each in SAMPLE.items() if key != "events_data"} | {"message_pool": POOL}
LAYOUTS = {
    "json": json_log(SAMPLE), "eval": zipped(members_of(SAMPLE)), "zstd": zstd_zipped(members_of(SAMPLE)),
    "chunked": zipped(CHUNKED), "chunked zstd": zstd_zipped(CHUNKED),
    "running": zipped(members_of(SAMPLE, ended=False)), "older pool": json_log(OLDER),
    "stored": zipped(members_of(SAMPLE), zipfile.ZIP_STORED),
}  # fmt: skip


def log(tmp_path, *samples):
    """The events of the only sample of a log."""
    return only(SOURCE, written(tmp_path, json_log(*samples), "log.json"))


@pytest.mark.parametrize("body", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_say_the_same(tmp_path, body):
    """One document, a zip, a zip of chunks, either compressed with zstd, one still being written: the same episode."""
    path = written(tmp_path, body, "log.eval")
    assert sign(SOURCE, path).confidence == 0.95
    assert list(read(SOURCE, path)) == ["sample-1"]
    expected = [each[1] for each in says(log(tmp_path, SAMPLE))]
    assert [each[1] for each in says(only(SOURCE, path))] == expected
    assert troubles(SOURCE, path) == []


def test_a_sample_is_an_episode(tmp_path):
    """Task, epoch, model, prompts with attachments put back, thoughts, calls, results, scores."""
    events = log(tmp_path, SAMPLE)
    head = events[0].header
    assert (head.task, head.task_key, head.trial, head.seed) == (
        f"Make it float, {LONG.strip()}"[:199] + "…",
        "floating/b/1",
        2,
        5,
    )
    assert (head.model, head.agent, head.metadata["eval_id"]) == ("mock/m-1", "react", "eval-1")
    main = [each for each in events if each.agent is None]
    assert [each.content for each in of_kind(main, User)] == [f"Make it float, {LONG}", "Go on.", "Bye."]
    assert {each.actor for each in of_kind(main, User)} == {"harness"}
    assert of_kind(main, AssistantThinking)[0].state == {"signature": "s=="}
    assert [(each.op, each.system_prompt) for each in of_kind(main, Context)] == [
        ("set", None), ("set", "You build boats."), ("compact", None),
    ]  # fmt: skip
    assert [each.batch for each in of_kind(main, AssistantToolCall)] == [1, 1]
    assert [(each.name, each.value, each.scope) for each in of_kind(events, Reward)] == [
        ("halfway", 0.25, "step"), ("grader", 1.0, "episode"),
    ]  # fmt: skip
    assert of_kind(events, EpisodeEnd)[0].outcome == "success"
    assert says(events)[-4:-2] == [("note", "late"), ("user", "Bye.")]


def test_results_come_behind_what_happened_inside(tmp_path):
    """A tool's result stands behind the commands and the agent inside it; an agent inside bears its name."""
    events = log(tmp_path, SAMPLE)
    assert [(each.call.call_id, each.result.content, each.result.duration_ms) for each in pairs(events)] == [
        ("c1", "wet", 250), ("c2", "asked", 250),
    ]  # fmt: skip
    order = [(each.kind, each.agent) for each in events]
    assert order.index(("assistant_text", "aide")) < events.index(of_kind(events, ToolResult)[1])
    assert next(each.text for each in of_kind(events, Note) if each.topic == "sandbox") == "ls"
    assert {each.agent for each in of_kind(events, ModelCall)} == {None, "aide", "scorer:grader"}


def test_what_each_call_saw(tmp_path):
    """Calls keep what is new; put together again, each input is whole, attachments in their places."""
    events = log(tmp_path, SAMPLE)
    prompt = {**PROMPT, "content": f"Make it float, {LONG}"}
    found = [each.messages for each in contexts(events)]
    assert found == [
        [SYSTEM, prompt], [prompt, POOL[6]], [SYSTEM, prompt, ANSWER, *RESULTS, NUDGE],
        [message("g0", "user", "Grade it.")],
    ]  # fmt: skip
    assert of_kind(events, ModelCall)[2].reuse == ((0, 0, 2),)
    natives = {each.native.fields["key"]: each.native.fields.get("entry") for each in events if each.native}
    request = natives["u-model-16"]["call"]
    assert request == {"request": {"model": "m-1", "messages": [{"role": "tool"}]}, "kept": {"messages": 1}}


def test_tokens(tmp_path):
    """What came from a cache stands beside the input."""
    result = of_kind(log(tmp_path, SAMPLE), ModelResult)[0]
    assert (result.usage, result.finish_reason, result.latency_ms) == (USAGE, "stop", 500)
    assert (tokens_of(USAGE).input, tokens_of(USAGE).cache_read, tokens_of(USAGE).total) == (10, 3, 18)


@pytest.mark.parametrize(
    ("scores", "rewards", "outcome"),
    [
        ({"a": {"value": "C"}}, {"a": 1.0}, "success"), ({"a": {"value": "I"}}, {"a": 0.0}, "failure"),
        ({"a": {"value": "P"}}, {"a": 0.5}, "partial"), ({"a": {"value": "N"}}, {"a": None}, None),
        ({"a": {"value": 7}}, {"a": 7.0}, None), ({"a": {"value": True}}, {"a": 1.0}, "success"),
        ({"a": {"value": "0.5"}}, {"a": 0.5}, "partial"),
        ({"a": {"value": "C"}, "b": {"value": 0}}, {"a": 1.0, "b": 0.0}, None),
        ({"a": {"value": {"x": 1, "y": "C"}}}, {"a.x": 1.0, "a.y": 1.0}, "success"), (None, {}, None),
        ({"a": {"value": [0, None]}}, {"a.0": 0.0, "a.1": None}, "failure"), ({"a": 1}, {"a": 1.0}, "success"),
    ],
)  # fmt: skip
def test_scores(tmp_path, scores, rewards, outcome):
    """Letters and numbers are rewards; no answer is no number; the outcome is said where all scores agree."""
    events = log(tmp_path, {**SAMPLE, "scores": scores, "events": []})
    assert {each.name: each.value for each in of_kind(events, Reward)} == rewards
    assert of_kind(events, EpisodeEnd)[0].outcome == outcome


def test_errors_and_limits(tmp_path):
    """What stopped a sample is how it ended; what it says of itself is kept."""
    stopped = {
        **SAMPLE,
        "scores": None,
        "error": {"message": "boom", "traceback": "…"},
        "limit": {"type": "token", "limit": 9},
    }
    end = of_kind(log(tmp_path, stopped), EpisodeEnd)[0]
    assert (end.outcome, end.error, end.reason) == (None, "boom", "limit: token")
    failing = model(3, None, [[0, 2]], None, error="overloaded", output={"model": "m", "choices": []})
    result = of_kind(log(tmp_path, {**SAMPLE, "events": [failing]}), ModelResult)[0]
    assert result.error == "overloaded"


@pytest.mark.parametrize(
    ("error", "status"),
    [("timeout", "timeout"), ("approval", "denied"), ("cancelled", "interrupted"), ("parsing", "error")],
)
def test_tools_that_fail(tmp_path, error, status):
    """The model saw the error; what the tool had given by then is kept beside it."""
    failed = {**EVENTS[5], "error": {"type": error, "message": "it broke"}, "result": "half", "truncated": [9, 4]}
    events = log(tmp_path, {**SAMPLE, "events": [EVENTS[3], failed], "messages": []})
    result = pairs(events)[0].result
    assert (result.content, result.status, result.returned, result.is_error) == ("it broke", status, "half", True)
    assert result.native.fields["entry"]["truncated"] == [9, 4]


def test_tools_no_model_asked_for(tmp_path):
    """A tool that a solver called itself is a call as well; one that has not ended has no result."""
    alone = {**EVENTS[5], "id": "x1"}
    events = log(
        tmp_path, {**SAMPLE, "events": [alone, {**EVENTS[5], "id": "x2", "uuid": "p", "pending": True}], "messages": []}
    )
    assert [(each.call.name, each.result and each.result.content) for each in pairs(events)] == [
        ("look", "wet"), ("look", None),
    ]  # fmt: skip


def test_messages_alone(tmp_path):
    """A sample without events is its conversation."""
    events = log(tmp_path, {**SAMPLE, "events": []})
    assert [(each.call.call_id, each.result.content) for each in pairs(events)] == [("c1", "wet"), ("c2", "asked")]
    assert [each.content for each in of_kind(events, User)] == [f"Make it float, {LONG}", "Go on.", "Bye."]
    assert of_kind(events, User)[0].content.startswith("Make it float")


def test_older_logs(tmp_path):
    """A transcript with texts apart, steps, what happened inside a tool inside its event, one score, no ids."""
    plain = [
        {key: each for key, each in one.items() if key != "id"} for one in (SYSTEM, {**PROMPT, "content": "tc://aa"})
    ]
    inside = model(5, None, None, {"role": "assistant", "content": "deep"}, input=[{"role": "user", "content": "dig"}])
    transcript = {
        "content": {"aa": "Make it float"},
        "events": [
            event("step", 1, action="begin", type="solver", name="generate"),
            model(2, None, None, {"role": "assistant", "content": None, "tool_calls": [CALLS[0]]}, input=plain),
            {**EVENTS[5], "events": [inside]}, event("step", 6, action="begin", type="scorer", name="match"),
            model(7, None, None, {"role": "assistant", "content": "GRADE"}, input="Grade it."),
            event("step", 8, action="end", type="scorer", name="match"),
        ],
    }  # fmt: skip
    sample = {"id": 1, "epoch": 1, "input": "tc://aa", "transcript": transcript, "score": {"value": "I"},
              "messages": [plain[0], {"role": "user", "content": "Make it float"}]}  # fmt: skip
    sample["transcript"]["events"] = [
        {key: each for key, each in one.items() if key != "uuid"} for one in transcript["events"]
    ]
    path = written(tmp_path, json_log(sample), "log.json")
    assert list(read(SOURCE, path)) == ["eval-1/1/1"]
    events = only(SOURCE, path)
    assert [each.content for each in of_kind(events, User)] == ["Make it float", "dig", "Grade it."]
    assert [each.agent for each in of_kind(events, ModelCall)] == [None, None, "scorer:match"]
    assert pairs(events)[0].result.content == "wet"
    assert of_kind(events, EpisodeEnd)[0].outcome == "failure"


def test_tools_on_the_providers_side(tmp_path):
    """A block with a call and its result is both; images and the like stay beside the text."""
    block = {
        "type": "tool_use",
        "tool_type": "web_search",
        "id": "w1",
        "name": "search",
        "arguments": '{"q":  1}',
        "result": "r",
    }
    said = message("x", "assistant", [block, {"type": "text", "text": "Found."}, {"type": "image", "image": "data:"}])
    events = log(tmp_path, {**SAMPLE, "events": [model(3, None, [[0, 2]], said)], "messages": []})
    assert [(each.call.args, each.result.content) for each in pairs(events)] == [(b'{"q":  1}', "r")]
    kept = next(each.native.fields["entry"] for each in events if each.native and "choices" in str(each.native.fields))
    assert kept["choices"][0]["message"]["content"][2] == {"type": "image", "image": "data:"}


def test_growth(tmp_path):
    """A log with more samples says those it had again; the same words said twice were said twice."""
    samples = [{**SAMPLE, "uuid": f"s-{i}", "epoch": i} for i in range(1, 4)]
    said = []
    for count in range(1, 4):
        body = zipped(members_of(*samples[:count], ended=count == 3))
        said.append(by_session(entries(SOURCE, written(tmp_path, body, "log.eval"))))
    for earlier, later in pairwise(said):
        assert earlier == {session: later[session] for session in earlier}
    twice = [NUDGE, {**NUDGE, "id": "m50"}]
    events = log(tmp_path, {**SAMPLE, "events": [model(3, None, None, ANSWER, input=twice)], "messages": twice})
    assert [each.content for each in of_kind(events, User)] == ["Go on.", "Go on."]


def test_bad_archives(tmp_path):
    """Bombs are refused before they go off; members that cannot be read are said, and the others are read."""
    bomb = zipped({**members_of(SAMPLE), "samples/x_epoch_1.json": b"0" * (20 << 20)})
    lying = bytearray(bomb)
    at = lying.rindex(b"samples/x_epoch_1.json") - 46 + 24
    lying[at : at + 4] = (3 << 30).to_bytes(4, "little")
    with pytest.raises(FileRefused, match="become more than"):
        read(SOURCE, written(tmp_path, bytes(lying), "log.eval"))
    for broken in (zstd_zipped(members_of(SAMPLE)), zipped(members_of(SAMPLE))):
        body = bytearray(broken)
        start = body.index(b"samples/b/1_epoch_2.json") + 40
        body[start : start + 60] = bytes(60)
        path = written(tmp_path, bytes(body), "log.eval")
        assert read(SOURCE, path) == {}
        assert len(troubles(SOURCE, path)) == 1
    with pytest.raises(FileRefused):
        read(SOURCE, written(tmp_path, broken[:-30], "log.eval"))


def test_large_samples_are_read_in_parts(tmp_path, monkeypatch):
    """A sample too large to be held is read twice, and says the same."""
    expected = says(log(tmp_path, SAMPLE))
    monkeypatch.setattr("trackway.ingest.formats._inspect_files.LONGEST", 1 << 13)
    assert says(only(SOURCE, written(tmp_path, zipped(members_of(SAMPLE)), "log.eval"))) == expected


def test_not_ours(tmp_path):
    """Other zips and other documents are not taken; samples that are none are said."""
    assert sign(SOURCE, written(tmp_path, zipped({"a.json": {}}), "x.zip")) is None
    assert sign(SOURCE, written(tmp_path, zipped({"header.json": {}}), "x.zip")) is None
    assert sign(SOURCE, written(tmp_path, json.dumps({"eval": {}, "status": "x"}).encode())) is None
    path = written(tmp_path, json_log(SAMPLE, 7), "log.json")
    assert len(read(SOURCE, path)) == len(troubles(SOURCE, path)) == 1
    assert read(SOURCE, written(tmp_path, json.dumps({**HEADER, "eval": EVAL}).encode(), "log.json")) == {}


@pytest.mark.parametrize("number", [1, 3, 5, 15], ids=["span", "model", "tool", "score"])
def test_mutated_events(tmp_path, number):
    """Whatever stands in an event, nothing raises but a refusal."""
    small = {"id": 1, "epoch": 1, "events": [EVENTS[number]], "message_pool": [PROMPT]}
    odd = (None, True, -1.5, "odd", [None], {"odd": 1})
    check_mutations(SOURCE, tmp_path, json_log(small), "log.json", depth=6, odd=odd)


def test_mutated_samples(tmp_path):
    """Whatever stands in a sample, nothing raises but a refusal."""
    small = {**SAMPLE, "events": [EVENTS[3]], "messages": [PROMPT, ANSWER]}
    check_mutations(SOURCE, tmp_path, json_log(small), "log.json", depth=3)


def test_quiet_events_are_kept_beside_what_follows(tmp_path):
    """Spans and patches are no notes: they stand beside the next entry, the last ones beside the end."""
    events = log(tmp_path, {**SAMPLE, "events": [EVENTS[1], EVENTS[3], EVENTS[-5]], "messages": []})
    kept = {
        each.native.fields["key"]: each.native.fields.get("entry", {}).get("before") for each in events if each.native
    }
    assert kept["u-model-3"] == [EVENTS[1]]
    assert not of_kind(events, Note) or {each.topic for each in of_kind(events, Note)} == {"score"}
    events = log(tmp_path, {**SAMPLE, "events": [EVENTS[1]], "messages": []})
    assert events[-2].native.fields["entry"]["before"] == [EVENTS[1]]


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("inspect/*/*.*"), ids=lambda path: path.name)
def test_the_real_files(path):
    """Samples, model calls, tools' results and scores are those that plain counting finds; no call waits."""
    if path.suffix not in (".eval", ".json"):
        pytest.skip("no log")
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.namelist() if each.startswith("samples/")]
            samples = [json.loads(archive.read(each)) for each in names]
    else:
        samples = json.loads(path.read_text())["samples"]
    found = read(SOURCE, path)
    assert len(found) == len(samples)
    assert troubles(SOURCE, path) == []
    for sample, events in zip(samples, found.values(), strict=True):
        told = sample.get("events") or sample.get("transcript", {}).get("events") or []
        models = [each for each in told if each["event"] == "model"]
        assert len(of_kind(events, ModelCall)) == len(of_kind(events, ModelResult)) == len(models)
        calls = [one for each in models for one in each["output"]["choices"][0]["message"].get("tool_calls") or ()]
        assert [each.call_id for each in of_kind(events, AssistantToolCall)] == [each["id"] for each in calls]
        tools = sum(each["event"] == "tool" for each in told) or sum(
            each["role"] == "tool" for each in sample["messages"]
        )
        assert len(of_kind(events, ToolResult)) == tools
        assert all(each.result is not None for each in pairs(events))
        assert len([each for each in of_kind(events, Reward) if each.scope == "episode"]) == len(
            sample.get("scores") or ()
        )
        for each, seen in zip(models, contexts(events), strict=True):
            assert len(seen.messages) == (
                sum(end - start for start, end in each["input_refs"]) if each.get("input_refs") else len(each["input"])
            )
