"""An event as a line of JSON: read by anybody, and the same event again."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.errors import EventRefused
from trackway.schema import events as kinds
from trackway.schema.codec import EXACT, Encoded, Ext, decode, encode
from trackway.schema.exact_json import encoded_of, event_of, line_of
from trackway.schema.marks import dumps, object_of, spelled
from trackway.schema.version import SCHEMA
from trackway.testing.events import any_event, any_float, any_int, any_text

MARKS = ("$float", "$integer", "$base64", "$text", "$tuple", "$time", "$map")
AT = 1_800_000_000_000_000_000

some_text = any_text | st.sampled_from([*MARKS, "$ref", "$unknown", "$msgpack", "\\ud83d", "\\", "\\\ud83d\udc00\\u"])
zones = st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30)))
some_time = st.datetimes(timezones=zones).map(lambda each: each.replace(fold=0))
key = st.deferred(lambda: scalar | st.lists(scalar, max_size=2).map(tuple))
scalar = st.none() | st.booleans() | any_int | any_float | some_text | st.binary(max_size=9) | some_time
hostile = st.recursive(
    scalar,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(some_text, inner, max_size=3)
        | st.dictionaries(key, inner, max_size=2)
        | st.builds(lambda name, each: {name: each}, st.sampled_from(MARKS), inner)
    ),
    max_leaves=8,
)


def strict(line):
    """The line as another program's parser has it: every number exact in a double, every text proper Unicode."""

    def number(text):
        assert abs(int(text)) < 2**53
        return int(text)

    def refuse(name):
        raise AssertionError(name)

    found = json.loads(line.decode("utf-8"), parse_int=number, parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


@given(any_event)
def test_any_event_comes_back(event):
    """Whatever the recorder accepts is one strict line, and the same event from it."""
    line = line_of(event)
    assert b"\n" not in line
    assert strict(line)["kind"] == event.kind
    assert event_of(line) == event
    assert line_of(event_of(line)) == line


@given(hostile)
def test_any_value_comes_back(value):
    """Bytes, tuples, moments, keys of any type and mappings that look like our marks: equal, type for type."""
    event = kinds.Note(topic="t", detail=value)
    line = line_of(event)
    strict(line)
    assert repr(event_of(line).detail) == repr(value)
    assert line_of(event_of(line)) == line


@given(any_event)
def test_its_bytes_are_those_of_the_event(event):
    """A line becomes the bytes that a store keeps without the event in between."""
    assert decode(encoded_of(object_of(line_of(event)))) == event


@given(st.dictionaries(some_text | st.integers(), hostile, max_size=3))
def test_unknown_fields_come_back(extra):
    """Fields of a newer version stand among the others, or together where they cannot."""
    event = kinds.User(content="hi", unknown_fields=extra)
    assert repr(event_of(line_of(event)).unknown_fields) == repr(extra)


@given(st.binary(max_size=40), any_text, st.booleans(), st.integers())
def test_an_unknown_kind_keeps_its_bytes(raw, name, exact, at):
    """An event of a newer kind is its bytes, with its envelope to read."""
    event = kinds.Unknown(name=name, raw=raw, exact=exact, writer="w", n=3, at=at, seq=7)
    line = line_of(event)
    strict(line)
    assert event_of(line) == event


def test_a_line_is_for_people():
    """What needs no mark has none; arguments are the model's own text; a moment is a moment."""
    call = kinds.AssistantToolCall(
        name="bash", args='{"cmd": "echo é"}'.encode(), call_id="c1", n=2, at=AT + 5, writer="w"
    )
    assert line_of(call).decode() == (
        '{"kind":"assistant_tool_call","writer":"w","n":2,"at":"2027-01-15T08:00:00.000000005Z","name":"bash",'
        '"args":"{\\"cmd\\": \\"echo é\\"}","call_id":"c1"}'
    )
    schema = {"$ref": "#/x", "$repr": "1", "$type": "int", "nested": {"$schema": "y"}}
    assert strict(line_of(kinds.Note(topic="t", detail=schema)))["detail"] == schema


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (float("nan"), {"$float": "nan"}),
        (-math.inf, {"$float": "-inf"}),
        (-0.0, -0.0),
        (1.0, 1.0),
        (2**53 - 1, 2**53 - 1),
        (2**53, {"$integer": "9007199254740992"}),
        (b"\xff", {"$base64": "/w=="}),
        ("a\ud83d\\", {"$text": "a\\ud83d\\\\"}),
        ("\\ud83d", "\\ud83d"),
        ((1,), {"$tuple": [1]}),
        (datetime(2027, 1, 15, 8, tzinfo=UTC), {"$time": "2027-01-15T08:00:00+00:00"}),
        ({1: "x"}, {"$map": [[1, "x"]]}),
        ({"$float": "nan"}, {"$map": [["$float", "nan"]]}),
        ({"$float": "nan", "b": 1}, {"$float": "nan", "b": 1}),
        ({"a\udfff": 1}, {"$map": [[{"$text": "a\\udfff"}, 1]]}),
    ],
)
def test_marks(value, wanted):
    """Each mark as the format says, and nothing more than needed."""
    assert repr(spelled(value)) == repr(wanted)
    assert repr(object_of(dumps({"x": wanted}))["x"]) == repr(value)


def test_very_long_integers():
    """Beyond what Python prints in decimal, digits are hexadecimal."""
    value = -(7**40_000)
    found = event_of(line_of(kinds.Note(topic="t", detail=value)))
    assert found.detail == value


@pytest.mark.parametrize("at", [0, -1, AT, -(62_135_596_800 * 10**9), 253_402_300_799 * 10**9 + 999_999_999])
def test_moments_are_exact(at):
    """Every nanosecond of the years 1 to 9999 is its own text."""
    event = kinds.User(content="", at=at)
    assert event_of(line_of(event)) == event
    assert not at or type(strict(line_of(event))["at"]) is str


@pytest.mark.parametrize("at", [-(62_135_596_800 * 10**9) - 1, 253_402_300_800 * 10**9, 10**40])
def test_moments_beyond_the_calendar_are_numbers(at):
    """A time that no calendar has is kept as the number it is."""
    event = kinds.User(content="", at=at)
    assert strict(line_of(event))["at"] == {"$integer": str(at)}
    assert event_of(line_of(event)) == event


def test_deep_values_stand_as_bytes():
    """Nesting that other people's parsers refuse is not put before them."""
    value = "é"
    for _ in range(180):
        value = [value]
    event = kinds.Note(topic="\ud800", detail=value, n=4, at=AT, writer="w", seq=9, unknown_fields={"mood": 1})
    tree = strict(line_of(event))
    assert tree.keys() == {"kind", "writer", "n", "at", "seq", "$msgpack"}
    assert event_of(line_of(event)) == event


def test_extension_types_of_others_stand_as_bytes():
    """A value of an extension nobody here knows survives."""
    event = kinds.Note(topic="t", detail=[Ext(77, b"x")])
    assert event_of(line_of(event)) == event


def test_a_newer_versions_line_is_kept():
    """A kind or field of a newer trackway's line becomes an unknown one, nothing of it dropped."""
    found = event_of('{"kind":"dream","writer":"w","n":4,"at":"2027-01-15T08:00:00.000000000Z","depth":{"x":[1.5]}}')
    assert isinstance(found, kinds.Unknown)
    assert (found.kind, found.writer, found.n, found.at) == ("dream", "w", 4, AT)
    assert msgspec.msgpack.decode(found.raw)["depth"] == {"x": [1.5]}
    newer = event_of('{"kind":"user","content":"hi","mood":{"$integer":"99999999999999999999"}}')
    assert newer == kinds.User(content="hi", unknown_fields={"mood": 99999999999999999999})
    assert encoded_of(object_of(line_of(newer))).schema == SCHEMA + 1


def test_an_unknown_kind_is_known_to_its_writer():
    """Bytes kept by a version that did not know the kind are read by one that does."""
    known = kinds.User(content="hi", n=1)
    kept = kinds.Unknown(name="user", raw=encode(known).body, n=1)
    assert decode(encoded_of(object_of(line_of(kept)))) == known


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"[]", "an object"),
        (b'"user"', "an object"),
        (b"{}", "kind"),
        (b'{"kind":5}', "kind"),
        (b'{"kind":"user"}', "content"),
        (b'{"kind":"user","content":5}', "content"),
        (b'{"kind":"user","content":"\xff"}', "UTF-8"),
        (b'\xef\xbb\xbf{"kind":"user","content":""}', "not JSON"),
        (b'{"kind":"user","kind":"user","content":""}', "twice"),
        (b'{"kind":"user","content":NaN}', "NaN"),
        (b'{"kind":"note","topic":"","detail":-1e999}', "-1e999 is beyond"),
        (b'{"kind":"user","content":{"$text":5}}', "wants a str"),
        (b'{"kind":"user","content":{"$text":"a\\\\b"}}', "backslash"),
        (b'{"kind":"note","topic":"","detail":{"$integer":"1_0"}}', "integer"),
        (b'{"kind":"note","topic":"","detail":{"$integer":"1%s"}}' % (b"0" * 4000), "integer"),
        (b'{"kind":"note","topic":"","detail":{"$float":"1.0"}}', "float"),
        (b'{"kind":"note","topic":"","detail":{"$base64":"?"}}', "base64"),
        (b'{"kind":"note","topic":"","detail":{"$time":"noon"}}', "isoformat"),
        (b'{"kind":"note","topic":"","detail":{"$map":[[1]]}}', "pairs"),
        (b'{"kind":"note","topic":"","detail":{"$map":[[[],1]]}}', "unhashable"),
        (b'{"kind":"note","topic":"","detail":{"$map":[[1,1],[1,2]]}}', "twice"),
        (b'{"kind":"user","content":"","at":"yesterday"}', "moment"),
        (b'{"kind":"user","content":"","at":"2027-02-31T08:00:00.000000000Z"}', "day"),
        (b'{"kind":"x","$unknown":5}', "base64"),
        (b'{"kind":"x","$unknown":"","mood":1}', "mood"),
        (b'{"$unknown":""}', "str"),
        (b'{"kind":"x","$msgpack":"wcHB"}', "no event"),
        (b'{"kind":"user","content":"","unknown_fields":5}', "unknown_fields"),
        (b'{"kind":"note","topic":"","detail":%s0%s}' % (b"[" * 5000, b"]" * 5000), "recursion"),
    ],
)
def test_what_is_no_event_is_refused(line, why):
    """A line that is none says why, in one kind of exception."""
    with pytest.raises(EventRefused, match=why):
        event_of(line)


@pytest.mark.parametrize("value", [{1, 2}, object(), timedelta(1)])
def test_values_that_no_store_gives_back_are_refused(value):
    """Nothing is taken for something similar."""
    with pytest.raises(EventRefused, match="no exact JSON"):
        line_of(kinds.Note(topic="t", detail=value))


def test_nan_is_nan_again():
    """NaN is a value of its own, in fields of every type."""
    found = event_of(line_of(kinds.Reward(value=float("nan"), duration_ms=float("nan"))))
    assert math.isnan(found.value)
    assert math.isnan(found.duration_ms)


def test_bytes_that_are_no_text():
    """Arguments that are no UTF-8 are marked."""
    event = kinds.AssistantToolCall(name="x", args=b"\xff{", call_id="c")
    assert strict(line_of(event))["args"] == {"$base64": "/3s="}
    assert event_of(line_of(event)) == event


def test_unknown_fields_cannot_replace_known_ones():
    """Of two values for one field, none is taken."""
    with pytest.raises(ValueError, match="known"):
        encoded_of(object_of('{"kind":"user","content":"a","unknown_fields":{"content":"b"}}'))
    assert (
        encoded_of(object_of('{"kind":"user","content":"\\u00e9","n":{"$integer":"36893488147419103232"}}')).flags
        == EXACT
    )
    assert decode(Encoded(encoded_of(object_of('{"kind":"user","content":"a","seq":4}')).body)) == kinds.User(
        content="a"
    )
