"""A folder twice, a prefix and then the whole, copies, any order: of every format, the same episodes as once.

Equal means equal in everything: writers, numbers, order, times, kinds, contents, what is native, and the summaries.
"""

import copy
import json
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest

import trackway
from tests.ingest.corpus import DATA, files
from tests.ingest.samples import SAMPLES
from trackway.errors import FileRefused
from trackway.ingest.gathering import gathered
from trackway.ingest.importing import Options, import_files
from trackway.ingest.original import Original
from trackway.ingest.parse import Found, parsed
from trackway.ingest.sources import OURS, detect
from trackway.store.base import Query

LINES = [name for name, sample in SAMPLES.items() if next(iter(sample)).endswith("jsonl")]
"""Formats that grow by a line; those of documents grow by what stands in ``GROWN``."""
NOTHING = ("codex_trace", "pack")
"""Samples in which nobody says anything, or that are not whole."""


@pytest.fixture
def fast():
    """A folder in memory where there is one: thousands of small imports are no test of the disk."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(dir=shared))
    yield folder
    shutil.rmtree(folder)


class Place:
    """A folder with files, and homes that they are imported into."""

    def __init__(self, folder):
        self.folder = folder / "files"
        self._homes = folder

    def write(self, path, body):
        """A file of the folder, as it is from now on."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(body)
        return self.folder / path

    def take(self, home, *paths, **options):
        """Import them into a home, or else the folder; what was said of each."""
        with trackway.open_store(home=self._homes / home) as live:
            found = gathered([self.folder / each for each in paths] or [self.folder])
            return list(import_files(live, found, Options(workers=1, **options)))

    def held(self, home):
        """All that a home holds: each episode's summary and events, and its files by content."""
        with trackway.open_store(home=self._homes / home) as live:
            return {each.id: (each, list(live.events(each.id))) for each in live.episodes(Query())}

    def raw(self, home):
        """The contents of all files that are kept in a home."""
        with trackway.open_store(home=self._homes / home) as live:
            names = {file.hash for each in live.episodes(Query()) for file in live.originals(each.id)}
            return {b"".join(live.original(name)) for name in names}


@pytest.fixture
def place(fast):
    """A fresh one."""
    return Place(fast)


def sample_in(place, name):
    """A sample's files in the folder; gives the path of the first, and its content."""
    for path, body in SAMPLES[name].items():
        place.write(path, body)
    first = next(iter(SAMPLES[name]))
    return first, SAMPLES[name][first]


def test_every_format_has_a_sample(tmp_path):
    """A format that is added comes with one, and is tested here."""
    found = set()
    for name in SAMPLES:
        first, body = sample_in(Place(tmp_path / name), name)
        path = tmp_path / name / "files" / first
        found |= {each.source.name for each in detect(Original(path).head())[:1]}
        assert path.read_bytes() == body
    assert set(OURS) - found <= {"tau_few_shot"}


@pytest.mark.parametrize("name", SAMPLES)
def test_twice(place, name):
    """The second time nothing is added, read again or not; every file that was read comes back byte for byte."""
    sample_in(place, name)
    first = place.take("a")
    once = place.held("a")
    assert once or name in NOTHING
    again = [*place.take("a"), *place.take("a", again=True)]
    assert {each.state for each in again} <= {"unchanged", "present", "part", "unknown", "empty", "refused"}
    assert place.held("a") == once
    kept = {(place.folder / each.file).read_bytes() for each in first if each.episodes}
    assert kept <= place.raw("a") <= set(SAMPLES[name].values())


@pytest.mark.parametrize("name", SAMPLES)
def test_dry(place, name):
    """What a dry run says is what then happens."""
    sample_in(place, name)
    dry = place.take("a", dry=True)
    assert dry == place.take("a")


def says(path):
    """What the sessions of a file say in which anybody says anything, entry by entry; None where it is refused."""
    found, saying = {}, set()
    try:
        for each in parsed(detect(Original(path).head())[0].source, Original(path)):
            if isinstance(each, Found):
                entry = (each.key, tuple(one.body for one in each.events), tuple(each.contents))
                found.setdefault(each.session, []).append(entry)
                saying |= {each.session} if each.says else set()
    except FileRefused:
        return {}
    return {session: entries for session, entries in found.items() if session in saying}


@pytest.mark.parametrize("name", LINES)
def test_cut_anywhere(place, name):
    """Whatever byte a file has grown to: what it says by then is how the whole begins."""
    first, body = sample_in(place, name)
    whole = says(place.folder / first)
    cuts = random.Random(name).sample(range(1, len(body)), 60)
    for cut in cuts:
        path = place.write(first, body[:cut])
        if detect(Original(path).head()):
            for session, entries in says(path).items():
                assert entries == whole[session][: len(entries)], cut


@pytest.mark.parametrize("name", LINES)
def test_line_by_line(place, name):
    """Imported after every line, and once in the middle of it: in the end all is as if it had been read once."""
    first, body = sample_in(place, name)
    lines, grown = body.splitlines(keepends=True), b""
    for line in lines:
        place.write(first, grown + line[: len(line) // 2])
        place.take("a", first)
        grown += line
        place.write(first, grown)
        place.take("a", first)
    place.take("once", first)
    assert place.held("a") == place.held("once")
    assert place.raw("a") == place.raw("once")


def without(value, path, count):
    """A document with one of its lists cut to its first elements."""
    value = copy.deepcopy(value)
    inner = value
    for key in path:
        inner = inner[key]
    del inner[count:]
    return value


def _mini(value, count):
    """While it works, mini-swe-agent says no exit status, and counts what it costs."""
    so_far = {"exit_status": "", "submission": "", "model_stats": {"instance_cost": 0.0, "api_calls": 1}}
    about = {**value["info"], **so_far}
    return {**without(value, ["messages"], count), "info": about}


def _swe(value, count):
    """So does SWE-agent, which writes its history with each step."""
    cut = {**without(value, ["trajectory"], count), "info": {"model_stats": {"api_calls": count}}}
    return without(cut, ["history"], 3 + 2 * count)


def _atif(value, count):
    """Sub-agents come with the step that called them."""
    return {key: each for key, each in without(value, ["steps"], count).items() if key != "subagent_trajectories"}


GROWN = {
    "gemini_json": lambda value, n: {**without(value, ["messages"], n), "lastUpdated": f"2026-03-01T10:00:0{n}.000Z"},
    "hermes": lambda value, n: without(value, ["messages"], n),
    "atif": _atif,
    "mini_swe_agent": _mini,
    "mini_swe_agent_1_1": _mini,
    "swe_agent": _swe,
    "openhands_v0": lambda value, n: without(value, [], n),
    "pydantic_ai": lambda value, n: without(value, [], n),
    "tau_bench": lambda value, n: without(value, [], n),
    "sharegpt": lambda value, n: without(value, [], n),
}
"""Documents that are written anew as they grow: how one was when it had that much in it."""


@pytest.mark.parametrize("name", GROWN)
def test_a_document_grows(place, name):
    """Written anew with more in it, again and again, at the same path: the same as if it had been read once."""
    first, body = sample_in(place, name)
    beside = [each for each in SAMPLES[name] if each != first]
    for each in beside:
        (place.folder / each).unlink()
    value = json.loads(body)
    for n in range(1, 9):
        shorter = GROWN[name](value, n)
        if shorter == value:
            break
        place.write(first, json.dumps(shorter).encode())
        place.take("a", first)
    sample_in(place, name)
    place.take("a", first)
    place.take("once", first)
    assert place.held("a") == place.held("once")
    assert place.raw("a") >= place.raw("once")


@pytest.mark.corpus
@pytest.mark.timeout(120)
def test_real_files_grow(place):
    """So do real files, cut at three places of their second half: by then somebody has said what it is all about."""
    rng = random.Random("cuts")
    for i, path in enumerate(files("**/*.jsonl")):
        body = path.read_bytes()
        if body.count(b"\n") < 5 or len(body) > 3_000_000:
            continue
        name, homes = f"{i}/{path.relative_to(DATA)}", [f"{i}-grown", f"{i}-once"]
        for cut in sorted(rng.sample(range(len(body) // 2, len(body)), 3)):
            place.write(name, body[:cut])
            place.take(homes[0], name)
        place.write(name, body)
        for home in homes:
            place.take(home, name)
        assert place.held(homes[0]) == place.held(homes[1]), path
        assert place.raw(homes[0]) >= place.raw(homes[1]), path


def test_copies_without_a_name(place):
    """A document without a name is one episode wherever it lies, and however much of it; another trial is another."""
    first, body = sample_in(place, "swe_agent")
    value = json.loads(body)
    other = copy.deepcopy(value)
    other["trajectory"][1]["action"] = "rm hull.py"
    place.write("again/" + first, json.dumps(_swe(value, 1)).encode())
    place.write("trial/" + first, json.dumps(other).encode())
    together = [
        place.take("a", each)[0].state for each in ("again/" + first, first, "again/" + first, "trial/" + first)
    ]
    assert together == ["new", "grown", "unchanged", "new"]
    assert len(place.held("a")) == 2
