"""Bytes of a store that are not what was written: shown as recorded, or refused by name; never wrong, never a crash."""

import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import FOUND, SOUND, command, copied, digest, flip, home_of, record, verdict
from trackway.errors import StoreDamaged, TrackwayError
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note

COMMANDS = (
    ("verify",), ("doctor",), ("ls",), ("show", "last"), ("stats",), ("du",), ("prune", "--older-than", "0s", "--yes"),
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A home with a store of some sixty pages, everything checkpointed, and what is in it."""
    home = tmp_path_factory.mktemp("sound") / "home"
    record(home)
    return home_of(home)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The same while a process has it open: much of it is in the log, with its index beside it."""
    home = tmp_path_factory.mktemp("logged") / "home"
    program = f"""
import os, sys
from pathlib import Path
from tests.faults.damaging import record
import trackway
from trackway.store.sqlite import SqliteStore
SqliteStore.checkpoint = lambda self: None
reader = trackway.open_store(home={str(home)!r})
record(Path({str(home)!r}), 2)
list(reader.episodes())
record(Path({str(home)!r}), 4)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert (home / "store.db-wal").stat().st_size > 0
    copy = home_of(copied(home, home.with_name("read")))
    return copy._replace(path=home)


def page_size(path: Path) -> int:
    """As its header says."""
    return int.from_bytes(path.read_bytes()[16:18], "big")


def beaten(home: Path, work: Path, flips: list[tuple[str, int, int]], truth) -> dict[str, int]:
    """Each flip in a copy of its own: how many were found, how many did no harm; any other outcome fails."""
    count = {FOUND: 0, SOUND: 0, "readable": 0}
    for name, at, bit in flips:
        copy = copied(home, work / "copy")
        flip(copy / name, at, bit)
        said, readable = verdict(copy, truth)
        assert said in count, f"{name}, byte {at}, bit {bit}: {said}"
        count[said] += 1
        count["readable"] += readable if said == FOUND else 0
    return count


@pytest.mark.promise("bit flip", "anywhere in the store's file: read exactly as recorded, or refused by name")
@pytest.mark.parametrize("seed", range(4))
def test_flips_over_the_whole_file(sound, fast: Path, seed: int, tell) -> None:
    """Header, tables, indexes, frames, tails, blobs, free space: no event and no summary is ever wrong."""
    size = (sound.path / "store.db").stat().st_size
    luck = random.Random(seed)
    flips = [("store.db", luck.randrange(size), luck.randrange(8)) for _ in range(120)]
    count = beaten(sound.path, fast, flips, sound)
    tell(flips=len(flips), found=count[FOUND], unharmed=count[SOUND], wrong=0)


@pytest.mark.promise("bit flip", "in the file's header, schema and tree pages: read as recorded, or refused by name")
def test_flips_where_it_hurts_most(sound, fast: Path, tell) -> None:
    """The first hundred bytes; the schema; the first bytes of every page, which say how the tree hangs together."""
    size = (sound.path / "store.db").stat().st_size
    luck = random.Random("tree")
    places = [*range(0, 100, 2), *(luck.randrange(100, 4096) for _ in range(60))]
    places += [page + luck.randrange(16) for page in range(0, size, page_size(sound.path / "store.db"))]
    flips = [("store.db", at, luck.randrange(8)) for at in places]
    count = beaten(sound.path, fast, flips, sound)
    tell(flips=len(flips), found=count[FOUND], unharmed=count[SOUND], wrong=0)


@pytest.mark.promise("bit flip", "in pages of one episode: the others are read one by one")
def test_other_episodes_are_readable_still(sound, fast: Path, tell) -> None:
    """A damaged frame takes its own episode and no other."""
    with sqlite3.connect(sound.path / "store.db") as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM frames")]
    connection.close()
    whole = (sound.path / "store.db").read_bytes()
    tried = readable = 0
    for body in bodies:
        at = whole.find(body[:200]) + 100
        copy = copied(sound.path, fast / "copy")
        flip(copy / "store.db", at, 2)
        said, left = verdict(copy, sound)
        assert (said, left) == (FOUND, len(sound.events) - 1)
        tried, readable = tried + 1, readable + left
    tell(flips=tried, others_read=readable)


@pytest.mark.promise("bit flip", "in the log or its index: as recorded, an older moment of it, or refused by name")
@pytest.mark.parametrize("name", ["store.db-wal", "store.db-shm"])
def test_flips_in_the_log(logged, fast: Path, name: str, tell) -> None:
    """SQLite drops a log from the first frame on that does not hold: what is left is whole, of an earlier time."""
    luck = random.Random(name)
    size = (logged.path / name).stat().st_size
    wrong = 0
    for _ in range(60):
        copy = copied(logged.path, fast / "copy")
        flip(copy / name, luck.randrange(size), luck.randrange(8))
        with trackway.open_store(home=copy) as store:
            try:
                for each in store.episodes():
                    events = list(store.events(each.id))
                    wrong += len(events) != each.n_events
            except TrackwayError:
                continue
    assert wrong == 0
    tell(flips=60, wrong=wrong)


@pytest.mark.promise("bit flip", "in the store: every command answers in clear lines and an exit code, no traceback")
@pytest.mark.parametrize("seed", range(4))
def test_commands_on_a_damaged_store(sound, fast: Path, seed: int, tell) -> None:
    """Verify, doctor, ls, show, stats, du, pack, backup and prune on a store with one flipped bit."""
    luck = random.Random(f"commands {seed}")
    size = (sound.path / "store.db").stat().st_size
    asked = 0
    for i in range(6):
        copy = copied(sound.path, fast / "copy")
        at = luck.randrange(4096) if i == 0 else luck.randrange(size)
        flip(copy / "store.db", at, luck.randrange(8))
        somebody = luck.choice(sorted(sound.events))
        more = (("pack", somebody, "-o", fast / f"{i}.jsonl"), ("backup", fast / f"{i}.db"))
        for args in (*COMMANDS[:-1], *more, COMMANDS[-1]):
            code, said = command(*args, "--home", copy)
            assert code in (0, 1), said
            assert code == 0 or said.strip()
            asked += 1
    tell(commands=asked)


@pytest.mark.promise("bit flip", "found by verify or doctor wherever reading is harmed")
def test_verify_finds_what_harms(sound, fast: Path, tell) -> None:
    """Where an episode cannot be read as recorded, verify exits 1 and so does nobody's guess."""
    luck = random.Random("verify")
    size = (sound.path / "store.db").stat().st_size
    harmed = 0
    for _ in range(60):
        copy = copied(sound.path, fast / "copy")
        flip(copy / "store.db", luck.randrange(size), luck.randrange(8))
        if verdict(copy, sound)[0] == FOUND:
            harmed += 1
            assert command("verify", "--home", copy)[0] == 1
    assert harmed
    tell(harmed=harmed, not_found=0)


@pytest.mark.promise("bit flip", "recording into a damaged store: all of it is sealed or stays in the journal")
@pytest.mark.parametrize("seed", range(4))
def test_recording_into_a_damaged_store(sound, fast: Path, seed: int, tell, capfd) -> None:
    """New episodes are never put aside because the store is damaged, and never vanish."""
    luck = random.Random(f"record {seed}")
    size = (sound.path / "store.db").stat().st_size
    sealed = kept = 0
    for i in range(8):
        copy = copied(sound.path, fast / "copy")
        if i % 2:
            flip(copy / "store.db", luck.randrange(size), luck.randrange(8))
        else:
            _overwrite(copy / "store.db", luck)
        recorder = Recorder(copy)
        recorder._wake = recorder._journal._wake = lambda: None  # no keeper: what it says comes from another thread
        episode = recorder.start("new")
        for k in range(30):
            episode.note(str(k))
        episode.end("success")
        recorder.close()
        assert not list((copy / "quarantine").glob("*")) if (copy / "quarantine").exists() else True
        if not list((copy / "journals").iterdir()):
            sealed += 1
            with trackway.open_store(home=copy) as store:
                notes = [each.topic for each in store.events(episode.id) if isinstance(each, Note)]
            assert notes == [str(k) for k in range(30)]
            continue
        kept += 1
        shutil.copy(sound.path / "store.db", copy / "store.db")  # the backup everybody should have
        for beside in ("store.db-wal", "store.db-shm"):
            (copy / beside).unlink(missing_ok=True)
        with Recorder(copy) as again:
            again.start("adopts").end()
            again.flush()
        with trackway.open_store(home=copy) as store:
            notes = [each.topic for each in store.events(episode.id) if isinstance(each, Note)]
        assert notes == [str(k) for k in range(30)]
        assert "trackway: " in capfd.readouterr().err
    tell(recorded=8, sealed_at_once=sealed, sealed_after_repair=kept, vanished=0)


def _overwrite(path: Path, luck: random.Random) -> None:
    """The first page of a table or index that sealing needs, with noise."""
    connection = sqlite3.connect(path)
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"))
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    name = luck.choice(["writers", "episodes", "tail", "sqlite_autoindex_episodes_1", "sqlite_autoindex_writers_1"])
    with path.open("r+b") as file:
        file.seek((roots[name] - 1) * page)
        file.write(luck.randbytes(page))


@pytest.mark.promise("truncation", "of the store, at every page and at odd sizes: refused by name, or as recorded")
def test_a_store_cut_short(sound, fast: Path, tell) -> None:
    """However much is missing, nothing is made up and no command fails with a traceback."""
    size = (sound.path / "store.db").stat().st_size
    cuts = [*range(0, size, page_size(sound.path / "store.db")), 1, 15, 16, 99, 100, 511, 512, 4095, 4097, size - 1]
    refused = 0
    for cut in cuts:
        copy = copied(sound.path, fast / "copy")
        with (copy / "store.db").open("r+b") as file:
            file.truncate(cut)
        said, _ = verdict(copy, sound) if cut else (FOUND, 0)
        assert said == FOUND, f"cut at {cut}: {said}"
        refused += 1
        assert command("ls", "--home", copy)[0] in (0, 1)
        assert command("doctor", "--home", copy)[0] in (0, 1)
    tell(cuts=len(cuts), refused=refused)


@pytest.mark.promise(
    "wrong file", "in the store's place: refused in one line, left as it is, new events in the journal"
)
@pytest.mark.parametrize("what", ["zeros", "text", "other program"])
def test_something_else_in_its_place(sound, fast: Path, what: str, capfd) -> None:
    """It is not written to, not even by a recorder; once the store is back, everything is sealed into it."""
    copy = copied(sound.path, fast / "copy")
    store = copy / "store.db"
    for each in copy.glob("store.db*"):
        each.unlink()
    if what == "zeros":
        store.write_bytes(bytes(65536))
    elif what == "text":
        store.write_text("dear diary\n" * 1000)
    else:
        connection = sqlite3.connect(store)
        connection.execute("CREATE TABLE diary (day TEXT)")
        connection.commit()
        connection.close()
    before = digest(store)
    for args in (("ls",), ("verify",), ("doctor",), ("stats",), ("du",)):
        code, said = command(*args, "--home", copy)
        assert (code, str(store) in said.replace("\n", "")) == (1, True), said
    with Recorder(copy) as recorder:
        episode = recorder.start("meanwhile")
        episode.end("success")
    assert digest(store) == before
    assert "everything is kept in the journal" in capfd.readouterr().err
    for each in copy.glob("store.db*"):
        each.unlink()
    shutil.copy(sound.path / "store.db", store)
    with Recorder(copy) as recorder:
        recorder.start("later").end()
    with trackway.open_store(home=copy) as live:
        assert live.episode(episode.id).outcome == "success"
        assert len(list(live.episodes())) == len(sound.events) + 2


@pytest.mark.promise("wrong file", "another store, or an empty file: what is recorded next is sealed, exactly once")
@pytest.mark.parametrize("what", ["empty", "another store"])
def test_another_store_in_its_place(sound, fast: Path, what: str) -> None:
    """A living recorder whose store is exchanged goes on, and everything it says afterwards is there once."""
    home = fast / "home"
    recorder = Recorder(home)
    episode = recorder.start("before")
    episode.note("0")
    recorder.flush()
    for each in home.glob("store.db*"):
        each.unlink()
    if what == "empty":
        (home / "store.db").touch()
    else:
        shutil.copy(sound.path / "store.db", home / "store.db")
    later = recorder.start("after")
    later.note("1")
    later.end("success")
    recorder.close()
    with trackway.open_store(home=home) as store:
        assert [each.topic for each in store.events(later.id) if isinstance(each, Note)] == ["1"]
        assert store.episode(later.id).n_events == 3


@pytest.mark.promise("log removed", "or of another database: what is left is whole, and nothing is made up")
@pytest.mark.parametrize("what", ["removed", "another", "noise"])
def test_a_log_that_is_not_its_own(logged, sound, fast: Path, what: str) -> None:
    """SQLite believes a log only by its salt and checksums: another one is passed over."""
    copy = copied(logged.path, fast / "copy")
    log = copy / "store.db-wal"
    (copy / "store.db-shm").unlink()
    if what == "removed":
        log.unlink()
    else:
        log.write_bytes(random.Random(1).randbytes(50_000))
    said, _ = _whole_episodes(copy)
    assert said
    assert command("verify", "--home", copy)[0] in (0, 1)
    assert command("doctor", "--home", copy)[0] in (0, 1)
    with Recorder(copy) as recorder:
        episode = recorder.start("goes on")
        episode.end("success")
    with trackway.open_store(home=copy) as store:
        assert store.episode(episode.id).outcome == "success"
    assert sound.events


def _whole_episodes(home: Path) -> tuple[bool, int]:
    with trackway.open_store(home=home) as store:
        found = list(store.episodes())
        return all(len(list(store.events(each.id))) == each.n_events for each in found), len(found)


def _running(home: Path) -> tuple[Recorder, trackway.Episode]:
    recorder = Recorder(home)
    recorder._wake = recorder._journal._wake = lambda: None  # no keeper: this test seals when it says so
    episode = recorder.start("running")
    for i in range(10):
        episode.note(str(i))
    recorder.flush()
    return recorder, episode


def _changed(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()


@pytest.mark.promise("bit flip", "in the summary of a running episode: nothing is sealed until verify --fix, then all")
def test_a_damaged_summary_of_a_running_episode(home: Path) -> None:
    """What comes for it waits in the journal, where readers of others see it; made again, everything is sealed."""
    recorder, episode = _running(home)
    _changed(home / "store.db", "UPDATE episodes SET summary = CAST(summary || x'00' AS BLOB)")
    for i in range(10, 20):
        episode.note(str(i))
    with pytest.raises(StoreDamaged, match="verify"):
        recorder.flush()
    assert not (home / "quarantine").exists()
    assert command("verify")[0] == 1
    assert command("verify", "--fix")[0] == 0
    episode.end("success")
    recorder.close()
    with trackway.open_store() as store:
        notes = [int(each.topic) for each in store.events(episode.id) if isinstance(each, Note)]
    assert notes == list(range(20))


@pytest.mark.promise(
    "bit flip", "in a journal's position: read as recorded, sealed after verify --fix, none twice, none skipped"
)
@pytest.mark.parametrize("change", ['"offset" = "offset" + 64', '"offset" = 64', "activation = 7", "events = 3"])
@pytest.mark.parametrize("dies", [True, False])
def test_a_damaged_position(home: Path, change: str, dies: bool) -> None:
    """A position that does not hold is not believed; it is found again by the writer's own numbers."""
    recorder, episode = _running(home)
    _changed(home / "store.db", f"UPDATE writers SET {change}")
    for i in range(10, 20):
        episode.note(str(i))
    with pytest.raises(StoreDamaged, match="position"):
        recorder.flush()
    with trackway.open_store() as store:
        notes = [int(each.topic) for each in store.events(episode.id) if isinstance(each, Note)]
        assert store.episode(episode.id).n_events == 21
    assert notes == list(range(20))
    if dies:
        recorder.close()
        assert len(list((home / "journals").iterdir())) == 1
    code, said = command("verify")
    assert (code, "1 journal differ from their events: position" in " ".join(said.split())) == (1, True), said
    assert command("verify", "--fix")[0] == 0
    if dies:
        recorder = Recorder(home)
    else:
        episode.note("20")
    recorder.flush()
    recorder.close()
    with trackway.open_store() as store:
        notes = [int(each.topic) for each in store.events(episode.id) if isinstance(each, Note)]
    assert notes == list(range(20 if dies else 21))
    assert not list((home / "journals").iterdir())
    assert command("verify")[0] == 0
    assert command("doctor")[0] == 0
