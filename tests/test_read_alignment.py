"""Which items of two sequences belong together."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.read import alignment
from trackway.read.alignment import align

FEW = st.text("abc", max_size=12)
MANY = st.lists(st.integers(0, 30), max_size=30)


def longest(a, b) -> int:
    """The length of the longest common subsequence, by the book."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(before[j + 1], row[j])
    return row[-1]


def check(a, b, matches) -> None:
    """Matched items are equal, each is matched once, and both sides rise."""
    assert all(a[i] == b[j] for i, j in matches)
    for side in (0, 1):
        places = [each[side] for each in matches]
        assert places == sorted(set(places))


@given(FEW, FEW)
def test_the_common_subsequence_is_the_longest(a: str, b: str) -> None:
    """Between anchors nothing longer could have been matched."""
    matches = alignment._common_subsequence(a, b)

    check(a, b, matches)
    assert len(matches) == longest(a, b)


@given(MANY, MANY)
def test_matches_are_equal_and_in_order(a: list[int], b: list[int]) -> None:
    """Whatever the sequences."""
    check(a, b, align(a, b))


@given(MANY, st.data())
def test_a_sequence_with_pieces_cut_out_is_matched_whole(a: list[int], data: st.DataObject) -> None:
    """Everything of the shorter one has its place in the longer one where items are told apart."""
    kept = data.draw(st.lists(st.integers(0, max(len(a) - 1, 0)), unique=True).map(sorted)) if a else []
    whole = [(at, each) for at, each in enumerate(a)]
    part = [whole[at] for at in kept]

    assert align(whole, part) == [(at, n) for n, at in enumerate(kept)]
    assert align(part, whole) == [(n, at) for n, at in enumerate(kept)]


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "ab"), ("ab", ""), ("ab", "ab"), ("ab", "cd"), ("aaaa", "aa")])
def test_the_ends_of_the_range(a: str, b: str) -> None:
    """Empty, equal, nothing in common, all alike."""
    matches = align(a, b)

    check(a, b, matches)
    assert len(matches) == longest(a, b)


def test_a_stretch_too_long_for_one_window_is_cut(monkeypatch) -> None:
    """With windows of a few cells the matches are still right, and there are many."""
    monkeypatch.setattr(alignment, "_CELLS", 64)
    a, b = "abcab" * 40, "abcb" * 40

    matches = align(a, b)

    check(a, b, matches)
    assert len(matches) > 80
    assert list(alignment._windows(0, 5, 0, 0)) == []
    pieces = list(alignment._windows(3, 203, 5, 165))
    assert pieces[0][::2] == (3, 5)
    assert pieces[-1][1::2] == (203, 165)
    assert all((x[1], x[3]) == (y[0], y[2]) for x, y in pairwise(pieces))
