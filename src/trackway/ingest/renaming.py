"""Events of a file whose numbers are taken: they get a writer of their own, and are found by their time.

A writer is named after the entry a file begins with, and its numbers count from there. Of two files that begin with the
same entry one is most often the longer version of the other, and its new entries have new numbers. Where something is
left out in between, they have not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from blake3 import blake3

from trackway.ingest.spool import SpooledEntry
from trackway.schema.codec import Encoded, decode, encode
from trackway.schema.ids import imported_writer


class Renaming:
    """What becomes of the numbers of one file's new entries, decided by the first of them."""

    def __init__(self, last: Mapping[str, int], first: SpooledEntry) -> None:
        event = decode(next(first.encoded()))
        self._was = event.writer
        taken = event.n <= last.get(event.writer, -1)
        named = f"{event.writer}\0{first.key}".encode()
        self._writer = imported_writer(blake3(named).hexdigest(8)) if taken else None
        self._numbers: dict[int, int] = {}

    def renamed(self, entry: SpooledEntry) -> Iterator[Encoded]:
        """The events as they are to be stored."""
        if self._writer is None:
            yield from entry.encoded()
            return
        for each in entry.encoded():
            event = decode(each)
            self._numbers[event.n] = number = len(self._numbers)
            yield encode(
                msgspec.structs.replace(event, writer=self._writer, n=number, parent=self._parent(event.parent))
            )

    def _parent(self, parent: str | None) -> str | None:
        """What it follows, where that came with this file; else its time must do."""
        writer, _, number = (parent or "").partition(":")
        if writer != self._was or not number.isdecimal():
            return parent
        new = self._numbers.get(int(number))
        return None if new is None else f"{self._writer}:{new}"
