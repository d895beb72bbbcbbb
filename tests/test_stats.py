"""``stats``: what many episodes come to, counted in one pass, and what is not known is not made up."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.cli import main
from trackway.read.stats import Counting, Durations


def cli(*args):
    """What trackway answers."""
    answer = CliRunner().invoke(main, args, catch_exceptions=False, env={"COLUMNS": "120"})
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout


@pytest.fixture
def episodes(monkeypatch, tmp_path):
    """Three episodes of two tasks, with two tools and two models, one of them with a price."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trackway.toml").write_text("[prices.big]\ninput = 10\noutput = 100\nas_of = 2026-11-01\n")
    for task, outcome, score in (("a", "success", 1.0), ("a", "failure", 0.0), ("b", None, None)):
        with trackway.record(task) as episode:
            for model in ("big", "small"):
                request = episode.model_call(model=model)
                request.done(usage={"input_tokens": 1000, "output_tokens": 10}, latency_ms=100.0)
            episode.model_call(model="small").done(error="overloaded")
            call = episode.tool_call("bash", {"cmd": "x"})
            episode.tool_result(call, "no", is_error=outcome == "failure", duration_ms=200.0)
            episode.tool_call("never", {})
            episode.reward(0.5)
            episode.end(outcome, score=score)


def test_by_task_tool_and_model(episodes):
    """Counts, errors, durations, tokens, cost and rewards, each under its name."""
    found = json.loads(cli("stats", "--json"))
    tasks, tools, models = ({row[key]: row for row in found[f"{key}s"]} for key in ("task", "tool", "model"))

    assert (found["episodes"], found["steps"], found["errors"]) == (3, 6, 4)
    assert found["outcomes"] == {"success": 1, "failure": 1, "ended": 1}
    assert (tasks["a"]["episodes"], tasks["a"]["score"], tasks["a"]["reward"]) == (2, 0.5, 0.5)
    assert (tasks["b"]["score"], tasks["b"]["scored"]) == (None, 0)
    assert (tools["bash"]["calls"], tools["bash"]["errors"]) == (3, 1)
    assert tools["bash"]["duration"]["p50"] == pytest.approx(200, rel=0.05)
    assert (tools["never"]["unanswered"], tools["never"]["errors"]) == (3, 3)
    assert (models["small"]["calls"], models["small"]["errors"], models["small"]["usage"]["unknown"]) == (6, 3, 3)
    assert models["big"]["usage"]["cost"] == pytest.approx(0.033)
    assert models["big"]["usage"]["cost_from"] == ["settings, as of 2026-11-01"]
    assert models["small"]["usage"]["cost"] is None
    assert found["usage"]["is_partial"]


def test_for_people(episodes):
    """A table each, with bars; a cost that leaves something out says so."""
    shown = cli("stats")

    assert "██" in shown
    assert "$0.0330 by settings, as of 2026-11-01, without 6 calls nobody knows the price of" in shown
    assert cli("stats", "--by", "tool").startswith("TOOL")
    answer = CliRunner().invoke(main, ["stats", "--by", "task", "--limit", "1"])
    assert "… 1 more" in answer.stderr


def test_filters_and_nothing(episodes):
    """Only what is asked for is counted; nothing at all is said."""
    assert json.loads(cli("stats", "--json", "--outcome", "failure"))["episodes"] == 1
    answer = CliRunner().invoke(main, ["stats", "--task", "zzz"])
    assert (answer.exit_code, answer.stdout, "no episode matches" in answer.stderr) == (0, "", True)


def test_a_price_that_is_none_is_said(episodes, tmp_path):
    """Which file, which table, what belongs there."""
    (tmp_path / "trackway.toml").write_text("[prices.big]\ninput = 'cheap'\n")
    answer = CliRunner().invoke(main, ["stats"])

    assert answer.exit_code == 1
    assert "trackway.toml: [prices]" in answer.stderr


@given(st.lists(st.floats(0.01, 1e9), min_size=1, max_size=200))
def test_quantiles_are_near(lengths):
    """Half are not longer than the middle, to within 5 %; the sum is exact."""
    durations = Durations()
    for each in [*lengths, None, float("nan")]:
        durations.add(each)
    spread = durations.spread()
    ranked = sorted(lengths)

    assert spread.n == len(lengths)
    assert spread.total == pytest.approx(sum(lengths))
    for share, found in ((0.5, spread.p50), (0.95, spread.p95)):
        place = next(i for i in range(len(ranked)) if i + 1 >= share * len(ranked))
        assert found == pytest.approx(ranked[place], rel=0.051)


def test_no_episodes_are_counted_as_none():
    """Nothing is nothing, not an error."""
    found = Counting().stats()

    assert (found.episodes, found.tasks, found.usage.cost) == (0, [], None)
