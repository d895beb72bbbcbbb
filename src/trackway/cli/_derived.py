"""What is derived from episodes and kept beside the store, brought up to date: the search index, and the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trackway.store.live import LiveStore


def catch_up(live: LiveStore) -> None:
    """Bring all of it up to date."""
