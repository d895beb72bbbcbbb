"""The live episode: what an agent's loop calls, one method per kind of event.

``user`` opens a turn. Calls without a result between them share a batch: they were made at once. What a model produced
is tied to the model call before it. An agent inside the episode has a view of its own, with its own turns and batches.
Every method checks and coerces what it is given, then appends; when it returns, the event is as safe as promised.
"""

from __future__ import annotations

import contextvars
import os
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from trackway.errors import BadSetting, EpisodeClosed, UnknownOutcome
from trackway.recording.losses import say
from trackway.recording.redact import Redactor
from trackway.recording.settings import number
from trackway.recording.view import AgentView
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.events import OUTCOMES, Header
from trackway.schema.outside import is_thrown_in
from trackway.schema.plain import error_text, text_of, text_or_none
from trackway.store.large import BIG, Payload
from trackway.store.live import LiveStore

if TYPE_CHECKING:
    from trackway.recording.recorder import Recorder

_current: contextvars.ContextVar[Episode | None] = contextvars.ContextVar("trackway_episode", default=None)

_STEPS_ONLY: Final = frozenset({
    kinds.EpisodeStart, kinds.AssistantToolCall, kinds.ToolResult, kinds.ModelCall, kinds.ModelResult, kinds.Verdict,
    kinds.Label, kinds.EpisodeEnd,
})  # fmt: skip
_STEPS_DROP: Final = {
    kinds.ToolResult: ("returned",),
    kinds.ModelCall: ("parameters", "system", "tools", "base", "reuse", "messages"),
    kinds.ModelResult: ("response", "token_ids", "logprobs"),
}


def current() -> Episode | None:
    """The episode of the enclosing ``with``; threads and tasks started inside see it where they copy the context."""
    return _current.get()


class Core:
    """What all views of one episode share."""

    def __init__(
        self,
        recorder: Recorder,
        episode_id: str,
        *,
        capture: str,
        guard: Any = None,  # noqa: ANN401
        redactor: Redactor | None = None,
    ) -> None:
        self.recorder = recorder
        self.id = episode_id
        self.raw = ids.to_bytes(episode_id)
        self.capture = capture
        self.arm(guard, redactor)
        self.ended = False
        self.views: dict[str, AgentView] = {}
        self.first_batch = 0
        self.clock: Callable[[], int] = recorder.clock

    def arm(self, guard: Any, redactor: Redactor | None) -> None:  # noqa: ANN401
        """Say who is asked and what is hidden from now on; where nobody and nothing, events go as they are."""
        self.guard = guard
        self.redactor = redactor
        self.plain = self.capture == "full" and guard is None and redactor is None

    def put(self, kind: type[kinds.Event], fields: dict[str, Any], payloads: tuple[Payload, ...] = ()) -> bool:
        """Append, unless this capture leaves it out."""
        if self.capture != "full":
            if self.capture == "off" or kind not in _STEPS_ONLY:
                return False
            for name in _STEPS_DROP.get(kind, ()):
                fields.pop(name, None)
        if self.redactor is not None:
            try:
                fields = self.redactor.event(fields)
            except Exception as error:  # too deep, or worse: what cannot be looked through is not written
                if is_thrown_in(error):
                    raise
                return self.recorder.lose(self.raw, error)
            payloads = tuple(
                each if each.field is None else Payload(fields[each.field], each.field) for each in payloads
            )
        return self.recorder.put(self.raw, kind, fields, payloads)

    def ask(self, question: str, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        """Ask the guard; one that breaks is said to, and allows."""
        method = getattr(self.guard, question, None)
        if method is None:
            return None
        try:
            return method(*args, **named)
        except Exception as error:  # noqa: BLE001  a guard is not to stop the agent by being wrong
            say(f"the guard failed in {question}(): {error_text(error)}")
            return None


class Episode(AgentView):
    """One try at one task, being recorded. Use it as ``with``, or call ``end``."""

    def __init__(self, core: Core, *, turn: int = 0) -> None:
        super().__init__(core, turn=turn)
        self._token: contextvars.Token[Episode | None] | None = None
        self._pid = 0

    @property
    def id(self) -> str:
        """The episode's id."""
        return self._core.id

    def __repr__(self) -> str:
        return f"Episode({self._core.id!r}{', ended' * self._core.ended})"

    def events(self) -> Iterator[kinds.Event]:
        """What was recorded of it so far, for the readings: ``trackway.steps(episode.events())``."""
        return LiveStore(self._core.recorder.home, self._core.recorder.store).events(self._core.id)

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._core.ended

    @property
    def lost(self) -> int:
        """How many of its events could not be kept so far."""
        return self._core.recorder.lost(self._core.id)

    def _begin(self, header: Header, *, system_prompt: str | None, tools: Any, at: int | None) -> None:  # noqa: ANN401
        self._core.put(kinds.EpisodeStart, {"at": self._core.clock() if at is None else at, "header": header})
        if system_prompt is not None or tools is not None:
            self.context("set", system_prompt=system_prompt, tools=tools)

    def _put_at(self, kind: type[kinds.Event], fields: dict[str, Any], at: int | None) -> None:
        """Append an event of the one turn of an episode that is added as a whole."""
        core = self._core
        body = fields.get("args") or fields.get("content") or ""
        name = "args" if "args" in fields else "content"
        payloads = (Payload(body, name),) if len(body) >= BIG else ()
        turn = {} if kind is kinds.EpisodeEnd else {"turn": 1}
        core.put(kind, {"at": core.clock() if at is None else at, **turn, **fields}, payloads)
        if kind is kinds.EpisodeEnd:
            core.ended = True
            core.recorder.over(core.id)

    def end(
        self,
        outcome: str | None = None,
        *,
        score: float | None = None,
        reason: str | None = None,
        error: str | None = None,
    ) -> None:
        """Say how it ended: success, partial, failure, abandoned, or None where nobody knows."""
        core = self._core
        if outcome is not None and outcome not in OUTCOMES:
            raise UnknownOutcome(
                f"outcome is {outcome!r}", hint=f"one of {', '.join(OUTCOMES)}, or None", outcome=outcome
            )
        if core.ended:
            raise EpisodeClosed(f"episode {ids.short(core.id)} has ended already", episode=core.id)
        fields = {
            "at": core.clock(), "turn": self._turn, "outcome": outcome,
            "score": None if score is None else number("score", score, float),
            "reason": text_or_none(reason), "error": text_or_none(error), "lost": core.recorder.lost(core.id),
        }  # fmt: skip
        core.ended = True
        core.put(kinds.EpisodeEnd, fields)
        core.recorder.over(core.id)

    def label(
        self,
        *,
        outcome: str | None = None,
        score: float | None = None,
        tag: str | None = None,
        comment: str | None = None,
        by: str | None = None,
    ) -> None:
        """Add a judgement, at any time: labels are what may follow the end."""
        if (outcome, score, tag, comment) == (None, None, None, None):
            raise BadSetting("a label says something", hint="outcome, score, tag or comment")
        if outcome is not None and outcome not in OUTCOMES:
            raise UnknownOutcome(f"outcome is {outcome!r}", hint=f"one of {', '.join(OUTCOMES)}", outcome=outcome)
        if isinstance(tag, (list, tuple, set)):
            raise BadSetting(f"tag is a {type(tag).__name__}", hint="one word; call label() for each")
        fields = {
            "at": self._core.clock(), "outcome": outcome,
            "score": None if score is None else number("score", score, float),
            "tag": text_or_none(tag), "comment": text_or_none(comment), "by": text_or_none(by),
        }  # fmt: skip
        self._core.put(kinds.Label, fields)

    def relate(self, relation: str, to: Episode | str, *, comment: str | None = None, by: str | None = None) -> None:
        """Say how this episode stands to another one, at any time: ``depends_on``, ``follows``, or a word of yours."""
        there = to.id if isinstance(to, Episode) else self._core.recorder.whole_id(to)
        if there == self._core.id:
            raise BadSetting("an episode has no relation to itself", hint="name another one", episode=there)
        self._core.put(kinds.Label, {
            "at": self._core.clock(), "relation": text_of(relation), "to": there,
            "comment": text_or_none(comment), "by": text_or_none(by),
        })  # fmt: skip

    def __enter__(self) -> Self:
        self._token, self._pid = _current.set(self), os.getpid()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """End it, if nobody has: interrupted is abandoned, an exception is a failure; nothing is swallowed."""
        try:
            # A forked child that leaves the block leaves it for itself: the episode is its parent's to end.
            if not self._core.ended and self._pid == os.getpid():
                self._end_with(error)
        finally:
            self._leave()

    def _end_with(self, error: BaseException | None) -> None:
        if error is None:
            self.end()
        elif isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError)):
            self.end("abandoned", reason=error_text(error), error=error_text(error))
        else:
            self.end("failure", reason=error_text(error), error=error_text(error))

    def _leave(self) -> None:
        if self._token is not None:
            try:
                _current.reset(self._token)
            except ValueError:  # left in another context than entered, as async generators may be
                _current.set(None)
            self._token = None
