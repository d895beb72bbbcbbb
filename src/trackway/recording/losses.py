"""What could not be recorded, counted by episode and reason: told once at the end, kept in the home where possible."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from trackway.schema import ids
from trackway.store import forks, system
from trackway.store.home import Home


class Losses:
    """The recorder's book of losses."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = forks.lock_of(self, "_lock")
        self._by_episode: dict[str, Counter[str]] = defaultdict(Counter)
        self._told: set[str] = set()

    def add(self, episode_id: str, error: BaseException) -> None:
        """One event of this episode is gone, for this reason."""
        with self._lock:
            reasons = self._by_episode[episode_id]
            reasons[_reason(error, reasons)] += 1

    def count(self, episode_id: str) -> int:
        """How many events of an episode are gone."""
        return sum(self._by_episode[episode_id].values()) if episode_id in self._by_episode else 0

    def tell(self, episode_id: str, at: int) -> None:
        """One line on stderr per reason, and one in the home, once all is over."""
        reasons = self._by_episode.pop(episode_id, None)
        for reason, count in (reasons or {}).items():
            say(f"{count} event{'s' * (count != 1)} of episode {ids.short(episode_id)} could not be recorded: {reason}")
            self._keep({"at": at, "episode": episode_id, "lost": count, "reason": reason})

    def tell_all(self, at: int) -> None:
        """What is left to tell when the recorder closes."""
        for episode_id in list(self._by_episode):
            self.tell(episode_id, at)

    def trouble(self, message: str) -> None:
        """Something is wrong that loses nothing yet: said once."""
        if message not in self._told:
            self._told.add(message)
            say(message)

    def _keep(self, line: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the disk may be what is full
            system.append_line(self._home.losses, json.dumps(line).encode())


def _reason(error: BaseException, known: Iterable[str]) -> str:
    """In words; the same trouble with another file of ours is the same reason, said once."""
    number = getattr(error, "errno", None)
    kind = f"{type(error).__name__}: [Errno {number}]"
    alike = (each for each in known if number is not None and each.startswith(kind))
    return next(alike, f"{type(error).__name__}: {error}")


def say(message: str) -> None:
    """One line to whoever watches; an agent without a stderr is no reason to fail."""
    with contextlib.suppress(Exception):
        print(f"trackway: {message}", file=sys.stderr, flush=True)  # noqa: T201  the one line users are promised
