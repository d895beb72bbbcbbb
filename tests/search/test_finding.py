"""Answers: ranked or newest first, grouped by episode, each hit with the piece of text that answers."""

import re

import pytest

import trackway
from tests.search.asking import answer, indexed, places, said, texts


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    """One episode that says a bit of everything, indexed once for all tests."""
    home = tmp_path_factory.mktemp("talk")
    said(
        home,
        "a timeout in Café: Connection   refused by snake_case src/io/net.py os.path.join getUserName "
        "打开数据库连接 データベース 데이터베이스",
        "something else altogether",
    )
    indexed(home)
    return home


def marked(hit):
    """What is highlighted of a hit."""
    return [hit.snippet.text[start:end] for start, end in hit.snippet.marks]


@pytest.mark.parametrize(
    ("query", "highlighted"),
    [
        ("TIMEOUT", ["timeout"]),
        ("cafe", ["Café"]),
        ("café", ["Café"]),
        ('"connection refused"', ["Connection   refused"]),
        ("snake_case", ["snake_case"]),
        ("case", ["case"]),
        ("src/io/net.py", ["src/io/net.py"]),
        ("net.py", ["net.py"]),
        ("os.path.join", ["os.path.join"]),
        ("getUserName", ["getUserName"]),
        ("user_name", ["UserName"]),
        ("name", ["Name"]),
        ("time*", ["timeout"]),
        ("*fused", ["refused"]),
        ("con?ection", ["Connection"]),
        ("数据库", ["数据库"]),
        ("据库", ["据库"]),
        ("データ", ["データ"]),
        ("데이터", ["데이터"]),
        ("timeout refused", ["timeout", "refused"]),
    ],
)
def test_what_is_found_is_highlighted(talk, query, highlighted):
    """Words, phrases, patterns, names, paths, scripts without spaces: found, and marked where they stand."""
    (group,) = answer(talk, query).groups
    (hit,) = group.hits

    assert (hit.seq, marked(hit)) == (1, highlighted)


def test_the_best_comes_first(home):
    """An episode that is all about it before one that mentions it among much else."""
    said(home, "many words " * 60 + "deadlock", task="mentions it")
    said(home, "deadlock", task="is about it")
    said(home, "nothing of the kind", task="is not")

    assert list(places(home, "deadlock")) == ["is about it", "mentions it"]


def test_the_newest_comes_first_where_asked(home):
    """Whatever ranks best; the same where there is nothing to rank by."""
    said(home, "deadlock deadlock deadlock", task="older")
    said(home, "a deadlock, said in passing among other things", task="newer")

    assert list(places(home, "deadlock")) == ["older", "newer"]
    assert list(places(home, "deadlock", newest=True)) == ["newer", "older"]
    assert list(places(home, "kind:text")) == ["newer", "older"]


def test_hits_are_grouped_and_limited(home):
    """So many episodes, so many hits of each, and what is left out is told."""
    for number in range(4):
        said(home, *["again and again"] * 5, task=f"t{number}")

    found = answer(home, "again", limit=3, hits=2)

    assert [len(each.hits) for each in found.groups] == [2, 2, 2]
    assert [each.more for each in found.groups] == [3, 3, 3]
    assert found.more
    assert not answer(home, "again", limit=4).more


def test_an_episode_with_very_many_hits_hides_no_other(home):
    """More is fetched until there are as many episodes as were asked for."""
    said(home, *["loop"] * 1500, task="loops")
    said(home, "a loop among many other words that nobody asked for", task="mentions it")

    assert set(places(home, "loop", limit=2, hits=1)) == {"loops", "mentions it"}


def test_a_piece_is_cut_out_of_a_long_text(home):
    """Near what was found, at the ends of words, and it says that there is more before and after."""
    said(home, "start " + "filler " * 20_000 + "the needle lies here " + "filler " * 20_000)

    (group,) = answer(home, "needle lies").groups
    cut = group.hits[0].snippet

    assert "the needle lies here" in cut.text
    assert cut.text.startswith("filler ")
    assert len(cut.text) <= 200
    assert not cut.begins
    assert not cut.ends


def test_words_far_apart_are_shown_where_most_of_them_stand(home):
    """The piece with both words is better than the first with one."""
    said(home, "alpha " + "x " * 500 + " then alpha and omega together " + "x " * 500 + "omega")

    (cut,) = texts(home, "omega alpha")

    assert "alpha and omega" in cut


def test_a_huge_text_is_found_by_its_two_ends(home):
    """What lies more than a megabyte from both ends of a text is not searched; memory stays bounded."""
    said(home, "first " + "x" * 1_500_000 + " middle " + "y" * 1_500_000 + " last")

    assert places(home, "first") == places(home, "last") == {"talk": [1]}
    assert places(home, "middle") == {}


def test_arguments_are_found_as_they_were_meant(home):
    """Not as JSON escapes them; numbers with their names; what is no JSON as it is."""
    with trackway.Recorder(home) as recorder, recorder.start("calls") as episode:
        episode.tool_call("write", {"text": "first line\nsecond \u00fcber", "limit": 17, "deep": [{"note": "inner"}]})
        episode.tool_call("raw", b"not json at all {")

    for query in ("second", '"line second"', "uber", '"limit 17"', "inner", "write"):
        assert places(home, query) == {"calls": [1]}, query
    assert places(home, '"not json"') == {"calls": [2]}


def test_every_kind_with_words_is_found(home):
    """Task, tags, thoughts, notes, lessons, verdicts, tests, files, labels, the end: each by its words."""
    with trackway.Recorder(home) as recorder:
        episode = recorder.start("w-task", tags=["w-tag"], metadata={"cwd": "/w-folder"})
        episode.thinking("w-thought")
        episode.note("w-topic", "w-note", detail={"key": "w-detail"})
        episode.test_run(passed=1, command="w-tests")
        episode.file_change("w-file.txt", after=b"x")
        episode.label(comment="w-comment", by="w-somebody")
        episode.end("success", reason="w-reason")
    words = [
        "task",
        "tag",
        "folder",
        "thought",
        "topic",
        "note",
        "detail",
        "tests",
        "file.txt",
        "comment",
        "somebody",
        "reason",
    ]

    assert [each for each in words if not places(home, f"w-{each}")] == []


def test_redacted_text_is_found_by_its_token_only(home):
    """What is hidden is in no index: the secret is not found, what stands around it is."""
    with trackway.Recorder(home) as recorder:
        recorder.start("secret", redact=re.compile(r"hunter\d+")).user("the password is hunter2")
    indexed(home)

    assert places(home, "hunter2") == {}
    assert places(home, '"the password is"') == {"secret": [1]}
    assert b"hunter" not in b"".join(each.read_bytes() for each in (home / "search").rglob("*") if each.is_file())


@pytest.mark.parametrize("query", ["*er*", "er* te* st* an* th*", '"' + "a " * 100 + '"', "(a OR b) " * 40, "x_*er*_y"])
def test_hostile_queries_are_answered(talk, query):
    """Patterns, phrases and brackets as many as there may be."""
    assert len(answer(talk, query).groups) <= 1
