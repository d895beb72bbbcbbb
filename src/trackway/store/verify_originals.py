"""Every imported file put together again and hashed: it is what it was, or has only the holes that pruning left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from blake3 import blake3

from trackway.errors import BlobNotFound, StoreDamaged
from trackway.schema.canonical import name_of
from trackway.store.progress import Progress
from trackway.store.sqlite import SqliteStore
from trackway.store.verify_episode import Damage

_PAGE: Final = 200
_HAS: Final = "SELECT 1 FROM sqlite_master WHERE name = 'originals'"
_COUNT: Final = "SELECT count(*) FROM originals"
_NEXT: Final = "SELECT id, hash FROM originals WHERE id > ? ORDER BY id LIMIT ?"
_LOOSE: Final = "SELECT count(*) FROM parts WHERE id NOT IN (SELECT part FROM original_parts)"
_UNNEEDED: Final = "SELECT count(*) FROM originals WHERE id NOT IN (SELECT original FROM original_episodes)"


def look_at_originals(store: SqliteStore, progress: Progress) -> list[Damage]:
    """What is not as it was."""
    rows = store._rows  # noqa: SLF001  one subsystem
    if not rows(_HAS, ()):
        return []
    damage: list[Damage] = []
    total = rows(_COUNT, ())[0][0]
    for done, digest in enumerate(_hashes(store)):
        progress("checking imported files", done, total)
        why = _trouble(store, digest)
        if why is not None:
            damage.append(Damage("imported file", why))
    for sql, what in ((_LOOSE, "parts that belong to no file"), (_UNNEEDED, "files that no episode came from")):
        ((found,),) = rows(sql, ())
        if found:
            damage.append(Damage("imported files", f"{found:,} {what}"))
    return damage


def _hashes(store: SqliteStore) -> Iterator[bytes]:
    last = -1
    while found := store._rows(_NEXT, (last, _PAGE)):  # noqa: SLF001
        for number, digest in found:
            if type(number) is not int or number <= last:  # a damaged tree leads in circles; the file's check tells
                return
            last = number
            yield digest


def _trouble(store: SqliteStore, digest: bytes) -> str | None:
    hashed = blake3()
    try:
        for piece in store.original(name_of(digest)):
            hashed.update(piece)
    except BlobNotFound:  # a hole, or it went meanwhile
        return None
    except (StoreDamaged, TypeError) as error:
        return str(getattr(error, "message", error))
    return None if hashed.digest() == digest else f"{name_of(digest)}: the content is not what its name says"
