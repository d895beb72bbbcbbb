"""An event ↔ its bytes: msgpack in map form, exact for every Python value.

The plain codec is msgspec's. What msgpack cannot say (lone surrogates, integers beyond 64 bit) is written with
extension types and flagged ``EXACT``; payloads kept apart are written as references and flagged ``BLOBS``. Flagged
bytes, and bytes of a newer schema, are read generically, which keeps what this version does not know.

    decode(encode(event)) == event        for every event the recorder accepts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from trackway.errors import EventRefused
from trackway.schema.events import ENVELOPE, KINDS, Event, Recorded, Unknown
from trackway.schema.outside import is_thrown_in
from trackway.schema.plain import plain, plain_object
from trackway.schema.version import SCHEMA

EXACT: Final = 1
BLOBS: Final = 2

SURROGATES: Final = 1
BIG_INTEGER: Final = 2
BLOB_TEXT: Final = 3
BLOB_BYTES: Final = 4
BLOB_VALUE: Final = 5
LOCAL_TEXT: Final = 6
LOCAL_BYTES: Final = 7
PAIRS: Final = 8

_EXACT_CODES: Final = frozenset((SURROGATES, BIG_INTEGER, PAIRS))
_REFERENCE_CODES: Final = frozenset((BLOB_TEXT, BLOB_BYTES, BLOB_VALUE, LOCAL_TEXT, LOCAL_BYTES))

Ext = msgspec.msgpack.Ext
ExtHook = Callable[[int, memoryview], Any]

encode_fast = msgspec.msgpack.Encoder(enc_hook=plain_object).encode
"""The plain codec, for the hot path; whoever calls it falls back on ``encode_slowly``."""

_decode = msgspec.msgpack.Decoder(Recorded).decode
_decode_all = msgspec.msgpack.Decoder(list[Recorded]).decode
_split = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1


class Encoded(NamedTuple):
    """Bytes, the flags they must be read with, and the schema number they were written under."""

    body: bytes
    flags: int = 0
    schema: int = SCHEMA


def encode(event: Event) -> Encoded:
    """The bytes of an event; raises ``EventRefused`` where even the slow way finds none."""
    if event.seq is not None or event.unknown_fields is not None or type(event) is Unknown:
        return _encode_kept(event)
    try:
        return Encoded(encode_fast(event))
    except Exception as error:
        if is_thrown_in(error):
            raise
        return encode_slowly(event)


def encode_slowly(event: Event, *, references: bool = False) -> Encoded:
    """The way for what the fast one refuses: made plain first, then exact.

    With ``references`` what is in it is plain already but for the journal's own, which are kept.
    """
    try:
        given = {name: getattr(event, name) for name in type(event).__struct_fields__ if _is_set(event, name)}
        kept = (Ext, dict, list) if references else ()
        tree = {name: each if type(each) in kept else plain(each) for name, each in given.items()}
        return Encoded(encode_fast(exact({"kind": event.kind, **tree})), EXACT)
    except Exception as error:
        if is_thrown_in(error):
            raise
        raise EventRefused(
            f"a {event.kind} event cannot be encoded: {type(error).__name__}: {error}",
            hint="pass text, numbers, lists and mappings",
            kind=event.kind,
        ) from error


def _is_set(event: Event, name: str) -> bool:
    value = getattr(event, name)
    default = _DEFAULTS[type(event)].get(name, msgspec.NODEFAULT)
    return default is msgspec.NODEFAULT or value is not default


def _defaults(kind: type[Event]) -> dict[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(kind)}


_DEFAULTS: Final = {kind: _defaults(kind) for kind in KINDS.values()} | {Unknown: _defaults(Unknown)}


def _encode_kept(event: Event) -> Encoded:
    if isinstance(event, Unknown):
        return Encoded(event.raw, EXACT if event.exact else 0, SCHEMA + 1)
    bare = msgspec.structs.replace(event, seq=None, unknown_fields=None)
    if event.unknown_fields is None:
        return encode(bare)
    tree = msgspec.to_builtins(bare, builtin_types=(bytes, datetime), enc_hook=plain_object)
    return Encoded(encode_fast(exact({**tree, **event.unknown_fields})), EXACT, SCHEMA + 1)


def exact(value: Any) -> Any:  # noqa: ANN401
    """The value with extension types where msgpack has no word."""
    if isinstance(value, str):
        return value if value.isascii() or _is_utf8(value) else Ext(SURROGATES, value.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        return _exact_mapping(value)
    if isinstance(value, (list, tuple)):
        return listed(value, exact)
    if isinstance(value, int) and not _MIN_INT <= value <= _MAX_INT:
        return Ext(BIG_INTEGER, f"{value:x}".encode())
    return value


def _exact_mapping(value: dict[Any, Any]) -> Any:  # noqa: ANN401
    if any(type(exact(key)) is Ext for key in value):  # no key of a map can be one: it is written as its pairs
        return Ext(PAIRS, encode_fast([(exact(key), exact(each)) for key, each in value.items()]))
    return mapped(value, exact)


def mapped(value: dict[Any, Any], change: Callable[[Any], Any]) -> dict[Any, Any]:
    """The mapping with its values changed; itself where none is: most of what is large needs no copy."""
    made: dict[Any, Any] | None = None
    for key, each in value.items():
        new = change(each)
        if new is not each:
            if made is None:
                made = dict(value)
            made[key] = new
    return value if made is None else made


def listed(value: Sequence[Any], change: Callable[[Any], Any]) -> Sequence[Any]:
    """The list with its values changed; itself where none is."""
    made: list[Any] | None = None
    for i, each in enumerate(value):
        new = change(each)
        if new is not each:
            if made is None:
                made = list(value)
            made[i] = new
    return value if made is None else made


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def exact_hook(code: int, body: memoryview, inner: ExtHook | None = None) -> Any:  # noqa: ANN401
    """Reads the extension types of the exact codec, what is inside them with ``inner``; leaves others as they are."""
    if code == PAIRS:
        return dict(msgspec.msgpack.decode(body, ext_hook=inner or exact_hook))
    if code == SURROGATES:
        return bytes(body).decode("utf-8", "surrogatepass")
    if code == BIG_INTEGER:
        return int(bytes(body), 16)
    return Ext(code, bytes(body))


def decode(encoded: Encoded, hook: ExtHook = exact_hook) -> Event:
    """The event of these bytes; a kind or field this version does not know is kept."""
    body, flags, schema = encoded
    if not flags and schema <= SCHEMA:
        try:
            return _decode(body)  # type: ignore[no-any-return]  # msgspec types a union's decoder as Any
        except msgspec.ValidationError:
            pass
    return from_tree(tree_of(body, hook), encoded)


def decode_array(body: bytes, *, flags: int, schema: int, hook: ExtHook = exact_hook) -> list[Event]:
    """The events of a msgpack array; one call into C where all are plain."""
    if not flags and schema <= SCHEMA:
        try:
            return _decode_all(body)  # type: ignore[return-value]  # a list of the union is a list of events
        except msgspec.ValidationError:
            pass
    return [decode(Encoded(raw, flags or EXACT, schema), hook) for raw in split_array(body)]


def split_array(body: bytes) -> list[bytes]:
    """The bytes of each event of a msgpack array."""
    return [bytes(raw) for raw in _split(body)]


def tree_of(body: bytes, hook: ExtHook = exact_hook) -> dict[str, Any]:
    """The bytes as a plain mapping, every field of it."""
    try:
        tree = msgspec.msgpack.decode(body, ext_hook=hook)
    except msgspec.DecodeError as error:
        raise EventRefused(f"these bytes are no event: {error}") from error
    if not isinstance(tree, dict):
        raise EventRefused(f"an event is a map, this is a {type(tree).__name__}")
    return tree


def from_tree(tree: dict[str, Any], encoded: Encoded) -> Event:
    """The event of a mapping: of its kind if that is known and fits, else ``Unknown`` with its bytes."""
    kind = tree.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        return _unknown(tree, encoded)
    try:
        event = msgspec.convert(tree, found)
    except (msgspec.ValidationError, TypeError):
        return _unknown(tree, encoded)
    extra = {name: each for name, each in tree.items() if name not in _DEFAULTS[found] and name != "kind"}
    return msgspec.structs.replace(event, unknown_fields=extra) if extra else event


def _unknown(tree: dict[str, Any], encoded: Encoded) -> Unknown:
    envelope = {name: each for name, each in tree.items() if name in ENVELOPE and name not in ("native", "seq")}
    raw, codes = encoded.body, _codes(encoded.body) if encoded.flags else set()
    # Flags may be those of a whole frame: what this one needs is in its own bytes.
    exactly = not codes.isdisjoint(_EXACT_CODES)
    if not codes.isdisjoint(_REFERENCE_CODES):  # references into one store: rewritten with what they stand for
        raw, exactly = encode_fast(exact(tree)), True
    try:
        fields = msgspec.to_builtins(msgspec.convert(envelope, Event))
    except (msgspec.ValidationError, TypeError):
        fields = {}
    fields.pop("kind", None)
    return Unknown(name=str(tree.get("kind", "")), raw=raw, exact=exactly, **fields)


def _codes(body: bytes) -> set[int]:
    """The extension types that stand in these bytes."""
    found: set[int] = set()

    def note(code: int, inner: memoryview) -> None:
        found.add(code)
        if code == PAIRS:
            msgspec.msgpack.decode(inner, ext_hook=note)

    msgspec.msgpack.decode(body, ext_hook=note)
    return found


def numbered(events: list[Event], first: int) -> list[Event]:
    """The same events, each told its ``seq``: they were just decoded and nobody else has seen them yet."""
    for seq, event in enumerate(events, start=first):
        msgspec.structs.force_setattr(event, "seq", seq)
    return events
