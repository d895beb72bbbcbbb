"""ATIF documents, v1.0 to v1.8: steps become model calls, tool calls and results; nothing is made up around them."""

import json
from collections import Counter

import pytest

from tests.ingest.agent_checks import check_longer, check_mutations, lines, of_kind, only, read, sign, troubles, written
from tests.ingest.corpus import files
from tests.ingest.swe_cases import check_parts, document
from trackway.errors import FileRefused
from trackway.ingest.formats import _documents
from trackway.ingest.formats.atif import SOURCE
from trackway.read.pairs import pairs
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    ModelCall,
    ModelResult,
    Note,
    ToolResult,
    User,
)

SESSION = "0b0a7000-0000-4000-8000-000000000007"
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def call(name, **arguments):
    """A tool call."""
    return {"tool_call_id": name, "function_name": "look", "arguments": arguments}


def results(*found):
    """An observation: each result a pair of the call it names, or None, and its content."""
    return {
        "results": [
            {"content": content} if name is None else {"source_call_id": name, "content": content}
            for name, content in found
        ]
    }


def steps():
    """One of everything."""
    return [
        {"step_id": 1, "source": "system", "message": "Build boats.", "timestamp": "2026-03-01T10:00:01Z"},
        {"step_id": 2, "source": "user", "message": "Make it float\nplease", "timestamp": "2026-03-01T10:00:02Z"},
        {
            "step_id": 3, "source": "agent", "message": "I look.", "reasoning_content": "First look.",
            "timestamp": "2026-03-01T10:00:03Z", "model_name": "m-2", "reasoning_effort": "high",
            "tool_calls": [call("a", at="hull"), call("b", at="mast")],
            "observation": results(("b", "dry"), ("a", "wet")),
            "metrics": {
                "prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 60, "cost_usd": 0.5,
                "prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5],
                "extra": {"cache_creation_input_tokens": 30},
            },
            "llm_call_count": 1, "extra": {"stop_reason": "tool_use", "odd": 1},
        },
        {
            "step_id": 4, "source": "agent", "message": "", "tool_calls": [call("c")],
            "observation": results((None, "x")),
        },
        {"step_id": 5, "source": "system", "message": "Hurry up."},
        {"step_id": 6, "source": "agent", "message": "It floats."},
    ]  # fmt: skip


def trajectory(found=None, **fields):
    """A document."""
    agent = {"name": "builder", "version": "3", "model_name": "m-1", "tool_definitions": TOOLS, "extra": {"cwd": "/b"}}
    return {
        "schema_version": "ATIF-v1.7", "session_id": SESSION, "agent": agent, "steps": found or steps(),
        "final_metrics": {"total_steps": 6}, "notes": "made by hand", **fields,
    }  # fmt: skip


def events(folder, value):
    """The events of a document."""
    return only(SOURCE, document(folder, value))


@pytest.mark.parametrize("version", [*(f"ATIF-v1.{minor}" for minor in range(9)), "ATIF-v2.3"])
def test_every_version_is_known(tmp_path, version):
    """Each version is told by its name, versions to come too, however large the document is."""
    large = trajectory([*steps(), *({"step_id": 7 + i, "source": "user", "message": "x" * 9000} for i in range(60))])
    for indent in (None, 2):
        found = sign(SOURCE, document(tmp_path, large | {"schema_version": version}, indent=indent))
        assert found.confidence > 0.9
        assert version in found.reason


@pytest.mark.parametrize(
    "value",
    [{}, [], {"steps": []}, {"steps": [{"id": 1}], "agent": {}}, {"schema_version": "1.0", "steps": [{"a": 1}]}, 7],
)
def test_other_documents_are_nobodys(tmp_path, value):
    """JSON that only looks a little like it is not claimed."""
    assert sign(SOURCE, document(tmp_path, value)) is None


def test_what_steps_say(tmp_path):
    """Prompts, thoughts, words, calls with their arguments, results by the calls they name, times, turns."""
    found = events(tmp_path, trajectory())
    start = found[0].header
    assert (start.task, start.agent, start.model, start.source) == ("Make it float", "builder", "m-1", "atif")
    assert start.metadata == {"version": "3", "schema_version": "ATIF-v1.7"}
    assert [each.content for each in of_kind(found, User)] == ["Make it float\nplease"]
    assert [each.content for each in of_kind(found, AssistantThinking)] == ["First look."]
    assert [each.content for each in of_kind(found, AssistantText)] == ["I look.", "It floats."]
    assert [(each.name, each.args) for each in of_kind(found, AssistantToolCall)][:2] == [
        ("look", b'{"at":"hull"}'), ("look", b'{"at":"mast"}'),
    ]  # fmt: skip
    assert [(each.call.call_id, each.result.content) for each in pairs(found)] == [
        ("a", "wet"),
        ("b", "dry"),
        ("c", "x"),
    ]
    assert {each.turn for each in of_kind(found, AssistantToolCall)} == {1}
    assert found[-1].at == of_kind(found, ModelCall)[0].at > 0
    assert not of_kind(found, EpisodeEnd)


def test_context_is_what_was_set_and_what_came_in(tmp_path):
    """Tools and the first system step are set; later system steps are injected."""
    found = of_kind(events(tmp_path, trajectory()), Context)
    assert [(each.op, each.system_prompt, each.text) for each in found] == [
        ("set", None, None), ("set", "Build boats.", None), ("inject", None, "Hurry up."),
    ]  # fmt: skip
    assert found[0].tools == TOOLS


def test_a_step_is_one_model_call(tmp_path):
    """Its model, its tokens with the cached ones inside the prompt's, its token ids, why it stopped."""
    found = events(tmp_path, trajectory())
    first = of_kind(found, ModelResult)[0]
    tokens = tokens_of(first.usage)
    assert (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output) == (10, 60, 30, 10)
    assert first.token_ids == {"prompt_token_ids": [1, 2], "completion_token_ids": [3]}
    assert (first.logprobs, first.finish_reason) == ([-0.5], "tool_use")
    assert [each.model for each in of_kind(found, ModelCall)] == ["m-2", "m-1", "m-1"]
    made = of_kind(found, AssistantToolCall)
    assert made[0].call == made[1].call == first.id
    assert (made[0].batch, made[1].batch, made[2].batch) == (1, 1, None)


def test_results_without_a_call_id(tmp_path):
    """They are of the only call of their step; where there are several, or none, they are what the model was shown."""
    several = {"step_id": 3, "source": "agent", "message": "a", "tool_calls": [call("a"), call("b")]}
    none = {"step_id": 4, "source": "agent", "message": "b", "observation": results((None, "screen"))}
    found = events(tmp_path, trajectory([*steps()[:2], several | {"observation": results((None, "?"))}, none]))
    assert not of_kind(found, ToolResult)
    assert [each.text for each in of_kind(found, Context) if each.op == "inject"] == ["?", "screen"]


def test_copied_context_is_no_step(tmp_path):
    """What was copied from an earlier document is context: no call, no answer, no turn; it is kept whole."""
    copied = [each | {"is_copied_context": True} for each in steps()]
    found = events(tmp_path, trajectory([*copied, {"step_id": 7, "source": "agent", "message": "Go on."}]))
    assert Counter(type(each).__name__ for each in found[2:]) == Counter(Context=6, ModelCall=1, AssistantText=1)
    assert found[4].detail == {"copied": True, "source": "agent"}
    assert found[4].native.fields["entry"] == copied[2]


def test_a_step_without_a_model_has_no_model_call(tmp_path):
    """A deterministic dispatch calls tools, and no model."""
    dispatch = {"step_id": 3, "source": "agent", "message": "", "llm_call_count": 0, "tool_calls": [call("a")]}
    found = events(tmp_path, trajectory([*steps()[:2], dispatch | {"observation": results(("a", "ok"))}]))
    assert not of_kind(found, ModelCall)
    assert pairs(found)[0].result.content == "ok"


def test_sub_agents_inside(tmp_path):
    """An embedded sub-agent speaks under its own name, where it is referred to; a file elsewhere is not followed."""
    inner = trajectory([{"step_id": 1, "source": "user", "message": "Count"}, *steps()[2:4]], trajectory_id="t-9")
    lone = trajectory([{"step_id": 1, "source": "agent", "message": "Alone."}], trajectory_id="t-8")
    refs = [{"trajectory_id": "t-9"}, {"trajectory_path": "/etc/passwd"}]
    asked = {
        "step_id": 3, "source": "agent", "message": "", "tool_calls": [call("t")],
        "observation": {"results": [{"source_call_id": "t", "content": "7", "subagent_trajectory_ref": refs}]},
    }  # fmt: skip
    found = events(tmp_path, trajectory([*steps()[:2], asked, steps()[5]], subagent_trajectories=[lone, inner]))
    own = [each for each in found if each.agent == "t-9"]
    assert [each.actor for each in of_kind(own, User)] == ["harness"]
    assert len(pairs(own)) == 3
    assert all(each.result for each in pairs(found))
    asking, answered = (
        of_kind(found, AssistantToolCall)[0].n,
        next(e.n for e in of_kind(found, ToolResult) if not e.agent),
    )
    assert all(asking < each.n < answered for each in own)
    assert found[-1].agent == "t-8"
    assert next(each for each in found if each.n == answered).native.fields["entry"]["results"] == [
        {"subagent_trajectory_ref": refs}
    ]


def test_deep_sub_agents_are_kept(tmp_path):
    """Sub-agents inside sub-agents end somewhere; what is deeper is kept unread."""
    inner = trajectory([{"step_id": 1, "source": "agent", "message": "deep"}], trajectory_id="t")
    for _ in range(60):
        inner = trajectory(
            [{"step_id": 1, "source": "agent", "message": "in"}], trajectory_id="t", subagent_trajectories=[inner]
        )
    found = events(tmp_path, inner)
    assert 30 < len(of_kind(found, Note)) < 40


def test_sessions(tmp_path):
    """A run's UUID, with the document's own id; a name that anybody might have used is told apart by the first step."""

    def named(**fields):
        return next(iter(read(SOURCE, document(tmp_path, trajectory(**fields)))))

    assert named() == SESSION
    assert named(trajectory_id="part-2") == f"{SESSION}:part-2"
    assert named(session_id=None) == ""
    other = [{"step_id": 1, "source": "user", "message": "Other"}]
    assert named(session_id="unknown").startswith("unknown:")
    assert named(session_id="unknown") == named(session_id="unknown", found=steps()[:3])
    assert named(session_id="unknown") != named(session_id="unknown", found=other)


def test_what_has_no_home_is_kept(tmp_path):
    """Unknown fields, media, extras of calls and results, and what a document says of itself."""
    media = [{"type": "text", "text": "see"}, {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}]
    spoken = {"step_id": 3, "source": "user", "message": media, "new_in_2": [1]}
    extra = {"tool_calls": [call("a") | {"extra": {"raw_arguments": {}, "tries": 2}}]}
    answered = {"results": [{"source_call_id": "a", "content": media, "extra": {"tool_result_is_error": True}}]}
    acted = {"step_id": 4, "source": "agent", "message": "", **extra, "observation": answered}
    found = events(tmp_path, trajectory([*steps()[:2], spoken, acted], continued_trajectory_ref="next.json"))
    kept = {each.native.fields["key"]: each.native.fields.get("entry") for each in found if each.native}
    assert kept["start"] == {
        "session_id": SESSION, "final_metrics": {"total_steps": 6}, "notes": "made by hand",
        "continued_trajectory_ref": "next.json", "agent": {"extra": {"cwd": "/b"}},
    }  # fmt: skip
    assert kept["step-3"] == {"message": media, "new_in_2": [1]}
    assert kept["step-4"] == {"tool_calls": [{"extra": {"tries": 2}}]}
    result = of_kind(found, ToolResult)[0]
    assert (result.is_error, result.content, result.returned) == (True, "see", media)


def test_a_document_grows(tmp_path):
    """A longer version says what the shorter one said first, also where a step gains its observation."""
    whole = trajectory()
    cut = [trajectory(steps()[:count]) for count in range(3, 6)]
    waiting = {key: each for key, each in steps()[2].items() if key != "observation"}
    check_longer(SOURCE, tmp_path, [trajectory([*steps()[:2], waiting]), *cut, whole])


def test_a_large_document_says_the_same(tmp_path, monkeypatch):
    """Read part by part, a document says what it says read at once."""
    inner = trajectory([{"step_id": 1, "source": "user", "message": "Count"}], trajectory_id="t-9")
    check_parts(SOURCE, document(tmp_path, trajectory(subagent_trajectories=[inner]), indent=1), monkeypatch)


def test_a_large_document_with_a_broken_part(tmp_path, monkeypatch):
    """What is no JSON in the middle of one is trouble; cut off, the document is refused before anything is said."""
    monkeypatch.setattr(_documents, "_WHOLE", 0)
    body = json.dumps(trajectory()).replace('"Hurry up."', "hurry up")
    path = written(tmp_path, body.encode())
    assert [each.reason for each in troubles(SOURCE, path)] == ["step 5 is no object"]
    assert of_kind(only(SOURCE, path), AssistantText)[-1].content == "It floats."
    with pytest.raises(FileRefused, match="cut off"):
        read(SOURCE, written(tmp_path, body[:-20].encode()))


def test_a_document_a_line(tmp_path):
    """Lines of documents are an episode each; one that is none is trouble, and stops nothing."""
    body = lines(trajectory(), {"no": "steps"}, trajectory(session_id=None), trajectory(session_id=None))
    path = written(tmp_path, body)
    assert sign(SOURCE, path).confidence > 0.9
    found = read(SOURCE, path)
    assert len(found) == 3
    assert len({len(each) for each in found.values()}) == 1
    assert [each.place.line for each in troubles(SOURCE, path)] == [2]


def test_refused_and_troubled(tmp_path):
    """A document without steps is refused; a step that is none is trouble."""
    with pytest.raises(FileRefused, match="no steps"):
        read(SOURCE, document(tmp_path, {"schema_version": "ATIF-v1.7", "steps": []}))
    path = document(tmp_path, trajectory([*steps()[:2], "odd", steps()[2]]))
    assert [each.reason for each in troubles(SOURCE, path)] == ["step 3 is no object"]


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    inner = trajectory([steps()[1]], trajectory_id="t-9")
    body = lines(trajectory([*steps()[:4]], subagent_trajectories=[inner]))
    assert check_mutations(SOURCE, tmp_path, body, "a.json", depth=6) > 500


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("atif/**/*.json"), ids=lambda path: path.stem[:30])
def test_corpus(path):
    """Harbor's own conversions: steps, calls, results, pairs, turns and tokens counted without our code are ours."""
    told = json.loads(path.read_text())
    found = only(SOURCE, path)
    agent = [each for each in told["steps"] if each["source"] == "agent"]
    calls = [each["tool_call_id"] for step in agent for each in step.get("tool_calls") or ()]
    answered = [
        each["source_call_id"] for step in agent for each in (step.get("observation") or {}).get("results") or ()
    ]
    assert [each.call_id for each in of_kind(found, AssistantToolCall)] == calls
    assert sorted(each.call_id for each in of_kind(found, ToolResult)) == sorted(answered)
    assert sum(each.result is not None for each in pairs(found)) == len(set(calls) & set(answered)) == len(answered)
    assert max(each.turn for each in found) == sum(each["source"] == "user" for each in told["steps"])
    assert len(of_kind(found, ModelCall)) == len(agent)
    sums = [tokens_of(each.usage) for each in of_kind(found, ModelResult)]
    assert sum(each.total for each in sums) == sum(
        step["metrics"]["prompt_tokens"] + step["metrics"]["completion_tokens"] for step in agent
    )
    assert [each.content for each in of_kind(found, AssistantText)] == [e["message"] for e in agent if e["message"]]
