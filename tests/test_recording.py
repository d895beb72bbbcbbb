"""The Python API: what an agent's loop calls, and what is read back of it."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest

import trackway
from trackway.errors import BadSetting, EpisodeClosed, EpisodeNotFound, RecorderClosed, UnknownOutcome
from trackway.read.context import contexts
from trackway.read.ending import ending
from trackway.schema import events as kinds
from trackway.schema import view


def events_of(episode: trackway.Episode) -> list[kinds.Event]:
    """What a reader sees of an episode right now."""
    return list(trackway.open_store().events(episode.id))


def throw(error: BaseException | None) -> None:
    """What happens inside a block."""
    if error is not None:
        raise error


def test_everything_an_agent_can_say(home: Path) -> None:
    """Each method records its kind, with what it was given."""
    with trackway.record(
        "fix the flaky test", variant="v1", agent="demo", model="m", system_prompt="be brief", tools=[{"name": "bash"}],
        tags=["nightly"], metadata={"issue": 7}, home=None, store=None, capture="full", guard=None,
    ) as episode:  # fmt: skip
        episode.user("the build is red")
        episode.thinking("look first", state={"signature": "abc"})
        call = episode.tool_call("bash", {"cmd": "pytest -q"})
        episode.tool_result(call, "2 failed", is_error=True, exit_code=1)
        request = episode.model_call(model="m", messages=[{"role": "user", "content": "x"}], parameters={"t": 0.5})
        request.done(usage={"input_tokens": 12}, latency_ms=812, finish_reason="stop")
        episode.text("done")
        episode.reward(0.5, name="tests")
        episode.test_run(passed=3, failed=1)
        episode.file_change("a.py", before=b"..", after=b"...")
        episode.security_flag("rule", evidence="rm -rf /")
        episode.note("milestone", "module done")
        episode.reflection("read the fixture first", times=3)
        episode.agent("reviewer").tool_call("read", '{"path": "a.py"}')
        episode.end("success", score=1.0)

    found = events_of(episode)
    assert [each.kind for each in found] == [
        "episode_start", "context", "user", "assistant_thinking", "assistant_tool_call", "tool_result", "model_call",
        "model_result", "assistant_text", "reward", "test_run", "file_change", "security_flag", "note", "reflection",
        "assistant_tool_call", "episode_end",
    ]  # fmt: skip
    start, context, user, thinking, tool_call, result, asked, answer, text, reward, tests, change, *_ = found
    assert start.header.task == "fix the flaky test"
    assert (start.header.id, start.header.metadata) == (episode.id, {"issue": 7})
    assert (context.system_prompt, context.tools) == ("be brief", [{"name": "bash"}])
    assert (user.turn, thinking.state) == (1, {"signature": "abc"})
    assert (tool_call.name, tool_call.args, tool_call.batch) == ("bash", b'{"cmd":"pytest -q"}', 1)
    assert (result.call_id, result.is_error, result.exit_code, result.status) == (tool_call.call_id, True, 1, "error")
    assert result.duration_ms > 0
    assert (asked.parameters, answer.usage, answer.latency_ms) == ({"t": 0.5}, {"input_tokens": 12}, 812)
    assert text.call == asked.id == answer.id
    assert (reward.value, tests.pass_rate, change.op) == (0.5, 0.75, "modify")
    summary = trackway.open_store().episode(episode.id)
    assert (summary.outcome, summary.score, summary.state, summary.n_steps) == ("success", 1.0, "ended", 2)
    assert (summary.tags, summary.variant, summary.tools) == (("nightly",), "v1", ("bash", "read"))


@pytest.mark.parametrize(
    "args", [b'{"a": 1.10 , "a":2}', '{"x": tru', b"\xff\xfe", b"", '{"n": 123456789012345678901234567890}', "a\ud83d"]
)
def test_arguments_are_kept_byte_for_byte(args: bytes | str) -> None:
    """What the model wrote is what is stored: spacing, duplicate keys, broken JSON, no text at all."""
    with trackway.record("args") as episode:
        episode.tool_call("x", args)

    call = events_of(episode)[1]
    assert call.args == (args if isinstance(args, bytes) else args.encode("utf-8", "surrogatepass"))


def test_wrong_types_are_made_right_before_they_are_acknowledged() -> None:
    """Whatever is handed over, the event is of its kind when it is read: nothing is accepted that cannot be."""
    odd = SimpleNamespace(a=1)
    with trackway.record(5, variant=Path("v"), agent=odd, tags=[1, odd], metadata={(1, 2): odd, 3: {4}}) as episode:
        episode.user(5, actor=odd)
        episode.thinking(None, state=[1])
        episode.text({"parts": [odd]})
        call = episode.tool_call(odd, {(1, 2): 3, "o": odd, "b": b"x"}, call_id=7)
        episode.tool_result(call, [odd], exit_code=True, duration_ms=3, returned={(1,): odd})
        episode.tool_result(8, b"\xff")
        request = episode.model_call(
            model=odd, messages=[{(1, 2): odd}, odd, "a\ud83d"], parameters={1: 2}, tools=(1, odd)
        )
        request.done(usage=odd, error=odd, finish_reason=3, response=odd)
        episode.reward(True, name=1, source=odd, ended=2)
        episode.test_run(passed=True, command=odd)
        episode.file_change(Path("a.py"), after="a\ud83d", cause=4)
        episode.security_flag(1, where=2, evidence=odd)
        episode.note(1, odd, detail=odd)
        episode.reflection(odd, times=True, outcome=1)
        episode.context("set", system_prompt=odd, tools=odd)
        episode.end("success", score=True, reason=odd)
        episode.label(tag=1, comment=odd)
        assert episode.lost == 0

    found = events_of(episode)
    assert len(found) == 18
    assert all(type(each) is kinds.KINDS[each.kind] for each in found)


class Raising:
    """An object whose every answer is an exception."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


class RaisingMapping(dict[str, int]):
    """A mapping that cannot be walked."""

    def items(self) -> object:  # type: ignore[override]
        """Does not."""
        raise RuntimeError("items")


@pytest.mark.parametrize(
    "value",
    [Raising(), RaisingMapping(a=1), Mock(), subprocess, print, 10**5000, msgspec.msgpack.Ext(3, b"x" * 32)],
    ids=["raising", "mapping", "mock", "module", "function", "integer", "extension"],
)
def test_hostile_values_never_reach_the_agent(value: object) -> None:
    """What raises, answers to everything, or is a piece of the program is described; recording goes on, soon."""
    with trackway.record("hostile", metadata={"v": value}) as episode:
        episode.tool_call("x", {"v": value})
        episode.tool_result("c", value)
        episode.note("n", value)
        episode.model_call(messages=[{"v": value}]).done(usage={"v": value}, response=value)
        assert episode.lost == 0

    found = events_of(episode)
    assert [each.kind for each in found[1:4]] == ["assistant_tool_call", "tool_result", "note"]
    assert all(type(each) is kinds.KINDS[each.kind] for each in found)
    assert all(view.dumps(view.event_fields(each)) for each in found)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda episode: episode.reward("high"),
        lambda episode: episode.tool_result("c", "x", exit_code="signal"),
        lambda episode: episode.end("success", score="good"),
        lambda episode: episode.test_run(passed="most"),
    ],
    ids=["reward", "exit_code", "score", "passed"],
)
def test_what_is_no_number_is_misuse(misuse: Callable[[trackway.Episode], None]) -> None:
    """A word where a number belongs is the caller's to hear about."""
    with trackway.record("numbers") as episode, pytest.raises(BadSetting, match="a number"):
        misuse(episode)


def test_calls_without_a_result_between_them_share_a_batch() -> None:
    """Parallel calls are told from sequential ones; a new turn begins a new batch."""
    with trackway.record("batches") as episode:
        episode.user("go")
        first, second = episode.tool_call("a"), episode.tool_call("b")
        episode.tool_result(first, "1")
        episode.tool_result(second, "2")
        episode.tool_call("c")
        episode.user("again")
        episode.tool_call("d")

    assert [each.batch for each in events_of(episode) if each.kind == "assistant_tool_call"] == [1, 1, 2, 3]
    assert [each.turn for each in events_of(episode) if each.kind == "user"] == [1, 2]


def test_the_current_episode_is_the_enclosing_one() -> None:
    """Episodes nest; each block gives the outer one back; another thread has none."""
    seen = []
    with trackway.record("outer") as outer:
        assert trackway.current() is outer
        with trackway.record("inner") as inner:
            assert trackway.current() is inner
        assert trackway.current() is outer
        thread = threading.Thread(target=lambda: seen.append(trackway.current()))
        thread.start()
        thread.join()
    assert trackway.current() is None
    assert seen == [None]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyboardInterrupt(), "abandoned"), (SystemExit(3), "abandoned"), (GeneratorExit(), "abandoned"),
        (ValueError("no"), "failure"), (None, None),
    ],
)  # fmt: skip
def test_how_a_block_ends(error: BaseException | None, outcome: str | None) -> None:
    """Interrupted is abandoned, an exception is a failure with the error, nothing said is nothing said."""
    episode = trackway.record("ends")

    with contextlib.nullcontext() if error is None else pytest.raises(type(error)), episode:
        throw(error)

    summary = trackway.open_store().episode(episode.id)
    assert (summary.outcome, summary.state) == (outcome, "ended")
    assert ("no" in (summary.error or "")) == isinstance(error, ValueError)


def test_misuse_raises() -> None:
    """A closed episode, an unknown outcome, status, capture or ack: the caller is told."""
    with trackway.record("misuse") as episode:
        with pytest.raises(UnknownOutcome, match="success, partial"):
            episode.end("great")
        with pytest.raises(BadSetting, match="denied"):
            episode.tool_result("c", "x", status="odd")
        episode.end("success")
        with pytest.raises(EpisodeClosed):
            episode.user("too late")
        with pytest.raises(EpisodeClosed):
            episode.end("failure")
        episode.label(outcome="partial", tag="checked", by="me")
    with pytest.raises(BadSetting):
        trackway.record("x", capture="some")
    with pytest.raises(BadSetting):
        trackway.Recorder(ack="never")
    recorder = trackway.Recorder()
    late = recorder.start("late")
    recorder.close()
    with pytest.raises(RecorderClosed):
        late.user("hello?")

    summary = trackway.open_store().episode(episode.id)
    assert (summary.outcome, summary.tags) == ("partial", ("checked",))


def test_resume_goes_on_after_a_crash(home: Path) -> None:
    """Another process takes up an unfinished episode: same id, next turn; one that ended cannot be resumed."""
    program = "import os, trackway; e = trackway.record('long'); e.user('one'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program], check=False)
    assert trackway.open_store().episode(trackway.open_store().resolve("last")).state == "crashed"

    with trackway.Recorder() as recorder:
        episode = recorder.resume("last")
        assert trackway.open_store().episode(episode.id).state == "running"  # a prune beside it spares it at once
        episode.user("two")
        episode.end("success")
        with pytest.raises(EpisodeClosed):
            recorder.resume(episode.id)
        with pytest.raises(EpisodeNotFound):
            recorder.resume("00000000")

    assert [(each.content, each.turn) for each in events_of(episode) if each.kind == "user"] == [("one", 1), ("two", 2)]


def test_capture_steps_keeps_steps_and_says_so() -> None:
    """Only tool, action, timing, tokens, success and observation are kept, and the episode is marked as lossy."""
    with trackway.record("private", capture="steps", system_prompt="secret-prompt") as episode:
        episode.user("secret-user")
        episode.thinking("secret-thought")
        episode.model_call(model="m", messages=[{"content": "secret-message"}]).done(usage={"output_tokens": 5})
        call = episode.tool_call("bash", {"cmd": "ls"})
        episode.tool_result(call, "a.py", returned={"secret": "secret-raw"})
        episode.text("secret-reply")
        episode.file_change("a.py", after=b"secret-file")

    found = events_of(episode)
    assert "secret" not in repr(found)
    assert [each.observation for each in trackway.steps(found)] == ["a.py"]
    assert trackway.open_store().episode(episode.id).capture == "steps"
    assert [each.usage for each in found if each.kind == "model_result"] == [{"output_tokens": 5}]


@pytest.mark.parametrize("how", ["capture", "environment"])
def test_off_writes_nothing(home: Path, monkeypatch, how: str) -> None:
    """Switched off, the same program runs and leaves nothing behind, not even a folder."""
    if how == "environment":
        monkeypatch.setenv("TRACKWAY_DISABLED", "1")
    with trackway.record("nothing", capture="off" if how == "capture" else "full") as episode:
        episode.user("hi")
        call = episode.tool_call("x")
        episode.tool_result(call, "y")
        episode.model_call().done()
        episode.agent("sub").note("k")
        episode.end("success")

    assert not home.exists()


def test_context_is_kept_once_and_rebuilt_exactly() -> None:
    """Each call stores only new messages; edits, rewinds and compactions come back as they were sent."""
    history: list[dict[str, object]] = [{"role": "system", "content": "s"}]
    sent = []
    with trackway.record("history") as episode:
        for i in range(20):
            history.append({"role": "user", "content": f"question {i}", "n": i, "flag": bool(i % 2)})
            if i == 7:
                history[2] = {"role": "user", "content": "edited"}
            if i == 11:
                del history[3:6]
            if i == 15:
                history = [{"role": "system", "content": "summary so far"}, *history[-2:]]
            sent.append([dict(each) for each in history])
            episode.model_call(model="m", messages=history).done()

    found = events_of(episode)
    assert [each.messages for each in contexts(found)] == sent
    stored = sum(len(each.messages) for each in found if each.kind == "model_call")
    assert stored <= 24


def test_equal_is_not_the_same() -> None:
    """1, True and 1.0 are different messages, whatever == says."""
    with trackway.record("types") as episode:
        for value in (1, True, 1.0, "1"):
            episode.model_call(messages=[{"v": value}]).done()

    rebuilt = [each.messages[0]["v"] for each in contexts(events_of(episode))]
    assert [type(each) for each in rebuilt] == [int, bool, float, str]


def test_a_failed_model_call_is_recorded() -> None:
    """As a context manager a request records the exception that ended it."""
    with trackway.record("down") as episode, pytest.raises(ConnectionError), episode.model_call(model="m"):
        raise ConnectionError("refused")

    assert [each.error for each in events_of(episode) if each.kind == "model_result"] == ["ConnectionError: refused"]


def test_a_running_episode_names_the_call_it_waits_in() -> None:
    """The start of an action is recorded before it happens."""
    with trackway.record("waiting") as episode:
        episode.model_call(model="slow")
        assert ending(events_of(episode)) == "inside a call to model slow"
        call = episode.tool_call("bash", {"cmd": "sleep 9"})
        assert ending(events_of(episode)) == 'inside step 1, bash, args {"cmd":"sleep 9"}'
        episode.tool_result(call, "")
        assert ending(events_of(episode)).startswith("after event")
    assert ending(events_of(episode)) == "ended without an outcome"


def test_a_guard_is_asked_and_its_verdicts_recorded() -> None:
    """Any object with before, after and observe: what it says is an event; one that breaks stops nothing."""
    asked: list[tuple[object, ...]] = []

    class Guard:
        def observe(self, event: kinds.Event) -> None:
            asked.append(("observe", event.kind))

        def before(self, name: str, args: object, **_: object) -> SimpleNamespace:
            asked.append(("before", name, args))
            return SimpleNamespace(action="deny", rule="repeat", text="third time", evidence={"times": 3})

        def after(self, name: str, args: object, result: object, **_: object) -> SimpleNamespace:
            raise RuntimeError("a broken guard")

    with trackway.record("guarded", guard=Guard()) as episode:
        episode.user("go")
        call = episode.tool_call("bash", {"cmd": "ls"})
        assert call.verdict.action == "deny"
        episode.tool_result(call, "no", status="denied")

    verdict = next(each for each in events_of(episode) if each.kind == "verdict")
    assert (verdict.rule, verdict.action, verdict.call_id, verdict.evidence) == (
        "repeat",
        "deny",
        call.call_id,
        {"times": 3},
    )
    assert ("observe", "user") in asked
    assert ("before", "bash", {"cmd": "ls"}) in asked


def test_a_promise_that_cannot_be_kept_is_told_and_nothing_is_lost(home: Path, capsys) -> None:
    """ack="store" with a store that is none: the event stays in the journal, no loss is counted, the reason is said."""
    home.mkdir(parents=True)
    (home / "store.db").write_text("this is no database, and long enough to be sure of it" * 30)
    recorder = trackway.Recorder(home, ack="store")
    episode = recorder.start("unsafe")
    episode.user("hi")

    assert episode.lost == 0
    assert "in the journal only" in capsys.readouterr().err
    recorder._journal.release()
    (home / "store.db").unlink()
    assert [each.kind for each in trackway.open_store().events("last")] == ["episode_start", "user"]


def test_batches_go_on_after_a_resume() -> None:
    """Numbers of batches do not repeat within an episode."""
    with trackway.Recorder() as recorder:
        first = recorder.start("long")
        for _ in range(3):
            first.tool_result(first.tool_call("a"), "1")
        second = recorder.resume(first.id)
        second.tool_call("b")
        batches = [each.batch for each in events_of(first) if each.kind == "assistant_tool_call"]

    assert batches == [1, 2, 3, 4]
