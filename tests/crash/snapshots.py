"""Simulated kills: the home as it is at a random line of the code under test, copied, and judged like a dead one's.

What kill -9 leaves is what the files hold in that moment, the page cache included, without the locks. So a copy made
between two lines of a single-threaded program is what a process killed there leaves. The more often a line was met, the
less likely it is killed at: rare ones count as much as busy ones.
"""

import random
import shutil
import sys
import traceback
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import trackway
from tests.crash.agent import Agent, Verdict, found_in, late_in, tear
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.store.verify import verify

_VERIFIED = 0.25
_PACKAGE = Path(trackway.__file__).parent
_TRACED = tuple(str(_PACKAGE / each) for each in ("store", "recording/keeping.py", "recording/recorder.py"))


def copy_home(home: Path, to: Path) -> None:
    """Every file as it is. The two names are equally long, so that what names the store names the copied one."""
    assert len(str(home)) == len(str(to))
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(home, to, copy_function=shutil.copyfile)
    for path in [*to.glob("journals/*/writer.json"), *to.glob("receipts.jsonl")]:
        path.write_bytes(path.read_bytes().replace(str(home).encode(), str(to).encode()))


class Kills:
    """Watches agents at work and kills them again and again, in copies, until there were enough."""

    def __init__(self, wanted: int, luck: random.Random, rarely: float = 0.0012) -> None:
        self.wanted = wanted
        self.done = 0
        self.verdict = Verdict()
        self.trouble: list[str] = []
        self._luck = luck
        self._rarely = rarely
        self._seen: Counter[tuple[CodeType, int]] = Counter()

    def watch(self, agent: Agent, acts: int) -> None:
        """Let an agent act, at first unseen, then traced."""
        self._agent, self._copy = agent, agent.home.with_name("k" * len(agent.home.name))
        for _ in range(self._luck.randrange(acts)):
            agent.act()
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            for _ in range(acts):
                agent.act()
                if self.done >= self.wanted:
                    return
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, event: str, arg: object) -> object:
        return self._line if frame.f_code.co_filename.startswith(_TRACED) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> object:
        if event == "line" and self.done < self.wanted:
            place = frame.f_code, frame.f_lineno
            self._seen[place] += 1
            likely = max(self._rarely, 0.5 / self._seen[place] ** 2)
            if self._luck.random() < likely and self._agent.home.exists():
                self._kill(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return self._line

    def _kill(self, where: str) -> None:
        self.done += 1
        try:
            copy_home(self._agent.home, self._copy)
            if self._luck.random() < 0.3:
                for folder in self._copy.glob("journals/*"):
                    tear(folder, self._luck)
            found = self._judge()
        except Exception:  # noqa: BLE001  told at the end: from here it would strike inside the code under test
            self.trouble.append(f"killed at {where}: {traceback.format_exc()}")
        else:
            self.verdict = self.verdict.plus(found)
            if any(found[1:]):
                self.trouble.append(f"killed at {where}: {found}")

    def _judge(self) -> Verdict:
        """Readable at once; the same after the next recorder has adopted it, which leaves no journal; sound."""
        promises = self._agent.promises
        before = found_in(open_store(home=self._copy))
        with Recorder(self._copy) as recorder:
            recorder.flush()
            after = found_in(recorder.store)
            assert after == before, "adopting changed what is read"
            if self._luck.random() < _VERIFIED:
                checked = verify(recorder.store, recorder.home)
                assert checked.is_sound, f"{checked.damage} {checked.differences}"
            assert not list(recorder.home.journals.glob("*")), "a journal is left"
        aside = late_in(self._copy)
        verdict = promises.judge(after)
        return verdict._replace(
            lost=verdict.lost + len(set(promises.late).difference(aside)),
            doubled=verdict.doubled + len(aside) - len(set(aside)),
        )
