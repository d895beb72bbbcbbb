"""kill -9 between any two of SQLite's writes: what was acknowledged is there, once, and the store is sound."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.checking import Counted, check
from trackway.recording.recorder import Recorder
from trackway.store.verify import verify

WRITES = 600
"""More than the scenario has."""


@pytest.mark.promise("kill -9", "between any two writes of SQLite: nothing acknowledged is lost, nothing is twice")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)")
@pytest.mark.parametrize("journal", ["mmap", "append"])
def test_a_kill_between_two_writes_of_sqlite_loses_nothing(tmp_path: Path, journal: str, tell) -> None:
    """Killed at every single one, from the first page of a new store to the last of its checkpoint."""
    inject = f"inject=pwrite64:signal=KILL:when={WRITES}"
    strace = ["strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", inject]
    children = [sys.executable, "-m", "tests.crash.between_writes", str(tmp_path), journal, str(WRITES)]
    subprocess.run([*strace, *children], check=True, cwd=Path(__file__).parents[2])

    homes = [each / "home" for each in sorted(tmp_path.iterdir(), key=lambda each: int(each.name))]
    total = Counted()
    broken = {}
    for home in homes[:-1]:
        before = check(home)
        with Recorder(home) as recorder:
            recorder.flush()
            assert verify(recorder.store, recorder.home).is_sound
        assert not any((home / "journals").iterdir())
        worse = check(home) if before.is_kept else before
        total = total.plus(worse)
        broken |= {} if worse.is_kept else {str(home): worse}
    tell(kills=len(homes) - 1, **total._asdict())
    assert len(homes) > 20
    assert not broken
