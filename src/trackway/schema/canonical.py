"""One spelling for equal values, and hashes that name their algorithm.

Canonical JSON: keys sorted, no spaces, ASCII with escapes, integers exact, floats by ``repr``; 1 and 1.0 differ.
A value that has no unambiguous parse (broken JSON, duplicate keys, too deep) is hashed as its raw bytes under a tag of
its own, so it never equals a parsed one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from blake3 import blake3

BLOB: Final = "blake3"
_JSON: Final = "blake3-json"
_RAW: Final = "blake3-raw"
_SHORT_BYTES: Final = 16


class _DuplicateKey(ValueError):
    """Two parsers may disagree on what this object says."""


def _strict_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKey
    return found


def canonical_json(value: Any) -> bytes:  # noqa: ANN401  a JSON value is anything
    r"""The one spelling of a JSON value.

    >>> canonical_json({"b": 1, "a": [1.0, "é"]})
    b'{"a":[1.0,"\\u00e9"],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def canonical_args(args: bytes) -> bytes | None:
    """The canonical form of arguments as the model wrote them; None where they have no unambiguous parse."""
    try:
        return canonical_json(json.loads(args.decode(), object_pairs_hook=_strict_object))
    except (ValueError, RecursionError):
        return None


def hash_args(args: bytes) -> str:
    """A tagged hash that is equal for equal arguments, whatever their spacing and key order.

    >>> hash_args(b'{"a": 1, "b": 2}') == hash_args(b'{"b":2,"a":1}')
    True
    >>> hash_args(b'{"a": 1}') == hash_args(b'{"a": 1.0}')
    False
    """
    canonical = canonical_args(args)
    if canonical is None:
        return f"{_RAW}:{blake3(args).hexdigest(_SHORT_BYTES)}"
    return f"{_JSON}:{blake3(canonical).hexdigest(_SHORT_BYTES)}"


def signature(tool: str, args: bytes) -> str:
    """The stable name of an action: its tool and the hash of its canonical arguments."""
    return f"{tool}({hash_args(args)})"


def hash_value(value: Any) -> str:  # noqa: ANN401  a JSON value is anything
    """A tagged hash of a JSON value, by its canonical form."""
    return f"{_JSON}:{blake3(canonical_json(value)).hexdigest()}"


def hash_bytes(body: bytes | memoryview) -> str:
    """The name of a blob: ``blake3:`` and 64 hex digits."""
    return f"{BLOB}:{blake3(body).hexdigest()}"


def digest_of(name: str) -> bytes:
    """The 32 bytes behind a blob's name."""
    algorithm, _, hexadecimal = name.partition(":")
    if algorithm != BLOB or len(hexadecimal) != 64:
        raise ValueError(f"not a blob name: {name!r}")
    return bytes.fromhex(hexadecimal)


def name_of(digest: bytes) -> str:
    """The blob name of 32 bytes."""
    return f"{BLOB}:{digest.hex()}"
