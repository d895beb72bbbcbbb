"""The shape of a digest: what is kept of an episode so that many are counted without reading their events again.

Everything in it adds up. It is derived, and may be thrown away: the version says by which rules it was made.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from trackway.read.durations import Sizes
from trackway.read.repeats import Words
from trackway.read.spending import Group
from trackway.schema.codec import encode_fast, exact, exact_hook

VERSION: Final = 1
"""Raised when a digest says something else, or in another way, of the same events."""

SLOT: Final = 900_000_000_000
"""Activity is counted by quarters of an hour: every time zone's days begin with one."""


class ToolCount(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The calls of one tool; ``unanswered`` ones are errors too."""

    name: str
    calls: int
    errors: int
    unanswered: int
    sizes: Sizes


class ModelCount(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one model answered: errors, and how long it took."""

    model: str | None
    errors: int
    sizes: Sizes


class FileCount(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How often a file was changed, and how often from outside the agent's tools."""

    path: str
    edits: int
    outside: int


class Digest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One episode, counted. ``events`` says of how many events, and so whether it is up to date.

    ``slots`` are quarters of an hour since 1970, with events and milliseconds worked; ``different``, ``again`` and
    ``ways`` are calls by number (``read.repeats``), ``untold`` those that were too many to be told apart; ``files``
    are the most changed, ``n_files`` is how many there were. ``priced_by`` says by which prices the costs in ``spent``
    are, where those are not told.
    """

    events: int = 0
    errors: int = 0
    reward: float | None = None
    worked: int = 0
    slots: list[tuple[int, int, int]] = []
    tools: list[ToolCount] = []
    models: list[ModelCount] = []
    spent: list[Group] = []
    different: bytes = b""
    again: dict[int, int] = {}
    ways: list[tuple[int, int, int]] = []
    untold: int = 0
    files: list[FileCount] = []
    n_files: int = 0
    edits: int = 0
    outside: int = 0
    priced_by: str = ""


# --- bytes ----------------------------------------------------------------------------------------------------------

T = TypeVar("T")
_decode_digest = msgspec.msgpack.Decoder(Digest).decode


def encoded(kept: Digest | Words) -> bytes:
    """The bytes of a digest, or of words; exact for whatever a name may hold."""
    try:
        return encode_fast(kept)
    except (UnicodeEncodeError, OverflowError):
        return encode_fast(exact(msgspec.to_builtins(kept, builtin_types=(bytes,))))


def digest_in(body: bytes) -> Digest:
    """The digest again; raises ``ValueError`` where these are not the bytes of one."""
    try:
        return _decode_digest(body)
    except (msgspec.MsgspecError, ValueError):
        return _slowly(body, Digest)


def words_in(body: bytes) -> Words:
    """The words again; raises ``ValueError`` where these are not the bytes of any."""
    return _slowly(body, Words)


def _slowly(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.convert(msgspec.msgpack.decode(body, ext_hook=exact_hook), kind)
    except (msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise ValueError(f"no digest: {error}") from error
