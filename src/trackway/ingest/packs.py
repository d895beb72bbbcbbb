"""A pack that is imported: unpacked, as ``trackway unpack`` does it, and kept as the file it was.

Its events have writers and numbers of their own and must stay as they are, so they pass through no spool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trackway.errors import PackRefused
from trackway.ingest.spool import ReadFile, Spooled
from trackway.ingest.state import KnownFile, State
from trackway.ingest.storing import Imported
from trackway.store import erase
from trackway.store.base import Batch
from trackway.store.live import LiveStore
from trackway.store.originals import Incoming
from trackway.store.pack import nobody
from trackway.store.pack_reader import PackFile
from trackway.store.unpack import unpack

PACK: Final = "pack"


def import_pack(live: LiveStore, state: State, read: ReadFile, *, modified: int, dry: bool) -> Imported:
    """Store the pack's episode, and the pack; where it is refused, nothing was changed."""
    with Path(read.path).open("rb") as file:
        try:
            if dry:
                held = PackFile(file, read.name, nobody).check()
                return Imported(
                    file=read.name,
                    state="new",
                    source=PACK,
                    size=read.size,
                    episodes=(held.episode,),
                    events=held.events,
                )
            done = unpack(file, live, name=read.name)
        except PackRefused as error:
            return Imported(
                file=read.name, state="refused", source=PACK, size=read.size, error=error.message, hint=error.hint or ""
            )
    spooled = Spooled(Path(read.spool or ""))
    try:
        list(spooled.entries())
        kept = Incoming(read.files[0], spooled.parts(), {done.episode: (0, read.size)}, read.instead)
        with erase.holding(live.home):
            live.store.seal(Batch((), originals=[kept]))
    finally:
        spooled.close()
    state.note(read.name, KnownFile(read.size, modified, read.files[0].hash, PACK), {})
    return Imported(
        file=read.name, state=done.state, source=PACK, size=read.size, episodes=(done.episode,),
        new_episodes=int(done.state == "new"), events=done.added,
    )  # fmt: skip
