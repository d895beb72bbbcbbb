"""Who takes part: places, which are stores with what they should hold, and writers, which are processes' recorders."""

from collections import defaultdict

from tests.model.plain import Plain, by_writer, seen
from trackway.recording.episode import Episode
from trackway.recording.recorder import Recorder
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.live import LiveStore
from trackway.store.record import START
from trackway.store.sqlite import SqliteStore


class Place:
    """A store with what it should hold, and a reader that has looked before."""

    def __init__(self, home: Home, store: Store) -> None:
        self.home = home
        self.store = store
        self.plain = Plain()
        self.reader = LiveStore(home, self.again())
        self.sealed: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.positions = defaultdict(lambda: START)

    def again(self) -> Store:
        """The same store, opened anew where that means anything."""
        return SqliteStore(self.store.path) if isinstance(self.store, SqliteStore) else self.store

    def fresh(self) -> LiveStore:
        """A reader that has just come."""
        return LiveStore(self.home, self.again())

    def recorded(self) -> dict:
        """Everything that a reader must see."""
        return {episode_id: by_writer(events) for episode_id, events in self.plain.episodes.items()}


def read(store: LiveStore) -> dict:
    """Everything that a reader sees, as plain lists: by episode, then by writer."""
    return {each.id: by_writer([seen(event) for event in store.events(each.id)]) for each in store.episodes()}


class Writer:
    """One process's recorder, and the episodes it holds."""

    def __init__(self, place: Place, journal: str, clock, entropy) -> None:
        self.place = place
        own = place.again()
        self.recorder = Recorder(place.home.path, store=own, journal=journal, clock=clock, entropy=entropy)
        self.recorder._wake = self.recorder._journal._wake = lambda: None
        self.held: list[Episode] = []

    @property
    def name(self) -> str:
        """Who it is by now; a new one with each journal."""
        return self.recorder._journal.writer
