"""Ids of episodes: UUIDv7, sortable by the time they were made; made from a given clock and given entropy.

A short form is the last 8 characters (the random end: the first characters of two ids of one minute are the same).
Anything that is a prefix or a suffix of exactly one id names it; ``last`` names the newest, ``last~1`` the one before.
"""

from __future__ import annotations

import uuid
from typing import Final

from trackway.errors import EpisodeNotFound

LAST: Final = "last"
SHORT: Final = 8
_MIN_REF: Final = 4


def uuid7(at_ns: int, entropy: bytes) -> str:
    """A UUIDv7 for the instant ``at_ns`` (UTC nanoseconds) and ten bytes of ``entropy``.

    >>> uuid7(1_700_000_000_000_000_000, bytes(10))
    '018bcfe5-6800-7000-8000-000000000000'
    """
    millis, rest = divmod(at_ns, 1_000_000)
    # RFC 9562 method 3: the 12 bits after the milliseconds hold their fraction, so ids of one process sort finely.
    fraction = (rest << 12) // 1_000_000
    low = int.from_bytes(entropy[:8], "big") & ((1 << 62) - 1)
    value = ((millis & ((1 << 48) - 1)) << 80) | (0x7 << 76) | (fraction << 64) | (0b10 << 62) | low
    return str(uuid.UUID(int=value))


def imported_writer(digest: str) -> str:
    """The writer of imported events: 16 characters as any, and told apart by the first, which is no hex digit."""
    return f"i{digest[:15]}"


def is_imported(writer: str) -> bool:
    """Whether events of this writer came from a file: no process writes them, and none can have died doing so."""
    return writer.startswith("i")


def to_bytes(episode_id: str) -> bytes:
    """The 16 bytes of an id; raises ``EpisodeNotFound`` for what is none."""
    try:
        return uuid.UUID(episode_id).bytes
    except (ValueError, AttributeError, TypeError):
        raise EpisodeNotFound(
            f"{episode_id!r} is no whole id", hint="open_store().resolve() knows short ones"
        ) from None


def from_bytes(raw: bytes) -> str:
    """The text of 16 bytes."""
    return str(uuid.UUID(bytes=raw))


def short(episode_id: str) -> str:
    """The form people read and type: the last 8 characters."""
    return episode_id[-SHORT:]


def is_id(text: str) -> bool:
    """Whether ``text`` is a whole id in its usual spelling."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def matches(ref: str, episode_id: str) -> bool:
    """Whether ``ref`` (dashes optional, any case) begins or ends the id, or begins its short form."""
    wanted = ref.replace("-", "").lower()
    bare = episode_id.replace("-", "")
    begins = bare.startswith(wanted) or bare[-SHORT:].startswith(wanted)
    return len(wanted) >= _MIN_REF and (begins or bare.endswith(wanted))


def from_last(ref: str) -> int | None:
    """How many before the newest a reference means: ``last`` is 0, ``last~2`` is 2; None where it is another one.

    >>> from_last("last"), from_last("last~2"), from_last("lasting")
    (0, 2, None)
    """
    name, _, number = ref.partition("~")
    if name != LAST or (number and not number.isdecimal()) or ref.endswith("~"):
        return None
    return int(number or 0)
