"""`trackway search` and `trackway show --at`: what is printed, for people and for programs, and the exit codes."""

import json
import re

import pytest
from click.testing import CliRunner

import trackway
from tests.search.asking import said
from trackway.cli import main


def command(*words):
    """What a command answers."""
    return CliRunner().invoke(main, [str(each) for each in words])


@pytest.fixture
def two(home):
    """Two episodes, one of them with an error."""
    with trackway.Recorder(home) as recorder:
        with recorder.start("fix the build", agent="alpha", model="m1") as episode:
            episode.user("the build is red")
            call = episode.tool_call("bash", {"cmd": "make all"})
            episode.tool_result(call, "ld: cannot find -lfrob\nmake: *** [all] Error 1", is_error=True)
            episode.end("failure")
        with recorder.start("write docs") as episode:
            episode.text("the docs do not mention the build")
            episode.end("success")
    return home


def test_episodes_with_their_hits(two):
    """A line an episode, a line a hit with its number, its kind and the piece; how to open it goes to stderr."""
    answer = command("search", "build")

    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()
    assert re.fullmatch(r"[0-9a-f]{8}  fix the build  alpha/m1 · failure · now", lines[0])
    assert lines[1:3] == ["       0  task  fix the build", "       1  user  the build is red"]
    assert lines[4] == "       1  said  the docs do not mention the build"
    assert answer.stderr == f"trackway: trackway show {lines[0][:8]} --at 0 opens the place\n"


def test_the_newest_first(two):
    """`--newest` turns the order around where the older one ranks better."""
    assert "write docs" in command("search", "build", "--newest").stdout.splitlines()[0]


def test_words_may_begin_with_a_dash(two):
    """They are a part of the query; options are told apart wherever they stand."""
    answer = command("search", "build", "-docs", "-n", "5", "--json")

    assert [each["episode"]["task"] for each in json.loads(answer.stdout)] == ["fix the build"]
    assert command("search", "-n", "1", "--", "-build").exit_code == 0


def test_json_is_complete(two):
    """An array, one episode a line: its summary, its hits with number, kind, time, snippet and marks."""
    answer = command("search", "tool:bash error:true frob* OR lfrob", "--json")
    (found,) = json.loads(answer.stdout)
    (hit,) = found["hits"]

    assert found["episode"]["task"] == "fix the build"
    assert (hit["seq"], hit["kind"], hit["error"]) == (3, "tool_result", True)
    assert hit["at"].endswith("Z")
    assert [hit["snippet"]["text"][start:end] for start, end in hit["snippet"]["marks"]] == ["lfrob"]
    assert found["more"] == 0
    assert answer.stderr == ""


def test_nothing_found_is_exit_1(two):
    """With a word on stderr, an empty array in JSON, and a hint where a field was nearly meant."""
    answer = command("search", "xyzzy")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "trackway: nothing matches 'xyzzy'\n"
    assert command("search", "xyzzy", "--json").stdout == "[]\n"
    assert "did you mean tool:?" in command("search", "tol:bash").stderr


def test_a_query_that_is_none_is_exit_2(two):
    """With the character at which it is wrong, and what to do."""
    answer = command("search", "build (red")

    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert "this ( is never closed, at character 7 (hint: " in answer.stderr
    assert command("search").exit_code == 2


def test_limits(two):
    """`--limit` episodes and `--hits` of each; what is left out is told."""
    answer = command("search", "build", "--limit", "1", "--hits", "1")

    assert len(answer.stdout.splitlines()) == 3
    assert "… 1 more (--hits 0)" in answer.stdout
    assert "more episodes match" in answer.stderr


def test_stored_text_cannot_move_the_cursor(home):
    """Escape sequences, bidirectional overrides, line feeds: shown as marks, in JSON as escapes."""
    said(home, "needle \x1b[31mred\x07 \u202eevil\r\nnext \x9b2J line", task="a\x1b]0;title\x07task")

    plain, coded = command("search", "needle"), command("search", "needle", "--json")

    for bad in "\x1b\x07\u202e\x9b\r":
        assert bad not in plain.stdout + plain.stderr
        assert bad not in coded.stdout
    assert "needle ␛[31mred␇ \\u202eevil next \\x9b2J line" in plain.stdout
    assert "\x1b[31m" in json.loads(coded.stdout)[0]["hits"][0]["snippet"]["text"]


def test_what_is_found_is_coloured_on_a_terminal_only(two, monkeypatch):
    """Through a pipe there is not a single escape; on a terminal what was found stands out."""
    import io

    pytest.importorskip("rich")
    from trackway.cli._print import Screen
    from trackway.cli.search import _highlighted
    from trackway.search.snippets import Snippet

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    from trackway.cli._print import Line

    Screen().show([Line(tuple(_highlighted(Snippet("a needle here", ((2, 8),)))), gutter=0)])

    assert re.search(r"a \x1b\[1;33mneedle\x1b\[0m here", out.getvalue())
    assert "\x1b" not in command("search", "build").output


def test_an_index_made_anew_is_said_in_a_line(two):
    """`--rebuild` makes it anew; so does damage, with a line on stderr."""
    assert "made anew: as was asked for" in command("search", "build", "--rebuild").stderr
    (two / "search/own/about.json").write_text("{")

    answer = command("search", "build")

    assert answer.exit_code == 0
    assert len([each for each in answer.stderr.splitlines() if "made anew" in each]) == 1


# --- show --at ------------------------------------------------------------------------------------------------------


@pytest.fixture
def long(home):
    """An episode of 52 events: its start, fifty remarks, a call."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("long")
        for number in range(50):
            episode.text(f"remark {number}")
        episode.tool_call("bash", {"cmd": "ls"})
    return home


def test_a_place_is_shown_in_its_surroundings(long):
    """Five events before and after, the place marked, and how many are left out."""
    answer = command("show", "last", "--at", "20")

    lines = answer.stdout.splitlines()
    assert [each for each in lines if "remark" in each] == [f"assistant remark {number}" for number in range(14, 25)]
    assert lines[lines.index("▶ event 20") + 1] == "assistant remark 19"
    assert "          … 15 events before" in lines
    assert "          … 26 events after" in lines


def test_steps_keep_their_numbers(long):
    """What is passed over is counted: a step has the number it has in the whole."""
    with trackway.Recorder(long) as recorder:
        episode = recorder.start("steps")
        for number in range(30):
            episode.tool_result(episode.tool_call("bash", {"cmd": f"c{number}"}), "done")

    assert "step 21   bash  c20" in command("show", "last", "--at", "41").stdout


def test_a_place_as_json(long):
    """The episode, the place, the events around it; as events: these alone, a line each."""
    found = json.loads(command("show", "last", "--at", "51", "--json").stdout)
    assert (found["episode"]["task"], found["at"]) == ("long", 51)
    assert [each["seq"] for each in found["events"]] == list(range(46, 52))

    lines = command("show", "last", "--at", "0", "--as", "events").stdout.splitlines()
    assert [json.loads(each)["seq"] for each in lines] == list(range(6))


def test_a_place_that_is_none(long):
    """Exit 1 with the numbers there are; with a reading that has no places, exit 2."""
    answer = command("show", "last", "--at", "52")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "numbered from 0 to 51" in answer.stderr
    assert command("show", "last", "--at", "-1").exit_code == 1
    assert command("show", "last", "--at", "1", "--as", "steps").exit_code == 2
    assert command("show", "last", "--at", "1", "--follow").exit_code == 2


def test_a_place_of_a_running_episode(home):
    """An event that is not sealed yet has the number that search told."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("runs")
        episode.text("sealed")
        recorder.flush()
        episode.text("waiting")
        (found,) = json.loads(command("search", "waiting", "--json").stdout)
        shown = command("show", found["episode"]["id"], "--at", found["hits"][0]["seq"]).stdout

    assert "▶ event 2\nassistant waiting" in shown


def test_events_of_several_processes_are_shown_in_reading_order(home):
    """The number is the store's, the surroundings are the reader's."""
    from trackway.schema import ids
    from trackway.schema.events import AssistantText, EpisodeStart, Header
    from trackway.store.base import Batch
    from trackway.testing.events import records

    name = ids.uuid7(10**18, bytes(10))
    late = AssistantText(content="said second", writer="b" * 16, n=0, at=20)
    first = [
        EpisodeStart(header=Header(task="two"), writer="a" * 16, n=0, at=1),
        AssistantText(content="said third", writer="a" * 16, n=1, at=30),
    ]
    with trackway.open_store(home=home) as live:
        live.seal(Batch(list(records(name, [*first, late]))))

    lines = command("show", name, "--at", "2").stdout.splitlines()

    assert [each for each in lines if "said" in each or "▶" in each] == [
        "▶ event 2", "assistant said second", "assistant said third",
    ]  # fmt: skip
