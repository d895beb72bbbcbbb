"""The query language: what is understood, and what is refused, where and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.errors import QueryRefused
from trackway.search.pattern import Words, path_regex
from trackway.search.query import LONGEST, And, Field, Not, parse, positive

NOW = 1_800_000_000_000_000_000
_PIECES = st.sampled_from(
    ["(", ")", '"', "-", "OR", "AND", "NOT", " ", "a", "foo*", "*", "?", "tool:", "tool:bash", "since:7d", "since:x",
     "error:true", "path:src/**/*.py", "数据", "\\", ":", "kind:user", "a/b.py", "getUserName", "\ud83d", "\x00", "--x",
     'task:"a b"', "x" * 200]
)  # fmt: skip


def read(query):
    """The tree of a query."""
    return parse(query, now=NOW, utc=True)


def shape(node):
    """A tree in short."""
    if isinstance(node, Words):
        return " ".join(each.text for each in node.steps)
    if isinstance(node, Field):
        return f"{node.name}={node.value}"
    if isinstance(node, Not):
        return ["not", shape(node.what)]
    if isinstance(node, And):
        return ["and", *map(shape, node.all)]
    return ["or", *map(shape, node.any)]


def refused(query):
    """What is said of a query that is none."""
    with pytest.raises(QueryRefused) as caught:
        read(query)
    return caught.value


@given(
    st.text(max_size=80) | st.lists(_PIECES, max_size=30).map("".join) | st.lists(_PIECES, max_size=30).map(" ".join)
)
def test_any_text_is_a_query_or_is_refused(text):
    """Nothing but ``QueryRefused`` is ever raised, and it says where, and what to do."""
    error = None
    try:
        read(text)
    except QueryRefused as caught:
        error = caught
    assert error is None or (1 <= error.position <= len(text) + 1 and error.hint)
    assert error is None or f"at character {error.position}" in error.message


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("flaky", "flaky"),
        ("flaky Test", ["and", "flaky", "test"]),
        ("flaky AND test", ["and", "flaky", "test"]),
        ('"a phrase" word', ["and", "a phrase", "word"]),
        (r'"say \"hi\""', "say hi"),
        ("a OR b c", ["or", "a", ["and", "b", "c"]]),
        ("(a OR b) c", ["and", ["or", "a", "b"], "c"]),
        ("a -b", ["and", "a", ["not", "b"]]),
        ("a NOT b", ["and", "a", ["not", "b"]]),
        ("-(a OR b)", ["not", ["or", "a", "b"]]),
        ("--flag", "flag"),
        ("a -> b && c = d", ["and", "a", "b", "c", "d"]),
        ("snake_case", "snake case"),
        ("os.path/x.py", "os path x py"),
        ("getUserName", ["or", "getusername", "get user name"]),
        ("数据库", "数 据 库"),
        ("std::map http://x.y", ["and", "std map", "http x y"]),
        ("error: no", ["and", "error", "no"]),
        ("what failed?", ["and", "what", "failed"]),
        ("deploy*", "deploy.*"),
        ("te?t*", "te.t.*"),
        ("*ization", ".*ization"),
        ("snake_ca*", "snake ca.*"),
        ("CAFÉ*", "cafe.*"),
        ("数据*", "数 据"),
        ("src/*.py", "src py"),
        ("tool:Bash", "tool=bash"),
        ("error:true", "error=True"),
        ("error:no", "error=False"),
        ('task:"fix the"', "task=fix the"),
        ("outcome:none", "outcome=none"),
        ("kind:text", "kind=assistant_text"),
        ("since:1h", f"since={NOW - 3600 * 10**9}"),
        ("until:2026-01-01", f"until={1767225600 * 10**9}"),
    ],
)
def test_what_is_understood(query, tree):
    """Words side by side must all hold; OR binds weaker, NOT and a dash stronger; the rest is a word."""
    assert shape(read(query)) == tree


@pytest.mark.parametrize(
    ("query", "position", "what"),
    [
        ("", 1, "nothing to look for"),
        ("  ", 1, "nothing to look for"),
        ("---", 1, "nothing to look for"),
        ("a (b", 3, "never closed"),
        ("a) b", 2, "without its ("),
        ('x "abc', 3, "never closed"),
        ("a OR", 5, "missing"),
        ("OR a", 1, "missing"),
        ("()", 2, "missing"),
        ("a NOT", 6, "nothing behind it"),
        ("a AND", 6, "nothing behind it"),
        ("a *", 3, "no word"),
        ("*a*", 1, "nearly every word"),
        ('x tool:""', 3, "no value"),
        ("x error:maybe", 3, "is none"),
        ("kind:song", 1, "is none"),
        ("outcome:good", 1, "is none"),
        ("since:yesterday", 1, "is no time"),
        ("x" * 129, 1, "no word"),
    ],
)  # fmt: skip
def test_what_is_refused(query, position, what):
    """With what is wrong and the character at which it is."""
    error = refused(query)

    assert (error.position, what in error.message) == (position, True), error.message


def test_what_is_too_much_is_refused():
    """A query is bounded in length, in terms, in depth and in the words of a phrase."""
    assert "characters" in refused("a" * (LONGEST + 1)).message
    assert "terms" in refused("a " * 101).message
    assert "deeply" in refused("(" * 50 + "a" + ")" * 50).message
    assert "deeply" in refused("NOT " * 50 + "a").message
    assert "phrase" in refused('"' + "a " * 200 + '"').message
    assert "value" in refused("task:" + "x" * 2000).message


def test_only_what_a_hit_has_in_it_is_positive():
    """What is negated, and what fields say, is neither ranked by nor highlighted."""
    assert [each.raw for each in positive(read('a -b tool:c ("d e" OR NOT f)'))] == ["a", "d e"]


@pytest.mark.parametrize(
    ("glob", "fits", "others"),
    [
        ("src/*.py", ["src/a.py", "/w/src/a.py", "./src/b.py"], ["src/x/a.py", "mysrc/a.py", "src/a.pyc"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["src/a.txt"]),
        ("a.py", ["a.py", "src/a.py"], ["ba.py", "a.py.bak"]),
        ("src", ["src/a.py", "/w/src/x/y"], ["srcs/a.py"]),
        ("src/", ["src/a.py"], ["lib/src.py"]),
        ("/w/*", ["/w/a", "/w/a/b"], ["x/w/a"]),
        ("file (1)+[x].txt", ["file (1)+[x].txt"], ["file 1x.txt"]),
        ("t?st.py", ["test.py", "x/tost.py"], ["t/st.py", "tst.py"]),
    ],
)
def test_globs_over_paths(glob, fits, others):
    """Whole parts of a path, from its beginning or behind any slash; * stays in its part, ** goes across."""
    import re

    assert [each for each in fits if not re.fullmatch(path_regex(glob), each)] == []
    assert [each for each in others if re.fullmatch(path_regex(glob), each)] == []
