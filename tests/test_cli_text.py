"""Text for a screen: safe, measured in columns, cut and counted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.cli import _text

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_safe_text_has_nothing_a_terminal_obeys(text):
    """Whatever was stored, what is shown has no control character, bidi override or lone surrogate."""
    shown = _text.safe(text)
    assert not [
        c for c in shown if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000
    ]
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200f\u200e\u2028\u2029\ufeff")
    assert _text.safe(shown) == shown


@given(ANY_TEXT)
def test_json_stays_the_same_value(text):
    """Escaping what a terminal obeys changes the spelling of a JSON line, never its value."""
    line = json.dumps({text: text}, ensure_ascii=False)
    assert json.loads(_text.json_safe(line)) == {text: text}
    assert _text.safe(_text.json_safe(line)) == _text.json_safe(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("bell\x07 nul\x00 del\x7f", "bell␇ nul␀ del␡"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("lone \ud83d", "lone \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("plain é 日本 👩‍👩‍👧 \t\n", "plain é 日本 👩‍👩‍👧 \t\n"),
    ],
)
def test_what_is_unsafe_becomes_visible(text, shown):
    """Each unsafe character has a mark that says which it was; scripts and emoji are left alone."""
    assert _text.safe(text) == shown


@given(ANY_TEXT, st.integers(2, 40))
def test_fitted_text_fits(text, columns):
    """A cell is never wider than its column, whatever is in it, and is one line."""
    shown = _text.cell(text, columns)
    assert _text.width(shown) <= columns
    assert "\n" not in shown
    assert _text.width(_text.pad(shown, columns)) == columns


def test_wide_characters_take_two_columns():
    """Widths are counted as terminals draw them."""
    assert [_text.width(each) for each in ("abc", "日本", "🎉", "e\u0301", "\uff46")] == [3, 4, 2, 1, 2]
    assert _text.fit("日本語です", 5) == "日本…"


@given(ANY_TEXT.map(lambda text: text * 50))
def test_clipped_text_is_accounted_for(text):
    """What is left out of the middle is counted exactly."""
    head, hidden, tail = _text.clip(text, lines=6, chars=60)
    assert len(head) + hidden + len(tail) == len(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head.count("\n") < 6


def test_times_and_durations():
    """Instants are shown to the second, durations in two figures, ages in one unit; nonsense is shown as it is."""
    assert _text.moment(1_700_000_000_123_456_789, utc=True) == "2023-11-14 22:13:20 UTC"
    assert _text.moment(10**30, utc=False) == str(10**30)
    assert _text.moment(None, utc=True) == "-"
    ns = 10**9
    assert [_text.duration(each * ns) for each in (0.0002, 0.25, 3.14, 75, 3700, 200_000)] == [
        "<1 ms", "250 ms", "3.1 s", "1m 15s", "1h 01m", "2d 7h",
    ]  # fmt: skip
    assert [_text.age(0, each * ns) for each in (1, 30, 120, 7200, 86_400 * 3, 86_400 * 21)] == [
        "now", "30s ago", "2m ago", "2h ago", "3d ago", "3w ago",
    ]  # fmt: skip


def test_local_time_is_the_default(monkeypatch):
    """Times are shown in the local zone unless UTC is asked for."""
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert _text.moment(1_700_000_000 * 10**9, utc=False) == "2023-11-15 07:13:20"
    finally:
        monkeypatch.undo()
        time.tzset()
