"""Searching a million events: ranked, newest first, by prefix and by pattern, and what the index costs.

The same text is put beside it into SQLite's full-text search (FTS5), ranked by its bm25. Words are drawn as they are in
real text: few are in every event, most in a handful, and every event has some that no other has. The index alone is
asked for the best hundred events, as FTS5 is. A whole answer of ours is more: is there anything new, the hits, grouped
by episode, their events read back from the store and the pieces cut out.
"""

import itertools
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import trackway
from benchmarks.measure import Options, apart, one_core, scratch, settle, short, size_of
from benchmarks.report import Beside, Row, Table, Target
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.events import Event
from trackway.search.catching_up import catch_up
from trackway.search.finding import Asked, find
from trackway.search.index import opened, place_of
from trackway.search.matching import Matching
from trackway.search.query import parse
from trackway.search.texts import text_of
from trackway.store.base import Batch
from trackway.testing.events import records

_EPISODE = 50
_VOCABULARY = 60_000
_SENTENCES = 20_000
_AT = 1_750_000_000_000_000_000
_LIMIT = 10


class Built(NamedTuple):
    """An index: events a second on one core and on all, bytes of the index and of the text; the same of FTS5."""

    one: float
    all: float
    bytes: int
    text: int
    fts_rate: float
    fts_bytes: int


class Quantiles(NamedTuple):
    """Milliseconds."""

    p50: float
    p95: float

    def __str__(self) -> str:
        return f"{short(self.p50)} / {short(self.p95)} ms"


def run(options: Options) -> Iterator[Table]:
    """Build a store, index it, ask; how fast one core indexes is measured with a fifth of it."""
    events = options.size(1_000_000, 5_000)
    asked = options.size(100, 5)
    with scratch() as folder:
        apart(fill, folder, events // 5)
        alone = apart(index, folder, True)
    with scratch() as folder:
        apart(fill, folder, events)
        built = Built(alone, apart(index, folder, False), size_of(folder / "search"), *apart(index_fts, folder))
        ours, theirs = apart(ask, folder, asked), apart(ask_fts, folder, asked // 3 + 1)
    yield _table(events, built, ours, theirs)


# --- what is searched -------------------------------------------------------------------------------------------------


def _words() -> list[str]:
    drawn = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(drawn.choices(letters, k=drawn.randint(3, 10))) for _ in range(_VOCABULARY)]


def _sentences() -> list[str]:
    """Sentences of ten words, the n-th most frequent word about 1/n as frequent as the first."""
    drawn, words = random.Random(4), _words()
    weights = list(itertools.accumulate(1 / (n + 3) for n in range(_VOCABULARY)))
    return [" ".join(drawn.choices(words, cum_weights=weights, k=10)) for _ in range(_SENTENCES)]


def episode(number: int, sentences: list[str]) -> list[Event]:
    """Steps of a call, its result and a remark: 400 characters each on average."""
    drawn = random.Random(number)
    found: list[Event] = [kinds.EpisodeStart(header=kinds.Header(task=f"task {number} {sentences[number % 99]}"))]
    for step in range(_EPISODE // 3):
        said = drawn.choices(sentences, k=18)
        name, path = f"call_{number}_{step}", f"src/part_{number % 50}/file_{step}.py"
        args = f'{{"file_path": "{path}", "command": "{said[0]} {drawn.getrandbits(48):x}"}}'.encode()
        tool = ("bash", "edit", "read")[step % 3]
        result = f"{drawn.getrandbits(48):x}\n" + "\n".join(said[1:12])
        found.append(kinds.AssistantToolCall(name=tool, args=args, call_id=name))
        found.append(kinds.ToolResult(call_id=name, content=result, is_error=step % 7 == 0))
        found.append(kinds.AssistantText(content=". ".join(said[12:])))
    found.append(kinds.EpisodeEnd(outcome="success"))
    return [_placed(event, number, n) for n, event in enumerate(found)]


def _placed(event: Event, number: int, n: int) -> Event:
    import msgspec

    return msgspec.structs.replace(event, writer=f"{number:016x}", n=n, at=_AT + number * 10**12 + n * 10**9)


def _episodes(events: int) -> Iterator[tuple[str, list[Event]]]:
    sentences, entropy = _sentences(), random.Random(5)
    count = 0
    for number in itertools.count():
        if count >= events:
            return
        found = episode(number, sentences)
        count += len(found)
        yield ids.uuid7(_AT + number * 10**12, entropy.randbytes(10)), found


def fill(folder: Path, events: int) -> None:
    """The store, and the same text in FTS5."""
    with trackway.open_store(home=folder) as live:
        batch: list[Any] = []
        for name, found in _episodes(events):
            batch += records(name, found)
            if len(batch) > 20_000:
                live.seal(Batch(batch))
                batch = []
        live.seal(Batch(batch))


def _texts(folder: Path) -> Iterator[str]:
    with trackway.open_store(home=folder) as live:
        for each in live.episodes():
            yield from map(text_of, live.events(each.id))


# --- the indexes ------------------------------------------------------------------------------------------------------


def index(folder: Path, alone: bool) -> float:
    """Ours; events a second, on one core or on all."""
    if alone:
        one_core()
    with trackway.open_store(home=folder) as live:
        started = time.perf_counter()
        done = catch_up(live)
        assert done is not None
        return done.events / (time.perf_counter() - started)


def index_fts(folder: Path) -> tuple[int, float, int]:
    """Theirs: bytes of the text, events a second, bytes of the index."""
    size = count = 0

    def rows() -> Iterator[tuple[int, str]]:
        nonlocal size, count
        for count, text in enumerate(_texts(folder), start=1):
            size += len(text.encode())
            yield count, text

    started = time.perf_counter()
    connection = _fts(folder)
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(t, content='', detail=full)")
    connection.executemany("INSERT INTO f (rowid, t) VALUES (?, ?)", rows())
    connection.commit()
    connection.close()
    return size, count / (time.perf_counter() - started), (folder / "fts.db").stat().st_size


def _fts(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "fts.db")
    connection.execute("PRAGMA journal_mode=OFF")
    return connection


# --- asking -----------------------------------------------------------------------------------------------------------


def _queries(count: int) -> dict[str, list[str]]:
    """Frequent and rare words, alone, together and as phrases."""
    words, sentences, drawn = _words(), _sentences(), random.Random(6)
    any_word = [words[int(drawn.paretovariate(0.35)) % 20_000] for _ in range(count)]
    both = [f"{a} {b}" for a, b in zip(any_word, reversed(any_word), strict=True)]
    phrases = [" ".join(sentence.split()[2:4]) for sentence in drawn.choices(sentences, k=count)]
    return {
        "ranked": [
            each for three in zip(any_word, both, (f'"{each}"' for each in phrases), strict=True) for each in three
        ],
        "prefix": [f"{words[drawn.randrange(5_000)][:4]}*" for _ in range(count // 3 + 1)],
        "suffix": [f"*{words[drawn.randrange(5_000)][-4:]}" for _ in range(count // 10 + 1)],
    }


def ask(folder: Path, count: int) -> dict[str, Quantiles]:
    """Ours: whole answers."""
    queries = _queries(count)
    with trackway.open_store(home=folder) as live:

        def answer(text: str, **how: Any) -> int:
            return len(find(live, Asked(text, limit=_LIMIT, **how), now=time.time_ns()).groups)

        index = opened(place_of(live)).searcher()

        def rank(text: str) -> int:
            return len(
                index.search(Matching(list, list).query(parse(text, now=0)), limit=_LIMIT * 10, count=False).hits
            )

        found = {name: _timed(answer, asked) for name, asked in queries.items()}
        found["index"] = _timed(rank, queries["ranked"])
        found["newest"] = _timed(lambda text: answer(text, newest=True), queries["ranked"])
        found["fields"] = _timed(lambda text: answer(f"tool:bash error:true {text}"), queries["ranked"])
        found["path"] = _timed(lambda text: answer(f"path:src/part_7/*.py {text}"), queries["ranked"][: count // 3 + 1])
        found["nothing"] = _timed(lambda _: answer("xyzzyplugh"), range(count))
    return found


def ask_fts(folder: Path, count: int) -> dict[str, Quantiles]:
    """Theirs: the numbers of the best rows."""
    queries = _queries(count)
    connection = _fts(folder)

    def answer(sql: str) -> Callable[[str], int]:
        return lambda text: len(connection.execute(sql, (re.sub(r"(\w+)\*", r'"\1" *', text),)).fetchall())

    ranked = answer(f"SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT {_LIMIT * 10}")
    newest = answer(f"SELECT rowid FROM f WHERE f MATCH ? ORDER BY rowid DESC LIMIT {_LIMIT * 10}")
    return {
        "index": _timed(ranked, queries["ranked"]),
        "prefix": _timed(newest, queries["prefix"]),
        "newest": _timed(newest, queries["ranked"]),
    }


def _timed(call: Callable[[Any], Any], items: Any) -> Quantiles:
    for each in itertools.islice(items, 5):
        call(each)
    settle()
    samples = []
    for each in items:
        started = time.perf_counter_ns()
        call(each)
        samples.append(time.perf_counter_ns() - started)
    samples.sort()
    return Quantiles(*(samples[min(len(samples) - 1, int(len(samples) * q))] / 1e6 for q in (0.5, 0.95)))


# --- telling ----------------------------------------------------------------------------------------------------------


def _table(events: int, built: Built, ours: dict[str, Quantiles], theirs: dict[str, Quantiles]) -> Table:
    def row(what: str, name: str, target: float | None = None) -> Row:
        found, other = ours[name], theirs.get(name)
        beside = (Beside("FTS5", str(other), other.p95 / found.p95),) if other else ()
        limit = None if target is None else Target(f"p95 ≤ {target:.0f} ms", found.p95 <= target)
        return Row(what, str(found), beside, limit, found._asdict())

    rows = (
        row("words and phrases ranked, by the index alone, p50 / p95", "index", 20),
        row("the same, a whole answer", "ranked", 50),
        row("the same, newest first", "newest", 50),
        row("the same, with tool:bash error:true", "fields", 50),
        row("the same, with path:src/part_7/*.py", "path"),
        row("a prefix", "prefix"),
        row("a pattern that begins with *", "suffix"),
        row("a word nobody wrote", "nothing"),
        Row(
            "indexed, on one core",
            f"{built.one:,.0f} events/s, {built.one * built.text / events / 1e6:.0f} MB/s",
            (Beside("FTS5", f"{built.fts_rate:,.0f} events/s", built.one / built.fts_rate),),
            Target("≥ 20,000 events/s", built.one >= 20_000),
            built._asdict(),
        ),
        Row("indexed, on all cores", f"{built.all:,.0f} events/s"),
        Row(
            "the index",
            f"{short(built.bytes / 1e6)} MB, {built.bytes / built.text:.0%} of the text",
            (Beside("FTS5", f"{short(built.fts_bytes / 1e6)} MB", built.fts_bytes / built.bytes),),
        ),
    )
    return Table(f"search, in {events:,} events ({built.text / events:,.0f} B of text each)", rows)
