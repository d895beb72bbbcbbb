"""A copy of a store made while it is in use: one file, complete up to the moment it was begun, and verified.

    hold on to the journals → VACUUM INTO a work folder beside the target → seal the journals into the copy → verify →
    sync → give it its name

Whatever was recorded before the first step is in the copy: it was in a journal we hold on to, or sealed before the
copy was taken. It is sealed into the copy only, with its positions, so that nothing doubles when the copy is used
beside those journals later. ``VACUUM INTO`` over SQLite's backup API: one read transaction however long it takes (the
API starts again whenever another process commits), and no free page or deleted byte goes along.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trackway.errors import BadSetting, StoreDamaged, StoreUnavailable
from trackway.schema import ids
from trackway.store import parts, record, system, tail
from trackway.store.home import Home
from trackway.store.journal_files import Finished
from trackway.store.live import LiveStore
from trackway.store.progress import Progress, silent
from trackway.store.record import EVENT, SEGMENT_HEADER, Position, Record
from trackway.store.sealer import Sealed, Sealer
from trackway.store.sqlite import SqliteStore
from trackway.store.tail import Piece, Tails, WriterFolder
from trackway.store.verify import Verified, verify

_COUNTS: Final = """
    SELECT (SELECT count(*) FROM episodes), (SELECT coalesce(sum(next_seq), 0) FROM episodes),
        (SELECT count(*) FROM blobs)"""
_USED: Final = """
    SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()"""
_OPCODES: Final = 20_000
FAILPOINTS: Final = ("backup:held", "backup:copied", "backup:sealed", "backup:verified", "backup:synced")
"""Where a test may kill the process."""


class Counts(NamedTuple):
    """How much there is."""

    episodes: int = 0
    events: int = 0
    blobs: int = 0


class Backup(NamedTuple):
    """What was copied: ``source`` as it stood at the beginning, journals counted in but for their blobs."""

    path: Path
    bytes: int
    source: Counts
    waiting: int
    copy: Counts
    verified: Verified
    quarantined: int


def backup(
    live: LiveStore,
    target: Path,
    *,
    force: bool = False,
    progress: Progress = silent,
    failpoint: Callable[[str], None] = lambda _name: None,
) -> Backup:
    """Copy the store into a file; one that is there already is replaced with ``force`` only."""
    store = live.store
    if not isinstance(store, SqliteStore):
        raise BadSetting(f"{live.key} is no file", hint="only SQLite stores are copied", value=live.key)
    target = target.resolve() if target.is_symlink() else target.absolute()  # what a link names is what is meant
    _check_target(store, live.home.path, target, force=force)
    with _work_folder(target) as work:
        source, waiting = _count_live(live)
        held = _held_on_to(live.home, store.key, work)
        failpoint("backup:held")
        copy = SqliteStore(work.store)
        try:
            _copy(store, copy.path, progress)
            failpoint("backup:copied")
            sealed = _seal(work, copy, held)
            if not copy.path.exists():
                raise StoreUnavailable(f"nothing is recorded in {live.key} yet", path=store.path)
            failpoint("backup:sealed")
            verified = verify(copy, work, progress=progress)
            counts = _count(copy)
            failpoint("backup:verified")
        finally:
            copy.close()
        _finish(copy.path)
        failpoint("backup:synced")
        size = copy.path.stat().st_size
        _give_name(copy.path, target, force=force)
    return Backup(target, size, source, waiting, counts, verified._replace(quarantined=0), sealed.quarantined)


# --- places ---------------------------------------------------------------------------------------------------------


def _check_target(store: SqliteStore, home: Path, target: Path, *, force: bool) -> None:
    if target.exists() and store.path.exists() and target.samefile(store.path):
        raise BadSetting(f"{target} is the store itself", hint="name another file", value=target)
    if target.is_dir():
        raise BadSetting(f"{target} is a folder", hint="name a file in it", value=target)
    if target.exists() and not target.is_file():
        raise BadSetting(f"{target} is a device or a pipe, not a file", hint="name a file", value=target)
    if not target.parent.is_dir():
        raise BadSetting(f"there is no folder {target.parent}", hint="make it first", value=target)
    if target.exists() and target.is_relative_to(home.resolve()):
        raise BadSetting(f"{target} is the home's own", hint="name a file elsewhere", value=target)
    if not force and any(each.exists() for each in (target, *_beside(target))):
        raise BadSetting(f"{target} is there already", hint="--force replaces it", value=target)
    ((used,),) = store._rows(_USED, ()) or [(0,)]  # noqa: SLF001  one subsystem, as below
    free = shutil.disk_usage(target.parent).free
    if used > free:
        raise StoreUnavailable(
            f"a copy takes {used / 1e6:,.0f} MB, {target.parent} has {free / 1e6:,.0f} MB left",
            hint="make room, or name another place", path=target,
        )  # fmt: skip


def _beside(path: Path) -> tuple[Path, Path]:
    """The files SQLite keeps beside a store in use: left behind, they would be taken for those of the next one."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


@contextlib.contextmanager
def _work_folder(target: Path) -> Iterator[Home]:
    """A folder beside the target, ours alone, laid out like a home; those of backups that were killed are swept up."""
    parts.sweep(target.parent)
    work = Home(Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=parts.SUFFIX, dir=target.parent)))
    descriptor = system.open_lock(work.path / parts.LOCK)
    try:
        system.lock(descriptor, exclusive=True, wait=True)
        yield work
    except OSError as error:
        system.name_place(error, target)
        raise
    finally:
        shutil.rmtree(work.path, ignore_errors=True)
        os.close(descriptor)


def _finish(path: Path) -> None:
    """One file that needs no other, for its owner only, on the disk."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        connection.close()
    path.chmod(system.FILE_MODE)
    system.sync_file(path)


def _give_name(path: Path, target: Path, *, force: bool) -> None:
    if force:
        for each in _beside(target):
            each.unlink(missing_ok=True)
        path.replace(target)
    else:
        try:
            target.hardlink_to(path)  # unlike a rename, this never replaces what came in between
        except FileExistsError as error:
            raise BadSetting(f"{target} is there already", hint="--force replaces it", value=target) from error
        except OSError:  # a file system without links
            path.rename(target)
    system.sync_folder(target.parent)


# --- the copy -------------------------------------------------------------------------------------------------------


def _copy(store: SqliteStore, path: Path, progress: Progress) -> None:
    with store._lock:  # noqa: SLF001
        connection = store._open()  # noqa: SLF001
        if connection is None:  # all there is, is in journals
            return
        total = store._rows(_USED, ())[0][0]  # noqa: SLF001

        thrown: list[BaseException] = []

        def tell() -> bool:
            try:
                progress("copying", path.stat().st_size if path.exists() else 0, total)
            except BaseException as error:  # noqa: BLE001  SQLite would swallow it: Ctrl-C reaches us here
                thrown.append(error)
            return bool(thrown)

        connection.set_progress_handler(tell, _OPCODES)
        try:
            connection.execute("VACUUM INTO ?", (path.as_uri(),))  # a path need not be text
        except sqlite3.OperationalError as error:
            if thrown:
                raise thrown[0] from error
            said = f"copying {store.path} into {path.parent.parent}: {error}"
            raise StoreUnavailable(said, hint="make room, or name another place", path=path) from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{store.path}: {error}", hint="trackway verify", path=store.path) from error
        finally:
            connection.set_progress_handler(None, 0)


def _count(store: SqliteStore) -> Counts:
    rows = store._rows(_COUNTS, ())  # noqa: SLF001
    return Counts(*rows[0]) if rows else Counts()


def _count_live(live: LiveStore) -> tuple[Counts, int]:
    """What is in the store and in journals, and how many of the events are in journals."""
    tails = Tails(live.home, live.key)
    assert isinstance(live.store, SqliteStore)
    waiting = new = 0
    with live.store.reading():  # as of one moment: what is sealed meanwhile is not counted twice
        tails.refresh(live.store.position)
        counts = _count(live.store)
        for episode in tails.episodes():
            waiting += sum(isinstance(each, Record) for found in tails.of(episode) for each in found)
            new += not live.store.find(ids.from_bytes(episode))
    return counts._replace(episodes=counts.episodes + new, events=counts.events + waiting), waiting


# --- what is not sealed yet -----------------------------------------------------------------------------------------


def _held_on_to(home: Home, key: str, work: Home) -> list[WriterFolder]:
    """The journals under names of our own: what a sealer unlinks meanwhile, we still have."""
    held = []
    for each in tail.writers(home, key):
        folder = work.journal(each.writer)
        system.make_folder(folder.path)
        for path in each.folder.segments():
            with contextlib.suppress(FileNotFoundError):  # sealed in this moment, so it will be in the copy
                _link(path, folder.path / path.name)
        held.append(WriterFolder(each.writer, folder, each.about, each.alive))
    return held


def _link(path: Path, name: Path) -> None:
    try:
        name.hardlink_to(path)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or one without links
        shutil.copyfile(path, name)


def _seal(work: Home, copy: SqliteStore, held: list[WriterFolder]) -> Sealed:
    sealer, done = Sealer(work, copy), Sealed()
    for each in held:
        segments = tail.segments(each.folder, alive=each.alive)
        if each.alive:
            segments = _up_to_the_last_event(segments, copy.position(each.writer))
        if segments:
            done = done.plus(sealer._seal_segments(each, segments, "adopt"))  # noqa: SLF001
    return done


def _up_to_the_last_event(segments: list[Finished], start: Position) -> list[Finished]:
    """Of a living writer: what comes behind its last whole event belongs to one that is being written."""
    for i, (activation, path, size, _) in reversed(list(enumerate(segments))):
        low = start.offset if activation == start.activation else SEGMENT_HEADER
        if activation < start.activation or low >= size:
            break
        found = record.live_records(tail.read(Piece(activation, path, low, size)), low)
        end = max((each.end for each in found if each.type == EVENT), default=None)
        if end is not None:
            return [*segments[:i], Finished(activation, path, end)]
    return []
