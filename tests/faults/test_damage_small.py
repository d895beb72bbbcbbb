"""The small files of a home, damaged: each costs what it says and nothing else."""

import random
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import command, record
from tests.faults.test_damage_journal import dead, numbers
from trackway.recording.recorder import Recorder

DAMAGE = {
    "empty": b"",
    "noise": random.Random("noise").randbytes(5000),
    "utf-16": "{}".encode("utf-16"),
    "cut": b'{"writer": "0123456789abcdef", "pid": 1, "store": "sqli',
    "wrong types": b'{"writer": 5, "pid": [], "host": {}, "started_at": "x", "store": 7, "own": "perhaps"}',
    "deep": b"[" * 100_000,
    "huge": b'{"pid": 1, "started_at": 1' + b"0" * 5000 + b', "host": "' + b"h" * 2_000_000 + b'"}',
}
each_damage = pytest.mark.parametrize("what", DAMAGE)


@pytest.mark.promise("damaged file", "writer.json: the journal is read, explained and sealed all the same")
@each_damage
def test_a_damaged_card(home: Path, what: str) -> None:
    """Who wrote is for display; where it belongs is then the home's own store."""
    dead(home, "mmap", 5)
    [card] = home.glob("journals/*/writer.json")
    card.write_bytes(DAMAGE[what])

    assert numbers(home) == list(range(5))
    for args in (("ls",), ("doctor",), ("verify",), ("du",)):
        code, said = command(*args)
        assert code == 0, said
    with Recorder() as recorder:
        recorder.flush()
    assert command("doctor", "--fix")[0] == 0
    assert numbers(home) == list(range(5))
    assert not list((home / "journals").iterdir())


@pytest.mark.promise("damaged file", "lock files gone: made again, nothing is lost")
def test_missing_lock_files(home: Path) -> None:
    """A journal without its lock is a dead one's; the other locks are made anew."""
    dead(home, "mmap", 5)
    for lock in [*home.glob("*.lock"), *home.glob("journals/*/lock")]:
        lock.unlink()
    with Recorder() as recorder:
        recorder.start("next").end()
    for lock in home.glob("*.lock"):
        lock.unlink()
    with Recorder() as recorder:
        recorder.start("and next").end()
    assert numbers(home) == list(range(5))
    assert len(list(trackway.open_store().episodes())) == 3


@pytest.mark.promise("damaged file", "receipts.jsonl, losses.jsonl: the lines that can be read count, nothing fails")
@each_damage
@pytest.mark.parametrize("name", ["receipts.jsonl", "losses.jsonl"])
def test_damaged_lists(home: Path, name: str, what: str) -> None:
    """What is written after a damaged line is a line of its own; doctor and prune go on, and doctor says so."""
    record(home, 3)
    (home / name).write_bytes(DAMAGE[what])
    code, said = command("doctor")
    counts_a_loss = name == "losses.jsonl" and what in ("utf-16", "wrong types")  # objects: each line is a loss
    assert code == counts_a_loss, said
    assert ("1 event could not be recorded" in " ".join(said.split())) is counts_a_loss, said
    unreadable = what in ("noise", "cut", "deep", "huge")
    assert (f"of {name} cannot be read" in " ".join(said.split())) is unreadable, said
    code, said = command("prune", "--older-than", "0s", "--yes")
    assert code == 0, said
    assert not list(trackway.open_store().episodes())


@pytest.mark.promise("damaged file", "redact.key: refused by name, hidden values stay hidden, never replaced")
@each_damage
def test_a_damaged_key(home: Path, what: str) -> None:
    """A key that is none is never written over: it may be mended, and only it lifts what it hid."""
    with Recorder() as recorder:
        recorder.start("t", redact=True).end()
    (home / "redact.key").write_bytes(DAMAGE[what])
    with Recorder() as recorder, pytest.raises(trackway.TrackwayError, match=r"redact\.key"):
        recorder.start("t", redact=True)
    assert (home / "redact.key").read_bytes() == DAMAGE[what]
    code, said = command("doctor")
    assert (code, "redact.key" in said.replace("\n", "").replace(" ", "")) == (1, True), said
    assert command("ls")[0] == 0


@pytest.mark.promise("damaged file", "trackway.toml: refused by name in one line, in commands and in recorders")
@each_damage
def test_damaged_settings(home: Path, what: str) -> None:
    """A settings file that cannot be understood could be a rule that hides nothing: it stops, and says which file."""
    record(home, 1)
    (home / "trackway.toml").write_bytes(DAMAGE[what])
    for args in (("ls",), ("doctor",), ("stats",)):
        code, said = command(*args)
        assert (code == 0) is (what == "empty"), said
        assert what == "empty" or "trackway.toml" in said.replace("\n", "").replace(" ", "")
    if what != "empty":
        with pytest.raises(trackway.TrackwayError, match=r"trackway\.toml"):
            Recorder().start("t")
