"""Every store keeps the one contract."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trackway.errors import BadSetting, NotAStore, StoreDamaged, StoreTooNew
from trackway.schema import ids
from trackway.store.base import Batch, Query
from trackway.store.memory import MemoryStore
from trackway.store.sqlite import SqliteStore
from trackway.testing.contract import StoreContract, bare
from trackway.testing.events import records, small_episode

ID = ids.uuid7(1_800_000_000_000_000_000, bytes(10))


class TestSqlite(StoreContract):
    """The default store."""

    def make(self, tmp_path: Path) -> SqliteStore:
        """One file."""
        return SqliteStore(tmp_path / "store.db")


class TestMemory(StoreContract):
    """The store without a file."""

    def make(self, tmp_path: Path) -> MemoryStore:
        """No file."""
        return MemoryStore()


def test_a_sqlite_store_is_read_by_another_object(tmp_path: Path) -> None:
    """What one object sealed, a second one on the same file reads."""
    SqliteStore(tmp_path / "s.db").seal(Batch(records(ID, small_episode())))

    assert bare(SqliteStore(tmp_path / "s.db").events(ID)) == small_episode()


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Looking for episodes where there are none leaves no file behind."""
    assert list(SqliteStore(tmp_path / "s.db").episodes()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """A store of a higher format says so and what to do; it is not touched."""
    store = SqliteStore(tmp_path / "s.db")
    store.seal(Batch(records(ID, small_episode())))
    store.close()
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()

    with pytest.raises(StoreTooNew, match=r"format 99.*pip install -U"):
        list(SqliteStore(tmp_path / "s.db").episodes())


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look like a file" * 9, b"\x00" * 4096])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that is no SQLite database is named, not overwritten."""
    (tmp_path / "s.db").write_bytes(content)

    with pytest.raises(NotAStore):
        SqliteStore(tmp_path / "s.db").seal(Batch(records(ID, small_episode())))
    assert (tmp_path / "s.db").read_bytes() == content


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    """A SQLite file with other tables is not ours to write to."""
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()

    with pytest.raises(NotAStore, match="another program"):
        SqliteStore(tmp_path / "s.db").seal(Batch(records(ID, small_episode())))


def test_a_flipped_bit_is_never_shown(tmp_path: Path) -> None:
    """A damaged frame raises; it does not read as something else."""
    store = SqliteStore(tmp_path / "s.db")
    store.seal(Batch(records(ID, small_episode())))
    store.close()
    connection = sqlite3.connect(tmp_path / "s.db")
    (body,) = connection.execute("SELECT body FROM frames").fetchone()
    flipped = bytes([*body[:20], body[20] ^ 1, *body[21:]])
    connection.execute("UPDATE frames SET body = ?", (flipped,))
    connection.commit()
    connection.close()

    with pytest.raises(StoreDamaged, match="checksum"):
        list(SqliteStore(tmp_path / "s.db").events(ID))


def test_sealing_is_synchronous_full(tmp_path: Path) -> None:
    """What was sealed may leave the journal, so a commit is on the disk."""
    store = SqliteStore(tmp_path / "s.db")
    store.seal(Batch(records(ID, small_episode())))

    assert store._connection is not None
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_searching_a_task_knows_more_than_ascii(tmp_path: Path) -> None:
    """Any case, in any alphabet."""
    store = SqliteStore(tmp_path / "s.db")
    store.seal(Batch(records(ID, small_episode("Über CAFÉ"))))

    assert [each.id for each in store.episodes(Query(task="über café"))] == [ID]


@pytest.mark.parametrize("wrong", [
    {"sort": "bogus"}, {"since": "7d"}, {"until": 1.5}, {"outcome": "great"}, {"limit": -1},
])  # fmt: skip
def test_a_question_that_cannot_be_meant_is_refused(wrong) -> None:
    """An answer of nothing, or of everything, would be taken for the truth."""
    with pytest.raises(BadSetting):
        Query(**wrong)


def test_a_question_takes_a_datetime() -> None:
    """As UTC nanoseconds."""
    assert Query(since=datetime(2027, 1, 15, 8, 0, tzinfo=UTC)).since == 1_800_000_000_000_000_000
