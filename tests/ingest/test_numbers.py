"""Numbers by numbers are what a dict would say, few or many, and take less room."""

import random
import tracemalloc

from trackway.ingest.numbers import Numbers


def test_it_says_what_a_dict_says():
    """The same answers for as many as there are, while it grows and afterwards; a later value counts."""
    rng, found, expected = random.Random(1), Numbers(), {}
    for i in range(80_000):
        key = rng.choice(
            (rng.randrange(-(2**63), 2**63), -(rng.randrange(9000) * 0x9E3779B97F4A7C15 % 2**62), 2**63 - 1)
        )
        assert found.get(key) == expected.get(key)
        assert (key in found) == (key in expected)
        if i % 3:
            found[key] = expected[key] = i
        else:
            assert found.setdefault(key, i) == expected.setdefault(key, i)
    assert len(found) == len(expected)
    assert all(found.get(key) == value for key, value in expected.items())


def test_keys_that_end_alike_are_found():
    """Keys with the same low bits are told apart."""
    found = Numbers()
    for i in range(40_000):
        found[i << 3 | 5] = i
    assert [found.get(i << 3 | 5) for i in range(40_000)] == list(range(40_000))


def test_it_takes_less_than_a_dict():
    """For a hundred thousand, less than half."""
    sizes = []
    for kind in (Numbers, dict):
        rng = random.Random(1)
        tracemalloc.start()
        made = kind()
        for i in range(100_000):
            made[rng.getrandbits(62)] = i
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[0] < sizes[1] / 2
