"""Importing beside others: how fast they are on the same files, and what is left of a session in what they make."""

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.converters import CONVERTERS
from benchmarks.importing_measured import MB, keeping, parsing
from benchmarks.measure import Options, apart, short
from benchmarks.peers import environments
from benchmarks.report import Beside, Row, Table, Target


class Peer:
    """Another program in its own environment; ``left_out`` says why it is not there."""

    def __init__(self, name: str, options: Options) -> None:
        self.name, self.left_out, self.version = name, "", ""
        self._python = ""
        if options.quick:  # nothing is installed for a quick look
            self.left_out = "not asked with --quick"
            return
        converter = CONVERTERS[name]
        try:
            self._python = environments.installed(converter.folder, converter.needs)
        except environments.NotInstalled as error:
            self.left_out = str(error)

    def reads(self, source: str) -> bool:
        """Whether it can be asked for files of that format."""
        return not self.left_out and source in CONVERTERS[self.name].formats

    def told(self, source: str, *paths: Path, look: str = "-") -> dict[str, Any]:
        """What it says of files; the first is for warming up."""
        command = [self._python, "-m", "benchmarks.converters", self.name, source, look, *map(str, paths)]
        done = subprocess.run(command, env=environments.apart(), capture_output=True, text=True, check=False)
        if done.returncode:
            self.left_out = (done.stderr.strip().splitlines() or ["failed"])[-1]
            return {}
        found: dict[str, Any] = json.loads(done.stdout)
        self.version = found["version"]
        return found


def beside(what: str, source: str, paths: list[Path], peers: list[Peer], rounds: int) -> Table:
    """The same files, one program after the other, in another order in every round; the first is for warming up."""
    size = sum(each.stat().st_size for each in paths[1:])
    ours: list[float] = []
    theirs: dict[str, list[dict[str, Any]]] = {each.name: [] for each in peers if each.reads(source)}
    for number in range(rounds):
        turns = [None, *(each for each in peers if each.reads(source))]
        for peer in turns[number % len(turns) :] + turns[: number % len(turns)]:
            if peer is None:
                ours.append(apart(parsing, *paths[1:]).rate)
            elif told := peer.told(source, *paths):
                theirs[peer.name].append(told)
    rate = median(ours)
    others = tuple(_beside(each, theirs.get(each.name, []), size, rate) for each in peers)
    title = f"{what}, {size / MB:.0f} MB: everything as events, beside messages for training"
    return Table(title, (Row("parsed", f"{short(rate)} MB/s", others, numbers={"rate": rate}),))


def _beside(peer: Peer, told: list[dict[str, Any]], size: int, rate: float) -> Beside:
    if not told:
        return Beside(peer.name, peer.left_out or "does not know it")
    theirs = median(size / MB / each["seconds"] for each in told)
    failed = f", failed on {told[0]['failed']} files" if told[0]["failed"] else ""
    return Beside(f"{peer.name} {peer.version}", f"{short(theirs)} MB/s{failed}", rate / theirs)


def kept_of(path: Path, peers: list[Peer]) -> Table:
    """How much of one session is in what each makes of it."""
    ours, tokens = apart(keeping, path)
    told = [(each, each.told("claude_code", path, path, look="look")) for each in peers if each.reads("claude_code")]
    told = [(each, said) for each, said in told if said]
    rows = [
        Row(
            name, f"{part:.0%}", tuple(Beside(each.name, f"{said['kept'][name]:.0%}") for each, said in told),
            Target("100%", part == 1), {"part": part},
        )
        for name, part in ours.items()
    ]  # fmt: skip
    spent, naive = _tokens(path)
    beside = [Beside(each.name, _count(said["tokens"])) for each, said in told]
    beside.append(Beside("summed line by line", f"{naive:,}"))
    target = Target(f"{spent:,}, once a call", tokens == spent)
    rows.append(Row("tokens", f"{tokens or 0:,}", tuple(beside), target, {"tokens": float(tokens or 0)}))
    left_out = [Row(each.name, each.left_out) for each in peers if each.left_out]
    return Table("what is kept of a Claude Code session", (*rows, *left_out))


def _tokens(path: Path) -> tuple[int, int]:
    """The tokens of a file: each call once, and as they come when every line is summed."""
    once: dict[str, int] = {}
    naive = 0
    with path.open() as file:
        for message in (json.loads(line)["message"] for line in file):
            if "usage" in message:
                once[message["id"]] = sum(message["usage"].values())
                naive += once[message["id"]]
    return sum(once.values()), naive


def _count(tokens: int | None) -> str:
    return "none told" if tokens is None else f"{tokens:,}"
