"""One event by its number, without those behind it: for whoever wants a few, far apart.

Of a SQLite store the frame it is in is decompressed and the one event decoded. Whatever is not as expected there is
left to ``Store.events``, which knows all that can be wrong.
"""

from __future__ import annotations

from typing import Final

from trackway.errors import StoreDamaged
from trackway.schema import ids
from trackway.schema.codec import Encoded, decode, numbered, split_array
from trackway.schema.events import Event
from trackway.schema.outside import is_thrown_in
from trackway.store.base import Store
from trackway.store.frames import Frame, believed
from trackway.store.payloads import put_together
from trackway.store.sqlite import SqliteStore

_NUMBER: Final = "SELECT id FROM episodes WHERE uuid = ?"
_IN_FRAME: Final = """
    SELECT body, n, flags, "schema", checksum, first_seq FROM frames
    WHERE episode = ? AND first_seq <= ? ORDER BY first_seq DESC LIMIT 1"""
_IN_TAIL: Final = 'SELECT body, 1, flags, "schema", checksum FROM tail WHERE episode = ? AND seq = ?'


class Singles:
    """Events of a store, one at a time; the frame that was last looked into is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place = (0, -1)
        self._frame: Frame | None = None
        self._bodies: list[bytes] = []

    def at(self, episode_id: str, seq: int) -> Event | None:
        """The event with this number; None where there is none. Raises ``EpisodeNotFound``, ``StoreDamaged``."""
        if isinstance(self._store, SqliteStore):
            try:
                found = self._quickly(self._store, episode_id, seq)
            except (ArithmeticError, LookupError, TypeError, ValueError, StoreDamaged) as error:
                if is_thrown_in(error):
                    raise
                found = None
            if found is not None:
                return found
        event = next(iter(self._store.events(episode_id, after=seq - 1)), None)
        return event if event is not None and event.seq == seq else None

    def _quickly(self, store: SqliteStore, episode_id: str, seq: int) -> Event | None:
        rows = store._rows(_NUMBER, (ids.to_bytes(episode_id),))  # noqa: SLF001  one subsystem, as below
        if not rows:
            return None
        number = rows[0][0]
        body = self._body(store, number, seq)
        if body is None:
            return None
        return numbered([decode(body, put_together(store._fetch))], seq)[0]  # noqa: SLF001

    def _body(self, store: SqliteStore, number: int, seq: int) -> Encoded | None:
        place, first = self._place
        if place != number or self._frame is None or not first <= seq < first + self._frame.n:
            rows = store._rows(_IN_FRAME, (number, seq))  # noqa: SLF001
            if not rows or rows[0][5] + rows[0][1] <= seq:
                return self._in_tail(store, number, seq)
            first = rows[0][5]
            frame = believed(Frame(*rows[0][:5]), number, first)
            self._bodies = split_array(store._packer.expand(frame.body, "a frame"))  # noqa: SLF001
            self._place, self._frame = (number, first), frame
        assert self._frame is not None
        return Encoded(self._bodies[seq - first], self._frame.flags, self._frame.schema)

    def _in_tail(self, store: SqliteStore, number: int, seq: int) -> Encoded | None:
        rows = store._rows(_IN_TAIL, (number, seq))  # noqa: SLF001
        if not rows:
            return None
        kept = believed(Frame(*rows[0]), number, seq)
        return Encoded(kept.body, kept.flags, kept.schema)
