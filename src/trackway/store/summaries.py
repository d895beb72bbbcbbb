"""An episode's summary as a row: exact bytes with their checksum, and columns to search and sort by.

The columns are only as exact as SQL allows; what is read back comes from the bytes.
"""

from __future__ import annotations

import msgspec

from trackway.schema.codec import encode_fast, exact, exact_hook
from trackway.schema.episode import EpisodeSummary
from trackway.store.sums import no_summary, with_sum, without_sum

_decode_summary = msgspec.msgpack.Decoder(EpisodeSummary).decode


def columns_of(summary: EpisodeSummary) -> tuple[str | int | float | None, ...]:
    """What is searched and sorted by, from ``started_at`` to ``n_steps``."""
    times = map(_int64, (summary.started_at, summary.ended_at))
    said = (summary.task, summary.variant, summary.agent, summary.model, summary.outcome)
    texts = (None if each is None else text_of(each) for each in said)
    return (*times, *texts, summary.score, summary.n_events, summary.n_steps)


def text_of(value: str) -> str:
    """Text as SQL can hold it: for searching only, the exact one is in the summary."""
    return value.encode("utf-8", "replace").decode()


def _int64(value: int | None) -> int | None:
    """A number as SQL can hold it: for sorting only, the exact one is in the summary."""
    return None if value is None else max(-(2**63), min(value, 2**63 - 1))


def encode_summary(summary: EpisodeSummary) -> bytes:
    """A summary's bytes, exact, with their checksum."""
    try:
        return with_sum(encode_fast(summary))
    except (UnicodeEncodeError, OverflowError):
        return with_sum(encode_fast(exact(msgspec.to_builtins(summary, builtin_types=(bytes,)))))


def decode_summary(stored: bytes) -> EpisodeSummary:
    """The summary back."""
    body = without_sum(stored)
    try:
        return _decode_summary(body)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise no_summary(str(error)) from error
    try:
        return msgspec.convert(msgspec.msgpack.decode(body, ext_hook=exact_hook), EpisodeSummary)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise no_summary(str(error)) from error
