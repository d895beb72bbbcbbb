"""The sealer killed at every point that matters: whoever comes next finishes the work, exactly once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.schema.events import Note
from trackway.store.sealer import FAILPOINTS

EVENTS = 1200

_RECORD = """
import sys
from trackway.recording.recorder import Recorder
from trackway.store import record
from trackway.testing.dying import die, die_at
home, journal, failpoint, nth, poison = sys.argv[1:6]
recorder = Recorder(home, journal=journal)
recorder._wake = recorder._journal._wake = lambda: None      # no keeper: this process seals when it is told to
episode = recorder.start("doomed")
for i in range(int(sys.argv[6])):
    episode.note("k", str(i) + "x" * 400)
    if poison == "yes" and i == 700:
        body = episode._core.raw + b"\\x01"
        recorder._journal._segment.put(record.meta_of(record.EVENT, 0, 1), body)
episode.end("success")
if failpoint == "none":
    die()
recorder._sealer.failpoint = die_at(failpoint, nth=int(nth))
recorder.close()
"""


_ADOPT = """
import sys
from trackway.recording.recorder import Recorder
from trackway.testing.dying import die_at
recorder = Recorder(sys.argv[1], journal=sys.argv[2])
recorder._sealer.failpoint = die_at(sys.argv[3], nth=int(sys.argv[4]))
recorder._sealer.adopt()
"""


def start(program: str, *args: object) -> int:
    """Run a program to its end, which is usually sudden."""
    return subprocess.run([sys.executable, "-c", program, *map(str, args)], check=False).returncode


def notes(home: Path) -> list[int]:
    """The numbers of the notes that can be read, in order."""
    store = open_store(home=home)
    [summary] = store.episodes()
    return [int(each.text.split("x")[0]) for each in store.events(summary.id) if isinstance(each, Note)]


@pytest.mark.promise("kill -9", "at every point of the sealer, adoption included: the next one finishes, exactly once")
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("journal", ["mmap", "append"])
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_sealer_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, failpoint: str, journal: str, nth: int
) -> None:
    """Died at a failpoint, the first or the second time: readable at once, complete after the next one."""
    poison = "yes" if failpoint.startswith("quarantine") else "no"
    if failpoint.startswith("adopt"):
        assert start(_RECORD, tmp_path, journal, "none", 1, poison, EVENTS) == -signal.SIGKILL
        died = start(_ADOPT, tmp_path, journal, failpoint, nth)
    else:
        died = start(_RECORD, tmp_path, journal, failpoint, nth, poison, EVENTS)
    if nth == 1 and not (failpoint == "seal:unlinked" and journal == "append"):
        assert died == -signal.SIGKILL, "the failpoint was not reached"

    assert notes(tmp_path) == list(range(EVENTS))
    with Recorder(tmp_path) as recorder:
        recorder.flush()

    assert notes(tmp_path) == list(range(EVENTS))
    assert not list((tmp_path / "journals").iterdir())
    quarantined = list((tmp_path / "quarantine").glob("*.json")) if poison == "yes" else []
    assert len(quarantined) == (poison == "yes")
