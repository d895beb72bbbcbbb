"""An event as JSON for people and programs: everything in it, always strict JSON, always one line.

``args`` are spliced in verbatim where every strict parser can read them. Else they stand as text (``args_text``) or,
being no text either, as base64 (``args_base64``). What JSON has no word for is marked, as in ``{"$float": "nan"}``.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import AssistantToolCall, Event, Unknown
from trackway.schema.plain import bytes_json, integer_json

_parse = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_LEAST, _MOST = -(2**63), 2**63 - 1


def splice(args: bytes) -> dict[str, Any]:
    """How arguments stand in JSON: ``args`` as raw JSON, or ``args_text``, or ``args_base64``."""
    try:
        _parse(args)
    except (msgspec.DecodeError, RecursionError):
        try:
            return {"args_text": args.decode()}
        except UnicodeDecodeError:
            return {"args_base64": bytes_json(args)["$base64"]}
    if b"\n" in args or b"\r" in args:
        # In valid JSON a raw line break is white space only, so a space says the same; the text keeps the bytes.
        return {"args": msgspec.Raw(args.translate(_ONE_LINE)), "args_text": args.decode()}
    return {"args": msgspec.Raw(args)}


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def event_fields(event: Event) -> dict[str, Any]:
    """The event as a mapping ready for ``dumps``: kind first, then everything that is set, unknown fields included."""
    if isinstance(event, Unknown):
        tree = msgspec.to_builtins(event, builtin_types=(bytes,))
        return {"kind": event.kind, "unknown": True, **tree}
    tree = msgspec.to_builtins(event, builtin_types=(bytes,), enc_hook=repr)
    tree.update(tree.pop("unknown_fields", None) or {})
    found = {"kind": tree.pop("kind")}
    if event.seq is not None:
        found["seq"] = tree.pop("seq")
    if isinstance(event, AssistantToolCall):
        tree.pop("args")
        tree.update(splice(event.args))
    for required in type(event).__struct_fields__:
        if required not in tree and required in _ALWAYS:
            tree[required] = getattr(event, required)
    return {**found, **tree}


_ALWAYS = frozenset({"writer", "n", "at", "is_error", "status", "turn", "value", "outcome", "score"})
"""Shown even at their default: readers ask for these by name."""


def summary_fields(summary: EpisodeSummary) -> dict[str, Any]:
    """The summary as a mapping ready for ``dumps``; instants as ISO 8601 UTC."""
    tree: dict[str, Any] = msgspec.to_builtins(summary, builtin_types=(bytes,))
    for name in ("started_at", "ended_at", "last_at"):
        tree[name] = instant(tree[name])
    del tree["writers"], tree["labelled"]
    return tree


def instant(at: int | None) -> str | None:
    """UTC nanoseconds as ISO 8601, to the microsecond."""
    if at is None:
        return None
    from datetime import UTC, datetime, timedelta

    try:
        return (
            (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at // 1000)).isoformat().replace("+00:00", "Z")
        )
    except OverflowError:
        return str(at)


def dumps(value: Any) -> str:  # noqa: ANN401
    """One line of strict JSON; raw JSON inside is spliced in as it is."""
    if _is_json(value):
        try:
            return _encode(value).decode()
        except (UnicodeEncodeError, RecursionError):  # a lone surrogate has a spelling in JSON, but not here; too deep
            pass
    return _slowly(value)


def _is_json(value: Any) -> bool:  # noqa: ANN401
    """Whether the fast encoder writes it without changing it. No recursion: values may be as deep as an agent likes."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind is dict:
            if not all(type(name) is str for name in each):
                return False
            waiting += each.values()
        elif kind is list or kind is tuple:
            waiting += each
        elif not (
            kind in _JSON or (kind is int and _LEAST <= each <= _MOST) or (kind is float and math.isfinite(each))
        ):
            return False
    return True


_JSON = frozenset((str, bool, type(None), msgspec.Raw))


class _Said(str):
    """A piece of JSON that is written already."""

    __slots__ = ()


def _slowly(value: Any) -> str:  # noqa: ANN401
    said: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is _Said:
            said.append(each)
        elif isinstance(each, dict):
            waiting += reversed(_mapping(each))
        elif isinstance(each, (list, tuple)):
            waiting += reversed(_sequence(each))
        else:
            said.append(_scalar(each))
    return "".join(said)


def _mapping(value: dict[Any, Any]) -> list[Any]:
    pieces: list[Any] = [_Said("{")]
    for i, (name, each) in enumerate(value.items()):
        pieces += (_Said(f"{',' * (i > 0)}{json.dumps(_key(name))}:"), each)
    return [*pieces, _Said("}")]


def _sequence(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    pieces: list[Any] = [_Said("[")]
    for i, each in enumerate(value):
        pieces += (_Said("," * (i > 0)), each)
    return [*pieces, _Said("]")]


def _scalar(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps({"$float": repr(value)}, separators=(",", ":"))
    if isinstance(value, bytes):
        return json.dumps(bytes_json(value), separators=(",", ":"))
    if isinstance(value, int) and value.bit_length() > 10_000:
        return json.dumps(integer_json(value), separators=(",", ":"))
    return json.dumps(value, default=repr)


def _key(name: object) -> str:
    return name if isinstance(name, str) else json.dumps(name, default=repr)
