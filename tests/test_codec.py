"""Events and their bytes: whatever the recorder accepts comes back equal."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from trackway.errors import EventRefused
from trackway.schema import codec, view
from trackway.schema import events as kinds
from trackway.schema.codec import Encoded, decode, decode_array, encode
from trackway.schema.plain import json_text, plain, text_of
from trackway.schema.version import SCHEMA
from trackway.store.frames import array_of
from trackway.testing.events import any_args, any_event, any_value, small_episode

GOLDEN = Path(__file__).parent / "golden"


@given(any_event)
def test_any_event_survives(event: kinds.Event) -> None:
    """Lone surrogates, NUL, infinities, integers of any size, bytes that are no JSON: decoded, it is equal."""
    assert decode(encode(event)) == event


@given(any_event, any_event)
def test_an_array_of_events_survives(first: kinds.Event, second: kinds.Event) -> None:
    """Joined as a frame joins them, each event is read as itself."""
    encoded = [encode(first), encode(second)]
    flags = encoded[0].flags | encoded[1].flags

    assert decode_array(array_of([each.body for each in encoded]), flags=flags, schema=SCHEMA) == [first, second]


def test_nan_survives() -> None:
    """NaN is a value of its own, not null."""
    found = decode(encode(kinds.Note(topic="t", detail=[float("nan")])))

    assert isinstance(found, kinds.Note)
    assert found.detail[0] != found.detail[0]


def test_an_unknown_kind_keeps_its_bytes() -> None:
    """An event of a newer kind is rewritten byte for byte."""
    raw = msgspec.msgpack.encode({"kind": "dream", "writer": "w", "n": 7, "at": 5, "turn": 2, "depth": {"a": [1]}})

    event = decode(Encoded(raw, 0, SCHEMA + 1))

    assert (event.kind, event.n, event.turn) == ("dream", 7, 2)
    assert encode(event).body == raw


def test_unknown_fields_are_kept() -> None:
    """A field of a newer schema is read, kept and written again."""
    raw = msgspec.msgpack.encode({"kind": "tool_result", "call_id": "c", "content": "x", "cost": {"usd": 0.1}})

    event = decode(Encoded(raw, 0, SCHEMA + 1))

    assert isinstance(event, kinds.ToolResult)
    assert event.unknown_fields == {"cost": {"usd": 0.1}}
    assert decode(encode(event)) == event
    assert msgspec.msgpack.decode(encode(event).body)["cost"] == {"usd": 0.1}


def test_a_field_of_another_type_is_kept_as_unknown() -> None:
    """A known kind whose fields do not fit is not guessed at: its bytes are kept."""
    raw = msgspec.msgpack.encode({"kind": "user", "content": {"parts": []}})

    event = decode(Encoded(raw, 0, SCHEMA + 1))

    assert isinstance(event, kinds.Unknown)
    assert encode(event).body == raw


def test_a_newer_kind_keeps_its_bytes_beside_any_other() -> None:
    """Flags are those of a whole frame: an event that needs none of them keeps its bytes, in whatever spelling."""
    raw = b"\x82\xa4kind\xa5dream\xa1n\xcd\x00\x02"  # 2 in three bytes where one would do

    event = decode(Encoded(raw, codec.EXACT | codec.BLOBS, SCHEMA + 1))

    assert isinstance(event, kinds.Unknown)
    assert (event.raw, event.exact) == (raw, False)


def test_what_is_no_event_is_refused() -> None:
    """Bytes that are no map are no event, and are not read as one."""
    with pytest.raises(EventRefused):
        decode(Encoded(msgspec.msgpack.encode([1, 2])))


class Text(str):
    """What SDKs and enums hand over as a string."""

    __slots__ = ()


class Model:
    """An SDK's object, as pydantic has it."""

    def model_dump(self) -> dict[str, object]:
        """Its plain form."""
        return {"a": Text("b"), "when": datetime(2026, 1, 1, tzinfo=UTC)}


class Hostile:
    """An object whose every method raises."""

    def __repr__(self) -> str:
        raise RuntimeError

    def model_dump(self) -> object:
        """Does not."""
        raise ValueError


def test_objects_of_sdks_are_made_plain() -> None:
    """Subclasses of str, paths, models, exceptions: their value is kept; what has none is described and marked."""
    cycle: list[object] = []
    cycle.append(cycle)
    given = {"m": Model(), "p": Path("/tmp/x"), "e": ValueError("no"), "h": Hostile(), Text("k"): Text("v"), "c": cycle}

    found = decode(encode(kinds.Note(topic="t", detail=given)))

    assert isinstance(found, kinds.Note)
    assert found.detail["m"]["a"] == "b"
    assert found.detail["p"] == "/tmp/x"
    assert found.detail["e"] == "ValueError: no"
    assert found.detail["h"]["$repr"].startswith("<unprintable")
    assert found.detail["k"] == "v"
    assert found.detail["c"] == [{"$cycle": "list"}]


@given(any_value)
def test_arguments_given_as_values_become_json(value: object) -> None:
    """Any value becomes JSON text that a lenient parser reads."""
    json.loads(json_text({"value": value}))


def test_json_of_arguments_is_exact() -> None:
    """NaN is not null, big integers keep their digits, surrogates their escape."""
    assert json_text({"a": float("nan"), "b": None}) == b'{"a":NaN,"b":null}'
    assert json_text({"n": 10**30}) == b'{"n":1000000000000000000000000000000}'
    assert json.loads(json_text({"s": "a\ud83d"})) == {"s": "a\ud83d"}
    assert text_of({"a": 1}) == '{"a":1}'
    assert plain({1: b"x"}) == {1: b"x"}


@given(any_event)
def test_the_json_of_any_event_is_strict_and_one_line(event: kinds.Event) -> None:
    """A strict parser reads every line we print."""
    line = view.dumps(view.event_fields(event))

    assert "\n" not in line
    assert msgspec.json.decode(line.encode("utf-8", "replace").decode().replace("\\ud", "\\ue"))["kind"] == event.kind


@given(any_args)
def test_args_in_json_say_what_they_were(args: bytes) -> None:
    """Valid JSON is spliced verbatim; text stays text; bytes are base64: always recoverable."""
    import base64

    found = view.splice(args)

    if "args_text" in found:
        assert found["args_text"].encode() == args
    elif "args_base64" in found:
        assert base64.b64decode(found["args_base64"]) == args
    else:
        assert bytes(found["args"]) == args


def test_args_over_several_lines_stay_on_one() -> None:
    """Pretty-printed arguments are one line of JSON, and their bytes stand beside it."""
    found = view.splice(b'{\n "a": 1\r\n}')

    assert json.loads(view.dumps({"x": found["args"]})) == {"x": {"a": 1}}
    assert found["args_text"] == '{\n "a": 1\r\n}'


@pytest.mark.parametrize("file", ["events-schema-1.hex", "events-schema-1-redacted.hex"])
def test_golden_events_read_the_same_forever(file: str) -> None:
    """The bytes of schema 1 as first written, and as they are since ``redacted``, are read by today's code."""
    found = [decode(Encoded(bytes.fromhex(line), 0, 1)) for line in (GOLDEN / file).read_text().split()]

    assert found == small_episode()


def test_events_are_written_as_the_newest_golden_file_says(golden) -> None:
    """A change of a single byte is a change of format, and is seen in review."""
    golden(GOLDEN / "events-schema-1-redacted.hex", "".join(f"{encode(each).body.hex()}\n" for each in small_episode()))
    assert codec.EXACT == 1
