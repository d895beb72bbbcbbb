"""``trackway label`` and ``trackway show --lift``: what is added later, and what was hidden before."""

import json

import pytest
from click.testing import CliRunner

import trackway
from trackway.cli import main

SECRET = "sk-ant-api03-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"


def cli(*args):
    """Call trackway with these words; gives what click's runner gives."""
    return CliRunner().invoke(main, args, catch_exceptions=False)


@pytest.fixture
def episode():
    """One episode that ended well."""
    with trackway.record("fix it") as episode:
        episode.user("go")
        episode.end("success", score=1.0)
    return episode


def test_a_label_is_added_with_who_and_when(episode):
    """Outcome, score, tags and a remark: the summary follows, and the label stands at the end of the episode."""
    said = cli("label", "last", "--outcome", "failure", "--score", "0.25", "--tag", "a", "--tag", "b", "--note", "no",
               "--by", "me")  # fmt: skip

    assert (said.exit_code, said.stdout) == (0, "")
    assert said.stderr.startswith("trackway: 2 labels added to ")
    summary = trackway.open_store().episode(episode.id)
    assert (summary.outcome, summary.score, summary.tags) == ("failure", 0.25, ("a", "b"))
    shown = cli("show", "last").stdout
    assert "label     outcome failure · score 0.25 · tag a · no · by me" in shown


def test_who_is_the_user_where_nobody_is_named(episode):
    """Your user name, in JSON too."""
    found = json.loads(cli("label", "last", "--tag", "x", "--json").stdout)

    assert found["tags"] == ["x"]
    (label,) = [event for event in trackway.open_store().events("last") if event.kind == "label"]
    assert label.by


def test_a_relation_names_another_episode(episode):
    """By a short id; the header of the episode says it."""
    with trackway.record("go on"):
        pass
    said = cli("label", "last", "--relation", "depends_on", "--to", episode.id[-8:])

    assert said.exit_code == 0
    assert f"related   depends on {episode.id[-8:]}  {episode.id}" in cli("show", "last").stdout


@pytest.mark.parametrize(
    "args", [(), ("--relation", "x"), ("--to", "last"), ("--outcome", "great"), ("--score", "good")]
)
def test_a_label_that_says_nothing_is_misuse(episode, args):
    """Exit 2, and nothing is added."""
    assert cli("label", "last", *args).exit_code == 2
    assert [event.kind for event in trackway.open_store().events("last")] == ["episode_start", "user", "episode_end"]


def test_a_label_on_nothing_is_refused(episode):
    """Exit 1 with what to do; so is one that would not be recorded, and one on itself."""
    assert cli("label", "ffff", "--tag", "x").exit_code == 1
    assert cli("label", "last", "--relation", "follows", "--to", "last").exit_code == 1
    said = CliRunner(env={"TRACKWAY_DISABLED": "1"}).invoke(main, ["label", "last", "--tag", "x"])
    assert (said.exit_code, "switched off" in said.stderr) == (1, True)


def test_lifted_for_the_key_holder(home):
    """Redacted text is a token, with --lift it is itself: in texts, arguments, files and the header."""
    with trackway.record(f"use {SECRET}", redact=True) as episode:
        episode.user(f"key: {SECRET}")
        call = episode.tool_call("write", {"text": SECRET})
        episode.file_change("env", after=f"K={SECRET}\n")
        episode.tool_result(call, "ok")
    hidden, lifted = cli("show", "last").stdout, cli("show", "last", "--lift").stdout

    assert SECRET not in hidden
    assert "[redacted:anthropic:" in hidden
    assert "[redacted:" not in lifted
    assert lifted.count(SECRET) == 4
    (home / "redact.key").unlink()
    refused = cli("show", "last", "--lift")
    assert (refused.exit_code, "redact.key is not there" in refused.stderr) == (1, True)


@pytest.mark.parametrize(("form", "plural"), [
    ("steps", "steps"), ("timeline", "timeline"), ("trajectory", "trajectories"), ("context", "contexts"),
    ("trace", "traces"), ("events", "events"),
])  # fmt: skip
def test_every_reading_is_shown(form, plural):
    """As lines or a table for people, as one document for programs; an episode without steps says so."""
    with trackway.record("t") as episode:
        episode.user("go")
        request = episode.model_call(model="m", messages=[{"role": "user", "content": "go"}], system="be brief")
        request.done(usage={"input_tokens": 3, "output_tokens": 4})
        call = episode.tool_call("read_file", {"path": "a.py"})
        episode.tool_result(call, "no such file", is_error=True)
        episode.reward(-0.5)
    found = json.loads(cli("show", "last", "--as", form, "--json").stdout)

    assert found["episode"]["task"] == "t"
    assert found[plural]
    assert cli("show", "last", "--as", form).stdout.strip()
    with trackway.record("empty"):
        pass
    assert cli("show", "last", "--as", form).exit_code == 0
