"""The invariants of docs/sealing.md that no other test is about, and the page itself: what it names is there."""

import re
import sys
from pathlib import Path

import pytest

from tests.crash.agent import alone
from trackway.errors import TrackwayError
from trackway.recording.settings import open_store
from trackway.store import claim, system
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.record import START
from trackway.store.sealer import FAILPOINTS, Sealer
from trackway.store.sqlite import SqliteStore

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/sealing.md").read_text(encoding="utf-8")


def texts(store, episode_id: str) -> list[str]:
    """What was said."""
    return [each.content for each in store.events(episode_id) if each.kind == "assistant_text"]


def test_a_writer_is_never_seen_unlocked(home: Path) -> None:
    """At every line on the way from no folder to a journal in use, a folder that has its name is locked."""
    seen = []

    def look(frame, event, _arg):
        if frame.f_code.co_filename == claim.__file__:
            seen.extend(system.is_locked(Home(home).journal(each).lock) for each in Home(home).writers())
            return look
        return None

    recorder = alone(home, "mmap")
    before = sys.gettrace()
    sys.settrace(look)
    try:
        recorder.start("new")
    finally:
        sys.settrace(before)

    assert seen
    assert all(seen)
    recorder.close()


def test_two_sealers_at_once_double_nothing(home: Path) -> None:
    """With a lock that holds nobody back, the one that comes second is refused, and everything is there once."""
    recorder = alone(home, "mmap")
    episode = recorder.start("twice")
    for i in range(50):
        episode.text(f"{i}")
    recorder._journal.release()
    first, second = (Sealer(Home(home), SqliteStore(home / "store.db")) for _ in range(2))

    def other(name: str) -> None:
        if name == "adopt:before_store":
            assert second._adopt_all("").events == 51  # past seal.lock, which the first one holds

    first.failpoint = other
    with pytest.raises((TrackwayError, OSError)):
        first.adopt()

    assert texts(open_store(), episode.id) == [f"{i}" for i in range(50)]


def test_what_is_sealed_while_a_reader_looks_is_seen_once(home: Path) -> None:
    """Between a reader's look at the journals and its look at the store all of it moves, and the segments go."""
    recorder = alone(home, "append")
    episode = recorder.start("moves")
    for i in range(50):
        episode.text(f"{i}" + "x" * 10_000)

    class Moving(SqliteStore):
        """Asked for an episode, it takes in all that waits, and then answers."""

        def episode(self, episode_id: str):
            recorder.flush()
            return super().episode(episode_id)

    for _ in ("moves meanwhile", "is there"):
        live = LiveStore(Home(home), Moving(home / "store.db"))
        assert [each.partition("x")[0] for each in texts(live, episode.id)] == [f"{i}" for i in range(50)]
        assert live.episode(episode.id).n_events == 51
    recorder.close()


def test_a_writers_name_is_never_used_twice(home: Path) -> None:
    """A journal that was closed and begun anew has another name, and the old position stays with the old one."""
    recorder = alone(home, "mmap")
    names = []
    for _ in range(3):
        recorder.start("again")
        names.append(recorder._journal.writer)
        recorder.flush()
        assert recorder._journal.remove(recorder._sealer.position(names[-1]))

    assert len(set(names)) == 3
    assert all(recorder.store.position(each) > START for each in names)
    recorder.close()


def test_the_page_names_tests_that_exist() -> None:
    """Each invariant names the test that checks it; a name that is no test any more fails here."""
    files = [*(ROOT / "tests").rglob("test_*.py"), ROOT / "src/trackway/testing/contract.py"]
    there = {name for each in files for name in re.findall(r"def (test_\w+)", each.read_text(encoding="utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 10
    assert named - there == set()


def test_the_page_names_every_failpoint() -> None:
    """Wherever a test may kill the sealer, the page says what that leaves."""
    assert [each for each in FAILPOINTS if f"`{each}`" not in PAGE] == []
