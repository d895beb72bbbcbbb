"""The machine: writers in one home do anything in any order, and after each step readers see what plain lists say.

The writers live in one process, without keepers. A lock belongs to an open file, so a writer "crashes" by letting go of
its lock and leaving everything else, perhaps in the middle of a record. Two readers look after each step: one that has
looked before and reads on, and one that has just come.
"""

import random
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.crash.agent import tear
from tests.model.actors import Place, Writer, read
from trackway.errors import EpisodeNotFound
from trackway.recording.episode import Episode
from trackway.schema.episode import EpisodeSummary, fold
from trackway.store.backup import backup
from trackway.store.base import Query, Store
from trackway.store.choice import Criteria
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.memory import MemoryStore
from trackway.store.prune import prune
from trackway.store.sqlite import SqliteStore
from trackway.store.verify import verify

_LARGE = 1 << 20
_SHARED = Path("/dev/shm")
any_number = st.integers(0, 999)


def _holds_one(machine: "Machine") -> bool:
    return machine._held(0) is not None


class Machine(RuleBasedStateMachine):
    """Over SQLite: two writers of one store, and one of another store in the same home."""

    def stores(self, home: Path) -> list[Store]:
        """The store of each writer."""
        usual = SqliteStore(home / "store.db")
        return [usual, usual, SqliteStore(home / "other.db")]

    @initialize(journal=st.sampled_from(["mmap", "append"]), seed=any_number)
    def begin(self, journal: str, seed: int) -> None:
        """A home of its own."""
        self.folder = Path(tempfile.mkdtemp(dir=_SHARED if _SHARED.is_dir() else None))
        self.home, self.journal, self.luck = Home(self.folder / "home"), journal, random.Random(seed)
        self.now, self.large_ones = 1_800_000_000_000_000_000, 0
        stores = self.stores(self.home.path)
        self.places = {id(each): Place(self.home, each) for each in stores}
        self.writers = [self._writer(self.places[id(each)]) for each in stores]

    def _writer(self, place: Place) -> Writer:
        return Writer(place, self.journal, lambda: self.now, self.luck.randbytes)

    def _alive(self) -> set[str]:
        return {each.name for each in self.writers if each.name}

    def _pick(self, which: int) -> Writer:
        return self.writers[which % len(self.writers)]

    def _held(self, which: int, *, open_only: bool = True, gone: bool = False) -> tuple[Writer, Episode] | None:
        held = [
            (writer, each)
            for writer in self.writers
            for each in writer.held
            if not (open_only and each.ended) and not (gone and each.id not in writer.place.plain.gone)
        ]
        return held[which % len(held)] if held else None

    def _done(self, writer: Writer, episode_id: str, kind: str, text: str) -> None:
        writer.place.plain.add(episode_id, writer.name, kind, text, self.now)
        self.now += 1_000

    # --- recording ----------------------------------------------------------------------------------------------

    @rule(which=any_number, old=st.sampled_from([True, True, False]))
    def start(self, which: int, old: bool) -> None:
        """An episode; an old one may be pruned."""
        writer, text = self._pick(which), f"task {self.now}"
        episode = writer.recorder.start(text, tags=["old"] if old else [])
        writer.held.append(episode)
        self._done(writer, episode.id, "episode_start", text)
        writer.place.plain.tags[episode.id] |= {"old"} if old else set()

    @precondition(_holds_one)
    @rule(which=any_number, size=st.integers(0, 400), odd=st.booleans())
    def record(self, which: int, size: int, odd: bool) -> None:
        """A small event, plain or exact."""
        (writer, episode), text = self._held(which), f"{self.now} {'x' * size}" + "\ud800" * odd
        episode.text(text)
        self._done(writer, episode.id, "assistant_text", text)

    @precondition(_holds_one)
    @rule(which=any_number, size=st.integers(0, 9000))
    def call(self, which: int, size: int) -> None:
        """A tool call; a long one has its arguments kept apart by the store."""
        (writer, episode), text = self._held(which), f"{self.now} {'y' * size}"
        episode.tool_call("bash", text.encode())
        self._done(writer, episode.id, "assistant_tool_call", text)

    @precondition(lambda self: _holds_one(self) and self.large_ones < 2)
    @rule(which=any_number)
    def large(self, which: int) -> None:
        """An event whose payload goes into the journal in parts."""
        (writer, episode), text = self._held(which), f"{self.now} {'z' * _LARGE}"
        self.large_ones += 1
        episode.text(text)
        self._done(writer, episode.id, "assistant_text", text)

    @precondition(_holds_one)
    @rule(which=any_number)
    def end(self, which: int) -> None:
        """An episode ends, if nobody has ended or pruned it elsewhere."""
        writer, episode = self._held(which)
        if episode.id not in writer.place.plain.ended | writer.place.plain.gone:
            episode.end("success", reason=f"{self.now}")
            self._done(writer, episode.id, "episode_end", f"{self.now}")

    @precondition(lambda self: self._held(0, open_only=False))
    @rule(which=any_number, late=st.booleans())
    def label_one_held(self, which: int, late: bool) -> None:
        """A judgement by whoever holds the episode; of a pruned one too, where there is any."""
        found = (late and self._held(which, open_only=False, gone=True)) or self._held(which, open_only=False)
        found[1].label(comment=f"{self.now}")
        self._done(found[0], found[1].id, "label", f"{self.now}")

    @rule(which=any_number, episode=any_number, tag=st.booleans())
    def label_by_id(self, which: int, episode: int, tag: bool) -> None:
        """A judgement by anybody; of what was pruned, nobody finds anything to judge."""
        writer = self._pick(which)
        plain = writer.place.plain
        known = [*plain.episodes, *plain.gone]
        if not known:
            return
        episode_id = known[episode % len(known)]
        try:
            writer.recorder.label(episode_id, comment=f"{self.now}", tag="old" if tag else None)
        except EpisodeNotFound:
            assert episode_id in plain.gone
            return
        self._done(writer, episode_id, "label", f"{self.now}")
        plain.tags[episode_id] |= {"old"} if tag else set()

    @rule(which=any_number, one=any_number, other=any_number)
    def relate(self, which: int, one: int, other: int) -> None:
        """Two episodes stand to each other in some way."""
        writer = self._pick(which)
        known = list(writer.place.plain.episodes)
        if len(known) > 1 and (there := known[other % len(known)]) != (here := known[one % len(known)]):
            writer.recorder.relate(here, "follows", there)
            self._done(writer, here, "label", there)

    @rule(which=any_number, episode=any_number)
    def resume(self, which: int, episode: int) -> None:
        """Any episode that has not ended goes on in any process."""
        writer = self._pick(which)
        plain = writer.place.plain
        waiting = [each for each in plain.episodes if each not in plain.ended]
        if waiting:
            episode_id = waiting[episode % len(waiting)]
            mine = any(each.id == episode_id and not each.ended for each in writer.recorder._live.values())
            found = writer.recorder.resume(episode_id)
            if not mine:
                self._done(writer, episode_id, "note", "resumed")
            if found not in writer.held:
                writer.held.append(found)

    # --- upkeep -------------------------------------------------------------------------------------------------

    @rule(which=any_number)
    def prepare(self, which: int) -> None:
        """The next segment is made."""
        self._pick(which).recorder._journal.prepare()

    @rule(which=any_number)
    def seal(self, which: int) -> None:
        """A writer's journal goes into the store."""
        recorder = self._pick(which).recorder
        recorder._sealer.seal_all(recorder._journal)

    @rule(which=any_number)
    def flush(self, which: int) -> None:
        """The same with all that the dead left."""
        self._pick(which).recorder.flush()

    @rule(which=any_number)
    def adopt(self, which: int) -> None:
        """What the dead left, alone."""
        recorder = self._pick(which).recorder
        recorder._sealer.adopt(recorder._journal.writer)

    @rule(which=any_number, torn=st.booleans())
    def crash(self, which: int, torn: bool) -> None:
        """A writer dies; a new one takes its place."""
        writer = self._pick(which)
        folder = writer.recorder._journal.folder
        writer.recorder._journal.release()
        self.writers[self.writers.index(writer)] = self._writer(writer.place)
        if torn and folder is not None:
            tear(folder.path, self.luck)

    @rule(which=any_number)
    def close(self, which: int) -> None:
        """A writer closes; a new one takes its place."""
        writer = self._pick(which)
        writer.recorder.close()
        self.writers[self.writers.index(writer)] = self._writer(writer.place)

    @precondition(lambda self: any(place.plain.ended for place in self.places.values()))
    @rule(which=any_number, whole=st.booleans())
    def prune(self, which: int, whole: bool) -> None:
        """What is old goes, but for what runs or waits in a living writer's journal."""
        place = self._pick(which).place
        sealed = defaultdict(set)
        for summary in place.fresh().store.episodes():
            sealed[summary.id] = {(each.writer, each.n) for each in place.store.events(summary.id)}
        going = place.plain.prunable("old", self._alive(), sealed)
        receipt = prune(place.fresh(), Criteria(query=Query(tag="old")), now=self.now, whole=whole)
        assert set(receipt.ids) == going
        place.plain.drop(going)

    @precondition(lambda self: any(place.plain.episodes for place in self.places.values()))
    @rule(which=any_number)
    def back_up(self, which: int) -> None:
        """A copy holds all that was recorded, sealed or not."""
        place = self._pick(which).place
        if isinstance(place.store, SqliteStore) and place.plain.episodes:
            target = self.folder / f"copy-{self.now}.db"
            backup(place.fresh(), target)
            copy = LiveStore(Home(self.folder / "elsewhere"), SqliteStore(target))
            assert read(copy) == place.recorded()
            copy.close()
            target.unlink()

    # --- what must hold -----------------------------------------------------------------------------------------

    @invariant()
    def readers_see_what_was_recorded(self) -> None:
        """Every event of every episode, once, in its writer's order, whoever looks, and nothing else."""
        for place in self.places.values():
            assert read(place.reader) == place.recorded()
            assert read(place.fresh()) == place.recorded()

    @invariant()
    def summaries_are_folds(self) -> None:
        """A summary says what the events say, and how the episode stands."""
        for place in self.places.values():
            for summary in place.reader.episodes():
                folded = fold(EpisodeSummary(id=summary.id), place.reader.events(summary.id))
                state = place.plain.state(summary.id, self._alive())
                assert summary == msgspec.structs.replace(folded, state=state)
                assert summary.n_events == len(place.plain.episodes[summary.id])
                assert ("old" in summary.tags) == ("old" in place.plain.tags[summary.id])

    @invariant()
    def the_store_only_grows(self) -> None:
        """What has a number keeps it, numbers are dense, and no position goes back."""
        for place in self.places.values():
            for episode_id in place.plain.episodes:
                events = list(place.reader.events(episode_id))
                stored = [(each.writer, each.n) for each in events if each.seq is not None]
                assert [each.seq for each in events[: len(stored)]] == list(range(len(stored)))
                before = place.sealed[episode_id]
                assert stored[: len(before)] == before
                place.sealed[episode_id] = stored
            for name in place.plain._numbers:
                position = place.reader.position(name)
                assert position >= place.positions[name]
                place.positions[name] = position

    def teardown(self) -> None:
        """Everybody closes: no journal is left, the stores are sound, and all that came late is put aside once."""
        if not hasattr(self, "folder"):
            return
        try:
            for writer in self.writers:
                writer.recorder.flush()
                writer.recorder.close()
            self.readers_see_what_was_recorded()
            late = 0
            for place in self.places.values():
                late += len(place.plain.late)
                assert verify(place.again(), self.home).is_sound
                place.reader.close() if isinstance(place.store, SqliteStore) else None
            assert len(list(self.home.quarantine.glob("*.json"))) == late
            assert not list(self.home.journals.glob("*"))
        finally:
            shutil.rmtree(self.folder)


class MemoryMachine(Machine):
    """Over a store in memory: two writers of one."""

    def stores(self, home: Path) -> list[Store]:
        """The store of each writer."""
        only = MemoryStore()
        return [only, only]
