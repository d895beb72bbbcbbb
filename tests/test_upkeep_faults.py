"""What an adversarial review of the store's upkeep broke: each stays mended."""

import io
import os
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

import trackway
from trackway.cli import main
from trackway.errors import BadSetting, PackRefused, StoreDamaged
from trackway.schema.version import STORE
from trackway.store.choice import Criteria
from trackway.store.inflated import Inflated
from trackway.store.prune import prune
from trackway.store.receipts import Receipts
from trackway.store.retention import Retention
from trackway.store.sqlite import SqliteStore
from trackway.store.verify import verify

GOLDEN = Path(__file__).parent / "golden"


def everywhere(home: Path) -> bytes:
    """Every byte of every file in the home."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


@pytest.mark.parametrize("point", ["prune:dropped", "prune:erased", "prune:returned"])
def test_the_same_prune_again_finishes_one_that_died(home: Path, point: str) -> None:
    """Killed after the rows are gone, the text is still in log and journal: the next one makes it go."""

    class Killed(BaseException):
        pass

    def die(name: str) -> None:
        if name == point:
            raise Killed

    recorder = trackway.Recorder()
    recorder.start("goes on")
    for i in range(5):
        with recorder.start(f"t{i}") as episode:
            episode.user(f"MARKER {i}")
    recorder.flush()
    live = trackway.open_store()
    criteria = Criteria(limits=Retention(max_age="0s"))
    with pytest.raises(Killed):
        prune(live, criteria, now=time.time_ns(), failpoint=die)
    receipt = prune(live, criteria, now=time.time_ns())

    assert receipt.finished
    assert b"MARKER" not in everywhere(home)
    assert prune(live, criteria, now=time.time_ns()).finished == ()
    recorder.close()


def test_a_receipt_is_written_whole_or_nothing_goes(home: Path, monkeypatch) -> None:
    """A disk that takes half a line is an error before anything is dropped."""
    written = []

    def half(descriptor: int, body: bytes) -> int:
        if len(written) > 3:
            raise OSError(28, "No space left on device")
        written.append(body[:5])
        return real(descriptor, body[:5])

    real = os.write
    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        Receipts(trackway.open_store().home, "s", 0).write("dropping", ids=["x" * 100])


def test_a_refused_event_keeps_its_payload(home: Path) -> None:
    """What a late event of a pruned episode carried is put aside with it, all two megabytes."""
    recorder = trackway.Recorder()
    episode = recorder.start("t")
    episode.end("success")
    recorder.flush()
    SqliteStore(home / "store.db").drop([episode.id])
    episode._core.ended = False  # a thread that goes on after the end
    episode.text("PAYLOAD" * 300_000)
    recorder.close()

    assert everywhere(home / "quarantine").count(b"PAYLOAD") == 300_000


def test_verify_ends_on_a_tree_that_leads_in_circles(home: Path) -> None:
    """Whatever a flipped bit does to the list of episodes, looking ends, and the rest is still named."""
    with trackway.Recorder() as recorder:
        for i in range(4):
            recorder.start(f"t{i}").end()
    path = home / "store.db"
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        for offset in (3, 4, 8, 9):
            damaged = bytearray(whole)
            damaged[page * 4096 + offset] ^= 1
            (home / "flipped.db").write_bytes(damaged)
            store = SqliteStore(home / "flipped.db")
            try:
                verify(store, trackway.open_store().home)
            except StoreDamaged:
                pass
            finally:
                store.close()


def test_a_wrong_id_is_damage_and_is_not_made_final(home: Path) -> None:
    """The first event says which episode it is: a row that disagrees is not fixed by believing it."""
    with trackway.Recorder() as recorder:
        recorder.start("t").end()
    connection = sqlite3.connect(home / "store.db")
    connection.execute("UPDATE episodes SET uuid = x'11111111111111111111111111111111'")
    connection.commit()
    connection.close()
    found = verify(SqliteStore(home / "store.db"), trackway.open_store().home, fix=True)

    assert not found.is_sound
    assert "its first event says" in found.damage[0].what


def test_a_summary_that_cannot_be_read_is_said(home: Path) -> None:
    """One line, with what to do; and that mends it."""
    with trackway.Recorder() as recorder:
        recorder.start("t").end()
    connection = sqlite3.connect(home / "store.db")
    connection.execute("UPDATE episodes SET summary = x'ff'")
    connection.commit()
    connection.close()
    answer = CliRunner().invoke(main, ["ls"])

    assert (answer.exit_code, "trackway verify --fix makes" in answer.stderr) == (1, True)
    assert CliRunner().invoke(main, ["verify", "--fix"]).exit_code == 0
    assert "t" in CliRunner().invoke(main, ["ls"]).stdout


def test_looking_at_an_older_store_leaves_it_as_it_is(tmp_path: Path) -> None:
    """Read, verified and listed, a store of format 1 is still one, byte for byte; writing brings it up to date."""
    copy = tmp_path / "one.db"
    shutil.copy(GOLDEN / "store-1.db", copy)
    before = copy.read_bytes()
    for command in ("ls", "verify", "stats"):
        assert CliRunner().invoke(main, [command, "--store", str(copy)]).exit_code == 0
    assert copy.read_bytes() == before
    with trackway.Recorder(store=copy) as recorder:
        recorder.start("new").end()
    connection = sqlite3.connect(copy)
    assert connection.execute("PRAGMA user_version").fetchone() == (STORE,)
    connection.close()


def test_a_file_made_to_burst_is_refused() -> None:
    """A few kilobytes that unfold to gigabytes stop at a quarter of one."""
    packer = zstandard.ZstdCompressor().compressobj()
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(400)) + packer.flush()
    stream = Inflated(io.BytesIO(bomb), "bomb")

    def read_all() -> None:
        while stream.read(1 << 20):
            pass

    with pytest.raises(PackRefused, match="times its size"):
        read_all()


def test_a_backup_replaces_nothing_of_the_home(home: Path) -> None:
    """Not even with force: locks, keys and receipts are not copies."""
    with trackway.Recorder() as recorder:
        recorder.start("t").end()
    from trackway.store.backup import backup

    for name in ("seal.lock", "store.lock"):
        with pytest.raises(BadSetting, match="home's own"):
            backup(trackway.open_store(), home / name, force=True)
