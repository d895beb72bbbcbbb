"""What is left of an episode once its rows are gone: in journals, in quarantine, in pages of the file. Made to go too.

Deleted rows are overwritten where they stood (``secure_delete``), but a database page that was split or joined keeps
copies of what has moved away, and a journal keeps what was sealed until its segment is full. Everything here touches
only bytes that no reader will ever look at again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.store import record, system, tail
from trackway.store.base import Store
from trackway.store.holding import held, in_the_way
from trackway.store.home import Home
from trackway.store.progress import Progress, silent
from trackway.store.record import EPISODE, RECORD_HEADER, SEGMENT_HEADER, Position
from trackway.store.sqlite import SqliteStore
from trackway.store.tail import Piece

WHOLE_BELOW: Final = 512 << 20
"""Up to this size a file is written anew, which takes seconds; sealers wait meanwhile, agents do not."""

_SLICE: Final = 2048
_PATIENCE_MS: Final = 3000
_PAGES: Final = """
    SELECT page_count, freelist_count, page_size
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"""
_REWRITE: Final = """
    CREATE TEMP TABLE kept AS SELECT * FROM main.{0};
    DELETE FROM main.{0};
    INSERT INTO main.{0} SELECT * FROM kept;
    DROP TABLE kept"""


@contextlib.contextmanager
def holding(home: Home) -> Iterator[None]:
    """Nobody seals meanwhile: the store and the positions in it stand still, but for other homes' sealers."""
    system.make_folder(home.path)
    with held(home.seal_lock) as got:
        if not got:
            raise in_the_way(home.seal_lock)
        yield


# --- journals and quarantine ----------------------------------------------------------------------------------------


def erase_in_journals(home: Home, store: Store, episodes: set[bytes]) -> int:
    """Overwrite the sealed records of these episodes in journals still in use; returns how many. Call while holding."""
    erased = 0
    for writer in tail.writers(home, store.key):
        sealed = store.position(writer.writer)
        for segment in tail.segments(writer.folder, alive=True):
            end = min(segment.end, _sealed_end(segment.activation, sealed, segment.end))
            with contextlib.suppress(FileNotFoundError):
                erased += _erase_in(Piece(segment.activation, segment.path, SEGMENT_HEADER, end), episodes)
    return erased


def _sealed_end(activation: int, sealed: Position, end: int) -> int:
    if activation == sealed.activation:
        return sealed.offset
    return end if activation < sealed.activation else SEGMENT_HEADER


def _erase_in(piece: Piece, episodes: set[bytes]) -> int:
    if piece.end <= piece.start:
        return 0
    found = [each for each in record.scan(tail.read(piece), piece.start).records if each[1][:EPISODE] in episodes]
    if found:
        descriptor = os.open(piece.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for meta, whole, start, _ in found:
                # Still a record by its checksum, so that whoever walks the segment gets past it.
                nothing = bytes(len(whole))
                header = record.pack_header(len(whole), meta, record.checksum(nothing, start, meta))
                os.pwrite(descriptor, header + nothing, start)
            system.sync(descriptor)
        finally:
            os.close(descriptor)
    return len(found)


def remove_quarantined(home: Home, episodes: set[bytes]) -> int:
    """Remove what was put aside of these episodes; returns how many records."""
    removed = 0
    for about in sorted(home.quarantine.glob("*.json")):
        body = about.with_suffix(".bin")
        if _episode_of(about, body) in episodes:
            for payload in home.quarantine.glob(f"{about.stem}.*.blob"):
                payload.unlink(missing_ok=True)
            body.unlink(missing_ok=True)
            about.unlink(missing_ok=True)
            removed += 1
    return removed


def _episode_of(about: Path, body: Path) -> bytes | None:
    """Whose record it was; of damaged bytes, whose it says it was."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return bytes.fromhex(json.loads(about.read_bytes())["episode"])
    with contextlib.suppress(OSError):
        return body.read_bytes()[RECORD_HEADER : RECORD_HEADER + EPISODE]
    return None


# --- the file -------------------------------------------------------------------------------------------------------


class Freed(NamedTuple):
    """How the file was left.

    Where it was not written anew, pages in use may still hold copies of deleted rows, compressed ones mostly; where
    its log could not be emptied, because somebody reads, that does.
    """

    whole: bool
    log_emptied: bool


def give_back(home: Home, store: SqliteStore, progress: Progress = silent, *, whole: bool | None = None) -> Freed:
    """Return free pages to the disk, and leave nothing of deleted rows behind."""
    page_count, free, page_size = store._rows(_PAGES, ())[0]  # noqa: SLF001  one subsystem, here and below
    if whole is None:
        whole = (page_count - free) * page_size <= WHOLE_BELOW
    whole = whole and _write_anew(store, progress)
    if not whole:
        _rewrite_small_tables(store)
    vacuum(store, progress)
    return Freed(whole, _empty_log(home, store))


def _write_anew(store: SqliteStore, progress: Progress) -> bool:
    """``VACUUM``; False where there is no room for a second copy."""
    progress("writing the store anew", 0, 1)
    with store._lock:  # noqa: SLF001
        try:
            store._open_for_writing().execute("VACUUM")  # noqa: SLF001
        except sqlite3.OperationalError:
            return False
    progress("writing the store anew", 1, 1)
    return True


def _rewrite_small_tables(store: SqliteStore) -> None:
    """The tail holds events as they were said, and words are words: their pages are emptied and filled again."""
    for table in ("tail", "words"):
        with store.changing() as connection:
            for statement in _REWRITE.format(table).split(";"):
                connection.execute(statement)


def vacuum(store: SqliteStore, progress: Progress = silent) -> None:
    """Free pages to the disk, a slice at a time: sealers get their turn in between."""
    total = left = _free(store)
    while left:
        progress("returning space", total - left, total)
        with store._lock:  # noqa: SLF001
            # Only a script steps a pragma to its end.
            store._open_for_writing().executescript(f"PRAGMA incremental_vacuum({_SLICE})")  # noqa: SLF001
        before, left = left, _free(store)
        if left >= before:
            break


def _empty_log(home: Home, store: SqliteStore) -> bool:
    """Move the log into the file and cut it to nothing; False where a reader is in the way for longer than a moment."""
    with holding(home), store._lock:  # noqa: SLF001
        connection = store._open_for_writing()  # noqa: SLF001
        (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute(f"PRAGMA busy_timeout={_PATIENCE_MS}").fetchall()
        try:
            return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
        finally:
            connection.execute(f"PRAGMA busy_timeout={usual}").fetchall()


def _free(store: SqliteStore) -> int:
    rows = store._rows(_PAGES, ())  # noqa: SLF001
    return int(rows[0][1]) if rows else 0
