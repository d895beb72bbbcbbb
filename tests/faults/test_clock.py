"""A clock that is wrong, in every way a clock can be: everything is kept, in order, and age is never made up."""

import itertools
import re
import time
from pathlib import Path

import pytest

import trackway
from tests.faults.damaging import command
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note
from trackway.store.base import Query

YEAR = 31_557_600 * 10**9
NOW = time.time_ns()
CLOCKS = {
    "goes backwards": lambda: (NOW - i * 10**9 for i in itertools.count()),
    "jumps by years": lambda: (NOW + (-1) ** i * i * 20 * YEAR for i in itertools.count()),
    "stands still": lambda: itertools.repeat(NOW),
    "is at its epoch": lambda: itertools.repeat(0),
    "is before 1970": lambda: (-5 * YEAR + i for i in itertools.count()),
    "is beyond 2262": lambda: (2**63 + i for i in itertools.count()),
    "is beyond all bounds": lambda: (2**70 + i for i in itertools.count()),
}
each_clock = pytest.mark.parametrize("how", CLOCKS)


def recorded(home: Path, how: str, episodes: int = 3, unsealed=lambda _names: None) -> list[str]:
    """Episodes under such a clock, one after the other; gives their ids, first to ``unsealed`` while none is sealed."""
    ticks = iter(CLOCKS[how]())
    found = []
    with Recorder(home, clock=lambda: next(ticks)) as recorder:
        recorder._wake = recorder._journal._wake = lambda: None  # no keeper: close seals
        for _ in range(episodes):
            episode = recorder.start(how)
            found.append(episode.id)
            for i in range(20):
                episode.note(str(i))
                call = episode.tool_call("bash", {"i": i})
                episode.tool_result(call, "ok")
            episode.end("success")
            assert episode.lost == 0
        assert recorder.store.position(recorder._journal.writer).offset == 0
        unsealed(found)
    assert not list((home / "journals").iterdir())
    return found


@pytest.mark.promise("wrong clock", "backwards, jumping, still, before 1970, beyond 2262: all kept, in order")
@each_clock
def test_everything_is_kept_in_order(home: Path, how: str, tell) -> None:
    """Order within an episode is the writer's, sealed or not; each is found by its id and listed once."""

    def look(names: list[str]) -> None:
        with trackway.open_store() as store:
            assert sorted(each.id for each in store.episodes()) == sorted(names)
            for each in names:
                notes = [int(event.topic) for event in store.events(each) if isinstance(event, Note)]
                assert notes == list(range(20))
                steps = [step.index for step in trackway.steps(store.events(each))]
                assert steps == sorted(steps)

    look(recorded(home, how, unsealed=look))
    assert command("verify")[0] == 0
    tell(clocks=1)


@pytest.mark.promise("wrong clock", "ls lists by the time each episode says it began, ties by id; nothing is left out")
@each_clock
def test_the_list_is_ordered_by_what_is_said(home: Path, how: str) -> None:
    """The newest by its own word first, from the journal and from the store alike, where SQL can hold that time."""
    lists = []

    def look(_names: list[str]) -> None:
        with trackway.open_store() as store:
            found = [(each.started_at, each.id) for each in store.episodes()]
            assert [name for _, name in found] == [each.id for each in store.episodes(Query(newest_first=False))][::-1]
        assert command("ls")[0] == 0
        lists.append(found)

    names = recorded(home, how, unsealed=look)
    look(names)
    in_journal, in_store = lists
    as_sql = [(max(-(2**63), min(at, 2**63 - 1)), name) for at, name in in_store]
    assert in_journal == sorted(in_journal, reverse=True)
    assert as_sql == sorted(as_sql, reverse=True)
    assert in_journal == in_store or as_sql != in_store
    assert sorted(name for _, name in lists[0]) == sorted(names)


@pytest.mark.promise("wrong clock", "no command shows a negative duration, none fails")
@each_clock
def test_durations_are_never_negative(home: Path, how: str, tmp_path: Path) -> None:
    """Whatever the events say, time does not run backwards on a screen."""
    recorded(home, how)
    forms = [("show", "last", "--as", form) for form in ("transcript", "steps", "timeline", "trace", "trajectory")]
    for args in (("ls",), ("stats",), ("du",), *forms, ("pack", "last", "-o", tmp_path / "p.jsonl"), ("doctor",)):
        code, said = command(*args)
        assert code == 0, said
        assert not re.search(r"(?<![\w-])-\d+(\.\d+)?\s?(ms|s|m|h|d|w)\b", said), said


@pytest.mark.promise("wrong clock", "prune by age spares what is from the future, and what was last heard of lately")
@each_clock
def test_prune_by_age(home: Path, how: str) -> None:
    """An episode is as old as the latest thing it says of itself, never older."""
    names = recorded(home, how)
    with trackway.open_store() as store:
        latest = {each: max(event.at for event in store.events(each)) for each in names}
    code, said = command("prune", "--older-than", "1d", "--yes")
    assert code == 0, said
    left = {each.id for each in trackway.open_store().episodes()}
    assert {name for name, at in latest.items() if at > NOW - 86_400 * 10**9} == left


@pytest.mark.promise("wrong clock", "doctor says when episodes lie in the future, and how far")
def test_doctor_notes_the_future(home: Path) -> None:
    """A note, with the clock to look at; a minute's difference between machines is none."""
    ahead = itertools.count(NOW + 60 * 10**9)
    with Recorder(home, clock=lambda: next(ahead)) as recorder:
        recorder.start("a minute ahead").end()
    code, said = command("doctor")
    assert (code, "from the future" in said) == (0, False), said
    far = itertools.count(NOW + 30 * YEAR)
    with Recorder(home, clock=lambda: next(far)) as recorder:
        recorder.start("a generation ahead").end()
    code, said = command("doctor")
    assert (code, "1 episode from the future, up to 20" in " ".join(said.split())) == (0, True), said


@pytest.mark.promise("wrong clock", "an adopter whose clock is behind seals what is there, in the writer's order")
def test_an_adopter_with_another_clock(home: Path) -> None:
    """Who is dead is asked of a lock, never of a clock."""
    first = Recorder(home, clock=lambda: NOW + YEAR)
    first._wake = first._journal._wake = lambda: None
    episode = first.start("ahead")
    for i in range(50):
        episode.note(str(i))
    first._journal.release()
    with Recorder(home, clock=lambda: NOW - YEAR) as recorder:
        recorder.flush()
    with trackway.open_store() as store:
        assert [int(each.topic) for each in store.events(episode.id) if isinstance(each, Note)] == list(range(50))


def test_times_nobody_can_mean(home: Path) -> None:
    """Hundreds of digits are refused in one line, or mean "before everything"."""
    recorded(home, "stands still", 1)
    for args in (("prune", "--older-than", "9" * 400 + "d"), ("prune", "--max-size", "9" * 400 + "GB")):
        code, said = command(*args, "--dry-run")
        assert (code, "at most 18 digits" in said) == (2, True), said
    for digits in (30, 400, 5000):
        code, said = command("ls", "--since", "9" * digits + "d")
        assert code in (0, 2), said
