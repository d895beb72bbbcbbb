"""Homes to be damaged, and what must be true of them after: everything as recorded, or an error that names it."""

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

import trackway
from trackway.cli import main
from trackway.errors import TrackwayError
from trackway.recording.recorder import Recorder
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import Event
from trackway.store.record import RECORD_HEADER, SEGMENT_HEADER
from trackway.testing.contract import bare

SOUND = "sound"
FOUND = "found"
WRONG = "wrong"
OLDER = "older"


class Home(NamedTuple):
    """A home, and what was recorded in it."""

    path: Path
    summaries: dict[str, EpisodeSummary]
    events: dict[str, list[Event]]


def noise(seed: object, size: int) -> str:
    """Text that no compressor makes smaller, the same each time."""
    return random.Random(str(seed)).randbytes(size // 2).hex()


def record(home: Path, episodes: int = 12) -> list[str]:
    """Ended and open episodes, with tools, tags, blobs and a file; gives their ids."""
    found = []
    with Recorder(home) as recorder:
        for i in range(episodes):
            episode = recorder.start(f"task {i}", tags=[f"tag{i % 3}"], variant=f"v{i % 2}")
            found.append(episode.id)
            for k in range(12):
                episode.user(f"{i}:{k} {noise((i, k), 40)}")
                call = episode.tool_call(f"tool{k % 4}", {"x": i * k})
                episode.tool_result(call, noise((i, k), 6000) if k == 3 else f"ok {i} {k}")
            if i == 5:
                episode.file_change("a.bin", after=noise(i, 30_000).encode())
            if i % 3:
                episode.end("success")
        recorder.flush()
    return found


def home_of(path: Path) -> Home:
    """What a home holds, as it is read now."""
    with trackway.open_store(home=path) as store:
        summaries = {each.id: each for each in store.episodes()}
        return Home(path, summaries, {each: bare(store.events(each)) for each in summaries})


def verdict(home: Path, truth: Home) -> tuple[str, int]:
    """Whether everything reads as recorded, or is refused by name; and how many episodes are readable still."""
    said, readable = SOUND, 0
    with trackway.open_store(home=home) as store:
        listed = _asked(lambda: {each.id: each for each in store.episodes()})
        if listed is None:
            said = FOUND
        elif listed != truth.summaries:
            return f"{WRONG}: the list", 0
        for name, events in truth.events.items():
            summary = _asked(lambda name=name: store.episode(name))
            if summary is not None and summary != truth.summaries[name]:
                return f"{WRONG}: the summary of {name}", 0
            read = _asked(lambda name=name: bare(store.events(name)))
            if read is not None and read != events:
                return f"{WRONG}: the events of {name}", 0
            said = FOUND if read is None or summary is None else said
            readable += read is not None
    return said, readable


def moment(home: Path, truth: Home) -> str:
    """As verdict, but an earlier state of the home will do: each episode that is there begins as it was recorded."""
    older = False
    with trackway.open_store(home=home) as store:
        listed = _asked(lambda: {each.id: each for each in store.episodes()})
        if listed is None:
            return FOUND
        for name, summary in listed.items():
            read = _asked(lambda name=name: bare(store.events(name)))
            if read is None:
                return FOUND
            events = truth.events.get(name, [])
            if read != events[: len(read)] or len(read) != summary.n_events:
                return f"{WRONG}: the events of {name}"
            if len(read) == len(events) and summary != truth.summaries[name]:
                return f"{WRONG}: the summary of {name}"
            older |= len(read) < len(events)
    return OLDER if older or len(listed) < len(truth.events) else SOUND


def _asked(question) -> Any:
    """The answer; None where trackway refuses to give one. Any other exception is a defect, and goes on."""
    try:
        return question()
    except TrackwayError:
        return None


def flip(path: Path, at: int, bit: int) -> None:
    """One bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def copied(home: Path, to: Path) -> Path:
    """A home of its own to break."""
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(home, to)
    return to


def command(*args: object) -> tuple[int, str]:
    """What a command answers: its exit code and everything it says; a traceback fails the test."""
    code, said, talk = answered(*args)
    return code, said + talk


def answered(*args: object) -> tuple[int, str, str]:
    """The same, with stdout and stderr apart."""
    answer = CliRunner().invoke(main, [str(each) for each in args])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    assert "Traceback" not in answer.output, answer.output
    return answer.exit_code, answer.stdout, answer.stderr


def is_clear(said: str, talk: str) -> bool:
    """Whether a "no" explains itself: a report that names problems, or one line on stderr with what to do."""
    if any(line.startswith("✗") for line in said.splitlines()):
        return True
    lines = talk.splitlines()
    return len(lines) == 1 and lines[0].startswith("trackway: ") and "(hint: " in lines[0]


def digest(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def used(segment: bytes) -> int:
    """Where the records of a segment end."""
    at = SEGMENT_HEADER
    while length := int.from_bytes(segment[at : at + 4], "little"):
        at = (at + RECORD_HEADER + length + 7) & ~7
    return at
