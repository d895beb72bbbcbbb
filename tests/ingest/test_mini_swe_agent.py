"""mini-swe-agent's trajectories, 1.0 and 1.1: what the model ran, what came of it, and who said what."""

import json
import re

import pytest

from tests.ingest.agent_checks import check_longer, check_mutations, lines, of_kind, only, read, sign, troubles
from tests.ingest.corpus import files
from tests.ingest.swe_cases import check_parts, document
from trackway.errors import FileRefused
from trackway.ingest.formats.mini_swe_agent import SOURCE
from trackway.ingest.original import Original
from trackway.read.pairs import pairs
from trackway.read.tokens import tokens_of
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    Label,
    ModelCall,
    ModelResult,
    Note,
    Reward,
    TestRun,
    ToolResult,
    User,
)

USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 5,
    "total_tokens": 55,
    "prompt_tokens_details": {"cached_tokens": 40},
}
TIMEOUT = "The last command <command>{{action['action']}}</command> timed out and has been killed."


def response(content, calls=None, **message):
    """A provider's raw answer."""
    told = {"role": "assistant", "content": content, "tool_calls": calls, **message}
    return {
        "id": "gen-1", "model": "m-1", "created": 1_770_000_000, "object": "chat.completion", "provider": "P",
        "choices": [{"index": 0, "finish_reason": "stop", "message": told}], "usage": USAGE,
    }  # fmt: skip


def says(content, **message):
    """An assistant's message of 1.0."""
    return {"role": "assistant", "content": content, "extra": {"response": response(content, **message)}}


def runs(command):
    """An assistant's message of 1.0 with one action."""
    return says(f"THOUGHT: go\n\n```bash\n{command}\n```")


def user(content, **extra):
    """A user's message."""
    return {"role": "user", "content": content, **({"extra": extra} if extra else {})}


def opening():
    """What stands before the first answer."""
    return [
        {"role": "system", "content": "You run commands."},
        user("<pr_description>\nConsider the following PR description:\nIt leaks.\n</pr_description>"),
    ]


def trajectory(messages, version="mini-swe-agent-1", **told):
    """A document."""
    about = {
        "exit_status": "Submitted", "submission": "diff", "model_stats": {"instance_cost": 0.1, "api_calls": 2},
        "mini_version": "1.15.0",
        "config": {
            "agent": {"timeout_template": TIMEOUT}, "model": {"model_name": "m-1"},
            "environment": {"cwd": "/testbed", "image": "img"}, "agent_type": "minisweagent.DefaultAgent",
        },
    }  # fmt: skip
    about |= told
    return {"info": about, "messages": messages, "trajectory_format": version, "instance_id": "a__b-1"}


def events(folder, messages, **fields):
    """The events of a document of these messages after the usual opening."""
    return only(SOURCE, document(folder, trajectory([*opening(), *messages], **fields), "a__b-1.traj.json"))


def test_detected_by_content(tmp_path):
    """By its format's name, by its program's in a head that does not reach so far; nothing else is claimed."""
    short = document(tmp_path, trajectory(opening()), "x.bin")
    assert sign(SOURCE, short).confidence > 0.9
    large = document(tmp_path, trajectory([*opening(), *(user("x" * 9000) for _ in range(60))]), indent=2)
    assert "mini_version" in sign(SOURCE, large).reason
    for other in ({"messages": opening()}, {"info": {}, "messages": []}, {"resolved": True}, []):
        assert sign(SOURCE, document(tmp_path, other, "a.traj.json")) is None


def test_version_1_0(tmp_path):
    """The one block is a call, the next user message what came of it; the last one is the submission."""
    found = events(tmp_path, [
        runs("ls"), user("<returncode>0</returncode>\n<output>\na.py\n</output>"),
        runs("false"), user("<returncode>1</returncode>\n<output>\n</output>"),
        runs("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), user("diff --git"),
    ])  # fmt: skip
    start = found[0].header
    assert (start.task, start.task_key, start.agent, start.model) == ("It leaks.", "a__b-1", "mini-swe-agent", "m-1")
    assert start.metadata == {"version": "1.15.0", "format": "mini-swe-agent-1", "cwd": "/testbed", "image": "img"}
    assert [(each.call.name, json.loads(each.call.args)["command"]) for each in pairs(found)] == [
        ("bash", "ls"), ("bash", "false"), ("bash", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]  # fmt: skip
    assert [(each.exit_code, each.is_error, each.status) for each in of_kind(found, ToolResult)] == [
        (0, False, "ok"), (1, True, "error"), (None, False, "ok"),
    ]  # fmt: skip
    assert of_kind(found, ToolResult)[-1].content == "diff --git"
    assert [(each.actor, each.turn) for each in of_kind(found, User)] == [("harness", 1)]
    assert of_kind(found, Context)[0].system_prompt == "You run commands."
    end = of_kind(found, EpisodeEnd)[0]
    assert (end.reason, end.outcome) == ("Submitted", None)
    assert end.native.fields["entry"]["model_stats"] == {"instance_cost": 0.1, "api_calls": 2}


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("```bash\nls\n```", ["ls"]),
        ("```mswea_bash_command\nls -l\n```", ["ls -l"]),
        ("```bash \n\n  ls\n\n```", ["ls"]),
        ("```bash\n\n```", [""]),
        ("```python\nls\n```", []),
        ("```bash\nls", []),
        ("```bash\na\n```\n```bash\nb\n```", []),
        ("```bash\ncat <<'E'\n```bash\nE\n```", ["cat <<'E'"]),
        ("no action", []),
    ],
)
def test_actions_in_text(tmp_path, text, commands):
    """Just one fenced block is an action, as mini-swe-agent finds it; none or several are run by nobody."""
    found = events(tmp_path, [says(text), user("<returncode>0</returncode>")])
    assert [json.loads(each.args)["command"] for each in of_kind(found, AssistantToolCall)] == commands
    by_its_own = re.findall(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", text, re.DOTALL)
    assert commands == ([by_its_own[0].strip()] if len(by_its_own) == 1 else [])
    assert [each.actor for each in of_kind(found, User)][1:] == ([] if commands else ["harness"])


def test_what_the_provider_said(tmp_path):
    """Usage with the cached part, reasoning with its details, the model, why it stopped; the rest is kept once."""
    details = [{"type": "reasoning.encrypted", "data": "xx"}]
    spoken = says("```bash\nls\n```", reasoning="hm", reasoning_details=details, refusal="no")
    found = events(tmp_path, [spoken])
    result = of_kind(found, ModelResult)[0]
    assert result.usage == USAGE
    assert tokens_of(result.usage).input == 10
    assert (result.model, result.finish_reason) == ("m-1", "stop")
    thought = of_kind(found, AssistantThinking)[0]
    assert (thought.content, thought.state) == ("hm", {"reasoning_details": details})
    call = of_kind(found, ModelCall)[0]
    assert call.native.fields["entry"] == {"response": {"provider": "P", "choice": {"refusal": "no"}}}
    assert {each.call for each in found if each.call} == {call.id}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("The last command <command>sleep 9</command> timed out and has been killed.\nSo.", "timeout"),
        ("Command not executed. The user rejected your command with the following message: no", "denied"),
        ("Interrupted by user: stop", "interrupted"),
        ("Observation: fine", "ok"),
    ],
)
def test_what_came_instead_of_output(tmp_path, said, status):
    """A timeout, a refusal and an interruption are told by the words the harness has for them."""
    assert of_kind(events(tmp_path, [runs("x"), user(said)]), ToolResult)[0].status == status


def test_people_speak_as_people(tmp_path):
    """A new task is a person's, and no output; the command it came instead of stays without a result."""
    found = events(tmp_path, [runs("submit"), user("The user added a new task: paint it"), runs("ls"), user("ok")])
    assert [each.actor for each in of_kind(found, User)] == ["harness", "human"]
    assert max(each.turn for each in found) == 2
    assert [each.result is None for each in pairs(found)] == [True, False]


def bash(name, command):
    """A tool call of 1.1."""
    arguments = json.dumps({"command": command})
    return {"id": name, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def acts(*calls, content=None, **extra):
    """An assistant's message of 1.1."""
    actions = [
        {"command": json.loads(each["function"]["arguments"])["command"], "tool_call_id": each["id"]} for each in calls
    ]
    told = {"actions": actions, "response": response(content, list(calls)), "cost": 0.1, "timestamp": 1_770_000_001.5}
    return {"role": "assistant", "content": content, "tool_calls": list(calls), "extra": told | extra}


def tool(name, code, output="x", **extra):
    """What came of a call of 1.1."""
    told = {"raw_output": output, "returncode": code, "timestamp": 1_770_000_002.0, "exception_info": "", **extra}
    return {"role": "tool", "tool_call_id": name, "content": f"<returncode>{code}</returncode>", "extra": told}


def leaves(content, status):
    """The last message of 1.1."""
    return {"role": "exit", "content": content, "extra": {"exit_status": status, "submission": content}}


def newer(folder, messages, status="Submitted"):
    """The events of a document of 1.1."""
    return events(folder, messages, version="mini-swe-agent-1.1", exit_status=status)


def test_version_1_1_tool_calls(tmp_path):
    """Calls as the model wrote them, in batches, results by id with their codes, the submission at the end."""
    found = newer(tmp_path, [
        acts(bash("p", "ls"), bash("q", "false")), tool("p", 0, "long"), tool("q", 1),
        acts(bash("r", "sleep")), tool("r", -1, exception_info="took long", exception_type="TimeoutExpired"),
        acts(bash("s", "submit")), leaves("the patch", "Submitted"),
    ])  # fmt: skip
    assert [each.result.exit_code for each in pairs(found)] == [0, 1, -1, None]
    assert [each.result.status for each in pairs(found)] == ["ok", "error", "timeout", "ok"]
    assert pairs(found)[0].result.returned == "long"
    assert pairs(found)[3].result.content == "the patch"
    assert [each.batch is None for each in of_kind(found, AssistantToolCall)] == [False, False, True, True]
    assert of_kind(found, AssistantToolCall)[0].args == b'{"command": "ls"}'
    assert of_kind(found, ModelCall)[0].at == 1_770_000_001_500_000_000


def test_version_1_1_text(tmp_path):
    """Actions the harness took from the text, answered by user messages that bear a code."""
    spoken = {"role": "assistant", "content": "go", "extra": {"actions": [{"command": "ls"}]}}
    answered = user("out", raw_output="out", returncode=3, exception_info="")
    found = newer(tmp_path, [spoken, answered])
    assert json.loads(pairs(found)[0].call.args) == {"command": "ls"}
    assert pairs(found)[0].result.exit_code == 3


def test_version_1_1_responses(tmp_path):
    """Messages that are whole Responses objects, and outputs of their calls."""
    items = [
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "e",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "z", "name": "bash", "arguments": '{"command": "ls"}'},
    ]
    spoken = {
        "object": "response", "id": "resp-1", "model": "m-3", "status": "completed", "output": items, "usage": USAGE,
        "extra": {"actions": [{"command": "ls", "tool_call_id": "z"}]},
    }  # fmt: skip
    answered = {"type": "function_call_output", "call_id": "z", "output": "a.py", "extra": {"returncode": 0}}
    found = newer(tmp_path, [spoken, answered])
    assert [(each.call.args, each.result.content) for each in pairs(found)] == [(b'{"command": "ls"}', "a.py")]
    assert of_kind(found, AssistantText)[0].content == "I look."
    assert of_kind(found, AssistantThinking)[0].state["encrypted_content"] == "e"
    assert of_kind(found, ModelResult)[0].usage == USAGE


def test_version_1_1_broken_off(tmp_path):
    """An answer the harness could not use was a model call; a person's command is no call of the model's."""
    unused = user("No tool calls found", interrupt_type="FormatError", response=response("I am done."), cost=0.1)
    person = user("User command: \n```bash\npwd\n```", actions=[{"command": "pwd"}])
    found = newer(tmp_path, [
        unused, person, user("/testbed", raw_output="/testbed", returncode=0),
        acts(bash("p", "rm")), tool("p", -1, exception_info="action was not executed"),
        user("Commands not executed. No!", interrupt_type="UserRejection"), leaves("LimitsExceeded", "LimitsExceeded"),
    ], "LimitsExceeded")  # fmt: skip
    assert [each.error for each in of_kind(found, ModelResult)] == ["FormatError", None]
    assert [each.content for each in of_kind(found, AssistantText)] == ["I am done."]
    assert [each.actor for each in of_kind(found, User)] == ["harness", "harness", "human", "human"]
    assert [each.status for each in of_kind(found, ToolResult)] == ["interrupted"]
    assert of_kind(found, Context)[-1].detail == {"exit_code": 0, "status": "ok"}
    assert of_kind(found, Note)[0].text == "LimitsExceeded"
    assert of_kind(found, EpisodeEnd)[0].reason == "LimitsExceeded"


REPORT = {
    "patch_exists": True, "resolved": True,
    "tests_status": {
        "FAIL_TO_PASS": {"success": ["a", "b"], "failure": []}, "PASS_TO_PASS": {"success": ["c"], "failure": ["d"]},
        "FAIL_TO_FAIL": {"success": ["e"], "failure": []},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "is_ours"),
    [
        ("a__b-1.report.json", REPORT, True),
        ("a__b-1.report.json", {"a__b-1": REPORT}, True),
        ("report.json", {"a__b-1": REPORT}, True),
        ("report.json", {"c__d-2": REPORT}, False),
        ("other.report.json", REPORT, False),
        ("a__b-1.report.json", {"resolved": "maybe"}, False),
    ],
)
def test_the_report_beside_it(tmp_path, name, value, is_ours):
    """Its verdict is the outcome, a reward and counts of tests; one of another instance says nothing of this one."""
    part = sign(SOURCE, document(tmp_path, value, name))
    assert (part is not None and part.is_part) == ("tests_status" in str(value))
    found = events(tmp_path, [runs("ls"), user("x")])
    assert of_kind(found, EpisodeEnd)[0].outcome == ("success" if is_ours else None)
    assert [each.value for each in of_kind(found, Reward)] == [1.0] * is_ours
    assert [each.outcome for each in of_kind(found, Label)] == ["success"] * is_ours
    assert [(each.passed, each.failed, each.pass_rate) for each in of_kind(found, TestRun)] == [(3, 1, 0.75)] * is_ours


def test_a_report_is_kept_with_its_trajectory(tmp_path):
    """What was read beside a file is one of its companions; one that cannot be read is trouble."""
    beside = document(tmp_path, REPORT, "a__b-1.report.json")
    path = document(tmp_path, trajectory(opening()), "a__b-1.traj.json")
    original = Original(path)
    list(SOURCE.read(original))
    assert list(original.companions) == [beside]
    beside.write_text("{")
    assert len(troubles(SOURCE, path)) == 1


def test_a_document_grows(tmp_path):
    """It is written after every step: a longer one says first what the shorter one said; the end comes last."""
    messages = [*opening(), acts(bash("p", "ls")), tool("p", 0), acts(bash("q", "ls")), tool("q", 0), leaves("", "x")]
    cut = [
        trajectory(messages[:count], exit_status="", submission="", model_stats={"api_calls": count})
        for count in range(2, len(messages))
    ]
    check_longer(SOURCE, tmp_path, [*cut, trajectory(messages)])


def test_a_large_document_says_the_same(tmp_path, monkeypatch):
    """Read part by part, a document says what it says read at once."""
    path = document(tmp_path, trajectory([*opening(), runs("ls"), user("x")]), indent=1)
    check_parts(SOURCE, path, monkeypatch)


def test_refused_and_troubled(tmp_path):
    """Messages that are no list are refused; a message that is no object is trouble, an unknown role a note."""
    with pytest.raises(FileRefused, match="no list"):
        read(SOURCE, document(tmp_path, trajectory("odd")))
    path = document(tmp_path, trajectory([*opening(), 7, {"role": "narrator", "content": "x"}]))
    assert [each.reason for each in troubles(SOURCE, path)] == ["message 3 is no object"]
    assert of_kind(only(SOURCE, path), Note)[0].native.fields["entry"] == {"role": "narrator", "content": "x"}


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    old = trajectory([*opening(), runs("ls"), user("<returncode>0</returncode>")])
    new = trajectory([*opening(), acts(bash("p", "ls")), tool("p", 0), leaves("", "Submitted")], "mini-swe-agent-1.1")
    document(tmp_path, REPORT, "a.report.json")
    for each in (old, new):
        assert check_mutations(SOURCE, tmp_path, lines(each), "a.traj.json", depth=6) > 500


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("mini_swe_agent/**/*.traj.json"), ids=lambda path: path.stem)
def test_corpus(path):
    """Actions, outputs, turns, tokens and verdicts counted without our code are ours; every call has its result."""
    told = json.loads(path.read_text())
    found = only(SOURCE, path)
    said = [each for each in told["messages"] if each["role"] == "assistant"]
    blocks = [re.findall(r"```bash\s*\n(.*?)\n```", each["content"], re.DOTALL) for each in said]
    commands = [each[0].strip() for each in blocks if len(each) == 1]
    assert [json.loads(each.call.args)["command"] for each in pairs(found)] == commands
    assert all(each.result is not None for each in pairs(found))
    codes = [re.match(r"<returncode>(-?\d+)", each["content"]) for each in told["messages"]]
    assert [each.exit_code for each in of_kind(found, ToolResult) if each.exit_code is not None] == [
        int(each[1]) for each in codes if each
    ]
    assert [each.content for each in of_kind(found, AssistantText)] == [each["content"] for each in said]
    users = sum(each["role"] == "user" for each in told["messages"])
    assert len(of_kind(found, User)) == users - len(commands)
    assert max(each.turn for each in found) == 1
    used = [each["extra"]["response"]["usage"] for each in said]
    assert [each.usage for each in of_kind(found, ModelResult)] == used
    resolved = json.loads(path.with_name(path.name.replace(".traj.", ".report.")).read_text())["resolved"]
    assert [each.value for each in of_kind(found, Reward)] == [float(resolved)]
    end = of_kind(found, EpisodeEnd)[0]
    assert (end.outcome, end.reason) == ("success" if resolved else "failure", told["info"]["exit_status"])
