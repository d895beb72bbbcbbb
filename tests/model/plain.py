"""What was recorded, as plain lists: an episode is a list of events, a writer a list of numbers, a prune a set of ids.

Everything that a reader may see is told from this alone: which episodes there are, their events, and how each stands.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

from trackway.schema.events import EpisodeStart, Event


class Expected(NamedTuple):
    """An event: whose, the how many-th of that writer, of what kind, what it says, when."""

    writer: str
    n: int
    kind: str
    text: str
    at: int


def seen(event: Event) -> Expected:
    """The same of an event that was read."""
    fields = ("content", "args", "text", "comment", "to", "reason", "topic")
    text = (
        event.header.task
        if isinstance(event, EpisodeStart)
        else next((value for name in fields if (value := getattr(event, name, None))), "")
    )
    return Expected(event.writer, event.n, event.kind, text.decode() if isinstance(text, bytes) else text, event.at)


class Plain:
    """One store's worth of episodes."""

    def __init__(self) -> None:
        self.episodes: dict[str, list[Expected]] = {}
        self.tags: dict[str, set[str]] = defaultdict(set)
        self.ended: set[str] = set()
        self.gone: set[str] = set()
        self.late: list[Expected] = []
        self._numbers: Counter[str] = Counter()

    def add(self, episode_id: str, writer: str, kind: str, text: str, at: int) -> None:
        """A recording call has returned."""
        event = Expected(writer, self._numbers[writer], kind, text, at)
        self._numbers[writer] += 1
        if episode_id in self.gone:
            self.late.append(event)
        else:
            self.episodes.setdefault(episode_id, []).append(event)
            if kind == "episode_end":
                self.ended.add(episode_id)

    def drop(self, episode_ids: set[str]) -> None:
        """They are gone, and stay so."""
        for each in episode_ids:
            del self.episodes[each]
        self.gone |= episode_ids

    def writers(self, episode_id: str) -> set[str]:
        """Who has recorded something of an episode."""
        return {each.writer for each in self.episodes[episode_id]}

    def state(self, episode_id: str, alive: set[str]) -> str:
        """How it stands."""
        if episode_id in self.ended:
            return "ended"
        return "crashed" if alive.isdisjoint(self.writers(episode_id)) else "running"

    def prunable(self, tag: str, alive: set[str], sealed: dict[str, set[tuple[str, int]]]) -> set[str]:
        """What a prune by tag takes: nothing that runs, nothing a living writer has not sealed yet."""
        return {
            episode_id
            for episode_id, events in self.episodes.items()
            if tag in self.tags[episode_id]
            and self.state(episode_id, alive) != "running"
            and all(each.writer not in alive or (each.writer, each.n) in sealed[episode_id] for each in events)
        }


def by_writer(events: list[Expected]) -> dict[str, list[Expected]]:
    """Each writer's events in their order: the order of different writers is the sealer's."""
    found: dict[str, list[Expected]] = defaultdict(list)
    for each in events:
        found[each.writer].append(each)
    return found
