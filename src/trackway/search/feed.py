"""The index fed beside a recorder: what it sealed is indexed now and then, so that a question finds little to catch up.

Called through the plug-in point ``trackway.feeds``: recording does not know searching. Only where there is an index
already, with a connection to the store of its own, never waiting for another writer, and no longer than is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from trackway.search.catching_up import catch_up
from trackway.search.index import place_of
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.sqlite import SqliteStore


def feed(home: Home, store: Store, enough: Callable[[], bool]) -> None:
    """Bring the index up to what is stored, until it is enough; may raise, and is not asked again then."""
    if not isinstance(store, SqliteStore):  # whose connection cannot be had twice
        return
    with LiveStore(home, SqliteStore(store.path)) as live:
        place = place_of(live)
        if place is not None and place.engine.is_dir():
            catch_up(live, patience=0, enough=enough, threads=1)
