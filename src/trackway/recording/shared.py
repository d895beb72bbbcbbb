"""One recorder per home and store for the whole process, made on first use: what ``record`` and the rest share."""

from __future__ import annotations

import os
import threading

from trackway.recording import settings
from trackway.recording.recorder import Recorder
from trackway.store.base import Store

_shared: dict[tuple[str, str], Recorder] = {}
_sharing = threading.RLock()


def shared_recorder(home: str | os.PathLike[str] | None, store: str | os.PathLike[str] | Store | None) -> Recorder:
    """This process's recorder for a home and store, made on first use."""
    place = settings.home_at(home)
    key = str(place.path), settings.store_for(store, place).key
    with _sharing:
        recorder = _shared.get(key)
        if recorder is None:
            recorder = _shared[key] = Recorder(home, store=store)
        return recorder
