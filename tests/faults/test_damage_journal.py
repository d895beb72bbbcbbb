"""Bytes of a journal that are not what was written: what they held is put aside, everything else is kept."""

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import trackway
from tests.faults.damaging import copied, flip, used
from trackway.recording.recorder import Recorder
from trackway.schema.events import Note, ToolResult
from trackway.store.home import Home
from trackway.store.memory import MemoryStore
from trackway.store.record import EPISODE, RECORD_HEADER, SEGMENT_HEADER
from trackway.store.sealer import Sealed, Sealer
from trackway.store.sqlite import SqliteStore

_DIES = """
import os, signal, sys, trackway
home, kind, count, size = sys.argv[1:5]
recorder = trackway.Recorder(home, journal=kind)
recorder._wake = recorder._journal._wake = lambda: None      # no keeper: all of it stays in the journal
episode = recorder.start("doomed")
for i in range(int(count)):
    episode.note(str(i), "x" * int(size))
    if len(sys.argv) > 5:
        episode.tool_result("c", str(i) * int(sys.argv[5]))
os.kill(os.getpid(), signal.SIGKILL)
"""
KINDS = pytest.mark.parametrize("kind", ["mmap", "append"])


def dead(home: Path, kind: str, count: int, size: int = 1, payload: int = 0) -> Path:
    """The one segment that a killed process left."""
    command = [
        sys.executable,
        "-c",
        _DIES,
        str(home),
        kind,
        str(count),
        str(size),
        *([str(payload)] if payload else []),
    ]
    assert subprocess.run(command, check=False).returncode == -9
    return max(home.glob("journals/*/*.seg"))


def numbers(home: Path) -> list[int]:
    """Which notes can be read, in order."""
    with trackway.open_store(home=home) as store:
        found = [each for summary in store.episodes() for each in store.events(summary.id)]
    return [int(each.topic) for each in found if isinstance(each, Note)]


def adopt(home: Path) -> Sealed:
    """Seal what is there."""
    place = Home(home)
    store = SqliteStore(place.store)
    try:
        return Sealer(place, store).adopt()
    finally:
        store.close()


def adopted_in_memory(home: Path) -> tuple[Sealed, list[int]]:
    """The same into a store without a file: what was done, and which notes it has."""
    place, store = Home(home), MemoryStore()
    store.key = SqliteStore(place.store).key
    done = Sealer(place, store).adopt()
    found = [each for summary in store.episodes() for each in store.events(summary.id)]
    return done, [int(each.topic) for each in found if isinstance(each, Note)]


def starts(segment: bytes) -> list[int]:
    """Where each record begins, and where the last one ends."""
    found = [SEGMENT_HEADER]
    while length := int.from_bytes(segment[found[-1] : found[-1] + 4], "little"):
        found.append((found[-1] + RECORD_HEADER + length + 7) & ~7)
    return found


class Aside(NamedTuple):
    """Something in quarantine: where in a journal it was, its bytes, and whether it was a record still."""

    segment: int
    start: int
    body: bytes
    is_event: bool

    def holds(self, segment: int, at: int) -> bool:
        """Whether that byte of the journal is in it, or was a zero at its end."""
        return segment == self.segment and self.start <= at <= self.start + len(self.body)


def put_aside(home: Path, journal: dict[int, bytes]) -> list[Aside]:
    """What quarantine holds, each with its reason beside it, and byte for byte what the journal held."""
    folder = home / "quarantine"
    found = []
    for about in map(json.loads, [each.read_bytes() for each in sorted(folder.glob("*.json"))]):
        assert about["reason"]
        found.append(Aside(about["segment"], about["offset"], b"", "episode" in about))
    bodies = [each.read_bytes() for each in sorted(folder.glob("*.bin"))]
    found = [each._replace(body=body) for each, body in zip(found, bodies, strict=True)]
    for each in found:
        begin = each.start + (RECORD_HEADER + EPISODE if each.is_event else 0)
        assert each.body
        assert each.body == journal[each.segment][begin : begin + len(each.body)]
    return found


def segments_of(home: Path) -> dict[int, bytes]:
    """The files of the one journal."""
    return {int(each.stem): each.read_bytes() for each in home.glob("journals/*/*.seg")}


@pytest.mark.promise("bit flip", "each byte of a journal: the record hit is put aside, all others are read and sealed")
@KINDS
def test_every_byte_of_a_journal(fast: Path, kind: str, tell) -> None:
    """One bit of each byte in turn: never a wrong event, never another one lost, and no byte is thrown away."""
    notes = 5
    original = dead(fast / "home", kind, notes)
    whole = original.read_bytes()
    place, end = original.relative_to(fast / "home"), used(whole)
    begin = starts(whole)
    luck = random.Random(kind)
    hit = unharmed = others_lost = 0
    for at in range(end):
        home = copied(fast / "home", fast / "copy")
        flip(home / place, at, luck.randrange(8))
        record = next((i for i, start in enumerate(begin[1:]) if SEGMENT_HEADER <= at < start), None)
        expected = set(range(notes)) - ({record - 1} if record else set())
        before, damaged = numbers(home), segments_of(home)
        done, after = adopted_in_memory(home)
        for found in (before, after):
            assert found == sorted(set(found) & set(range(notes))), f"byte {at}"
            others_lost += len(expected.difference(found))
        assert before == after
        lost = len(after) < notes or (record == 0 and done.events < notes + 1)
        aside = put_aside(home, damaged)
        assert len(aside) == done.quarantined == lost, f"byte {at}: gone, and not put aside"
        if lost:
            whole_record = damaged[1][begin[record] : begin[record + 1]].rstrip(b"\0")
            assert (aside[0].start, aside[0].body) == (begin[record], whole_record), f"byte {at}"
        hit, unharmed = hit + lost, unharmed + (not lost)
    tell(flips=end, records_put_aside=hit, unharmed=unharmed, others_lost=others_lost)
    assert hit
    assert others_lost == 0


@pytest.mark.promise("bit flip", "many in a large journal: at most the records hit are put aside")
@KINDS
def test_random_flips_in_a_large_journal(fast: Path, kind: str, tell) -> None:
    """Two hundred bits over megabytes of segments: as many records go at most, all others come."""
    notes, flips = 4000, 200
    dead(fast, kind, notes, 500)
    luck = random.Random(kind)
    ends = {each: used(each.read_bytes()) for each in fast.glob("journals/*/*.seg")}
    records = [(number, start) for number, body in sorted(segments_of(fast).items()) for start in starts(body)[:-1]]
    for _ in range(flips):
        segment = luck.choice(sorted(ends))
        flip(segment, luck.randrange(ends[segment]), luck.randrange(8))
    before, damaged = numbers(fast), segments_of(fast)
    done = adopt(fast)
    after = numbers(fast)
    aside = put_aside(fast, damaged)

    assert before == after == sorted(after)
    assert notes - flips <= len(after)
    assert len(set(after)) == len(after)
    assert not list((fast / "journals").iterdir())
    assert notes + 1 - done.events <= flips
    assert 0 < done.quarantined <= flips
    assert len(aside) == done.quarantined
    assert len(records) == notes + 1
    for note in set(range(notes)).difference(after):
        assert any(each.holds(*records[note + 1]) for each in aside), f"note {note} is gone, and not put aside"
    tell(flips=flips, sealed=done.events, put_aside=done.quarantined)


@pytest.mark.promise("bit flip", "in the parts of a large payload: its event is put aside whole, never shown cut")
@KINDS
def test_a_payload_with_a_hole(fast: Path, kind: str, tell) -> None:
    """A part that does not hold takes its event with it: a result is as long as it was, or not there."""
    dead(fast / "home", kind, 3, payload=1_100_000)
    whole = {i: str(i) * 1_100_000 for i in range(3)}
    luck = random.Random(kind)
    sound = segments_of(fast / "home")
    records = [(number, *each) for number, body in sorted(sound.items()) for each in itertools.pairwise(starts(body))]
    shown = cut = parts = 0
    for number, begin, end in records:
        home = copied(fast / "home", fast / "copy")
        at = luck.randrange(begin + RECORD_HEADER, end - 8)
        flip(next(home.glob(f"journals/*/{number:06d}.seg")), at, luck.randrange(8))
        damaged = segments_of(home)
        for _again in range(2):
            with trackway.open_store(home=home) as store:
                [summary] = store.episodes()
                results = [each for each in store.events(summary.id) if isinstance(each, ToolResult)]
            shown += len(results)
            cut += sum(each.content != whole.get(int(each.content[:1] or -1)) for each in results)
            adopt(home)
        assert len(numbers(home)) >= 2
        aside = put_aside(home, damaged)
        assert any(each.holds(number, at) for each in aside)
        if end - begin > 1000:  # a part: the event and its other part are put aside with it
            blobs = [each.read_bytes() for each in home.glob("quarantine/*.blob")]
            [missing] = set(whole).difference(int(each.content[0]) for each in results)
            assert all(each in whole[missing].encode() for each in blobs)
            assert [each.is_event for each in aside].count(True) == 1
            assert sum(map(len, [*blobs, *(each.body for each in aside)])) > len(whole[missing])
            parts += 1
    assert parts == 2 * len(whole)
    tell(flips=len(records), results_shown_whole=shown, shown_cut=cut)
    assert cut == 0


@pytest.mark.promise("torn tail", "at every byte of a record: those before it are read and sealed, nothing else is")
@KINDS
@pytest.mark.parametrize("payload", [0, 1 << 20])
def test_a_torn_tail_at_every_byte(fast: Path, kind: str, payload: int, tell) -> None:
    """Cut inside the last record, of a small event and of one whose payload went before it in parts."""
    original = dead(fast / "home", kind, 3, payload=payload)
    whole = original.read_bytes()
    begin = starts(whole)
    first = begin[-3] if payload else begin[-2]  # the parts of a payload belong to the event behind them
    cuts = (
        range(first, begin[-1]) if not payload else [*range(first, first + 40, 8), *range(begin[-2] - 9, begin[-1], 3)]
    )
    for cut in cuts:
        home = copied(fast / "home", fast / "copy")
        torn = whole[:cut] + bytes(len(whole) - cut if kind == "mmap" else 0)
        (home / original.relative_to(fast / "home")).write_bytes(torn)
        for _again in range(2):
            found = numbers(home)
            assert found[:2] == [0, 1]
            assert found[2:] in ([], [2])
            with trackway.open_store(home=home) as store:
                [summary] = store.episodes()
                results = [each for each in store.events(summary.id) if isinstance(each, ToolResult)]
                assert all(len(each.content) == payload for each in results)
            done = adopt(home)
        assert not list((home / "journals").iterdir())
        assert done == Sealed()
    tell(cuts=len(cuts))


@pytest.mark.promise("torn tail", "a segment's header cut or zeroed: the records behind it are sealed all the same")
@KINDS
@pytest.mark.parametrize("damage", ["zeros", "noise", "cut"])
def test_a_torn_segment_header(fast: Path, kind: str, damage: str) -> None:
    """Without its stamp a segment is still read, in its place; a file cut inside the stamp holds nothing."""
    original = dead(fast, kind, 3000, 300)
    segments = sorted(fast.glob("journals/*/*.seg"))
    assert original == segments[-1]
    victim = segments[-1] if damage == "cut" else segments[len(segments) // 2]
    body = victim.read_bytes()
    in_it = len(starts(body)) - 1
    if damage == "cut":
        victim.write_bytes(body[:40])
    else:
        stamp = bytes(SEGMENT_HEADER) if damage == "zeros" else random.Random(1).randbytes(SEGMENT_HEADER)
        victim.write_bytes(stamp + body[SEGMENT_HEADER:])
    adopt(fast)

    assert numbers(fast) == list(range(3000 - (in_it if damage == "cut" else 0)))


@pytest.mark.promise("bit flip", "beside a living recorder: it goes on, and what was damaged is put aside")
def test_a_living_journal_is_damaged(home: Path) -> None:
    """Somebody writes into the file while it is mapped: one event goes aside, all others are sealed."""
    recorder = Recorder(home)
    recorder._wake = recorder._journal._wake = lambda: None  # no keeper: this test seals when it says so
    episode = recorder.start("damaged")
    for i in range(20):
        episode.note(str(i))
    [segment] = home.glob("journals/*/*.seg")
    flip(segment, starts(segment.read_bytes())[8] + RECORD_HEADER + 20, 3)
    for i in range(20, 40):
        episode.note(str(i))
    episode.end()
    recorder.close()

    assert numbers(home) == [i for i in range(40) if i != 7]
    assert len(list((home / "quarantine").glob("*.json"))) == 1
