"""`trackway show`: the transcript, the other forms, following, and what is said of an episode that died."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from trackway.cli import main
from trackway.read.trace import trace
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.schema.trace import FullTrace

DIES = """
import os, signal
from trackway.recording.recorder import Recorder
episode = Recorder().start("dies", agent="victim")
episode.user("go")
for number in range(25):
    episode.tool_result(episode.tool_call("bash", {"cmd": f"echo {number}"}), str(number))
episode.tool_call("bash", {"cmd": "rm -rf \\x1b[31m build"})
os.kill(os.getpid(), signal.SIGKILL)
"""
GOES_ON = """
import sys
from trackway.recording.recorder import Recorder
with Recorder() as recorder, recorder.start("goes on") as episode:
    episode.user("first")
    print("started", flush=True)
    for line in sys.stdin:
        episode.text(line.strip())
    episode.end("success")
"""


def show(*args):
    """What `trackway show` answers."""
    return CliRunner().invoke(main, ["show", *args])


def shown(*args):
    """The text it prints, if it is fine."""
    answer = show(*args)
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout


@pytest.fixture
def episode_id(home):
    """An episode with at least one event of every kind there is."""
    with (
        Recorder(home) as recorder,
        recorder.start(
            "fix the parser", agent="demo", model="m", variant="v2", tags=["nightly"], system_prompt="be kind",
            tools=[{}], metadata={"host": "ci"},
        ) as episode,
    ):  # fmt: skip
        episode.user("the build is red")
        request = episode.model_call(model="m", messages=[{"role": "user"}], attempt=2)
        request.done(usage={"input_tokens": 1200, "output_tokens": 30}, latency_ms=812, finish_reason="tool_use")
        episode.thinking("look first")
        first, second = episode.tool_call("grep", {"pattern": "x"}), episode.tool_call("bash", b'{"cmd": broken')
        episode.tool_result(second, "sh: no", is_error=True, exit_code=127)
        episode.tool_result(first, "found")
        call = episode.tool_call("write_file", {"path": "a.py", "content": "one\ntwo\n"})
        episode.file_change("a.py", before="one\n", after="one\ntwo\n")
        episode.tool_result(call, "written")
        episode.test_run(passed=3, failed=1, command="pytest")
        episode.reward(0.75, name="tests")
        episode.security_flag("secret", where="step 2", evidence="sk-123")
        episode.reflection("read before writing", times=2, tried="write_file")
        episode.note("milestone", "half done")
        reviewer = episode.agent("reviewer")
        reviewer.user("check it")
        reviewer.tool_result(reviewer.tool_call("diff"), "", status="denied")
        episode.text("done")
        episode.end("success", score=0.75, reason="good enough")
        episode.label(comment="agreed", by="human")
    return episode.id


def test_transcript_tells_the_story(episode_id):
    """The header says what an episode is, and every event has its line, in order."""
    text = shown(episode_id)
    wanted = [
        "fix the parser", episode_id[-8:], episode_id, "demo · model m · variant v2", "nightly", "success 0.75",
        "1 turn · 4 steps · 2 errors · 1 model call · 24 events", '{"host":"ci"}', "be kind", "turn 1",
        "user      the build is red", "attempt 2 · 812 ms · tool_use · in 1,200, out 30", "thinking  look first",
        "step 1    grep  x", 'step 2    bash  {"cmd": broken', "✗ error · exit 127", "sh: no", "of step 1",
        "step 3    write_file", "path: a.py", "content:", "file      modify a.py  4 → 8 bytes", "+two", "written",
        "tests     3 passed, 1 failed (75%)", "reward    tests = 0.75", "security  warning: secret in step 2: sk-123",
        "lesson    read before writing (tried 2×: write_file)", "note      milestone: half done",
        "── reviewer · turn 1",
        "user      check it", "step 4    diff", "✗ denied", "assistant done", "end       success · score 0.75",
        "label     agreed · by human",
    ]  # fmt: skip
    place = 0
    for each in wanted:
        place = text.find(each, place)
        assert place >= 0, f"{each!r} is missing or out of order in\n{text}"


def test_names_of_an_episode(episode_id):
    """An id, its short form, a beginning, an end and `last` all name it."""
    for name in (episode_id, episode_id[-8:], episode_id[:13], episode_id[-5:].upper(), "last"):
        assert episode_id in shown(name)


def test_ambiguous_name(home):
    """A name two episodes answer to exits 1 and lists both."""
    with Recorder(home) as recorder:
        one, two = (recorder.start(f"t{number}") for number in range(2))
        one.end()
        two.end()
    answer = show(one.id[:8])
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert one.id in answer.stderr
    assert two.id in answer.stderr


@pytest.mark.parametrize("name", ["00000000", "last", "no such", "ab"])
def test_no_such_episode(home, name):
    """A name nobody answers to exits 1, in an empty place too."""
    answer = show(name)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "no episode answers to" in answer.stderr


def test_long_text_is_clipped_in_the_display_only(home):
    """The middle of a long text is left out and counted; --full and JSON have all of it."""
    text = "".join(f"line {number}\n" for number in range(2000))
    with Recorder(home) as recorder, recorder.start("t") as episode:
        episode.tool_result(episode.tool_call("cat"), text)
    clipped = shown("last")
    assert "line 0\n" in clipped
    assert "line 1999\n" in clipped
    assert "line 1000\n" not in clipped
    assert "more characters (--full)" in clipped
    assert "line 1000\n" in shown("last", "--full")
    assert any(each.get("content") == text for each in json.loads(shown("last", "--json"))["events"])


def test_hostile_text_is_shown_harmless(home):
    """Escape sequences, overrides and lone surrogates are visible marks in the transcript, and survive in JSON."""
    nasty = "\x1b[31m \x07 \u202e \ud800 \x9b1m \r over"
    with Recorder(home) as recorder, recorder.start(nasty, agent=nasty, tags=[nasty]) as episode:
        episode.user(nasty)
        episode.tool_result(episode.tool_call(nasty, {nasty: nasty}), nasty)
        episode.note(nasty, {nasty: [nasty]})
        episode.file_change(nasty, before=b"", after=nasty.encode("utf-8", "surrogatepass"))
        episode.agent(nasty).text(nasty)
        episode.end("failure", reason=nasty)
    for args in ((), ("--full",), ("--as", "steps"), ("--as", "events"), ("--as", "trace"), ("--json",)):
        text = shown("last", *args)
        assert not [each for each in "\x1b\x07\u202e\x9b\r" if each in text], args
    events = json.loads(shown("last", "--json"))["events"]
    assert next(each for each in events if each["kind"] == "user")["content"] == nasty


def test_json_is_the_episode_and_its_events(episode_id):
    """`--json` is one object: the summary with its ending, and every event in order."""
    found = json.loads(shown("last", "--json"))
    assert list(found) == ["episode", "events"]
    assert found["episode"]["id"] == episode_id
    assert found["episode"]["ending"] == "ended success: good enough"
    kinds = [each["kind"] for each in found["events"]]
    assert (kinds[0], kinds[-2:]) == ("episode_start", ["episode_end", "label"])
    assert len(kinds) == found["episode"]["n_events"]
    assert next(each for each in found["events"] if each.get("name") == "bash")["args_text"] == '{"cmd": broken'


def test_events_are_json_lines(episode_id):
    """`--as events` is one JSON line per event, the same as in `--json`."""
    lines = [json.loads(line) for line in shown("last", "--as", "events").splitlines()]
    assert lines == json.loads(shown("last", "--json"))["events"]
    assert json.loads(shown("last", "--as", "events", "--json"))["events"] == lines


def test_traces_load_back(episode_id, home):
    """`--as trace` is one FullTrace per line; `--json` wraps the same."""
    lines = shown("last", "--as", "trace").splitlines()
    assert [FullTrace.from_json(line) for line in lines] == trace(open_store(home=home).events(episode_id))
    assert json.loads(shown("last", "--as", "trace", "--json"))["traces"] == [json.loads(line) for line in lines]


def test_steps_are_a_table(episode_id):
    """`--as steps` has a line per step; `--json` has them whole."""
    lines = shown("last", "--as", "steps").splitlines()
    assert lines[0].split() == ["STEP", "TURN", "TOOL", "ARGS", "RESULT", "TIME", "OBSERVATION"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3", "4"]
    assert "error 127" in lines[2]
    assert "reviewer: diff" in lines[4]
    found = json.loads(shown("last", "--as", "steps", "--json"))
    assert [each["tool"] for each in found["steps"]] == ["grep", "bash", "write_file", "diff"]
    assert found["steps"][2]["args"] == {"path": "a.py", "content": "one\ntwo\n"}
    assert found["episode"]["id"] == episode_id


def test_no_steps(home):
    """An episode without tool calls has no table, says so on stderr, and is fine."""
    with Recorder(home) as recorder:
        recorder.start("t").end()
    answer = show("last", "--as", "steps")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "no steps" in answer.stderr
    assert json.loads(shown("last", "--as", "steps", "--json"))["steps"] == []


@pytest.mark.crash
def test_crashed_episode_says_where_it_died(home):
    """After a kill inside a tool, the last line names the step, the tool and the arguments; so does JSON."""
    subprocess.run([sys.executable, "-c", DIES], check=False)
    text = shown("last")
    assert "state     crashed" in text
    assert text.splitlines()[-1].startswith("crashed   died inside step 26, bash, args ")
    assert "rm -rf" in text.splitlines()[-1]
    assert "\x1b" not in text
    assert json.loads(shown("last", "--json"))["episode"]["ending"].startswith("died inside step 26, bash")
    assert "missing" in shown("last", "--as", "steps").splitlines()[-1]


def test_running_episode_says_where_it_is(home):
    """While its process lives, the last line says what it is doing."""
    with Recorder(home) as recorder, recorder.start("t") as episode:
        episode.tool_call("bash", {"cmd": "sleep 9"})
        assert shown("last").splitlines()[-1] == 'now       running, inside step 1, bash, args {"cmd":"sleep 9"}'


@pytest.mark.parametrize("form", [(), ("--json",), ("--as", "events")])
def test_follow_until_the_end(home, form):
    """`--follow` shows what is there, then each new event as it is recorded, and ends with the episode."""
    pipe = subprocess.PIPE
    agent = subprocess.Popen([sys.executable, "-c", GOES_ON], stdin=pipe, stdout=pipe, text=True)
    assert agent.stdout.readline() == "started\n"
    command = [sys.executable, "-m", "trackway", "show", "last", "--follow", *form]
    follower = subprocess.Popen(command, stdout=pipe, text=True, env=os.environ | {"PYTHONUNBUFFERED": ""})
    seen = _read_until(follower, "first")
    print("second", file=agent.stdin, flush=True)
    seen += _read_until(follower, "second")
    agent.stdin.close()
    seen += follower.stdout.read()
    assert (agent.wait(), follower.wait()) == (0, 0)
    agent.stdout.close()
    follower.stdout.close()
    if form:
        kinds = [json.loads(line)["kind"] for line in seen.splitlines()]
        assert kinds == ["episode_start", "user", "assistant_text", "episode_end"]
    else:
        assert seen.splitlines()[-1] == "end       success"


def _read_until(process, word):
    seen = ""
    while word not in seen:
        line = process.stdout.readline()
        assert line, f"ended before {word!r}: {seen}"
        seen += line
    return seen


def test_follow_of_an_ended_episode_returns(episode_id):
    """Following what has ended shows all of it and returns."""
    assert "end       success" in shown("last", "--follow")


@pytest.mark.parametrize("form", ["steps", "trace"])
def test_follow_needs_a_form_that_grows(episode_id, form):
    """Steps and traces are of a whole episode: following them is misuse."""
    assert show("last", "--follow", "--as", form).exit_code == 2


def test_events_of_many_processes_are_in_reading_order(home):
    """What two writers recorded is shown by time, not by when it was sealed."""
    at = iter(range(10**18, 2 * 10**18, 10**9))
    early = Recorder(home, clock=lambda: next(at))
    episode = early.start("t")
    episode.user("one")
    late = Recorder(home, clock=lambda: next(at))
    late.resume(episode.id).text("two")
    episode.text("three")
    late.close()
    episode.end()
    early.close()
    text = shown("last")
    assert text.index("one") < text.index("two") < text.index("three")
    kinds = [each["kind"] for each in json.loads(shown("last", "--json"))["events"]]
    assert kinds[-1] == "episode_end"


def test_lossy_capture_is_marked(home):
    """An episode of which only steps were kept says so in its header."""
    with Recorder(home) as recorder, recorder.start("t", capture="steps") as episode:
        episode.user("not kept")
    text = shown("last")
    assert "capture   steps only: lossy" in text
    assert "not kept" not in text.replace("were not kept", "")


def test_failure_shows_the_error(home):
    """An exception that ended the episode stands at its end."""
    with Recorder(home) as recorder, pytest.raises(ValueError, match="boom"), recorder.start("t"):
        raise ValueError("boom")
    assert "end       failure · ValueError: boom" in shown("last")


def test_utc_and_local(episode_id, monkeypatch):
    """Times in the header and between turns are local, with --utc they are UTC."""
    assert " UTC" in shown("last", "--utc")
    assert " UTC" not in shown("last")


@pytest.mark.parametrize("depth", [100, 500, 900])
@pytest.mark.parametrize("inmost", ["x", float("nan"), b"\xff"])
def test_values_as_deep_as_they_come(home, depth, inmost):
    """Hundreds of levels, and odd things at the bottom, are shown in every form."""
    value = inmost
    for _ in range(depth):
        value = [value]
    with Recorder(home) as recorder:
        episode = recorder.start("deep", metadata={"v": value})
        call = episode.tool_call("t", {"v": value})
        episode.tool_result(call, value)
        episode.end("success")
    for more in ((), ("--json",), ("--full",), ("--as", "steps"), ("--as", "trace"), ("--as", "events")):
        answer = CliRunner().invoke(main, ["show", "last", *more])
        assert answer.exit_code == 0, answer.output[-500:]
