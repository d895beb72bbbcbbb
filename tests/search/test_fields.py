"""Fields: each narrows down what it says, over events or over whole episodes."""

import pytest

import trackway
from tests.search.asking import indexed, places, said

DAY = 86_400 * 10**9


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three episodes: one that failed, one that is fine, one that nobody judged. Indexed once for all tests."""
    import time

    home = tmp_path_factory.mktemp("three")
    now = [time.time_ns()]
    with trackway.Recorder(home, clock=lambda: now[0]) as recorder:
        with recorder.start("Fix the parser", agent="alpha", model="gpt-5-mini", source="wire") as episode:
            episode.user("the build is red")
            call = episode.tool_call("Bash", {"command": "pytest -q"})
            episode.tool_result(call, "2 failed", is_error=True)
            call = episode.tool_call("edit", {"file_path": "/w/src/lexer/a.py", "new": "x"})
            episode.tool_result(call, "done")
            episode.file_change("src/lexer/a.py", after=b"x")
            episode.end("failure")
        now[0] -= 3 * DAY
        with recorder.start("write docs", agent="beta", model="claude-x") as episode:
            episode.thinking("which docs are red")
            episode.agent("reviewer").text("all docs are fine")
            episode.end("success")
        now[0] -= 30 * DAY
        with recorder.start("fix the lexer", agent="alpha") as episode:
            episode.text("the parser is red, 30 days ago")
    indexed(home)
    return home


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tool:bash", {"Fix the parser": [2, 3]}),
        ("tool:B*", {"Fix the parser": [2, 3]}),
        ("tool:bash pytest", {"Fix the parser": [2]}),
        ("error:true", {"Fix the parser": [2, 3]}),
        ("error:false", {"Fix the parser": [4, 5]}),
        ("error:true pytest", {"Fix the parser": [2]}),
        ("tool:edit error:true", {}),
        ("path:src/lexer/*.py", {"Fix the parser": [4, 5, 6]}),
        ("path:a.py", {"Fix the parser": [4, 5, 6]}),
        ("path:src kind:file_change", {"Fix the parser": [6]}),
        ("path:/w/src/**", {"Fix the parser": [4, 5]}),
        ("path:src/*.py", {}),
        ("kind:user", {"Fix the parser": [1]}),
        ("kind:assistant_* red", {"write docs": [1], "fix the lexer": [1]}),
        ("kind:thinking", {"write docs": [1]}),
        ("agent:reviewer", {"write docs": [2]}),
        ("agent:ALPHA red", {"Fix the parser": [1], "fix the lexer": [1]}),
        ("source:wire red", {"Fix the parser": [1]}),
        ("task:fix red", {"Fix the parser": [1], "fix the lexer": [1]}),
        ('task:"the parser" red', {"Fix the parser": [1]}),
        ("-task:fix red", {"write docs": [1]}),
        ("model:gpt-* red", {"Fix the parser": [1]}),
        ("model:claude-x red", {"write docs": [1]}),
        ("outcome:failure red", {"Fix the parser": [1]}),
        ("outcome:none red", {"fix the lexer": [1]}),
        ("-outcome:none red", {"Fix the parser": [1], "write docs": [1]}),
        ("outcome:partial red", {}),
        ("id:last kind:user", {"Fix the parser": [1]}),
        ("id:nobody red", {}),
        ("since:1d red", {"Fix the parser": [1]}),
        ("since:7d red", {"Fix the parser": [1], "write docs": [1]}),
        ("until:7d red", {"fix the lexer": [1]}),
        ("since:7d until:1d red", {"write docs": [1]}),
        ("(outcome:failure OR agent:beta) red", {"Fix the parser": [1], "write docs": [1]}),
    ],
)
def test_a_field_narrows_down(three, query, found):
    """What it says holds for every hit, and nothing that it holds for is missing."""
    assert places(three, query) == found


def test_what_is_said_later_of_an_episode_holds_at_once(home):
    """An outcome given by a label is found by it, in events that were indexed long before."""
    name = said(home, "the parser is red", task="fix the lexer", end=False)
    indexed(home)
    assert places(home, "outcome:success red") == {}
    with trackway.Recorder(home) as recorder:
        recorder.label(name, outcome="success", comment="judged by hand")

    assert places(home, "outcome:success red") == {"fix the lexer": [1]}
    assert places(home, '"judged by hand"') == {"fix the lexer": [2]}
