"""SWE-agent's .traj files, four generations: steps from the trajectory, what the model saw from the history."""

import json

import pytest

from tests.ingest.agent_checks import check_longer, check_mutations, lines, of_kind, only, read, sign, troubles
from tests.ingest.corpus import files
from tests.ingest.swe_cases import check_parts, document
from trackway.errors import FileRefused
from trackway.ingest.formats.swe_agent import SOURCE
from trackway.read.context import contexts
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    Label,
    ModelCall,
    Note,
    Reward,
    ToolResult,
    User,
)

PROMPT = "We solve an issue. Here's the issue text:\nISSUE:\nIt leaks\nbadly.\n(Open file: n/a)"
SYSTEM = {"role": "system", "content": "You are at a shell.", "agent": "main", "message_type": "system_prompt"}
TASK = {"role": "user", "content": PROMPT, "agent": "main", "message_type": "observation"}


def step(action, observation="", words=None, **fields):
    """A step of 1.0."""
    said = words or f"I do {action}"
    told = {"action": action, "observation": observation, "response": said, "thought": said, "execution_time": 0.25}
    return told | {"state": {"working_dir": "/r"}} | fields


def said(made, **fields):
    """A step's answer in the history."""
    words = {"role": "assistant", "content": made["response"], "thought": made["thought"], "action": made["action"]}
    return words | {"agent": "main", "message_type": "action"} | fields


def seen(content, **fields):
    """What the model saw of a result."""
    return {"role": "user", "content": content, "agent": "main", "message_type": "observation"} | fields


def call(name, tool, arguments):
    """A tool call as the model wrote it."""
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}


FIRST, SECOND = step("ls", "a.py"), step("cat a.py", "boat")


def trajectory(steps=(FIRST, SECOND), history=None, **fields):
    """A document of 1.0 without tool calls."""
    history = history or [
        SYSTEM, TASK, said(FIRST), seen("a.py\n(Open file: n/a)"), said(SECOND), seen("boat\n(Open file: n/a)"),
    ]  # fmt: skip
    about = {"exit_status": "submitted", "submission": "diff", "model_stats": {"api_calls": 2}}
    return {"trajectory": list(steps), "history": history, "info": about, "environment": "main"} | fields


def events(folder, value, name="a__b-1.traj"):
    """The events of a document."""
    return only(SOURCE, document(folder, value, name))


def test_detected_by_content(tmp_path):
    """By its steps, by a history that comes alone, by attempts; not by its name."""
    assert sign(SOURCE, document(tmp_path, trajectory(), "x")).confidence > 0.9
    assert sign(SOURCE, document(tmp_path, {"history": [SYSTEM, TASK]}, "x")).confidence > 0.8
    assert sign(SOURCE, document(tmp_path, {"attempts": [trajectory()]}, "x")).confidence > 0.8
    large = trajectory([step("ls", "x" * 9000) for _ in range(60)])
    assert sign(SOURCE, document(tmp_path, large, "x", indent=2)).confidence > 0.9
    for other in ({"trajectory": []}, {"trajectory": [{"role": "user"}]}, {"history": [{"role": "user"}]}, [], {}):
        assert sign(SOURCE, document(tmp_path, other, "a.traj")) is None


def test_what_a_step_says(tmp_path):
    """One model call, its words, its command; the result as the model saw it, what the tool gave, how long it took."""
    found = events(tmp_path, trajectory())
    start = found[0].header
    assert (start.task, start.task_key, start.agent) == ("It leaks", "a__b-1", "swe-agent")
    assert [json.loads(each.call.args)["command"] for each in pairs(found)] == ["ls", "cat a.py"]
    first = pairs(found)[0].result
    assert (first.content, first.returned, first.duration_ms) == ("a.py\n(Open file: n/a)", "a.py", 250)
    assert first.native.fields["entry"] == {"state": {"working_dir": "/r"}}
    assert [each.content for each in of_kind(found, AssistantText)] == ["I do ls", "I do cat a.py"]
    assert [(each.actor, each.content) for each in of_kind(found, User)] == [("harness", PROMPT)]
    assert of_kind(found, Context)[0].system_prompt == SYSTEM["content"]
    assert of_kind(found, EpisodeEnd)[0].reason == "submitted"
    assert all(each.messages is None for each in of_kind(found, ModelCall))


def test_the_oldest_files(tmp_path):
    """No message types, states as JSON texts, a demonstration, a last answer the history has no observation of."""
    old = [{key: each for key, each in made.items() if key != "execution_time"} for made in (FIRST, SECOND)]
    old = [each | {"state": '{"working_dir": "/r"}'} for each in old]
    demo = {"role": "user", "content": "Here is how", "agent": "main", "is_demo": True}
    task = {"role": "user", "content": PROMPT, "agent": "main"}
    history = [
        {"role": "system", "content": "S", "agent": "main"},
        demo,
        task,
        said(old[0]),
        seen("a.py"),
        said(old[1]),
    ]
    found = events(tmp_path, trajectory(old, history))
    assert [each.text for each in of_kind(found, Context) if each.op == "inject"] == ["Here is how"]
    assert [each.result.content for each in pairs(found)] == ["a.py", "boat"]
    assert len(of_kind(found, User)) == 1


def test_demonstrations_are_never_steps(tmp_path):
    """Another episode's answers, put into the history one by one, are what this model was shown."""
    shown = [said(step("rm x"), is_demo=True), seen("gone", is_demo=True)]
    found = events(tmp_path, trajectory(history=[SYSTEM, *shown, TASK, said(FIRST), seen("a.py"), said(SECOND)]))
    assert [json.loads(each.args)["command"] for each in of_kind(found, AssistantToolCall)] == ["ls", "cat a.py"]
    assert [each.detail["role"] for each in of_kind(found, Context)[1:]] == ["assistant", "user"]


def test_tool_calls_are_the_models_own(tmp_path):
    """Names, arguments and ids stand in the history; ids may repeat; thoughts keep their signature."""
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
    history = [
        SYSTEM, TASK, said(FIRST, tool_calls=[call("x", "look", '{"at":1}')], thinking_blocks=blocks),
        seen("a.py", role="tool", tool_call_ids=["x"]), said(SECOND, tool_calls=[call("x", "open", "{bad")]),
        seen("boat", role="tool", tool_call_ids=["x"]),
    ]  # fmt: skip
    found = events(tmp_path, trajectory(history=history))
    assert [(each.call.name, each.call.args, each.result.content) for each in pairs(found)] == [
        ("look", b'{"at":1}', "a.py"), ("open", b"{bad", "boat"),
    ]  # fmt: skip
    thought = of_kind(found, AssistantThinking)[0]
    assert (thought.content, thought.state) == ("hm", {"type": "thinking", "signature": "sig"})


def test_a_step_that_was_asked_for_again(tmp_path):
    """What was blocked or malformed never ran: a call without a result, or no call at all, and no place in history."""
    blocked, malformed = step("vim", state={}, execution_time=0.0), step("", words="no action", state={})
    found = events(tmp_path, trajectory([FIRST, blocked, malformed, SECOND]))
    assert [each.result is not None for each in pairs(found)] == [True, False, True]
    assert len(of_kind(found, ModelCall)) == 4
    assert not of_kind(found, Note)


def test_the_harness_gives_up(tmp_path):
    """Its own words about why it stopped are no model's answer, in either generation."""
    for last in (step("", "Exited (autosubmitted)", "Exit due to cost limit"), step("exit_cost", "", response="")):
        value = trajectory([FIRST, SECOND, last | {"thought": "Exit due to cost limit"}])
        value["info"]["exit_status"] = "submitted (exit_cost)"
        found = events(tmp_path, value)
        assert [each.text for each in of_kind(found, Note)] == ["Exit due to cost limit"]
        assert len(of_kind(found, ModelCall)) == 2
        assert of_kind(found, EpisodeEnd)[0].reason == "submitted (exit_cost)"


def test_what_the_model_was_given_is_kept_once(tmp_path):
    """``query`` at every step is kept as what is new in it, and put together again as it was."""
    queries = [[SYSTEM, TASK]]
    steps = []
    for i in range(40):
        made = step(f"echo {i}", f"{i}" * 500, query=queries[-1])
        steps.append(made)
        # A history processor rewrites what is old, and moves a mark along.
        old = [each | {"content": each["content"][:9]} if each["role"] == "user" else each for each in queries[-1][2:]]
        queries.append([*queries[-1][:2], *old, said(made), seen(made["observation"], cache_control={"type": "x"})])
    path = document(tmp_path, trajectory(steps, [SYSTEM, TASK]), "a.traj")
    found = only(SOURCE, path)
    assert [each.messages for each in contexts(found)] == queries[:-1]
    assert sum(len(each.messages) for each in of_kind(found, ModelCall)) < 5 * 40


def test_messages_were_the_next_calls(tmp_path):
    """Before 1.1 a step held what the *next* call was given; but not where the model was asked again."""
    after = [SYSTEM, TASK, said(FIRST), seen("a.py")]
    blocked = step("vim", state={}, messages=after)
    found = events(tmp_path, trajectory([FIRST | {"messages": after}, blocked, SECOND]))
    assert [each.messages for each in contexts(found)] == [None, after, None]


def test_a_history_alone(tmp_path):
    """A demonstration without a trajectory is told by its history."""
    history = [
        SYSTEM, TASK, said(FIRST, tool_calls=[call("x", "look", "{}")]), seen("a.py", role="tool", tool_call_ids=["x"]),
        said(SECOND), seen("boat"), said(step("submit")),
    ]  # fmt: skip
    found = only(SOURCE, document(tmp_path, {"history": history}, "demo.traj"))
    assert [(each.call.name, each.result and each.result.content) for each in pairs(found)] == [
        ("look", "a.py"), ("bash", "boat"), ("bash", None),
    ]  # fmt: skip
    assert not of_kind(found, EpisodeEnd)


def test_what_the_history_has_beside(tmp_path):
    """Items of other agents, and items no step is found for, are kept as they come."""
    other = seen("from a subroutine", agent="sub")
    history = [SYSTEM, TASK, said(FIRST), seen("a.py"), other, said(SECOND), seen("boat"), seen("left over")]
    found = events(tmp_path, trajectory(history=history))
    assert [each.content for each in of_kind(found, User)][1:] == ["from a subroutine"]
    assert [each.text for each in of_kind(found, Note)] == ["left over"]
    assert all(each.result for each in pairs(found))


def test_a_step_in_other_words(tmp_path):
    """A demonstration mended in one place is still the same step."""
    found = events(tmp_path, trajectory(history=[
        SYSTEM, TASK, said(FIRST, content="Let me look", thought="Let me look"), seen("a.py$"), said(SECOND),
    ]))  # fmt: skip
    assert [each.result.content for each in pairs(found)] == ["a.py$", "boat"]
    assert not of_kind(found, Note)


def test_what_it_was_replayed_with(tmp_path):
    """The task, its key and the model stand in ``replay_config``, an object or its JSON; it is kept whole."""
    config = {"agent": {"model": {"name": "m-1"}}, "problem_statement": {"id": "x__y-2", "text": "Mend it\nnow"}}
    for told in (config, json.dumps(config)):
        start = events(tmp_path, trajectory(replay_config=told))[0]
        assert (start.header.task, start.header.task_key, start.header.model) == ("Mend it", "x__y-2", "m-1")
        assert start.native.fields["entry"] == {"replay_config": told}
    assert events(tmp_path, trajectory(replay_config="{"), "plain.traj")[0].header.task_key is None


def test_attempts_are_episodes(tmp_path):
    """Each attempt by itself, with a reviewer's opinion; the copy on top is none, and says which was chosen."""
    attempts = [trajectory([FIRST]), trajectory()]
    attempts[0]["info"] = attempts[0]["info"] | {"review": {"accept": 0.25, "outputs": ["meh"]}}
    top = attempts[1] | {"info": {"best_attempt_idx": 1, "exit_status": "submitted"}}
    found = list(read(SOURCE, document(tmp_path, {"attempts": attempts} | top, "a__b-1.traj")).values())
    assert [each[0].header.trial for each in found] == [0, 1]
    assert [(each.name, each.value) for each in of_kind(found[0], Reward)] == [("review", 0.25)]
    assert [each.topic for each in of_kind(found[1], Note)] == ["chosen"]
    assert len(read(SOURCE, document(tmp_path, {"attempts": attempts[:1]}, "a.traj"))) == 1


def test_the_report_beside_it(tmp_path):
    """A verdict beside it is its outcome."""
    document(tmp_path, {"a__b-1": {"resolved": False, "patch_exists": True}}, "report.json")
    found = events(tmp_path, trajectory())
    assert of_kind(found, EpisodeEnd)[0].outcome == "failure"
    assert [each.outcome for each in of_kind(found, Label)] == ["failure"]


def test_a_document_grows(tmp_path):
    """It is written after every step: a longer one says first what the shorter one said; the end comes last."""
    value = trajectory()
    going_on = value["info"] | {"exit_status": None, "submission": None}
    cut = [
        value | {"trajectory": value["trajectory"][:k], "history": value["history"][: 2 + 2 * k], "info": going_on}
        for k in range(3)
    ]
    check_longer(SOURCE, tmp_path, [*cut, value], "a.traj")


def test_a_large_document_says_the_same(tmp_path, monkeypatch):
    """Read part by part, a document says what it says read at once."""
    check_parts(SOURCE, document(tmp_path, trajectory(), "a.traj", indent=1), monkeypatch)


def test_refused_and_troubled(tmp_path):
    """A document with neither is refused; a step that is none is trouble."""
    with pytest.raises(FileRefused, match="neither"):
        read(SOURCE, document(tmp_path, {"trajectory": [], "history": []}, "a.traj"))
    path = document(tmp_path, trajectory([FIRST, None]), "a.traj")
    assert [each.reason for each in troubles(SOURCE, path)] == ["step 2 is no object"]


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    history = [SYSTEM, TASK, said(FIRST, tool_calls=[call("x", "look", "{}")]), seen("a.py", tool_call_ids=["x"])]
    value = trajectory([FIRST | {"query": [SYSTEM, TASK]}], history, replay_config={"problem_statement": {"id": "x"}})
    assert check_mutations(SOURCE, tmp_path, lines(value), "a.traj", depth=5) > 500
    several = {"attempts": [value], "info": {"best_attempt_idx": 0}}
    assert check_mutations(SOURCE, tmp_path, lines(several), "a.traj", depth=4) > 200


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("swe_agent/**/*.traj"), ids=lambda path: f"{path.parent.name[-20:]}-{path.stem}")
def test_corpus(path):
    """Steps, calls, results, pairs and turns counted without our code are ours; every step finds its history."""
    told = json.loads(path.read_text())
    found = only(SOURCE, path)
    answers = [each for each in told["history"] if each["role"] == "assistant" and not each.get("is_demo")]
    steps = told.get("trajectory") or answers
    written = [use for each in answers for use in each.get("tool_calls") or ()]
    made = of_kind(found, AssistantToolCall)
    assert len(made) == len(of_kind(found, ToolResult)) == sum(bool(each["action"].strip()) for each in steps)
    assert all(each.result is not None for each in pairs(found))
    if written:
        assert [each.args.decode() for each in made][: len(written)] == [e["function"]["arguments"] for e in written]
    else:
        assert [json.loads(each.args)["command"] for each in made] == [each["action"] for each in steps]
    shown = [each["content"] for each in told["history"] if each.get("role") in ("user", "tool")]
    opening = sum(isinstance(each, (User, Context)) for each in found) - 1  # the system prompt
    assert [each.content for each in of_kind(found, ToolResult)][: len(shown) - opening] == shown[opening:]
    assert not of_kind(found, Note)
    assert max(each.turn for each in found) == 1
    assert [each.reason for each in of_kind(found, EpisodeEnd)] == (["submitted"] if "info" in told else [])
