"""Importing: megabytes a second on one core, format by format, beside others that read the same files.

A second is one of a core's work, as the kernel counts it: others on the machine do not make it longer. Beside every
figure the same bytes go through ``json.loads``, which is the least that reading them takes in Python.
`claude-converter` and `teich` make messages for training of the same sessions and are installed apart; a ratio compares
two neighbours in the same minute, and the order changes from round to round. What they keep of a file is looked for in
what they make, mark by mark.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks import memory, sessions
from benchmarks.converters import CONVERTERS
from benchmarks.importing_beside import Peer, beside, kept_of
from benchmarks.importing_measured import MB, loading, parsing, storing, storing_all
from benchmarks.measure import Options, apart, scratch, short
from benchmarks.report import Beside, Row, Table, Target

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data"
_PEERS = ("claude_code", "codex", "pi")
_MORE = 32  # MB that a file twenty times as large may take more: what each of its entries is known by


def run(options: Options) -> Iterator[Table]:
    """Speed by format, beside others, what is kept, memory; then the real files, where they are there."""
    peers = [Peer(name, options) for name in CONVERTERS]
    real = _found() if CORPUS.is_dir() and not options.quick else {}
    with scratch() as folder:
        yield _speed(folder, options)
        warm = {source: sessions.write(folder, source, 1 << 16) for source in _PEERS}
        for source in _PEERS if not options.quick else ():
            made = sessions.write(folder, source, 50 * MB)
            yield beside(source, source, [warm[source], made], peers, 3)
            if source in real:
                yield beside(f"real {source}", source, [warm[source], *real[source]], peers, 3)
        yield _cores(folder, options)
        yield kept_of(sessions.write(folder, "claude_code", 1 << 18), peers)
        yield _memory(folder, peers, options)
    if real:
        yield _real(real)


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
    return Table(f"import, one core, files of {_size(options, 20) / MB:.0f} MB", tuple(rows))


def _size(options: Options, megabytes: int) -> int:
    """How large a file is; a quick look takes a twentieth."""
    return megabytes * options.size(MB, MB // 20)


def _cores(folder: Path, options: Options) -> Table:
    """A folder of sessions, read by one process and by as many as there are cores."""
    inside = folder / "many"
    inside.mkdir()
    for i in range(8):
        sessions.write(inside, "claude_code", _size(options, 8), f"0b0a7000-0000-4000-8000-{i:012}")
    rounds = [(apart(storing_all, inside, 0), apart(storing_all, inside, 1)) for _ in range(options.size(3, 1))]
    every, one = (median(each[i] for each in rounds) for i in (0, 1))
    beside_it = (Beside("one reader", f"{short(one)} MB/s", every / one),)
    row = Row("stored", f"{short(every)} MB/s", beside_it, numbers={"every": every, "one": one})
    return Table("a folder of 8 Claude Code sessions, by the clock, every core", (row,))


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
        at = [peer.told("claude_code", small, each).get("memory", float("nan")) for each in (small, large)]
        beside.append(Beside(peer.name, _grown(*at)))
    rows[0] = rows[0]._replace(beside=tuple(beside))
    sizes = " → ".join(f"{each.stat().st_size / MB:.0f}" for each in (small, large))
    return Table(f"memory, {sizes} MB of Claude Code", tuple(rows))


def _grown(small: float, large: float) -> str:
    return f"{memory.told(small)} → {memory.told(large)}"


def _found() -> dict[str, list[Path]]:
    """The real files by their format."""
    from trackway.ingest.original import Original
    from trackway.ingest.sources import detect

    by_source: dict[str, list[Path]] = {}
    for path in sorted(each for each in CORPUS.rglob("*") if each.is_file()):
        found = detect(Original(path).head())
        if found and not found[0].sign.is_part and found[0].source.name != "pack":
            by_source.setdefault(found[0].source.name, []).append(path)
    return by_source


def _real(found: dict[str, list[Path]]) -> Table:
    """The real files, format by format."""
    rows = []
    for name, paths in sorted(found.items()):
        size = sum(each.stat().st_size for each in paths) / MB
        if size > 0.2:
            rate = median(apart(parsing, *paths).rate for _ in range(3))
            rows.append(Row(name, f"{short(rate)} MB/s of {size:.1f} MB, {len(paths)} files", numbers={"rate": rate}))
    return Table("real files, one core", tuple(rows))
