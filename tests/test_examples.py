"""The examples do what their page says, and what they recorded is in the store.

Each is started as a user starts it, and dies if it reaches for the network. A framework that is not installed skips its
example; `make test` installs them all.
"""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import trackway
from tests.test_docs import blocks, expected
from trackway.read.context import contexts

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "examples.md"
MOST_LINES = 59
NO_NETWORK = """
import os, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        os.write(2, f"{event}{arguments}: an example reached for the network".encode())
        os._exit(99)

sys.addaudithook(refuse)
"""


@pytest.fixture
def start(home, tmp_path):
    """`start(name)`: execute an example, see that it prints what its page shows, and give the store it filled."""

    def run(name, needs="trackway"):
        if find_spec(needs) is None:
            pytest.skip(f"{needs} is not installed: pip install 'trackway[examples]'")
        (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
        paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        warnings = "error" if needs == "trackway" else "ignore"  # a framework's warnings are its own
        done = subprocess.run(
            [sys.executable, "-W", warnings, ROOT / "examples" / name], cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert expected(shown(name)).fullmatch(done.stdout), f"{name} really prints\n{done.stdout}"
        return trackway.open_store(home=home)

    return run


def shown(name):
    """The output that the page shows of an example: the block below its heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    heading = lines.index(f"## `{name}`")
    return next(block.text.splitlines() for block in blocks(PAGE) if block.line > heading)


def only(store):
    """The one episode of a store, and its events."""
    [summary] = store.episodes()
    return summary, list(store.events(summary.id))


def test_bare_loop(start):
    """The file is really repaired; every kind of event a loop has is there, and its tokens."""
    store = start("bare_loop.py")
    summary, events = only(store)

    assert (summary.outcome, summary.score, summary.n_steps, summary.n_errors) == ("success", 1.0, 3, 1)
    kinds = {event.kind for event in events}
    assert kinds >= {"user", "model_call", "model_result", "assistant_thinking", "assistant_text", "file_change"}
    assert [step.exit_code for step in trackway.steps(events)] == [1, 0, 0]
    assert [event.value for event in events if event.kind == "reward"] == [0.0, 1.0]
    [change] = [event for event in events if event.kind == "file_change"]
    assert b"a + b" in b"".join(store.blob(change.after.hash))
    spent = trackway.usage(events)
    assert (spent.calls, spent.unknown, spent.total) == (4, 0, 680)


def test_litellm(start):
    """Both calls are one batch under the model's ids, their arguments verbatim; the context of each call is whole."""
    summary, events = only(start("litellm_agent.py", needs="litellm"))

    assert (summary.outcome, summary.score, summary.n_errors) == ("partial", 0.5, 1)
    first, second = trackway.steps(events)
    assert (first.call_id, first.args, first.batch) == ("call_0", b'{"city": "Oslo"}', second.batch)
    spent = trackway.usage(events)
    assert (spent.calls, spent.known_from, spent.total) == (2, {"provider": 2}, 315)
    assert [spent.model for spent in spent.models] == ["scripted/weather"]
    assert [len(each.messages) for each in contexts(events)] == [1, 4]


def test_pydantic_ai(start):
    """The tool's complaint and its repair are steps of the model calls that asked for them; the messages are kept."""
    summary, events = only(start("pydantic_ai_agent.py", needs="pydantic_ai"))

    assert (summary.outcome, summary.n_steps, summary.n_errors, summary.n_model_calls) == ("success", 2, 1, 3)
    calls = [event.id for event in events if event.kind == "model_call"]
    assert [step.call for step in trackway.steps(events)] == calls[:2]
    assert [step.args for step in trackway.steps(events)] == [b'{"country": "Norge"}', b'{"country": "Norway"}']
    assert [event.content for event in events if event.kind == "assistant_thinking"] == ["I look it up."]
    assert trackway.usage(events).unknown == 0
    assert [len(each.messages) for each in contexts(events)] == [1, 3, 5]


def test_langgraph(start):
    """Calls made at once are one batch, whichever thread was first; every result found its call."""
    summary, events = only(start("langgraph_agent.py", needs="langgraph"))

    assert (summary.outcome, summary.n_steps, summary.n_errors, summary.n_model_calls) == ("success", 3, 0, 3)
    assert [step.batch for step in trackway.steps(events)] == [1, 1, 2]
    assert trackway.usage(events).total == 360
    assert [len(each.messages) for each in contexts(events)] == [1, 4, 6]


def test_rl_environment(start):
    """Three trajectories with rewards and diffs; the replayed one is the careful one again."""
    store = start("rl_environment.py")
    found = {each.variant: trackway.trajectory(store.events(each.id)) for each in store.episodes()}

    assert found["hasty"].final_score == pytest.approx(2 / 3)
    careful, replayed = (
        [(step.reward, step.file_diff) for step in found[name].steps] for name in ("careful", "replayed")
    )
    assert careful == replayed
    assert (len(careful), found["replayed"].final_score) == (2, 1.0)
    assert found["careful"].steps[-1].done


def test_redacted(start, home):
    """Neither secret is anywhere in the home's files; every event that had one says so."""
    _, events = only(start("redacted.py"))

    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"CUST-1042" not in written
    assert b"sk-xxxx" not in written
    hidden = {event.kind for event in events if event.redacted}
    assert hidden == {"user", "assistant_tool_call", "tool_result", "assistant_text"}


def test_crash(start, home):
    """The episode of the killed process has its events and the end that another one gave it; no journal is left."""
    summary, events = only(start("crash.py"))

    assert (summary.state, summary.outcome, len(summary.writers)) == ("ended", "abandoned", 2)
    assert [step.status for step in trackway.steps(events)] == ["ok", "interrupted"]
    assert list((home / "journals").iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_small_and_uses_what_is_public(path):
    """Under 60 lines, opened by what it shows, named on both pages; of trackway it uses public names only."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)

    assert len(text.splitlines()) <= MOST_LINES
    assert ast.get_docstring(tree)
    assert f"[{path.name}]({path.name})" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert shown(path.name)
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names]
    assert [name for name in imported if name.split(".")[0] == "trackway"] == ["trackway"]
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "trackway"
    }
    assert used <= set(trackway.__all__)
