r"""An event ↔ one line of JSON that people read, any parser loads, and that is the same event again.

    event_of(line_of(event)) == event        NaN, bytes, integers of any size, lone surrogates and all

A line is an object with ``kind`` first; fields at their default are left out. ``at`` is a moment to the nanosecond,
``args`` the model's own text. What JSON cannot say is marked (``marks``). An event of an unknown kind keeps its bytes
(``$unknown``), and so does one that is nested too deep for other people's parsers (``$msgpack``).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, get_args, get_origin

import msgspec

from trackway.errors import EventRefused
from trackway.schema.codec import EXACT, Encoded, decode, encode_fast, exact
from trackway.schema.events import KINDS, AssistantToolCall, Event, Unknown
from trackway.schema.marks import Unspeakable, base64_of, bytes_of, dumps, integer, is_utf8, object_of, spelled, text
from trackway.schema.version import SCHEMA

RAW: Final = "$msgpack"
UNKNOWN: Final = "$unknown"
BESIDE_BYTES: Final[tuple[str, ...]] = ("writer", "n", "at")
"""What is said of an event beside its bytes, for whoever reads the line."""

_SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  all moments here are UTC, and naive ones print without an offset
_FIRST, _LAST = ((each - _EPOCH) // timedelta(seconds=1) for each in (datetime.min, datetime.max))  # noqa: DTZ901
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z", re.ASCII)


# --- an event's fields --------------------------------------------------------------------------------------------


@cache
def _plan(struct: type[msgspec.Struct]) -> dict[str, tuple[Any, int]]:
    """Of each field its default, and how deep its type is made of tuples: JSON's lists will do for those."""
    return {each.name: (each.default, _tuples(each.type)) for each in msgspec.structs.fields(struct)}


@cache
def _known_names(kind: type[Event]) -> frozenset[str]:
    return frozenset(("kind", *_plan(kind)))


def _names(kind: str) -> frozenset[str]:
    """The names that stand in an event of a kind; of one nobody knows, that of its kind."""
    return _known_names(KINDS[kind]) if kind in KINDS else _ANY


_ANY: Final = frozenset(("kind",))


def _tuples(kind: Any) -> int:  # noqa: ANN401
    inner = max((_tuples(each) for each in get_args(kind)), default=0)
    return inner + 1 if get_origin(kind) is tuple else inner


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    """What is set, by name; structs inside as mappings."""
    found = {}
    for name, (default, tuples) in _plan(type(struct)).items():
        value = getattr(struct, name)
        if value is default or (type(value) is type(default) and value == default):
            continue
        if isinstance(value, msgspec.Struct):
            value = _fields(value)
        found[name] = _listed(value, tuples) if tuples else value
    return found


def _listed(value: Any, tuples: int) -> Any:  # noqa: ANN401
    return [_listed(each, tuples - 1) for each in value] if tuples and type(value) is tuple else value


# --- writing ------------------------------------------------------------------------------------------------------


def line_of(event: Event) -> bytes:
    r"""The event as one line, without its end; raises ``EventRefused`` where a value is none that a store gives back.

    >>> from trackway.schema.events import User
    >>> line_of(User(content="go", n=1, at=1_800_000_000_000_000_000))
    b'{"kind":"user","n":1,"at":"2027-01-15T08:00:00.000000000Z","content":"go"}'
    """
    fields = _fields(event)
    try:
        try:
            tree = _tree(event, dict(fields))
        except Unspeakable:
            tree = _tree_in_bytes(event, fields)
        return dumps(tree).encode()
    except (TypeError, ValueError) as error:
        hint = "pass text, numbers, lists and mappings"
        raise EventRefused(f"a {event.kind} event has no exact JSON: {error}", hint=hint, kind=event.kind) from error


def _tree(event: Event, fields: dict[str, Any]) -> dict[str, Any]:
    if isinstance(event, Unknown):
        name, raw = fields.pop("name", ""), fields.pop("raw", b"")
        return {"kind": text(name), **_spelled_fields(fields), UNKNOWN: base64_of(raw)}
    if isinstance(event, AssistantToolCall) and type(event.args) is bytes:
        fields["args"] = _text_or_bytes(event.args)
    extra = fields.get("unknown_fields")
    if extra is None or not _stands_beside(extra, type(event)):
        return {"kind": event.kind, **_spelled_fields(fields)}
    del fields["unknown_fields"]
    return {"kind": event.kind, **_spelled_fields(fields), **{name: spelled(each) for name, each in extra.items()}}


def _tree_in_bytes(event: Event, fields: dict[str, Any]) -> dict[str, Any]:
    if isinstance(event, Unknown):
        raise TypeError("its envelope is nested too deep")
    named = {name: fields[name] for name in (*BESIDE_BYTES, "seq") if name in fields}
    raw = _in_bytes(event.kind, {name: each for name, each in fields.items() if name != "seq"}).body
    return {"kind": event.kind, **_spelled_fields(named), RAW: base64_of(raw)}


def _text_or_bytes(args: bytes) -> str | bytes:
    try:
        return args.decode()
    except UnicodeDecodeError:
        return args


def _stands_beside(extra: dict[Any, Any], kind: type[Event]) -> bool:
    """Whether unknown fields can stand among the known ones, as they did where they came from."""
    taken = _names(kind.kind) | {RAW, UNKNOWN}
    return bool(extra) and all(type(name) is str and name not in taken and is_utf8(name) for name in extra)


def _spelled_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _moment(each) if name == "at" else spelled(each) for name, each in fields.items()}


def _moment(at: int) -> Any:  # noqa: ANN401
    seconds, rest = divmod(at, _SECOND)
    if not _FIRST <= seconds <= _LAST:
        return integer(at)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{rest:09d}Z"


# --- reading ------------------------------------------------------------------------------------------------------


def event_of(line: bytes | str) -> Event:
    """The event of a line; raises ``EventRefused`` for what is none."""
    tree = object_of(line)
    try:
        kind = tree.get("kind")
        known = KINDS.get(kind) if type(kind) is str else None
        if UNKNOWN in tree:
            return _unknown(tree)
        if RAW in tree or known is None:
            return msgspec.structs.replace(decode(encoded_of(tree)), seq=tree.get("seq"))
        fields = _read_fields(tree)
        extra = {name: fields.pop(name) for name in list(fields) if name not in _plan(known)}
        if extra:
            fields["unknown_fields"] = {**extra, **(fields.get("unknown_fields") or {})}
        return msgspec.convert({"kind": kind, **fields}, known)
    except (msgspec.ValidationError, RecursionError, TypeError, ValueError) as error:
        raise EventRefused(f"no event: {error}") from error


def _unknown(tree: dict[str, Any]) -> Unknown:
    fields = _read_fields(tree)
    fields |= {"name": tree.get("kind"), "raw": bytes_of(fields.pop(UNKNOWN))}
    strange = fields.keys() - _plan(Unknown).keys()
    if strange:
        raise ValueError(f"{min(strange)!r} stands beside {UNKNOWN}")
    return msgspec.convert(fields, Unknown)


def encoded_of(tree: dict[str, Any]) -> Encoded:
    """A line's object as the bytes of an event, what this version does not know included; ``seq`` is left out.

    Raises ``ValueError`` or ``TypeError`` for what is no event.
    """
    if type(tree.get("kind")) is not str:
        raise ValueError("it names no kind")
    for name in (UNKNOWN, RAW):
        if name in tree:
            return Encoded(bytes_of(tree[name]), EXACT, SCHEMA + (name == UNKNOWN))
    fields = _read_fields(tree)
    fields.pop("seq", None)
    return _in_bytes(tree["kind"], fields)


def agrees(tree: dict[str, Any], event: Event) -> bool:
    """Whether what a line says beside an event's bytes is what they say too."""
    fields = _read_fields(tree)
    said = [tree.get("kind"), *(fields.get(name, _plan(Unknown)[name][0]) for name in BESIDE_BYTES)]
    return said == [event.kind, *(getattr(event, name) for name in BESIDE_BYTES)]


def _in_bytes(kind: str, fields: dict[str, Any]) -> Encoded:
    extra = fields.pop("unknown_fields", None) or {}
    known = _names(kind)
    if not known.isdisjoint(extra):
        raise ValueError("unknown_fields names a field that is known")
    whole = {"kind": kind, **fields, **extra}
    schema = SCHEMA if kind in KINDS and whole.keys() <= known else SCHEMA + 1
    try:
        return Encoded(encode_fast(whole), 0, schema)
    except (OverflowError, UnicodeEncodeError):  # what msgpack has no word for
        return Encoded(encode_fast(exact(whole)), EXACT, schema)


def _read_fields(tree: dict[str, Any]) -> dict[str, Any]:
    """A line's fields but for its kind: moments as numbers, arguments as bytes."""
    fields = {name: each for name, each in tree.items() if name != "kind"}
    if type(fields.get("at")) is str:
        fields["at"] = _nanoseconds(fields["at"])
    if tree.get("kind") == AssistantToolCall.kind and type(fields.get("args")) is str:
        fields["args"] = fields["args"].encode("utf-8", "surrogatepass")
    return fields


def _nanoseconds(moment: str) -> int:
    found = _MOMENT.fullmatch(moment)
    if found is None:
        raise ValueError(f"{moment[:40]!r} is no moment such as 2027-01-15T08:00:00.000000000Z")
    return (datetime.fromisoformat(found[1]) - _EPOCH) // timedelta(seconds=1) * _SECOND + int(found[2])
