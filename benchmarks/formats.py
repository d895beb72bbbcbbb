"""`python -m benchmarks.formats [FOLDER] [--doc PAGE]`: everything in a folder imported, counted, and compared.

Not a measure of speed: of completeness. Each file is imported, given back and compared byte for byte, counted a second
time by code that knows nothing of trackway, and imported again.
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.ingest.counting import Counts, counter_of, tallied

import trackway
from benchmarks import page
from trackway.ingest.gathering import gathered
from trackway.ingest.importing import Options, import_files
from trackway.ingest.sources import source_of
from trackway.read.order import ordered
from trackway.read.pairs import pairs
from trackway.schema.events import FileChange, ToolResult
from trackway.store.base import Query

PART = "make formats"
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data"
_COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Row(NamedTuple):
    """What one format came to."""

    files: int = 0
    bytes: int = 0
    episodes: int = 0
    events: int = 0
    calls: int = 0
    results: int = 0
    paired: int = 0
    warnings: int = 0

    def plus(self, **more: int) -> "Row":
        """So much more."""
        return self._replace(**{name: getattr(self, name) + each for name, each in more.items()})


def main() -> None:
    """Import, count, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--doc", type=Path, metavar="PAGE", help="keep what is printed in this page")
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        raise SystemExit(f"{asked.folder} is no folder: name one with agents' files")
    with tempfile.TemporaryDirectory() as home:
        os.environ["TRACKWAY_HOME"] = home
        said = "\n".join(_lines(asked.folder))
    print(said)
    if asked.doc:
        page.write(asked.doc, PART, page.printed(said))


def _lines(folder: Path) -> list[str]:
    with trackway.open_store() as live:
        done = list(import_files(live, gathered([folder])))
        again = list(import_files(live, gathered([folder]), Options(again=True)))
        rows, edits, tokens = _counted(live, done)
        same, different = _given_back(live)
    lines = [_head(), *(_line(source_of(name).title, row) for name, row in sorted(rows.items()))]
    lines.append(_line("all", Row(*map(sum, zip(*rows.values(), strict=True)))))
    states = Counter(each.state for each in done)
    lines += ["", f"files           {', '.join(f'{times} {state}' for state, times in sorted(states.items()))}"]
    lines.append(f"given back      {same} files byte for byte, {different} not")
    lines.append(f"imported again  {sum(each.events for each in again)} events were new the second time")
    lines += _independent(folder)
    exact, inferred, drift = edits
    lines.append(f"edits           {exact} with their contents rebuilt, {inferred} told without them, {drift} drifts")
    lines.append(f"tokens          {_tokens(folder, tokens)}")
    return lines


def _head() -> str:
    names = ("files", 7), ("MB", 8), ("episodes", 10), ("events", 9), ("calls", 8), ("results", 9), ("paired", 8)
    return f"{'format':<34}{''.join(f'{name:>{wide}}' for name, wide in names)}{'warnings':>10}"


def _line(name: str, row: Row) -> str:
    return (
        f"{name:<34}{row.files:>7,}{row.bytes / 1e6:>8.2f}{row.episodes:>10,}{row.events:>9,}{row.calls:>8,}"
        f"{row.results:>9,}{row.paired:>8,}{row.warnings:>10,}"
    )


def _counted(live, done):
    rows: defaultdict[str, Row] = defaultdict(Row)
    for each in done:
        if each.episodes:
            rows[each.source] = rows[each.source].plus(files=1, bytes=each.size, warnings=each.n_warnings)
    edits, tokens = [0, 0, 0], Counter()
    for summary in live.episodes(Query()):
        events = ordered(live.events(summary.id))
        for event in events:
            if isinstance(event, FileChange):
                edits[2 if event.cause == "external" else 0 if event.exact else 1] += 1
        found = pairs(events)
        rows[summary.source] = rows[summary.source].plus(
            episodes=1, events=len(events), calls=len(found), paired=sum(each.result is not None for each in found),
            results=sum(isinstance(each, ToolResult) for each in events),
        )  # fmt: skip
        if summary.source == "claude_code":
            spent = trackway.usage(events)
            for name in ("input", "cache_read", "cache_write", "output"):
                tokens[name] += getattr(spent, name) or 0
    return dict(rows), edits, tokens


def _given_back(live) -> tuple[int, int]:
    met, differs = set(), 0
    for summary in live.episodes(Query()):
        for file in live.originals(summary.id):
            if file.hash not in met:
                met.add(file.hash)
                differs += b"".join(live.original(file.hash)) != Path(file.name).read_bytes()
    return len(met) - differs, differs


def _independent(folder: Path) -> list[str]:
    """The same files counted by other code; see tests/ingest/test_counts.py for each."""
    sums, files = Counts(0, 0, 0, 0, 0), 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and counter_of(path, folder) is not None:
            found = tallied(path, folder).counts()
            sums, files = Counts(*map(sum, zip(sums, found, strict=True))), files + 1
    said = f"{sums.calls:,} calls, {sums.results:,} results, {sums.pairs:,} pairs, {sums.turns:,} turns"
    return [f"independently   {files} files, copies each time: {said}; compared by tests/ingest/test_counts.py"]


def _tokens(folder: Path, ours: Counter) -> str:
    """Claude Code's tokens: a sum over lines, a sum over calls, and ours."""
    lines, calls = {}, {}
    for path in sorted(folder.rglob("*.jsonl")):
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            for entry in _objects(text):
                message = entry.get("message")
                if entry.get("type") == "assistant" and "sessionId" in entry and isinstance(message, dict):
                    used = message.get("usage")
                    if isinstance(used, dict) and message.get("model") != "<synthetic>" and "uuid" in entry:
                        lines[entry["sessionId"], entry["uuid"]] = used
                        calls[entry["sessionId"], message.get("id")] = used
    by_line, by_call = (
        {name: sum(each.get(name) or 0 for each in found.values()) for name in _COUNTED} for found in (lines, calls)
    )
    naive = ", ".join(f"{by_line[name] / max(1, by_call[name]):.2f}x" for name in _COUNTED[:3])
    mine = [ours[name] for name in ("input", "cache_read", "cache_write", "output")]
    verdict = "equal" if mine == list(by_call.values()) else f"NOT EQUAL to {list(by_call.values())}"
    told = " + ".join(f"{each:,}" for each in mine)
    return (
        f"Claude Code {told} (input, read from cache, written to it, output): {verdict} to the sum over calls; "
        f"summed over lines {naive} of that"
    )


def _objects(text: str):
    """The JSON objects of a line, however many."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        if isinstance(value, dict):
            yield value
        while at < len(text) and text[at].isspace():
            at += 1


if __name__ == "__main__":
    main()
