"""A pack that is imported: unpacked, as ``trackway unpack`` does it, and kept as the file it was.

Its events have writers and numbers of their own and must stay as they are, so they pass through no spool.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from trackway.errors import EpisodeNotFound, PackRefused
from trackway.ingest.gathering import Candidate
from trackway.ingest.spool import ReadFile, Spooled
from trackway.ingest.state import KnownFile
from trackway.ingest.storing import Imported, Storing
from trackway.store import erase
from trackway.store.base import Batch
from trackway.store.live import LiveStore
from trackway.store.originals import Incoming
from trackway.store.pack import nobody
from trackway.store.pack_reader import PackedEvent, PackFile
from trackway.store.unpack import Unpacked, unpack

PACK: Final = "pack"


def import_pack(live: LiveStore, storing: Storing, read: ReadFile, pack: Candidate) -> Imported:
    """Store the pack's episode, and the pack; where it is refused, nothing was changed."""
    known = KnownFile(read.size, pack.modified, read.files[0].hash, PACK)
    with pack.path.open("rb") as file:
        try:
            held = PackFile(file, read.name, nobody)
            episode = held.check().episode
            if storing.are_left_out([episode]):
                storing.note(read.name, known._replace(gone=(episode,)))
                return Imported(file=read.name, state="pruned", source=PACK, size=read.size)
            if storing.is_dry:
                return _told(read, _would_be(live, held))
            file.seek(0)
            done = unpack(file, live, name=read.name)
        except PackRefused as error:
            said, hint = error.message, error.hint or ""
            return Imported(file=read.name, state="refused", source=PACK, size=read.size, error=said, hint=hint)
    spooled = Spooled(Path(os.fsdecode(read.spool)))
    try:
        list(spooled.entries())
        kept = Incoming(read.files[0], spooled.parts(), {done.episode: (0, read.size)}, read.instead)
        with erase.holding(live.home):
            live.store.seal(Batch((), originals=[kept]))
    finally:
        spooled.close()
    storing.note(read.name, known)
    return _told(read, done)


def _would_be(live: LiveStore, pack: PackFile) -> Unpacked:
    """What unpacking it would do."""
    try:
        here = {(each.writer, each.n) for each in live.events(pack.episode)}
    except EpisodeNotFound:
        here = set()
    found = [(each.event.writer, each.event.n) for each in pack.entries() if isinstance(each, PackedEvent)]
    added = sum(each not in here for each in found)
    return Unpacked(pack.episode, len(found), added, blobs=0, missing=0, was_here=bool(here))


def _told(read: ReadFile, done: Unpacked) -> Imported:
    return Imported(
        file=read.name, state=done.state, source=PACK, size=read.size, episodes=(done.episode,),
        new_episodes=int(done.state == "new"), events=done.added,
    )  # fmt: skip
