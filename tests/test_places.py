"""Where things are kept: homes, stores by path, URL, name and object, and what an import leaves alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trackway
from trackway.errors import BadSetting, EpisodeNotFound
from trackway.recording import settings
from trackway.store.memory import MemoryStore


def test_stores_by_path_url_and_object(tmp_path: Path) -> None:
    """A store may be named by path or URL, or given; each process's memory store is its own."""
    memory = MemoryStore()
    for store in (tmp_path / "a.db", f"sqlite:{tmp_path / 'b.db'}", memory):
        recorder = trackway.Recorder(store=store)
        with recorder.start("somewhere") as episode:
            episode.user("hi")
        recorder.close()
        assert [each.task for each in trackway.open_store(store).episodes()] == ["somewhere"]
    assert list(trackway.open_store().episodes()) == []
    with pytest.raises(BadSetting, match="no plug-in 'nosuch'"):
        trackway.open_store("nosuch://host")


def test_two_stores_in_one_home_do_not_mix(tmp_path: Path, home: Path) -> None:
    """A dead process's journal goes to the store it recorded for, whoever adopts around it."""
    program = (
        "import os, sys, trackway; trackway.record(sys.argv[1], store=sys.argv[1]).user('x'); os.kill(os.getpid(), 9)"
    )
    for name in ("a.db", "b.db"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / name)], check=False)

    with trackway.Recorder(store=tmp_path / "a.db") as recorder:
        recorder.flush()

    assert [each.task for each in trackway.open_store(tmp_path / "a.db").episodes()] == [str(tmp_path / "a.db")]
    assert len(list((home / "journals").iterdir())) == 1
    assert [each.task for each in trackway.open_store(tmp_path / "b.db").episodes()] == [str(tmp_path / "b.db")]


def test_importing_does_nothing(home: Path) -> None:
    """No file, no thread, no signal handler, no heavy module comes with the import."""
    program = """
import sys, threading, signal
before = set(sys.modules)
import trackway
assert threading.active_count() == 1
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
assert not {"msgspec", "sqlite3", "zstandard", "click", "rich"} & (set(sys.modules) - before), "imported too much"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert not home.exists()


def test_an_open_recorder_is_wound_down_at_exit(home: Path) -> None:
    """A Recorder nobody closed seals and removes its journal when the interpreter ends."""
    program = "import trackway; r = trackway.Recorder(); r.start('left').user('hi')"
    subprocess.run([sys.executable, "-c", program], check=True)

    assert not any((home / "journals").iterdir())
    assert [each.n_events for each in trackway.open_store().episodes()] == [2]


def test_a_memory_store_is_known_by_its_name() -> None:
    """Within a process "memory:" is one store, and another name is another."""
    with trackway.Recorder(store="memory:here") as recorder:
        recorder.start("in memory").end("success")

    assert [each.task for each in trackway.open_store("memory:here").episodes()] == ["in memory"]
    assert list(trackway.open_store("memory:there").episodes()) == []


def test_a_user_without_a_home_has_a_place_too(tmp_path: Path, monkeypatch) -> None:
    """HOME missing, empty or not writable: a private temporary folder; one another user made is not used."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    nowhere = {"HOME": "/nonexistent"}
    spare = tmp_path / f"trackway-{os.getuid()}"

    assert settings.home_at(None, nowhere).path == spare
    assert settings.home_at(None, {"HOME": str(tmp_path)}).path == tmp_path / ".trackway"
    assert settings.home_at(None, {"HOME": ""}).path == settings.home_at(None, {}).path
    spare.symlink_to(tmp_path / "elsewhere")
    assert settings.home_at(None, nowhere).path == Path("/nonexistent/.trackway")


def test_a_store_answers_to_short_ids() -> None:
    """What people type is understood; what names nothing says so."""
    with trackway.record("short") as episode:
        episode.user("hi")

    with trackway.open_store() as store:
        assert store.episode(episode.id[-8:]).id == store.episode("last").id == episode.id
        with pytest.raises(EpisodeNotFound):
            store.episode("nothing")
        with pytest.raises(EpisodeNotFound):
            list(store.store.events("nothing"))
