"""10,000 files made wrong: only refusals are raised, nothing hangs, no result finds another's call, memory stays.

``MUTATED=100000`` makes it more. The same number gives the same files.
"""

import contextlib
import os
import random
import re
import resource
import tracemalloc

import pytest

from tests.ingest import samples, samples_scored
from tests.ingest.corpus import DATA, files
from tests.ingest.counting import counter_of
from tests.ingest.mutations import GENTLE, HARSH, mutated
from tests.ingest.samples import SAMPLES
from tests.ingest.writing import lines
from trackway.errors import FileRefused
from trackway.ingest.original import Original
from trackway.ingest.parse import Found, parsed
from trackway.ingest.source import Trouble
from trackway.ingest.sources import detect
from trackway.read.pairs import pairs
from trackway.schema.codec import decode

COUNT = int(os.environ.get("MUTATED", "10000"))
SHARDS = 20
OTHER_NAMES = {"codex_legacy", "full_trace", "gemini_json", "gemini_jsonl", "inspect_json", "openhands_rows"}
_MEASURED = 50  # one file in so many is watched allocation by allocation, which is slow
_LEAST, _TIMES = 48 << 20, 60  # bytes that may be held at once: so many, and so many for each byte of the file
_GROWTH = 400 << 10  # KB by which the process may grow over a shard


def written(folder, name, sample):
    """The files of a sample below a folder of its own; gives the first."""
    for path, body in sample.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_bytes(body)
    return folder / name / next(iter(sample))


def source_of(path):
    """Whose a file is."""
    found = detect(Original(path).head())
    return found[0].source if found else None


def read(path, usual):
    """The events of a file by session, as each source that takes it reads it, and as the usual one does."""
    original = Original(path)
    sources = {each.source.name: each.source for each in detect(original.head())}
    if usual is not None:
        sources[usual.name] = usual
    for source in sources.values():
        sessions = {}
        with contextlib.suppress(FileRefused):
            for each in parsed(source, Original(path)):
                if isinstance(each, Found):
                    sessions.setdefault(each.session, []).extend(decode(one) for one in each.events)
        yield from sessions.values()


def check_pairs(events):
    """Numbers are dense; a result is paired with an earlier call of its own id and agent, or with none."""
    assert [each.n for each in events] == list(range(len(events)))
    for call, result in pairs(events):
        if result is not None:
            assert (call.call_id, call.agent) == (result.call_id, result.agent)
            assert call.n < result.n


class Watched:
    """What is held at once while a file is read, checked at the end."""

    def __init__(self, path, *, closely):
        self.path, self.closely = path, closely

    def __enter__(self):
        if self.closely:
            tracemalloc.start()

    def __exit__(self, *_):
        if self.closely:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < _LEAST + _TIMES * self.path.stat().st_size


def made_wrong(rng, folder, samples, name):
    """One file of a sample, most often the first, made wrong in one way or three; gives it, and what it was."""
    first, *others = samples[name]
    chosen = rng.choice(others) if others and rng.random() < 0.3 else first
    body, other = samples[name][chosen], next(iter(samples[rng.choice(sorted(samples))].values()))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        body = mutated(rng, body, other, (*GENTLE, *HARSH))
    (folder / name / chosen).write_bytes(body)
    return folder / name / chosen, samples[name][chosen]


def mutate_all(folder, samples, rng, count):
    """That many files, made wrong and read."""
    names = sorted(samples)
    paths = {name: written(folder, name, samples[name]) for name in names}
    usual = {name: source_of(path) for name, path in paths.items()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        name = rng.choice(names)
        changed, whole = made_wrong(rng, folder, samples, name)
        with Watched(changed, closely=i % _MEASURED == 0):
            for events in read(paths[name], usual[name]):
                check_pairs(events)
        changed.write_bytes(whole)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_known(tmp_path, name):
    """Each sample is taken for what it is, and read without a word of trouble."""
    path = written(tmp_path, name, SAMPLES[name])
    source = source_of(path)
    assert source is not None
    assert name.startswith(source.name) or name in OTHER_NAMES
    if name != "pack":  # which is unpacked, not read
        assert not [each for each in parsed(source, Original(path)) if isinstance(each, Trouble)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_samples(tmp_path, shard):
    """A file of any format, made wrong in one way or three: read as far as it goes, or refused."""
    mutate_all(tmp_path, SAMPLES, random.Random(f"samples {shard}"), COUNT * 9 // 10 // SHARDS)


def slices():
    """The beginnings of real files: small ones whole, of others as many lines as fit."""
    found = {}
    for path in files("**/*"):
        if counter_of(path, DATA):
            body = path.read_bytes()
            if len(body) > 30_000 and b"\n" in body[:30_000] and path.suffix == ".jsonl":
                body = body[: body.rindex(b"\n", 0, 30_000) + 1]
            if len(body) <= 30_000:
                found[path.relative_to(DATA).as_posix().replace("/", "-")] = {path.name: body}
    return found


@pytest.mark.corpus
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shard", range(4))
def test_mutated_real_files(tmp_path, shard):
    """So are real ones."""
    mutate_all(tmp_path, slices(), random.Random(f"corpus {shard}"), COUNT // 10 // 4)


# --- pairing, where it is known what belongs together -----------------------------------------------------------------

MARKED = {
    "claude_code": samples.claude_pair,
    "codex_legacy": samples.codex_pair,
    "pi": samples.pi_pair,
    "openhands_v1": samples_scored.openhands_pair,
}
"""Formats of lines whose results name their calls, by what makes a call and its result, both with the same mark."""


def mark_of(text):
    """The number of a mark in a text; None where it has none."""
    found = re.search(rb"mark-(\d+)-", text)
    return found and found[1]


@pytest.mark.parametrize("name", MARKED)
def test_results_keep_to_their_calls(tmp_path, name):
    """Lines lost, repeated, swapped or glued together: what is paired still belongs together."""
    rng = random.Random(name)
    body = next(iter(SAMPLES[name].values()))
    usual = source_of(written(tmp_path, "whole", {"a.jsonl": body}))
    if usual is None:
        pytest.skip("nobody takes it for its own")
    for i in range(max(COUNT // 100, 10)):
        calls = [lines(*MARKED[name](each)) for each in range(12)]
        mixed = b"".join(sorted(b"".join(calls).splitlines(keepends=True), key=lambda _: rng.random()))
        path = written(tmp_path, f"{i}", {"a.jsonl": mutated(rng, body + b"".join(calls) + mixed, b"", GENTLE)})
        paired = [each for events in read(path, usual) for each in pairs(events) if each.result is not None]
        marks = [(mark_of(call.args), mark_of(result.content.encode())) for call, result in paired]
        assert all(a == b for a, b in marks)
