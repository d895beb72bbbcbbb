"""Any Python value → a plain one that can be encoded, before it is acknowledged.

SDK objects become what they say they are (``model_dump``, ``to_dict``, fields); what cannot be represented becomes a
marked ``{"$repr": …, "$type": …}``, so a reader can tell a value from a description of one. Hostile objects whose own
methods raise are described too: nothing here raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

_MAX_DEPTH: Final = 200
_MODULE: Final = type(json)
_SCALARS: Final = frozenset((type(None), bool, int, float, str, bytes))
_LONGEST_INTEGER: Final = 10_000
"""In bits: Python refuses to print much longer ones in decimal."""


def described(value: object) -> dict[str, str]:
    """A marked description of something that has no plain form."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  the object's own repr may do anything
        text = f"<unprintable: {type(error).__name__}>"
    return {"$repr": str.__str__(text), "$type": f"{type(value).__module__}.{type(value).__qualname__}"}


def _by_fields(value: object) -> Any:  # noqa: ANN401
    return {name: each for name, each in vars(value).items() if not name.startswith("_")} or described(value)


# What objects of this field call their plain form, in the order in which the answer is to be trusted.
_WAYS: Final[tuple[tuple[str, Callable[[Any], Any]], ...]] = (
    ("model_dump", lambda value: value.model_dump()),
    ("to_dict", lambda value: value.to_dict()),
    ("_asdict", lambda value: value._asdict()),
    ("tolist", lambda value: value.tolist()),
    ("__fspath__", lambda value: value.__fspath__()),
    ("isoformat", lambda value: value.isoformat()),
    ("__dict__", _by_fields),
)


def plain_object(value: object) -> Any:  # noqa: ANN401
    """One step towards a plain value, for an object the encoder does not know."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseException):
        return error_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, type) or callable(value) or type(value) is _MODULE:
        return described(value)  # code, not a value: what hangs on it is the whole program
    for name, way in _WAYS:
        try:
            if hasattr(value, name):
                return way(value)
        except Exception:  # noqa: BLE001, S112  the object's own code; the next way may do
            continue
    return described(value)


def error_text(error: BaseException) -> str:
    """``ValueError: what it said``."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  an exception whose own str raises
        said = "<unprintable>"
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def is_plain(value: Any, _depth: int = 0) -> bool:  # noqa: ANN401
    """Whether a value is made of nothing but what the codec writes and reads back the same."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if _depth > _MAX_DEPTH:
        return False
    if kind is dict:
        for key, each in value.items():
            if type(key) is not str or not (type(each) in _SCALARS or is_plain(each, _depth + 1)):
                return False
        return True
    return kind is list and all(is_plain(each, _depth + 1) for each in value)


def plain(value: Any) -> Any:  # noqa: ANN401
    """The value, every value inside it made plain; itself where it is plain already."""
    return value if is_plain(value) else _made_plain(value)


_CONVERSIONS: Final = 60
"""What one conversion of an object counts as, in depth: a mock that answers to every name ends after a few."""


def _made_plain(value: Any, _depth: int = 0, _seen: frozenset[int] = frozenset()) -> Any:  # noqa: ANN401
    """The slow, total way: cycles and endless depth are described instead of followed."""
    if type(value) in _SCALARS:
        return value
    if id(value) in _seen:
        return {"$cycle": type(value).__name__}
    if _depth > _MAX_DEPTH:
        return described(value)
    seen = _seen | {id(value)}
    try:
        if isinstance(value, Mapping):
            return {_plain_key(key): _made_plain(each, _depth + 1, seen) for key, each in list(value.items())}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [_made_plain(each, _depth + 1, seen) for each in list(value)]
        form = _next_form(value)
    except Exception:  # noqa: BLE001  the object's own code: what it cannot say of itself is described
        return described(value)
    return _made_plain(form, _depth + _CONVERSIONS, seen)


def _next_form(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, int):  # a subclass loses its class, not its value
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, msgspec.Raw):
        return msgspec.msgpack.decode(value)
    if isinstance(value, msgspec.Struct) or hasattr(value, "__dataclass_fields__"):
        try:
            return msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=plain_object)
        except Exception:  # noqa: BLE001  values inside may be anything
            return described(value)
    return plain_object(value)


def _plain_key(key: object) -> Any:  # noqa: ANN401
    if isinstance(key, str):
        return str.__str__(key)
    return key if type(key) in _SCALARS else described(key)["$repr"]


def text_or_none(value: object) -> str | None:
    """``text_of``, but None stays None."""
    return None if value is None else text_of(value)


def mapping_of(value: Any) -> dict[Any, Any] | None:  # noqa: ANN401
    """A plain mapping; what is none stands in one under ``value``; None stays None."""
    found = plain(value)
    return found if found is None or isinstance(found, dict) else {"value": found}


def text_of(value: object) -> str:
    """The text a model would see of a value: a string as it is, an exception, path or date as its text, else JSON."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "surrogateescape")
    made = plain(value)
    try:
        return made if isinstance(made, str) else json_text(made).decode()
    except MemoryError:
        return _described(value).decode()


# Not ``encode``: where there is no memory for its answer, that one ends the process instead of raising.
_encode_json = msgspec.json.Encoder(enc_hook=plain_object).encode_into


def json_text(value: Any) -> bytes:  # noqa: ANN401
    """JSON of a mapping a caller gave, exact where JSON is: NaN stays NaN, big integers and surrogates survive."""
    try:
        buffer = bytearray()
        _encode_json(value, buffer)
        text = bytes(buffer)
    except MemoryError:
        return _described(value)
    except Exception:  # noqa: BLE001  the slow way takes what the fast one refuses
        return _slow_json(value)
    # msgspec writes NaN and infinities as null: where a null stands, the slow way decides which it was.
    return _slow_json(value) if b"null" in text else text


def _slow_json(value: Any) -> bytes:  # noqa: ANN401
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except MemoryError:
        return _described(value)
    except Exception:  # noqa: BLE001  SDK objects, cycles, surrogates: made plain, escaped
        return json.dumps(_jsonable(plain(value)), separators=(",", ":")).encode()


def _described(value: Any) -> bytes:  # noqa: ANN401
    """What is kept of a value that there is no memory to write down: the event is worth more than nothing."""
    return json.dumps({"trackway": f"no memory was left to write down this {type(value).__name__}"}).encode()


def _jsonable(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {_json_key(key): _jsonable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_jsonable(each) for each in value]
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return integer_json(value)
    return bytes_json(value) if isinstance(value, bytes) else value


def integer_json(value: int) -> dict[str, str]:
    """An integer too long to print in decimal, marked."""
    return {"$integer": f"{value:#x}"}


def bytes_json(value: bytes) -> dict[str, str]:
    """Bytes inside JSON, marked."""
    import base64

    return {"$base64": base64.b64encode(value).decode()}


def _json_key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=repr)
