"""A store as the key holder reads it: every token of the home's key is what it hides. Nothing is written.

File contents are lifted too, so they are then not what their hash says: that is the hash of what is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trackway.recording.redact import lift, lift_value
from trackway.recording.tokens import Tokens
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import Event
from trackway.store.base import ALL, Query, Store
from trackway.store.home import Home
from trackway.store.live import LiveStore


class LiftingStore(LiveStore):
    """Reads like the one it stands for, with secrets in the clear."""

    def __init__(self, home: Home, store: Store, tokens: Tokens) -> None:
        super().__init__(home, store)
        self._tokens = tokens

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries; they are chosen and sorted by what is kept."""
        return map(self._lifted, super().episodes(query))

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary."""
        return self._lifted(super().episode(episode_id))

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events, lifted one by one."""
        return (lift(event, self._tokens) for event in super().events(episode_id, after=after))

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob in one piece: a token may stand anywhere in it."""
        yield lift_value(b"".join(super().blob(name)), self._tokens)

    def _lifted(self, summary: EpisodeSummary) -> EpisodeSummary:
        fields = ("task", "task_key", "variant", "agent", "model", "tags", "metadata", "reason", "error", "tools")
        changed = {name: lift_value(getattr(summary, name), self._tokens) for name in fields}
        return msgspec.structs.replace(summary, **changed)
