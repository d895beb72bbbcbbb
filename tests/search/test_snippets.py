"""Pieces: the quick way for plain text agrees with the slow one, and a piece is never cut wrongly."""

from hypothesis import given
from hypothesis import strategies as st

from trackway.search.query import parse, positive
from trackway.search.snippets import Cutter, _Needle
from trackway.search.words import words

_WORDS = st.sampled_from(
    ["red", "Red", "re", "green", "GREEN2", "x", "blue_green", "a/b.py", "--", "\n", "red-green", "(x)"]
)
_TEXTS = st.lists(_WORDS, max_size=25).map(" ".join)
_QUERIES = st.sampled_from(
    ["red", "green", '"red green"', "gre*", "*ue", "re?", "blue_green", "a/b.py", "a/*", "b.py*", "x red"]
)


@given(_TEXTS, _QUERIES)
def test_both_ways_to_marks_are_one(text, query):
    """One pattern over plain text marks what going from word to word does."""
    for said in positive(parse(query, now=0)):
        needle = _Needle(said)
        assert needle.quick_marks(text, 0) == list(needle.marks(list(words(text)), 0))


@given(st.text(max_size=600), _QUERIES | st.sampled_from(["数据", "éa*"]))
def test_a_piece_is_a_piece_of_its_text(text, query):
    """Whatever the text: the piece is in it, its marks are in the piece, and it says truly whether it is all."""
    cut = Cutter(positive(parse(query, now=0))).snippet(text, length=80)

    assert cut.text in text
    assert all(0 <= start < end <= len(cut.text) for start, end in cut.marks)
    assert (cut.begins and cut.ends) == (cut.text == text)
    assert len(cut.text) <= 80
