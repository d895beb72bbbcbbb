"""What `trackway doctor` and others say of files that are damaged, in the wrong place, or not theirs to read."""

import sqlite3

import pytest
from click.testing import CliRunner

from tests.test_cli_doctor import findings
from trackway.cli import main
from trackway.errors import StoreDamaged
from trackway.recording.recorder import Recorder
from trackway.store.sqlite import SqliteStore


def ask(*words):
    """What a command answers."""
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def recorded(home):
    """A home with thirty sealed episodes."""
    with Recorder(home) as recorder:
        for number in range(30):
            recorder.start(f"t{number}").end("success")
    return home


def change(home, *statements):
    """Change the store as nobody should."""
    connection = sqlite3.connect(home / "store.db")
    for each in statements:
        connection.execute(each)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


@pytest.mark.parametrize("byte", [0xEF, 0x20], ids=["no UTF-8", "no SQL"])
def test_a_flipped_bit_in_the_schema_is_damage(recorded, byte):
    """It is said to be damaged, never to be no store, and nobody is sent to another file."""
    change(recorded)
    store = recorded / "store.db"
    body = bytearray(store.read_bytes())
    body[body.index(b"CREATE TABLE writers") + 3] = byte
    store.write_bytes(body)

    with pytest.raises(StoreDamaged, match="is damaged"):
        list(SqliteStore(store).episodes())
    [problem] = [each for each in findings(code=1)["problem"] if "is damaged" in each]
    assert "copy the file away, then put a backup in its place" in problem
    assert "--store" not in problem


@pytest.mark.parametrize("number", [2, 1, 0])
def test_a_flipped_bit_in_the_number_of_the_format_is_damage(recorded, number):
    """A store is never read, changed or called empty by a number that its tables belie; putting it back helps."""
    change(recorded, f"PRAGMA user_version={number}")

    answer = ask("ls")
    assert (answer.exit_code, "its tables are those of format 3" in answer.stderr) == (1, True), answer.output
    [problem] = [each for each in findings(code=1)["problem"] if "its tables are those of format 3" in each]
    assert "PRAGMA user_version=3" in problem
    with pytest.raises(StoreDamaged), SqliteStore(recorded / "store.db").changing():
        pass
    change(recorded, "PRAGMA user_version=3")
    assert findings(code=0)["problem"] == []
