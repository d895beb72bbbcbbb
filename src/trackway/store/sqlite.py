"""The default store: one SQLite file in WAL mode.

Created and migrated under a file lock (several processes opening a new WAL file at once fail even with a timeout).
Commits are synchronous=FULL: what was sealed may leave the journal. Reading holds no transaction open between pieces;
events are followed by their sequence number, which never changes, so a sealer at work beside it disturbs nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from trackway.errors import EpisodeNotFound, EventRefused, NotAStore, StoreDamaged, StoreUnavailable
from trackway.schema import ids
from trackway.schema.canonical import digest_of
from trackway.schema.codec import BLOBS, Encoded, decode, numbered
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import Event
from trackway.schema.outside import is_thrown_in
from trackway.store import forks, record, sqlite_blobs, system
from trackway.store.base import ALL, Batch, Dropped, Query
from trackway.store.frames import Frame, Packer, believed, damaged
from trackway.store.holding import held, in_the_way
from trackway.store.migrations import check_layout, check_version, migrate
from trackway.store.payloads import Measured, put_together
from trackway.store.record import Position
from trackway.store.sqlite_drop import Dropping
from trackway.store.sqlite_query import as_asked, select_among_newest, select_summaries
from trackway.store.sqlite_seal import Sealing, decode_summary
from trackway.store.sums import reached

_BUSY_MS: Final = 60_000
_FAILURES: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite raises; of a damaged schema it says what Python cannot decode."""

_RECORDS_OWN: Final = (sqlite3.ProgrammingError, sqlite3.DataError, sqlite3.NotSupportedError)
"""What a value can do to SQLite; every other error of it is the file's."""

_WAL_LIMIT: Final = 64 << 20
_SHORTEST: Final = 512
_PAGE: Final = 2048  # a store begins as two dozen nearly empty pages; larger ones read no faster
_ALONE: Final = "?mode=ro&vfs=unix-none"

_WRITER = "SELECT * FROM writers WHERE writer = ?"
_SUMMARY = "SELECT summary FROM episodes WHERE uuid = ?"
_NUMBER = "SELECT id, summary FROM episodes WHERE uuid = ?"
_NEXT_SEQ = "SELECT id, next_seq FROM episodes WHERE uuid = ?"
_NEWEST = "SELECT uuid FROM episodes ORDER BY started_at DESC, uuid DESC LIMIT 1"
_BETWEEN = "SELECT uuid FROM episodes WHERE uuid BETWEEN ? AND ? LIMIT 10"
_ENDING = "SELECT uuid FROM episodes WHERE substr({0}, ?1) = ?2 OR substr({0}, ?3, ?4) = ?2 LIMIT 10"
_FRAME = """
    SELECT body, n, flags, "schema", checksum, first_seq FROM frames
    WHERE episode = ? AND first_seq <= ? ORDER BY first_seq DESC LIMIT 1"""
_CAN_DROP = "SELECT 1 FROM sqlite_master WHERE name = 'dropped'"
_WAS_DROPPED = "SELECT 1 FROM dropped WHERE uuid = ?"
_TAIL = 'SELECT body, flags, "schema", checksum, seq FROM tail WHERE episode = ? AND seq >= ? ORDER BY seq'


class SqliteStore:
    """Episodes in one SQLite file; safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # once: a link that leads elsewhere later is another store
        self.key = f"sqlite:{self.path}"
        self._lock = threading.RLock()
        self._packer = Packer()
        self._words: dict[str, int] = {}
        self._version = 0
        self._connection: sqlite3.Connection | None = None
        self.replaced = False  # whether the file was removed or replaced by another while it was open here
        self._file: tuple[int, int] | None = None
        self._writable = False
        forks.watch(self, forks.STORE)

    # --- writing ------------------------------------------------------------------------------------------------

    def seal(self, batch: Batch) -> int:
        """Store the batch and its position in one transaction, on the disk when this returns."""
        with self._lock:
            with self.changing() as connection:
                words = self._known_words(connection)
                count = Sealing(connection, self._packer, words).take(batch)
            self._words = words
            return count

    def drop(self, episode_ids: Iterable[str]) -> Dropped:
        """Delete episodes and the blobs nobody else needs, their bytes overwritten, in one transaction."""
        with self.changing() as connection:
            return Dropping(connection).take(episode_ids)

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes: on the disk when it ends, or nothing of it. For this subsystem only."""
        with self._lock:
            connection = self._open_for_writing()
            try:
                if connection.in_transaction:  # left by an exception that struck inside the handling of another
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                check_layout(connection, self.path)  # a newer trackway may have brought it up to date meanwhile
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):  # a damaged file: tried again before the next one
                        connection.execute("ROLLBACK")
                if isinstance(error, _FAILURES) and not isinstance(error, _RECORDS_OWN):
                    raise self._trouble(error) from error
                raise

    def _known_words(self, connection: sqlite3.Connection) -> dict[str, int]:
        """The words met so far, to be added to; none once another process has written: it may have dropped some."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # forgotten at once: a batch that is refused must not leave them to the next one
            self._words, self._version = {}, version
        return dict(self._words)

    def checkpoint(self) -> None:
        """Give back the pages that tails have left, and move the write-ahead log into the file, as readers allow."""
        with self._lock:
            if self._connection is not None and self._writable:
                with contextlib.suppress(sqlite3.OperationalError):  # somebody else writes: they may give them back
                    self._connection.executescript("PRAGMA incremental_vacuum")  # execute() frees one page only
                with contextlib.suppress(sqlite3.OperationalError):  # no room: the log is as safe, and is read as well
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def dropped(self, among: Collection[bytes] | None = None) -> set[bytes]:
        """The ids of the episodes that were dropped, as 16 bytes each: all of them, or those among these."""
        if not self._rows(_CAN_DROP, ()):  # no file yet, or a layout that is older than dropping
            return set()
        if among is None:
            return {each for (each,) in self._rows("SELECT uuid FROM dropped", ())}
        return {each for each in among if self._rows(_WAS_DROPPED, (each,))}

    # --- reading ------------------------------------------------------------------------------------------------

    def position(self, writer: str) -> Position:
        """How far this writer's journal is sealed."""
        rows = self._rows(_WRITER, (writer,))
        return reached(writer, rows[0]).position if rows else record.START

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries that match, in the order asked for."""
        newest = select_among_newest(query)
        rows = [] if newest is None else self._ask(*newest)
        if newest is None or len(rows) < (query.limit or 0):
            rows = self._ask(*select_summaries(query))
        yield from as_asked(query, (decode_summary(body) for (body,) in rows))

    def find(self, ref: str) -> list[str]:
        """The ids that a whole id, prefix, suffix or ``last`` names; at most ten of each."""
        if ref == ids.LAST:
            return [ids.from_bytes(each) for (each,) in self._ask(_NEWEST, ())]
        wanted = ref.replace("-", "").lower()
        if len(wanted) > 32 or not all(each in "0123456789abcdef" for each in wanted):
            return []
        low, high = bytes.fromhex(wanted.ljust(32, "0")), bytes.fromhex(wanted.ljust(32, "f"))
        rows = self._ask(_BETWEEN, (low, high))
        if not rows:
            rows = self._rows(*_ending(wanted))
        return [each for each in (ids.from_bytes(raw) for (raw,) in rows) if ids.matches(ref, each)]

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary; raises ``EpisodeNotFound``."""
        rows = self._ask(_SUMMARY, (ids.to_bytes(episode_id),))
        if not rows:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        return _of(episode_id, decode_summary(rows[0][0]))

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events with a ``seq`` beyond ``after``, in that order, a frame at a time."""
        rows = self._ask(_NUMBER, (ids.to_bytes(episode_id),))
        if not rows:
            raise EpisodeNotFound(f"no episode {episode_id}", hint="trackway ls", ref=episode_id)
        number, wanted = rows[0][0], after + 1
        summary: EpisodeSummary | None = None
        with contextlib.suppress(StoreDamaged):  # its events may be whole, whatever became of its summary
            summary = decode_summary(rows[0][1])
        if summary is not None:
            _of(episode_id, summary)
        while summary is None or wanted < summary.n_events:
            piece = self._frame_with(number, wanted) or self._after_frames(episode_id, number, wanted)
            if not piece:
                if summary is None:
                    return
                raise damaged(f"event {wanted} of episode {episode_id} is missing", episode=episode_id)
            yield from piece
            wanted = (piece[-1].seq or 0) + 1
            del piece  # before the next one is made: both may be large
        self._next_seq(episode_id, number)  # one that was deleted meanwhile does not just end

    def _frame_with(self, number: int, wanted: int) -> list[Event]:
        rows = self._rows(_FRAME, (number, wanted))
        if not rows:
            return []
        first = rows[0][5]
        with self._lock, _made_sense_of(f"frame {number}/{first}") as where:
            if first + rows[0][1] <= wanted:
                return []
            frame = believed(Frame(*rows[0][:5]), number, first, where=where)
            if frame.flags & BLOBS:
                return numbered(self._with_values(frame, wanted - first, where), wanted)
            events = self._packer.unpack(frame, where=where, hook=put_together(self._fetch))
        return numbered(events, first)[wanted - first :]

    def _with_values(self, frame: Frame, skip: int, where: str) -> list[Event]:
        """The next events of a frame, with what was kept apart: one at least, and no more than is little to hold."""
        fetch, events = Measured(self._fetch), []
        for event in self._packer.unpack_singly(frame, skip, where=where, hook=put_together(fetch)):
            events.append(event)
            if fetch.is_enough:
                break
        return events

    def _after_frames(self, episode_id: str, number: int, wanted: int) -> list[Event]:
        """What is in the tail; none at the end. An end that comes too soon is never taken for one."""
        if self._next_seq(episode_id, number) <= wanted:
            return []
        # Between the two questions a sealer may have moved the tail into a frame.
        piece = self._tail_from(number, wanted) or self._frame_with(number, wanted)
        if not piece:
            self._next_seq(episode_id, number)
            where = f"event {wanted} of episode {episode_id}"
            raise damaged(f"{where} is missing", where=where)
        return piece

    def _next_seq(self, episode_id: str, number: int) -> int:
        rows = self._rows(_NEXT_SEQ, (ids.to_bytes(episode_id),))
        if not rows or rows[0][0] != number:
            raise EpisodeNotFound(f"episode {episode_id} was deleted while it was read", ref=episode_id)
        if type(rows[0][1]) is not int:
            raise damaged(f"the row of episode {episode_id} is not what was stored", episode=episode_id)
        return int(rows[0][1])

    def _tail_from(self, number: int, wanted: int) -> list[Event]:
        events: list[Event] = []
        fetch = Measured(self._fetch)
        rows = self._rows(_TAIL, (number, wanted))
        if rows and rows[0][4] != wanted:  # a sealer has put what we want into a frame since we asked for one
            return []
        for body, flags, schema, checksum, seq in rows:
            if seq != wanted + len(events) or fetch.is_enough:
                break  # one is missing: said when it is asked for; or the rest is for the next time
            with _made_sense_of(f"event {number}/{seq}") as where:
                kept = believed(Frame(body, 1, flags, schema, checksum), number, seq, where=where)
                events.append(decode(Encoded(kept.body, kept.flags, schema), put_together(fetch)))
        return numbered(events, wanted)

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob's bytes, chunk by chunk; raises ``BlobNotFound``."""
        yield from self._fetch(digest_of(name))

    def _fetch(self, digest: bytes) -> Iterator[bytes]:
        return sqlite_blobs.fetch(self._rows, self._packer, digest)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """What is asked inside is answered as of one moment. For this subsystem only."""
        with self._lock:
            connection = self._open()
            if connection is None or connection.in_transaction:
                yield
                return
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _ask(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """The first question of an answer: a newer trackway may have changed the layout since the file was opened."""
        with self._lock:
            if self._connection is not None:
                try:
                    check_layout(self._connection, self.path)
                except _FAILURES as error:
                    raise self._trouble(error) from error
            return self._rows(sql, values)

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            try:
                connection = self._open()
                return connection.execute(sql, values).fetchall() if connection is not None else []
            except _FAILURES as error:
                raise self._trouble(error) from error

    # --- opening ------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection | None:
        """A connection to read with; None while there is no file. Readers create nothing."""
        self._let_go_of_what_is_gone()
        if self._connection is None and self.path.exists() and self.path.stat().st_size:
            connection = self._connect()
            # An older layout is read as it is, and brought up to date by whoever writes; an empty file is being made.
            if not check_version(connection, self.path):
                connection.close()
                return None
            self._connection, self._file = connection, self._identity()
        return self._connection

    def _let_go_of_what_is_gone(self) -> None:
        """A file that was removed or replaced under us takes what is written to it along: it is opened anew."""
        connection = self._connection
        if connection is not None and not connection.in_transaction and self._file != self._identity():
            self.replaced = True
            self.close()

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _open_for_writing(self) -> sqlite3.Connection:
        self._let_go_of_what_is_gone()
        if self._connection is not None and self._writable:
            return self._connection
        system.make_folder(self.path.parent)
        lock = self.path.with_suffix(".lock")
        with held(lock) as got:
            if not got:
                raise in_the_way(lock)
            try:
                return self._made_writable()
            except _FAILURES as error:
                raise self._trouble(error) from error
            finally:
                if not self._writable:  # half made: whoever asks next opens it anew
                    self.close()

    def _made_writable(self) -> sqlite3.Connection:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, system.FILE_MODE))
        self.close()  # one that was opened to read may be one that can only read
        self._connection, self._file = self._connect(to_write=True), self._identity()
        connection = self._connection
        version = check_version(connection, self.path)
        if not version:
            connection.execute(f"PRAGMA page_size={_PAGE}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")  # what is deleted is gone: overwritten in the same transaction
        connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT}")
        migrate(connection, version)
        self._writable = True
        return connection

    def _connect(self, *, to_write: bool = False) -> sqlite3.Connection:
        try:
            return self._try_connect(f"{self.path.absolute().as_uri()}?mode=rw")
        except sqlite3.OperationalError as error:
            if to_write or (self._has_log() and os.access(self.path.parent, os.W_OK)):
                raise self._unavailable(error) from error
        except _FAILURES as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT:  # a store, and a damaged one
                raise self._trouble(error) from error
            hint = "name another with --store, or put a backup in its place"
            raise NotAStore(f"{self.path} is no SQLite file: {error}", hint=hint, path=self.path) from error
        try:
            return self._try_connect(self.path.absolute().as_uri() + self._where_nothing_can_be_made())
        except _FAILURES as error:
            raise self._trouble(error) from error

    def _has_log(self) -> bool:
        """Whether some of what was sealed is in the log: reading the file without it would show less than there is."""
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size > 0
        except OSError:
            return False

    def _where_nothing_can_be_made(self) -> str:
        """A read-only place cannot hold the -shm file that a log needs: one is kept in memory, where there is a log."""
        return _ALONE if self._has_log() else "?immutable=1"

    def _check_length(self) -> None:
        """To SQLite, a file that ends within its first page is a new one; a store is never so short."""
        size = self.path.stat().st_size
        if 0 < size < _SHORTEST:
            hint = "put a backup in its place"
            raise StoreDamaged(f"store {self.path} is cut off after {size} bytes", hint=hint, path=self.path)

    def _try_connect(self, uri: str) -> sqlite3.Connection:
        self._check_length()
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1000
        )
        # SQLite's own lower() knows ASCII only.
        connection.create_function("casefold", 1, lambda text: text and text.casefold(), deterministic=True)
        try:
            if uri.endswith(_ALONE):
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except _FAILURES:
            connection.close()
            raise
        return connection

    def _trouble(self, error: sqlite3.DatabaseError | UnicodeDecodeError) -> StoreDamaged | StoreUnavailable:
        """What SQLite says, in our words. Bytes where text should be are operational errors to Python, and are not."""
        if isinstance(error, sqlite3.OperationalError) and "decode" not in str(error):
            return self._unavailable(error)
        return StoreDamaged(f"{self.path}: {error}", hint="see `trackway doctor`", path=self.path)

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        hint = "make room on its disk" if "is full" in str(error) else "see `trackway doctor`"
        return StoreUnavailable(f"store {self.path}: {error}", hint=hint, path=self.path)

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._lock:
            connection, self._connection, self._writable, self._words = self._connection, None, False, {}
            if connection is not None:
                connection.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be half gone
            self.close()

    def before_fork(self) -> None:
        """No seal is under way and no database open at the moment of a fork."""
        self._lock.acquire()
        with contextlib.suppress(sqlite3.Error):
            self.close()

    def after_fork(self) -> None:
        """Go on."""
        self._lock.release()

    def in_child(self) -> None:
        """Nothing was inherited but the lock."""
        self._lock = threading.RLock()


def _of(episode_id: str, summary: EpisodeSummary) -> EpisodeSummary:
    if summary.id != episode_id:
        raise damaged(f"the row of episode {episode_id} is another's", episode=episode_id)
    return summary


@contextlib.contextmanager
def _made_sense_of(where: str) -> Iterator[str]:
    """What is stored is read inside: whatever cannot be made sense of is damage, and says where."""
    try:
        yield where
    except (ArithmeticError, LookupError, TypeError, ValueError, EventRefused) as error:
        if is_thrown_in(error):
            raise
        raise damaged(f"{where} cannot be made sense of: {type(error).__name__}: {error}", where=where) from error


def _ending(wanted: str) -> tuple[str, tuple[Any, ...]]:
    """The ids that end with these digits, or whose short form begins with them; as bytes where they are whole ones."""
    size = len(wanted)
    if size % 2:
        return _ENDING.format("hex(uuid)"), (-size, wanted.upper(), 33 - ids.SHORT, size)
    return _ENDING.format("uuid"), (-(size // 2), bytes.fromhex(wanted), 17 - ids.SHORT // 2, size // 2)
