"""What a summary needs of an event, and nothing that is large: one shape for all kinds, read past everything else.

Sealing folds every event into its episode's summary. Reading it whole for that would cost twice as much: texts,
arguments and messages would be made into strings that nobody looks at.

    fold(summary, briefs_of(array)) == fold(summary, decode_array(array))
"""

from __future__ import annotations

import msgspec

from trackway.schema.events import FileState, Header, went_wrong


class Brief(msgspec.Struct, frozen=True, gc=False):
    """An event in brief; a field that its kind does not have is at its default."""

    kind: str
    writer: str = ""
    n: int = 0
    at: int = 0
    turn: int = 0
    agent: str | None = None
    header: Header | None = None
    name: str = ""
    model: str | None = None
    is_error: bool = False
    status: str = "ok"
    before: FileState | None = None
    after: FileState | None = None
    outcome: str | None = None
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    lost: int = 0
    tag: str | None = None
    relation: str | None = None
    to: str | None = None

    @property
    def failed(self) -> bool:
        """Whether a tool went wrong."""
        return went_wrong(self.is_error, self.status)


_decode = msgspec.msgpack.Decoder(list[Brief]).decode


def briefs_of(array: bytes) -> list[Brief] | None:
    """The events of a msgpack array in brief; None where they are not all of the plain kind and must be looked at."""
    try:
        return _decode(array)
    except msgspec.DecodeError:
        return None
