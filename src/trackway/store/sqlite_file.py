"""The SQLite file itself: opened when it is first asked, let go of when it is gone, its errors said in our words.

Created and migrated under a file lock (several processes opening a new WAL file at once fail even with a timeout).
Commits are synchronous=FULL. Readers create nothing: neither the file, nor anything beside it in a read-only place. A
file that was removed or replaced by another while it was open is opened anew, never written to for nobody.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trackway.errors import NotAStore, StoreDamaged, StoreUnavailable
from trackway.store import forks, system
from trackway.store.holding import held, in_the_way
from trackway.store.migrations import check_layout, check_version, migrate

_BUSY_MS: Final = 60_000
_FAILURES: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite raises; of a damaged schema it says what Python cannot decode."""

_RECORDS_OWN: Final = (sqlite3.ProgrammingError, sqlite3.DataError, sqlite3.NotSupportedError)
"""What a value can do to SQLite; every other error of it is the file's."""

_WAL_LIMIT: Final = 64 << 20
_SHORTEST: Final = 512
_PAGE: Final = 2048  # a store begins as two dozen nearly empty pages; larger ones read no faster
_ALONE: Final = "?mode=ro&vfs=unix-none"


class SqliteFile:
    """One file, shared by the threads of a process."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # once: a link that leads elsewhere later is another store
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self.replaced = False  # whether the file was removed or replaced by another while it was open here
        self._file: tuple[int, int] | None = None
        self._writable = False
        forks.watch(self, forks.STORE)

    # --- asking and changing ------------------------------------------------------------------------------------

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
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB:  # a store, and a damaged one
                raise self._trouble(error, "copy the file away, then put a backup in its place") from error
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

    def _trouble(
        self, error: sqlite3.DatabaseError | UnicodeDecodeError, hint: str = "copy the file away, then: trackway verify"
    ) -> StoreDamaged | StoreUnavailable:
        """What SQLite says, in our words. Bytes where text should be are operational errors to Python, and are not."""
        if isinstance(error, sqlite3.OperationalError) and "decode" not in str(error):
            return self._unavailable(error)
        return StoreDamaged(f"store {self.path} is damaged: {error}", hint=hint, path=self.path)

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        hint = "make room on its disk" if "is full" in str(error) else "see `trackway doctor`"
        return StoreUnavailable(f"store {self.path}: {error}", hint=hint, path=self.path)

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._lock:
            connection, self._connection, self._writable = self._connection, None, False
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
