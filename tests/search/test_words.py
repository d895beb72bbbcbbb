"""Words: the same for what is indexed, asked for and highlighted."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.search import words

# Rust and Python may know different versions of Unicode: only what both have known for long is compared.
_CHARACTERS = st.characters(
    max_codepoint=0xFFFF, categories=["Lu", "Ll", "Lo", "Nd", "Po", "Pd", "Zs", "Mn", "So", "Cs"]
)


@given(st.text(_CHARACTERS, max_size=60))
def test_both_ways_to_words_are_one(text):
    """What the index is fed with has the words that the reader finds in the text itself, in their order."""
    fed = words.indexing().analyze(words.indexed(words.composed(text))[0])

    assert fed == [each.text for each in words.words(words.composed(text))]


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_a_word_stands_where_it_says(text):
    """The place of a word is its place in the text; words follow each other and do not overlap."""
    found = list(words.words(text))

    assert all(text[each.start : each.end] for each in found)
    assert all(a.end <= b.start and a.place < b.place for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World", ["hello", "world"]),
        ("snake_case os.path a/b/c.py", ["snake", "case", "os", "path", "a", "b", "c", "py"]),
        ("Café naïve Straße ÆON", ["cafe", "naive", "strasse", "aeon"]),
        ("cafe\u0301s", ["cafes"]),
        ("数据库abc", ["数", "据", "库", "abc"]),
        ("データ 데이터", ["デ", "ー", "タ", "데", "이", "터"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("Привет ΑΒΓ", ["привет", "αβγ"]),
        ("x" * 129, []),
    ],
)
def test_what_a_word_is(text, found):
    """Runs of letters and digits, in any case, without accents; single characters where a script has no spaces."""
    assert [each.text for each in words.words(words.composed(text))] == found


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("getUserName", ("get", "User", "Name")),
        ("HTTPServer", ("HTTP", "Server")),
        ("parseXMLDoc", ("parse", "XML", "Doc")),
        ("sha256Sum", ("sha256", "Sum")),
        ("GitHub", ("Git", "Hub")),
        ("plain", ()),
        ("CONSTANT", ()),
        ("kJhGfDsQ", ()),
        ("dGhpc0lzQmFzZTY0RW5jb2RlZA", ()),
    ],
)
def test_names_in_camel_case(name, parts):
    """A name is its parts; what only looks random is none."""
    assert words.camel(name) == parts


def test_the_parts_of_names_are_indexed_behind_the_text():
    """Each name once, its parts next to each other, and apart from the parts of others."""
    text, *names = words.indexed("getUserName, HTTPServer and getUserName; é 数")

    assert text == "getUserName, HTTPServer and getUserName; é  数 "
    assert sorted(names) == ["HTTP Server", "get User Name"]


def test_half_a_character_is_no_trouble():
    """A lone surrogate, which no encoding can write, separates words."""
    assert words.indexed("a\ud83db")[0] == "a?b"
    assert [each.text for each in words.words("a\ud83db")] == ["a", "b"]
