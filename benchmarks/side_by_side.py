"""`python -m benchmarks.side_by_side`: trackway beside other recorders, each in its own process and environment.

Same steps for all, read back and compared in another process. This machine's speed drifts by a factor of two within
minutes, so trackway is measured again right beside every peer in every round: a ratio compares two neighbours, and the
order changes from round to round. A peer that cannot be installed or fails says so in the table; the others go on.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import compared, kill, machine, page, peers, record
from benchmarks.measure import Options, compiled, scratch, size_of
from benchmarks.peers import environments
from benchmarks.workload import EPISODE

NAMES = [each for each in peers.NAMES if each not in (peers.OURS, "SQLite queue")]
PART = "make bench-peers"
_PACE = 40  # steps a second


class Failed(Exception):
    """A process of ``name`` did not do what it was started for; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


class Sizes(NamedTuple):
    """How much is measured."""

    rounds: int
    episodes: int
    history: int
    killed: int
    paced: int

    @classmethod
    def of(cls, options: Options) -> "Sizes":
        """The full measure, or a look."""
        return cls(1, 4, 2, 120, 20) if options.quick else cls(3, 40, 8, 1025, 110)


# --- one peer ---------------------------------------------------------------------------------------------------------


class Contender:
    """A recorder that can be started: its interpreter, its variables, what stands beside it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = peers.load(name) if not peers.NAMES[name].is_ours else None
        self._python = environments.python(name)
        self._environ = environments.environ(name)

    def measured(self, episodes: int, *, history: bool = False) -> dict[str, Any]:
        """One recording: speed, waiting, weight, and how much of it is there afterwards."""
        with scratch() as folder:
            with self._staged(folder) as environ:
                found = self._told("record", folder, episodes, environ, history="history" if history else "")
            found["bytes"] = getattr(self._module, "weigh", size_of)(folder)
            return found | self._told("read", folder, episodes, environ)

    def killed(self, after: int, rest: float = 0.0) -> tuple[int, int]:
        """Steps lost by a kill, and steps that had been acknowledged."""
        episodes = kill.episodes_for(after)
        with scratch() as folder:
            with self._staged(folder) as environ, tempfile.TemporaryFile() as said:
                command = [self._python, *kill.process(self.name, folder, episodes, rest)]
                try:
                    acked = kill.acknowledged(command, after, env=environ, stderr=said)
                except ValueError as error:
                    said.seek(0)
                    raise Failed(self.name, _last_line(said.read().decode()) or str(error)) from None
            return max(0, acked - self._told("read", folder, episodes, environ)["kept"]), acked

    @contextlib.contextmanager
    def _staged(self, folder: Path) -> Iterator[dict[str, str]]:
        stage = getattr(self._module, "stage", None)
        with stage(folder) if stage else contextlib.nullcontext({}) as more:
            yield {**self._environ, **more}

    def _told(
        self, what: str, folder: Path, episodes: int, environ: dict[str, str], *, history: str = ""
    ) -> dict[str, Any]:
        command = [self._python, "-m", "benchmarks.peers.alone", what, self.name, str(folder), str(episodes), history]
        try:
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=kill.LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise Failed(self.name, f"took more than {kill.LIMIT_S} s") from None
        if done.returncode:
            raise Failed(self.name, _last_line(done.stderr) or f"exit {done.returncode}")
        return json.loads(done.stdout)


def _last_line(said: str) -> str:
    return next((each.strip() for each in reversed(said.splitlines()) if each.strip()), "")


# --- all of them ------------------------------------------------------------------------------------------------------


class Session:
    """One comparison under way: who takes part, and what was found so far, plain enough for JSON."""

    def __init__(self, names: Sequence[str], options: Options) -> None:
        self.started = time.perf_counter()
        self.options, self.sizes = options, Sizes.of(options)
        self.found: dict[str, dict[str, Any]] = {
            each: {"rounds": [], "killed": [], "paced": []} for each in (peers.OURS, *names)
        }
        self._there = {name: there for name in self.found if (there := self._contender(name))}

    def _contender(self, name: str) -> Contender | None:
        self.say(f"{name}: getting ready")
        with self._left_out(name):
            return Contender(name)
        return None

    @contextlib.contextmanager
    def _left_out(self, name: str) -> Iterator[None]:
        """Whoever fails is out from there on, with the reason, and what was found before is kept.

        All but trackway: without it there is nothing to compare.
        """
        try:
            yield
        except (Failed, environments.NotInstalled) as error:
            if peers.OURS in (name, getattr(error, "name", name)):
                raise
            self.found[name]["left_out"] = str(error)
            self.say(f"{name}: left out: {error}")

    def say(self, text: str) -> None:
        """Progress."""
        print(f"{time.perf_counter() - self.started:5.0f} s  {text}", file=sys.stderr, flush=True)

    def _taking_part(self) -> Iterator[tuple[str, Contender]]:
        return ((name, each) for name, each in self._there.items() if "left_out" not in self.found[name])

    def measure(self) -> None:
        """Everything: what needs rounds in rounds, then what does not depend on the minute."""
        for number in range(self.sizes.rounds):
            self._round(number)
        for name, each in self._taking_part():
            with self._left_out(name):
                self.found[name]["history"] = each.measured(self.sizes.history, history=True)
                self.found[name]["paced"].append(each.killed(self.sizes.paced, 1 / _PACE))
                lost, acked = self.found[name]["paced"][-1]
                self.say(f"{name}: history; paced, lost {lost} of {acked}")

    def _round(self, number: int) -> None:
        """Each peer and trackway beside it, in another order than in the round before; the slow ones once."""
        names = [name for name, _ in self._taking_part() if not (number and peers.NAMES[name].slow)]
        turn = number * len(names) // self.sizes.rounds
        for name in names[turn:] + names[:turn]:
            with self._left_out(name):
                if name != peers.OURS:
                    self._pair(name, ours_first=bool(number % 2))
                self.found[name]["killed"].append(self._there[name].killed(self.sizes.killed))

    def _pair(self, name: str, *, ours_first: bool) -> None:
        pair: dict[str, Any] = {}
        for each in (peers.OURS, name) if ours_first else (name, peers.OURS):
            pair["ours" if each == peers.OURS else "theirs"] = self._there[each].measured(self.sizes.episodes)
        self.found[name]["rounds"].append(pair)
        self.found[peers.OURS]["rounds"].append({"theirs": pair["ours"], "ours": pair["ours"]})
        rates = [pair[each]["rate"] for each in ("theirs", "ours")]
        self.say(f"{name}: {rates[0]:,.0f} steps/s; trackway beside it {rates[1]:,.0f}")

    def results(self) -> dict[str, Any]:
        """What `compared` tells, and what `--json` keeps."""
        self.say("events, hot and beside a busy thread")
        events = [record.hot(self.options, ("trackway", "os.write"))]
        events.append(record.busy(self.options, ("trackway", "os.write, synced")))
        return {
            "machine": machine.describe(),
            "minutes": (time.perf_counter() - self.started) / 60,
            "quick": self.options.quick,
            "sizes": {**self.sizes._asdict(), "episode": EPISODE, "pace": _PACE},
            "peers": self.found,
            "events": [row.plain() for table in events for row in table.rows],
        }


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps, one round: does it work, not how fast is it")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"of {'; '.join(NAMES)}; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was measured")
    parser.add_argument("--doc", type=Path, metavar="PAGE", help="keep the tables in this page")
    asked = parser.parse_args()
    known = {each.lower(): each for each in NAMES}
    if unknown := [each for each in asked.only or () if each.lower() not in known]:
        parser.error(f"no peer {unknown[0]!r}: one of {'; '.join(NAMES)}")
    with compiled():
        session = Session([known[each.lower()] for each in asked.only or NAMES], Options(quick=asked.quick))
        session.measure()
        results = session.results()
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    text = compared.text(results)
    print(text)
    if asked.doc:
        page.write(asked.doc, PART, text)


if __name__ == "__main__":
    main()
