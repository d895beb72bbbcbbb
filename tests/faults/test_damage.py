"""Bytes of a store that are not what was written: shown as recorded, or refused by name; never wrong, never a crash."""

import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import (
    FOUND,
    OLDER,
    SOUND,
    answered,
    command,
    copied,
    digest,
    flip,
    home_of,
    is_clear,
    moment,
    record,
    verdict,
)
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


def beaten(home: Path, work: Path, flips: list[tuple[str, int, int]], *, truth, tell, judge=None) -> None:
    """Each flip in a copy of its own, told: what was found, what did no harm; any other outcome is wrong, and fails."""
    count, wrong = Counter(), []
    for name, at, bit in flips:
        copy = copied(home, work / "copy")
        flip(copy / name, at, bit)
        said = judge(copy, truth) if judge else verdict(copy, truth)[0]
        if said in (FOUND, SOUND) or (judge is moment and said == OLDER):
            count[said] += 1
        else:
            wrong.append(f"{name}, byte {at}, bit {bit}: {said}")
    older = {"of_an_older_moment": count[OLDER]} if judge is moment else {}
    tell(flips=len(flips), found=count[FOUND], unharmed=count[SOUND], **older, wrong=len(wrong))
    assert wrong == []


@pytest.mark.promise("bit flip", "anywhere in the store's file: read exactly as recorded, or refused by name")
@pytest.mark.parametrize("seed", range(4))
def test_flips_over_the_whole_file(sound, fast: Path, seed: int, tell) -> None:
    """Header, tables, indexes, frames, tails, blobs, free space: no event and no summary is ever wrong."""
    size = (sound.path / "store.db").stat().st_size
    luck = random.Random(seed)
    flips = [("store.db", luck.randrange(size), luck.randrange(8)) for _ in range(120)]
    beaten(sound.path, fast, flips, truth=sound, tell=tell)


@pytest.mark.promise("bit flip", "in the file's header, schema and tree pages: read as recorded, or refused by name")
def test_flips_where_it_hurts_most(sound, fast: Path, tell) -> None:
    """The first hundred bytes; the schema; the first bytes of every page, which say how the tree hangs together."""
    size = (sound.path / "store.db").stat().st_size
    luck = random.Random("tree")
    places = [*range(0, 100, 2), *(luck.randrange(100, 4096) for _ in range(60))]
    places += [page + luck.randrange(16) for page in range(0, size, page_size(sound.path / "store.db"))]
    flips = [("store.db", at, luck.randrange(8)) for at in places]
    beaten(sound.path, fast, flips, truth=sound, tell=tell)


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
    flips = [(name, luck.randrange(size), luck.randrange(8)) for _ in range(60)]
    beaten(logged.path, fast, flips, truth=logged, tell=tell, judge=moment)


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
            code, said, talk = answered(*args, "--home", copy)
            assert code == 0 or (code == 1 and is_clear(said, talk)), (args, code, said, talk)
            asked += 1
    tell(commands=asked)


@pytest.mark.promise("bit flip", "found by verify or doctor wherever reading is harmed")
def test_verify_finds_what_harms(sound, fast: Path, tell) -> None:
    """Where an episode cannot be read as recorded, verify exits 1 and so does nobody's guess."""
    luck = random.Random("verify")
    size = (sound.path / "store.db").stat().st_size
    harmed = not_found = 0
    for _ in range(60):
        copy = copied(sound.path, fast / "copy")
        flip(copy / "store.db", luck.randrange(size), luck.randrange(8))
        if verdict(copy, sound)[0] == FOUND:
            harmed += 1
            not_found += command("verify", "--home", copy)[0] != 1
    tell(harmed=harmed, not_found=not_found)
    assert harmed
    assert not_found == 0


@pytest.mark.promise("bit flip", "recording into a damaged store: all of it is sealed or stays in the journal")
@pytest.mark.parametrize("seed", range(4))
def test_recording_into_a_damaged_store(sound, fast: Path, seed: int, tell, capfd) -> None:
    """New episodes are never put aside because the store is damaged, and never vanish."""
    luck = random.Random(f"record {seed}")
    size = (sound.path / "store.db").stat().st_size
    sealed = kept = vanished = 0
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
            vanished += 30 - _found(copy, episode.id)
            continue
        kept += 1
        shutil.copy(sound.path / "store.db", copy / "store.db")  # the backup everybody should have
        for beside in ("store.db-wal", "store.db-shm"):
            (copy / beside).unlink(missing_ok=True)
        with Recorder(copy) as again:
            again.start("adopts").end()
            again.flush()
        vanished += 30 - _found(copy, episode.id)
        assert "trackway: " in capfd.readouterr().err
    tell(recorded=8, sealed_at_once=sealed, sealed_after_repair=kept, notes_vanished=vanished)
    assert vanished == 0


def _found(home: Path, episode: str) -> int:
    """How many of its notes are there, in order and once; none where it cannot be read."""
    with trackway.open_store(home=home) as store:
        try:
            notes = [int(each.topic) for each in store.events(episode) if isinstance(each, Note)]
        except TrackwayError:
            return 0
    assert notes == sorted(set(notes))
    return len(notes)


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
    page = page_size(sound.path / "store.db")
    cuts = [*range(page, size, page), 1, 15, 16, 99, 100, 511, 512, 4095, 4097, size - 1]
    refused = 0
    for cut in cuts:
        copy = copied(sound.path, fast / "copy")
        with (copy / "store.db").open("r+b") as file:
            file.truncate(cut)
        said, _ = verdict(copy, sound)
        assert said in (FOUND, SOUND), f"cut at {cut}: {said}"
        refused += said == FOUND
        for args in (("ls",), ("doctor",), ("verify",)):
            code, answer, talk = answered(*args, "--home", copy)
            assert code == 0 or (code == 1 and is_clear(answer, talk)), (cut, args, answer, talk)
        assert (code == 1) >= (said == FOUND), f"cut at {cut}: verify finds nothing"
    tell(cuts=len(cuts), refused=refused)
    assert refused


@pytest.mark.promise("truncation", "of the store to 0 bytes: taken for a new one, what is recorded next is sealed")
def test_a_store_cut_to_nothing(sound, fast: Path) -> None:
    """Nothing is left to tell it from a store that is about to be made: it is empty, and it is recorded into."""
    copy = copied(sound.path, fast / "copy")
    (copy / "store.db").write_bytes(b"")
    with trackway.open_store(home=copy) as store:
        assert list(store.episodes()) == []
    with Recorder(copy) as recorder:
        episode = recorder.start("next")
        episode.note("0")
        episode.end("success")
    assert _found(copy, episode.id) == 1
    assert not list((copy / "journals").iterdir())
    assert command("verify", "--home", copy)[0] == 0


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


@pytest.mark.promise("log removed", "or noise in its place: what is left is as recorded, and recording goes on")
@pytest.mark.parametrize("what", ["removed", "noise"])
def test_a_log_that_is_none(logged, fast: Path, what: str) -> None:
    """SQLite passes over a log whose checksums do not hold: what is left is of an earlier time."""
    copy = copied(logged.path, fast / "copy")
    log = copy / "store.db-wal"
    (copy / "store.db-shm").unlink()
    if what == "removed":
        log.unlink()
    else:
        log.write_bytes(random.Random(1).randbytes(50_000))
    assert moment(copy, logged) in (OLDER, SOUND)
    for args in (("verify",), ("doctor",)):
        code, said = command(*args, "--home", copy)
        assert code == 0, said
    with Recorder(copy) as recorder:
        episode = recorder.start("goes on")
        episode.end("success")
    with trackway.open_store(home=copy) as store:
        assert store.episode(episode.id).outcome == "success"
        assert not list((copy / "journals").iterdir())


@pytest.mark.promise("wrong log", "of another database: refused by name, nothing made up, new events in the journal")
def test_a_log_of_another_database(sound, fast: Path, capfd) -> None:
    """SQLite believes any log whose own checksums hold; trackway sees by its pages that the file is another's."""
    copy = copied(sound.path, fast / "copy")
    for beside in ("store.db-wal", "store.db-shm"):
        (copy / beside).unlink(missing_ok=True)
    _log_of_a_diary(fast / "diary.db", copy / "store.db-wal", page_size(sound.path / "store.db"))
    for args in (("ls",), ("verify",), ("doctor",), ("stats",)):
        code, said, talk = answered(*args, "--home", copy)
        assert (code, is_clear(said, talk), "store.db" in said + talk) == (1, True, True), (args, said, talk)
    assert verdict(copy, sound) == (FOUND, 0)
    with Recorder(copy) as recorder:
        episode = recorder.start("meanwhile")
        episode.note("0")
    assert "everything is kept in the journal" in capfd.readouterr().err
    for each in copy.glob("store.db*"):
        each.unlink()
    shutil.copy(sound.path / "store.db", copy / "store.db")  # the backup everybody should have
    with Recorder(copy) as recorder:
        recorder.flush()
    assert _found(copy, episode.id) == 1


def _log_of_a_diary(path: Path, to: Path, page: int) -> None:
    """The log of a database that another program has open."""
    connection = sqlite3.connect(path, isolation_level=None)
    for sql in (f"PRAGMA page_size = {page}", "PRAGMA journal_mode = WAL", "CREATE TABLE diary (day TEXT)"):
        connection.execute(sql)
    connection.executemany("INSERT INTO diary VALUES (?)", [("dear diary " * 50,)] * 50)
    shutil.copy(f"{path}-wal", to)
    connection.close()


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
@pytest.mark.parametrize("change", ['"offset" = "offset" + 64', '"offset" = 64', "segment = 7", "events = 3"])
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
