"""The recorder: one journal, one keeper, one store, and the promise of how safe an event is when a call returns.

    ack="process"   it survives the death of this process (kill -9); the default
    ack="disk"      it is on the disk (fdatasync returned)
    ack="store"     it is committed to the store, which implies the disk

Nothing is opened before the first event. A forked child gets a journal and a keeper of its own with its first event.
"""

from __future__ import annotations

import atexit
import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from trackway.errors import BadSetting, EpisodeClosed, TrackwayError
from trackway.recording import settings, settings_file
from trackway.recording.by_id import ById
from trackway.recording.episode import Core, Episode
from trackway.recording.feeding import Feeding
from trackway.recording.keeping import Keeping, said
from trackway.recording.key import tokens_to_hide
from trackway.recording.losses import Losses
from trackway.recording.redact import Redactor
from trackway.recording.rules import Rules
from trackway.recording.settings_file import Both
from trackway.recording.tokens import Tokens
from trackway.schema import ids
from trackway.schema.episode import EpisodeSummary
from trackway.schema.events import FULL_TRACE, Event, Header, Parent
from trackway.schema.outside import is_thrown_in
from trackway.schema.plain import mapping_of, text_of, text_or_none
from trackway.store import forks
from trackway.store.base import Store
from trackway.store.home import Home
from trackway.store.journal import Journal
from trackway.store.large import Payload
from trackway.store.live import LiveStore
from trackway.store.sealer import Sealer


class Recorder(Keeping, ById):
    """Records episodes into one home and store.

    >>> import trackway
    >>> recorder = trackway.Recorder()
    >>> episode = recorder.start("fix the flaky test")
    >>> episode.user("go")
    >>> episode.end("success")
    >>> recorder.close()
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | Store | None = None,
        ack: str = "process",
        journal: str | None = None,
        clock: Callable[[], int] = time.time_ns,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__()
        self._ack = settings.one_of("ack", ack, settings.ACKS)
        settings_file.say_what_surprises()
        # Once: where a link leads elsewhere later, recording goes on where it began.
        self.home: Home = Home(Path(os.path.realpath(settings.home_at(home).path)))
        self.store: Store = settings.store_for(store, self.home)
        self.clock = clock
        self._entropy = entropy
        self._closed = False
        self._starting = forks.lock_of(self, "_starting")
        self._losses = Losses(self.home)
        self._sealer = Sealer(self.home, self.store)
        self._feeding = Feeding(self.home, self.store)
        self._numbers = itertools.count(1)
        self._tokens: Tokens | None = None
        self._redactors: dict[str, Redactor] = {}
        self._last_redactor: tuple[Rules, Redactor] | None = None
        self._journal = Journal(
            self.home, store_key=self.store.key, clock=clock, entropy=entropy, mapped=settings.maps(journal, self.home),
            wake=self._wake, on_loss=self._on_loss,
        )  # fmt: skip
        if not _open:
            atexit.register(_wind_down_all)
        _open.add(self)

    # --- episodes -----------------------------------------------------------------------------------------------

    def start(
        self,
        task: str,
        *,
        variant: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
        tools: Any = None,  # noqa: ANN401
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        capture: str = "full",
        guard: Any = None,  # noqa: ANN401
        redact: Any = None,  # noqa: ANN401
        task_key: str | None = None,
        trial: int | None = None,
        seed: int | None = None,
        parent: Parent | Episode | str | None = None,
        source: str = "sdk",
        at: int | None = None,
    ) -> Episode:
        """Begin an episode: one try at one task; ``at`` (UTC nanoseconds) where it began earlier than now."""
        self._check_open()
        settings.one_of("capture", capture, settings.CAPTURES)
        files = settings_file.load(self.home)
        if settings.is_disabled(self.home, files=files):
            capture = "off"
        redactor = redact if isinstance(redact, Redactor) else self._redactor(redact, files)
        at = None if at is None else _instant(at)
        episode_id = ids.uuid7(self.clock(), self._entropy(10))
        header = Header(
            id=episode_id, task=text_of(task), task_key=text_or_none(task_key), variant=text_or_none(variant),
            trial=None if trial is None else settings.number("trial", trial, int),
            seed=None if seed is None else settings.number("seed", seed, int),
            agent=text_or_none(agent), model=text_or_none(model), tags=_tags(tags),
            metadata=mapping_of(metadata), parent=_parent(parent), source=text_of(source), capture=capture,
            redacts=redactor is not None,
        )  # fmt: skip
        core = Core(self, episode_id, capture=capture, guard=guard, redactor=redactor)
        episode = self._live[episode_id] = Episode(core)
        if redactor is not None and redact is not None and redact is not True:
            # For labels, which come after the end: rules of the caller's own are known to nobody else.
            self._redactors[episode_id] = redactor
        episode._begin(header, system_prompt=system_prompt, tools=tools, at=at)  # noqa: SLF001  the two are one
        return episode

    def _begin_whole(
        self, task: str, model: str | None, metadata: dict[str, Any], at: int | None, redactor: Redactor | None
    ) -> Episode:
        given = False if redactor is None else redactor
        return self.start(task, model=model, metadata=metadata, source=FULL_TRACE, at=at, redact=given)

    def _redactor(self, redact: Any, files: Both | None = None) -> Redactor | None:  # noqa: ANN401
        rules = settings.rules_for(redact, self.home, files=files)
        if not rules:
            return None
        if self._tokens is None:
            self._tokens = tokens_to_hide(self.home, self._entropy)
        if self._last_redactor is None or self._last_redactor[0] != rules:
            self._last_redactor = rules, Redactor(rules, self._tokens)
        return self._last_redactor[1]

    def resume(self, episode_id: str, *, guard: Any = None, redact: Any = None) -> Episode:  # noqa: ANN401
        """Go on with an episode that has not ended, in this process; a short id or ``last`` will do."""
        self.flush()  # what a dead process left of it comes before what follows
        live = LiveStore(self.home, self.store)
        summary = live.episode(live.resolve(episode_id))
        if summary.ended_at is not None:
            raise EpisodeClosed(
                f"episode {ids.short(summary.id)} has ended", hint="start a new one", episode=summary.id
            )
        mine = self._live.get(summary.id)
        if mine is None:
            episode = self._again(summary, guard=guard, redact=redact)
            episode.note("resumed")  # from now on this process is one of its writers: it reads as running
            return episode
        core = mine._core  # noqa: SLF001  the two are one subsystem
        redactor = core.redactor if redact is None else self._redactor(redact)
        core.arm(core.guard if guard is None else guard, redactor)
        return mine

    def _again(self, summary: EpisodeSummary, *, guard: Any = None, redact: Any = None) -> Episode:  # noqa: ANN401
        capture = "off" if settings.is_disabled(self.home) else summary.capture
        # Whoever began it hid secrets, by rules that only they know: the known ones at least go on being hidden.
        redactor = self._redactors.get(summary.id) if redact is None else None
        redactor = redactor or self._redactor(True if redact is None and summary.redacts else redact)
        core = Core(self, summary.id, capture=capture, guard=guard, redactor=redactor)
        core.first_batch = summary.n_steps  # every batch holds a step at least, so this number is beyond all of them
        return Episode(core, turn=summary.n_turns)

    def _afterwards(self, episode_id: str) -> Episode:
        """An episode to label, ended or not; what others have in their journals of it is theirs to seal."""
        self._check_open()
        live = LiveStore(self.home, self.store)
        return self._again(live.episode(live.resolve(episode_id)))

    # --- the append path ----------------------------------------------------------------------------------------

    def put(
        self, episode: bytes, kind: type[Event], fields: dict[str, Any], payloads: tuple[Payload, ...] = ()
    ) -> bool:
        """Append one event as safely as promised; False where it could not be kept (counted, never raised)."""
        if self._closed:
            self._check_open()
        try:
            self._journal.append(episode, kind, fields, payloads)
        except Exception as error:  # the agent goes on, whatever the disk says
            if is_thrown_in(error):
                raise
            if not (isinstance(error, FileNotFoundError) and self._tried_again(episode, kind, fields, payloads)):
                return self.lose(episode, error)
        if self._ack != "process" and not self._journal.is_inside():
            self._make_safe()
        return True

    def _tried_again(
        self, episode: bytes, kind: type[Event], fields: dict[str, Any], payloads: tuple[Payload, ...]
    ) -> bool:
        """No file could be made where the journal was: whether that is mended, and the event written."""
        if self._journal.is_inside():
            return False
        try:
            self._put_back()
            self._journal.append(episode, kind, fields, payloads)
        except (OSError, TrackwayError) as error:
            if is_thrown_in(error):
                raise
            return False
        return True

    def _make_safe(self) -> None:
        """Keep the promise of ``ack``; where that fails the event is still in the journal, and that is said."""
        try:
            self._put_back()
            self._journal.sync()
            if self._ack == "store":
                self._sealer.seal_all(self._journal)
        except Exception as error:  # the agent goes on, whatever the disk says
            if is_thrown_in(error):
                raise
            self._losses.trouble(f"events are in the journal only, not safe to ack={self._ack!r}: {said(error)}")

    def new_id(self, prefix: str) -> str:
        """An id that is unique among all processes: the writer's name and a number, without asking the system."""
        # A forked child has no writer before its first event and must not share its parent's: it draws one each time.
        return f"{prefix}_{self._journal.writer[:10] or self._entropy(5).hex()}{next(self._numbers):x}"

    def lose(self, episode: bytes, error: Exception) -> bool:
        """Count an event that could not be kept; False, as ``put`` says then."""
        self._on_loss(error, episode)
        return False

    def lost(self, episode_id: str) -> int:
        """How many events of an episode could not be kept."""
        return self._losses.count(episode_id)

    def over(self, episode_id: str) -> None:
        """The episode has ended: it is held no longer, and what was lost of it is said."""
        super().over(episode_id)
        self._losses.tell(episode_id, self.clock())

    def _on_loss(self, error: Exception, episode: bytes) -> None:
        self._losses.add(ids.from_bytes(episode), error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_open: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _wind_down_all() -> None:
    """At interpreter exit. A daemon thread that still records gets a fresh journal, adopted by the next recorder."""
    for recorder in list(_open):
        recorder._wind_down()  # noqa: SLF001  the exit hook is the recorder's own


def _tags(tags: Iterable[str] | str) -> tuple[str, ...]:
    """The words; one alone is one word, not its letters."""
    return (tags,) if isinstance(tags, str) else tuple(text_of(each) for each in tags or ())


def _instant(at: int) -> int:
    """UTC nanoseconds that a store can hold."""
    if type(at) is not int or not 0 <= at < 2**63:
        raise BadSetting(f"at is {at!r}", hint="UTC nanoseconds, a whole number", value=at)
    return at


def _parent(given: Parent | Episode | str | None) -> Parent | None:
    """The episode this one was forked from, by itself or by its id."""
    if given is None or isinstance(given, Parent):
        return given
    return Parent(episode=given.id if isinstance(given, Episode) else ids.from_bytes(ids.to_bytes(given)))
