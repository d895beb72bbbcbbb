"""Importing: megabytes a second on one core, format by format, beside others that read the same files.

A second is one of a core's work, as the kernel counts it: others on the machine do not make it longer. Beside every
figure the same bytes go through ``json.loads``, which is the least that reading them takes in Python.
`claude-converter` and `teich` make messages for training of the same sessions and are installed apart; a ratio compares
two neighbours in the same minute, and the order changes from round to round. What they keep of a file is looked for in
what they make, mark by mark.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import memory, sessions
from benchmarks.converters import CONVERTERS, kept
from benchmarks.measure import Options, apart, one_core, scratch, settle, short
from benchmarks.peers import environments
from benchmarks.report import Beside, Row, Table, Target

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data"
_PEERS = ("claude_code", "codex", "pi")
_MORE = 32  # MB that a file twenty times as large may take more: what each of its entries is known by
_MB = 1 << 20


class Took(NamedTuple):
    """One reading of a file: its size, seconds of a core and of the clock, what more was held, and what came out."""

    size: int
    seconds: float
    waited: float
    memory: float
    events: int = 0

    @property
    def rate(self) -> float:
        """Megabytes for each second that a core worked on them."""
        return self.size / _MB / self.seconds


# --- in a process of its own ------------------------------------------------------------------------------------------


def _timed(act: Callable[[], int], size: int) -> Took:
    settle()
    one_core()
    before, started, worked = memory.reset(), time.perf_counter(), time.process_time()
    events = act()
    return Took(size, time.process_time() - worked, time.perf_counter() - started, memory.peak() - before, events)


def parsing(*paths: Path) -> Took:
    """Files → events, encoded as they are stored."""
    from trackway.ingest.original import Original
    from trackway.ingest.parse import Found, parsed
    from trackway.ingest.sources import detect

    sources = [detect(Original(each).head())[0].source for each in paths]  # before the clock: they are loaded here

    def act() -> int:
        found = (each for path, source in zip(paths, sources, strict=True) for each in parsed(source, Original(path)))
        return sum(len(each.events) for each in found if isinstance(each, Found))

    return _timed(act, sum(each.stat().st_size for each in paths))


def storing(path: Path) -> Took:
    """A file → a store: its bytes kept, its events sealed."""
    import trackway
    from trackway.ingest.gathering import gathered
    from trackway.ingest.importing import Options as How
    from trackway.ingest.importing import import_files

    def act(home: Path, what: Path) -> int:
        with trackway.open_store(home=home) as live:
            done = list(import_files(live, gathered([what]), How(workers=1)))
        if [each.state for each in done] != ["new"]:
            raise ValueError(f"{what.name}: {done}")
        return sum(each.events for each in done)

    with scratch() as warm, scratch() as home:
        act(warm / "home", sessions.write(warm, path.name.partition("-")[0], 1 << 14))  # everything is loaded
        return _timed(lambda: act(home, path), path.stat().st_size)


def loading(path: Path) -> Took:
    """The same bytes through ``json.loads``, a line at a time where they are lines."""

    def act() -> int:
        with path.open("rb") as file:
            if path.suffix == ".jsonl":
                return sum(bool(json.loads(line)) for line in file)
            return bool(json.load(file))

    return _timed(act, path.stat().st_size)


def keeping(path: Path) -> tuple[dict[str, float], int | None]:
    """What is in our events of what is in a file, and the tokens they say it took."""
    from trackway.ingest.original import Original
    from trackway.ingest.parse import events_of
    from trackway.ingest.sources import detect
    from trackway.read.usage import usage
    from trackway.schema.exact_json import line_of

    found = events_of(detect(Original(path).head())[0].source, Original(path))
    events = [each for some in found.values() for each in some]
    spent = usage(events)
    told = [each for each in (spent.input, spent.cache_read, spent.cache_write, spent.output) if each is not None]
    return kept(path, b"\n".join(line_of(each) for each in events).decode()), sum(told) if told else None


# --- beside it --------------------------------------------------------------------------------------------------------


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

    def told(self, path: Path, source: str, *look: str) -> dict[str, Any]:
        """What it says of a file."""
        command = [self._python, "-m", "benchmarks.converters", self.name, str(path), source, *look]
        done = subprocess.run(command, env=environments.apart(), capture_output=True, text=True, check=False)
        if done.returncode:
            self.left_out = (done.stderr.strip().splitlines() or ["failed"])[-1]
            return {}
        found: dict[str, Any] = json.loads(done.stdout)
        self.version = found["version"]
        return found


# --- tables -----------------------------------------------------------------------------------------------------------


def run(options: Options) -> Iterator[Table]:
    """Speed by format, beside others, what is kept, memory; then the real files, where they are there."""
    peers = [Peer(name, options) for name in CONVERTERS]
    with scratch() as folder:
        yield _speed(folder, options)
        for source in _PEERS if any(not each.left_out for each in peers) else ():
            sessions.write(folder, source, 1 << 16).rename(folder / "warm.jsonl")
            path = sessions.write(folder, source, _size(options, 50))
            yield _beside(path, source, peers, options)
        sessions.write(folder, "claude_code", 1 << 16).rename(folder / "warm.jsonl")
        yield _kept(sessions.write(folder, "claude_code", 1 << 18), peers)
        yield _memory(folder, peers, options)
    if CORPUS.is_dir() and not options.quick:
        yield _real(options)


def _speed(folder: Path, options: Options) -> Table:
    rows = []
    for name in list(sessions.SHAPES)[: options.size(99, 2)]:
        path = sessions.write(folder, name, _size(options, 20))
        rounds = [(apart(parsing, path), apart(loading, path)) for _ in range(options.size(3, 1))]
        ours, floor = (median(each[i].rate for each in rounds) for i in (0, 1))
        stored = median(apart(storing, path).rate for _ in range(options.size(3, 1)))
        events = rounds[0][0].events / rounds[0][0].seconds
        value = f"{short(ours)} MB/s parsed ({events:,.0f} events/s), {short(stored)} stored"
        beside = (Beside("json.loads", f"{short(floor)} MB/s", ours / floor),)
        rows.append(Row(name, value, beside, numbers={"parsed": ours, "stored": stored, "events": events}))
        path.unlink()
    return Table(f"import, one core, files of {_size(options, 20) / _MB:.0f} MB", tuple(rows))


def _size(options: Options, megabytes: int) -> int:
    """How large a file is; a quick look takes a twentieth."""
    return megabytes * options.size(_MB, _MB // 20)


def _beside(path: Path, source: str, peers: list[Peer], options: Options) -> Table:
    """The same file, one after the other, in another order in every round."""
    ours: list[float] = []
    theirs: dict[str, list[float]] = {each.name: [] for each in peers if each.reads(source)}
    for number in range(options.size(3, 1)):
        turns = [None, *(each for each in peers if each.reads(source))]
        for peer in turns[number % len(turns) :] + turns[: number % len(turns)]:
            if peer is None:
                ours.append(apart(parsing, path).rate)
            elif told := peer.told(path, source):
                theirs[peer.name].append(path.stat().st_size / _MB / told["seconds"])
    rate = median(ours)
    beside = tuple(
        Beside(
            f"{each.name} {each.version}", f"{short(median(theirs[each.name]))} MB/s", rate / median(theirs[each.name])
        )
        if theirs.get(each.name)
        else Beside(each.name, each.left_out or "does not know it")
        for each in peers
    )
    size = path.stat().st_size / _MB
    return Table(
        f"{source}, {size:.0f} MB: events of everything, beside messages for training",
        (Row("parsed", f"{short(rate)} MB/s", beside, numbers={"rate": rate}),),
    )


def _kept(path: Path, peers: list[Peer]) -> Table:
    """How much of one session is in what each makes of it."""
    ours, tokens = apart(keeping, path)
    told = [(each, each.told(path, "claude_code", "look")) for each in peers if each.reads("claude_code")]
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


def _memory(folder: Path, peers: list[Peer], options: Options) -> Table:
    """What is held at once, of a small file and of one twenty times as large."""
    small, large = (sessions.write(folder, "claude_code", _size(options, each)) for each in (10, options.size(200, 20)))
    rows = []
    for what, act in (("parsed", parsing), ("stored", storing)):
        at = [apart(act, each).memory for each in (small, large)]
        target = Target(f"≤ {_MORE} MB more", at[1] <= at[0] + _MORE)
        numbers = {"small": at[0], "large": at[1]}
        rows.append(Row(f"{what}, over what an idle process has", _grown(*at), (), target, numbers))
    beside = []
    for peer in (each for each in peers if each.reads("claude_code")):
        at = [peer.told(each, "claude_code").get("memory", float("nan")) for each in (small, large)]
        beside.append(Beside(peer.name, _grown(*at)))
    rows[0] = rows[0]._replace(beside=tuple(beside))
    sizes = " → ".join(f"{each.stat().st_size / _MB:.0f}" for each in (small, large))
    return Table(f"memory, {sizes} MB of Claude Code", tuple(rows))


def _grown(small: float, large: float) -> str:
    return f"{memory.told(small)} → {memory.told(large)}"


def _real(options: Options) -> Table:
    """The real files, format by format."""
    from trackway.ingest.original import Original
    from trackway.ingest.sources import detect

    by_source: dict[str, list[Path]] = {}
    for path in sorted(each for each in CORPUS.rglob("*") if each.is_file()):
        found = detect(Original(path).head())
        if found and not found[0].sign.is_part and found[0].source.name != "pack":
            by_source.setdefault(found[0].source.name, []).append(path)
    rows = []
    for name, paths in sorted(by_source.items()):
        size = sum(each.stat().st_size for each in paths) / _MB
        if size > 0.2:
            rate = median(apart(parsing, *paths).rate for _ in range(options.size(3, 1)))
            rows.append(Row(name, f"{short(rate)} MB/s of {size:.1f} MB, {len(paths)} files", numbers={"rate": rate}))
    return Table("real files, one core", tuple(rows))
