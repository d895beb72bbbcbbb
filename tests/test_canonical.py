"""One spelling for equal values; hashes that name their algorithm."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.schema import ids
from trackway.schema.canonical import canonical_json, digest_of, hash_args, hash_bytes, hash_value, name_of, signature

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_json)
def test_canonical_json_is_a_fixed_point(value: object) -> None:
    """Parsing it and writing it again changes nothing."""
    once = canonical_json(value)

    assert canonical_json(json.loads(once)) == once


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_key_order_and_spacing_do_not_matter(value: dict[str, int]) -> None:
    """Two spellings of one object have one hash."""
    backwards = dict(reversed(value.items()))

    assert hash_args(json.dumps(value, indent=2).encode()) == hash_args(json.dumps(backwards).encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a": 1}', b'{"a": 1.0}'),
        (b'{"a": 1}', b'{"a": true}'),
        (b'{"a": 0.0}', b'{"a": -0.0}'),
        (b'{"a": 10000000000000000000000001}', b'{"a": 10000000000000000000000000}'),
        (b'{"a": 1, "a": 2}', b'{"a": 2}'),
        (b'{"a": 1', b'{"a": 1}'),
        (b'"x"', b"x"),
    ],
)
def test_different_arguments_differ(one: bytes, other: bytes) -> None:
    """Numbers of another type, duplicate keys and broken JSON are not equal to what they resemble."""
    assert hash_args(one) != hash_args(other)


def test_hashes_name_their_algorithm() -> None:
    """A reader can tell what made a hash, and parsed from raw."""
    assert hash_bytes(b"").startswith("blake3:af1349b9")
    assert hash_args(b"{").startswith("blake3-raw:")
    assert hash_value({"a": 1}).startswith("blake3-json:")
    spaced = hash_args(b'{ "a" : 1 }')
    assert signature("bash", b'{"a":1}') == f"bash({spaced})"
    assert name_of(digest_of(hash_bytes(b"x"))) == hash_bytes(b"x")


@given(st.integers(0, 2**47 * 10**6), st.binary(min_size=10, max_size=10))
def test_ids_are_version_7_and_sort_by_time(at: int, entropy: bytes) -> None:
    """An id made later sorts later, and says version 7."""
    first, second = ids.uuid7(at, entropy), ids.uuid7(at + 2_000_000, bytes(10))

    assert first < second
    assert first[14] == "7"
    assert first[19] in "89ab"
    assert ids.from_bytes(ids.to_bytes(first)) == first
    assert ids.matches(ids.short(first), first)
    assert ids.matches(first[:13].upper(), first)
    assert not ids.matches("abc", first)
