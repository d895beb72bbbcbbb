"""A scripted agent that does everything a home knows, on one thread, and a book of what it was promised.

Every event carries a number, raised with each; it goes into the book when the recording call has returned. Recorders
have no keeper here: journals are synced, sealed and adopted when the script says so, so the order of all that happens
is the script's. A recorder that "crashes" lets go of its lock and removes nothing, which is what a dead process leaves.
"""

import os
import random
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trackway.recording.episode import Episode
from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.schema.events import EpisodeStart, Event
from trackway.store import record
from trackway.store.base import Query, Store
from trackway.store.choice import Criteria
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.prune import prune
from trackway.store.record import RECORD_HEADER, SEGMENT_HEADER

_MARK = re.compile(r"#(\d+)#")
_BIG = 1 << 20


class Verdict(NamedTuple):
    """How what is found compares with what was promised; all but the first must be zero."""

    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    misordered: int = 0
    strange: int = 0

    def plus(self, other: "Verdict") -> "Verdict":
        """Both together."""
        return Verdict(*map(sum, zip(self, other, strict=True)))


class Promises:
    """The book: numbers by episode, the one that is being recorded, and what prunes have taken."""

    def __init__(self) -> None:
        self.kept: dict[str, list[int]] = defaultdict(list)
        self.flying = 0
        self.going: set[str] = set()
        self.gone: set[str] = set()
        self.late: list[int] = []
        self._last = 0

    def next(self) -> str:
        """The mark of an event that is about to be recorded: from now on it may be there or not."""
        self._last += 1
        self.flying = self._last
        return f"#{self._last}#"

    def acknowledge(self, episode_id: str) -> None:
        """The call has returned: from now on it must be there."""
        if episode_id in self.gone:
            self.late.append(self.flying)
        else:
            self.kept[episode_id].append(self.flying)
        self.flying = 0

    def judge(self, found: dict[str, list[tuple[str, int]]]) -> Verdict:
        """Compare with what a store gives."""
        verdict = Verdict(sum(map(len, self.kept.values())))
        for episode_id in self.kept.keys() | found.keys():
            if episode_id in self.going and episode_id not in found:
                continue
            promised = set() if episode_id in self.gone else set(self.kept.get(episode_id, ()))
            numbers = [number for _, number in found.get(episode_id, ())]
            verdict = verdict.plus(
                Verdict(
                    lost=len(promised.difference(numbers)),
                    doubled=len(numbers) - len(set(numbers)),
                    misordered=not _in_order(found.get(episode_id, ())),
                    strange=len(set(numbers) - promised - {self.flying}),
                )
            )
        return verdict


def _in_order(found: list[tuple[str, int]]) -> bool:
    """Whether each writer's numbers rise."""
    last: dict[str, int] = {}
    for writer, number in found:
        if number < last.get(writer, 0):
            return False
        last[writer] = number
    return True


def found_in(store: Store) -> dict[str, list[tuple[str, int]]]:
    """The writer and number of every event that can be read, by episode, in order; each summary counts the same."""
    found = {}
    for summary in store.episodes():
        events = list(store.events(summary.id))
        assert summary.n_events == len(events), f"{summary.id}: {summary.n_events} counted, {len(events)} read"
        found[summary.id] = [(each.writer, number) for each in events if (number := number_of(each))]
    return found


def number_of(event: Event) -> int:
    """The number an event carries; 0 where the script did not make it."""
    if isinstance(event, EpisodeStart):
        text = event.header.task
    else:
        fields = ("content", "args", "text", "comment", "reason")
        text = next((value for name in fields if (value := getattr(event, name, None))), "")
    mark = _MARK.match(text.decode() if isinstance(text, bytes) else text)
    return int(mark[1]) if mark else 0


def alone(home: Path, journal: str, luck: random.Random | None = None) -> Recorder:
    """A recorder without a keeper; with ``luck``, its names are the same again for the same seed."""
    recorder = Recorder(home, journal=journal, entropy=luck.randbytes if luck is not None else os.urandom)
    recorder._wake = recorder._journal._wake = lambda: None
    return recorder


def tear(folder: Path, luck: random.Random) -> None:
    """Leave what a writer leaves that is killed while it writes a record: its bytes up to a random one.

    A mapped segment gets body before header, an appended one header before body.
    """
    segments = [each for each in sorted(folder.glob("*.seg")) if record.read_segment_header(each.read_bytes())]
    if not segments:
        return
    content = segments[-1].read_bytes()
    ends = record.walk(content[SEGMENT_HEADER:], SEGMENT_HEADER)
    if ends is None:  # it is torn already
        return
    end = ends[-1][1] if ends else SEGMENT_HEADER
    body = luck.randbytes(luck.randrange(20, 300))
    header = record.pack_header(len(body), record.PLAIN_EVENT, record.checksum(body, end, record.PLAIN_EVENT))
    room = len(content) - end - RECORD_HEADER - len(body)
    with segments[-1].open("r+b") as file:
        if len(content) == end:
            file.seek(end)
            file.write((header + body)[: luck.randrange(len(header + body))])
        elif room > 0:
            file.seek(end + RECORD_HEADER)
            file.write(body[: luck.randrange(len(body) + 1)])


class Agent:
    """Writers in one home, and one thing after another done by them at random."""

    def __init__(self, home: Path, journal: str, luck: random.Random, writers: int = 2) -> None:
        self.home = home
        self.journal = journal
        self.luck = luck
        self.promises = Promises()
        self.recorders = [alone(home, journal, luck) for _ in range(writers)]
        self.open: list[tuple[Episode, Recorder]] = []
        self.ended: list[tuple[Episode, Recorder]] = []
        self.left: list[str] = []

    def live(self) -> LiveStore:
        """The home as any other process sees it."""
        return open_store(home=self.home)

    def act(self) -> None:
        """Do one thing."""
        deeds: dict[Callable[[], None], int] = {
            self.start: 6, self.record: 40, self.end: 5, self.label: 6, self.large: 1, self.seal: 6, self.flush: 2,
            self.prepare: 2, self.adopt: 3, self.crash: 2, self.resume: 2, self.close: 1, self.prune: 2,
        }  # fmt: skip
        self.luck.choices(list(deeds), list(deeds.values()))[0]()

    def leave(self) -> None:
        """All is over, and nothing of it is needed any more."""
        for recorder in self.recorders:
            recorder.close()
        shutil.rmtree(self.home)

    def _any(self) -> Recorder:
        return self.luck.choice(self.recorders)

    def start(self) -> None:
        """A new episode; every other one may be pruned."""
        recorder = self._any()
        tags = ("old",) if self.luck.random() < 0.5 else ()
        episode = recorder.start(self.promises.next(), tags=tags)
        self.promises.acknowledge(episode.id)
        self.open.append((episode, recorder))

    def record(self) -> None:
        """One event of a small kind."""
        if not self.open:
            return self.start()
        episode, _ = self.luck.choice(self.open)
        mark, more = self.promises.next(), "x" * self.luck.randrange(300)
        match self.luck.randrange(4):
            case 0:
                episode.user(mark + more)
            case 1:
                episode.tool_call("bash", mark + more)
            case 2:
                episode.note("k", mark + more)
            case _:
                episode.text(mark + "\ud800" + more)  # a lone surrogate: the slow codec
        return self.promises.acknowledge(episode.id)

    def large(self) -> None:
        """One event with a payload that goes apart."""
        if self.open:
            episode, _ = self.luck.choice(self.open)
            episode.text(self.promises.next() + "y" * _BIG)
            self.promises.acknowledge(episode.id)

    def end(self) -> None:
        """An episode ends."""
        if self.open:
            which = self.open.pop(self.luck.randrange(len(self.open)))
            which[0].end("success", reason=self.promises.next())
            self.promises.acknowledge(which[0].id)
            self.ended.append(which)

    def label(self) -> None:
        """A judgement: through the episode itself, pruned or not, or by id from another writer."""
        if self.ended:
            episode, _ = self.luck.choice(self.ended)
            if episode.id in self.promises.gone or self.luck.random() < 0.5:
                episode.label(comment=self.promises.next())
            else:
                self._any().label(episode.id, comment=self.promises.next())
            self.promises.acknowledge(episode.id)

    def seal(self) -> None:
        """One writer's journal into the store."""
        recorder = self._any()
        recorder._sealer.seal_all(recorder._journal)

    def flush(self) -> None:
        """The same as a user asks for it: synced, the dead adopted, all of it sealed."""
        self._any().flush()

    def prepare(self) -> None:
        """The next segment, ahead of need."""
        self._any()._journal.prepare()

    def adopt(self) -> None:
        """What the dead left."""
        recorder = self._any()
        recorder._sealer.adopt(recorder._journal.writer)

    def _replace(self, recorder: Recorder) -> None:
        self.left += [episode.id for episode, owner in self.open if owner is recorder]
        self.open = [each for each in self.open if each[1] is not recorder]
        self.ended = [each for each in self.ended if each[1] is not recorder]
        self.recorders[self.recorders.index(recorder)] = alone(self.home, self.journal, self.luck)

    def crash(self) -> None:
        """A writer dies, perhaps in the middle of a record."""
        recorder = self._any()
        folder = recorder._journal.folder
        recorder._journal.release()
        self._replace(recorder)
        if folder is not None and self.luck.random() < 0.5:
            tear(folder.path, self.luck)

    def close(self) -> None:
        """A writer is done: everything of it is sealed, its journal removed."""
        recorder = self._any()
        self._replace(recorder)
        recorder.close()

    def resume(self) -> None:
        """An episode that nobody holds any more goes on in another writer."""
        waiting = [each for each in self.left if each not in self.promises.gone]
        if waiting:
            recorder, episode_id = self._any(), self.luck.choice(waiting)
            self.left.remove(episode_id)
            self.open.append((recorder.resume(episode_id), recorder))

    def prune(self) -> None:
        """What is marked as old goes for good, but for what runs or is not sealed yet."""
        live, old = self.live(), Query(tag="old")
        self.promises.going = {each.id for each in live.episodes(old)}
        receipt = prune(live, Criteria(query=old), now=time.time_ns(), whole=self.luck.random() < 0.5)
        self.promises.gone.update(receipt.ids)
        self.promises.going = set()


def late_in(home: Path) -> list[int]:
    """The numbers of what was put aside."""
    bodies = [each.read_bytes().decode("latin1") for each in Home(home).quarantine.glob("*.bin")]
    return [int(number) for body in bodies for number in _MARK.findall(body)]
