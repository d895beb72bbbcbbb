"""Recording by id: for callers that hold an episode's id and not the episode, and for what comes as a whole.

The episode may be one of this process, one of another that is still at work, or, for labels, one that ended long ago.
A short id or ``last`` will do wherever an id is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from trackway.errors import BadSetting, NotFound
from trackway.recording.redact import Tally
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.execution_step import ExecutionStep
from trackway.schema.plain import plain, text_of
from trackway.schema.trace import FullTrace, TextStep, ThinkingStep, ToolCallStep, ToolResultStep, TraceStep, UserStep
from trackway.store.live import LiveStore

if TYPE_CHECKING:
    from trackway.recording.episode import Episode
    from trackway.recording.redact import Redactor
    from trackway.store.base import Store
    from trackway.store.home import Home

_TITLE: Final = 120
_SECOND: Final = 1_000_000_000
_LATEST: Final = 2**63 // _SECOND


class ById:
    """The part of the recorder that finds the episode itself."""

    home: Home
    store: Store

    def __init__(self) -> None:
        # Held until they end: whoever keeps the id alone still has an episode, with its turns and its redaction.
        self._live: dict[str, Episode] = {}
        self._resumed: dict[str, Episode] = {}

    def _begin_whole(
        self, task: str, model: str | None, metadata: dict[str, Any], at: int | None, redactor: Redactor | None
    ) -> Episode:
        """Begin an episode that is added as a whole."""
        raise NotImplementedError

    def _redactor(self, redact: Any) -> Redactor | None:  # noqa: ANN401
        """What hides secrets, where anything is to be hidden."""
        raise NotImplementedError

    def resume(self, episode_id: str) -> Episode:
        """Go on with an episode."""
        raise NotImplementedError

    def _afterwards(self, episode_id: str) -> Episode:
        """An episode to label, ended or not."""
        raise NotImplementedError

    # --- steps as an agent reports them (seed 000) --------------------------------------------------------------

    def log_step(self, episode_id: str, step: ExecutionStep) -> None:
        """Record a step of an episode that has not ended.

        >>> import trackway
        >>> recorder = trackway.Recorder()
        >>> episode = recorder.start("ship it")
        >>> recorder.log_step(episode.id, trackway.ExecutionStep("cargo", "build --all", 12_500))
        >>> recorder.close()
        """
        self._open_episode(episode_id).log_step(step)

    def log_steps(self, episode_id: str, steps: Iterable[ExecutionStep]) -> None:
        """Record several steps, in order."""
        episode = self._open_episode(episode_id)
        for each in steps:
            episode.log_step(each)

    def _open_episode(self, episode_id: str) -> Episode:
        """One of ours, else one of another process: then it may have ended since, and the store is asked each time."""
        found = self._live.get(episode_id)
        if found is not None:
            return found
        live = LiveStore(self.home, self.store)
        name = live.resolve(episode_id)
        if name in self._live:
            return self._live[name]
        if name not in self._resumed or live.episode(name).ended_at is not None:
            self._resumed.pop(name, None)
            self._resumed[name] = self.resume(name)
        return self._resumed[name]

    def over(self, episode_id: str) -> None:
        """The episode has ended: it is held no longer."""
        self._live.pop(episode_id, None)
        self._resumed.pop(episode_id, None)

    # --- judgements, at any time --------------------------------------------------------------------------------

    def label(
        self,
        episode_id: str,
        *,
        outcome: str | None = None,
        score: float | None = None,
        tag: str | None = None,
        comment: str | None = None,
        by: str | None = None,
    ) -> None:
        """Add a judgement to any episode of the store."""
        self._any_episode(episode_id).label(outcome=outcome, score=score, tag=tag, comment=comment, by=by)

    def relate(
        self, episode_id: str, relation: str, to: str, *, comment: str | None = None, by: str | None = None
    ) -> None:
        """Say how an episode stands to another one: ``depends_on``, ``follows``, ``duplicates``, or a word of yours."""
        self._any_episode(episode_id).relate(relation, to, comment=comment, by=by)

    def whole_id(self, ref: str) -> str:
        """The id a reference names; one that names none, or several, is misuse."""
        if ids.is_id(ref):
            return ref
        try:
            return LiveStore(self.home, self.store).resolve(ref)
        except NotFound as error:
            raise BadSetting(error.message, hint=error.hint, ref=ref) from error

    def _any_episode(self, episode_id: str) -> Episode:
        return self._live.get(episode_id) or self._afterwards(episode_id)

    # --- a turn as a whole (seed 001) ---------------------------------------------------------------------------

    def add(self, trace: FullTrace, *, redact: Any = None) -> str:  # noqa: ANN401
        """Put a trace into the store as an episode of its own; returns the episode's id.

        >>> import trackway
        >>> recorder = trackway.Recorder()
        >>> trace = trackway.FullTrace("t1", "claude-opus-4-7", "you are rsclaw", [])
        >>> trace.push_user("hello")
        >>> added = recorder.add(trace)
        >>> trackway.trace(trackway.open_store().events(added)) == [trace]
        True
        >>> recorder.close()
        """
        if not isinstance(trace, FullTrace):
            raise BadSetting(f"trace is a {type(trace).__name__}", hint="a FullTrace")
        metadata: dict[str, Any] = {"trace_id": trace.trace_id, "timestamp": _seconds(trace.timestamp)}
        if trace.tools_schema is None:
            metadata["tools_schema"] = None
        at, redactor = trace.timestamp * _SECOND or None, self._redactor(redact)
        episode = self._begin_whole(_title(trace, redactor), trace.model or None, metadata, at, redactor)
        put = episode._put_at  # noqa: SLF001  the two are one subsystem
        if trace.system_prompt or trace.tools_schema not in ([], None):
            tools = plain(trace.tools_schema)
            put(kinds.Context, {"op": "set", "system_prompt": trace.system_prompt, "tools": tools}, at)
        batch, in_batch = 0, False
        for step in trace.steps:
            is_call = isinstance(step, ToolCallStep)
            batch += is_call and not in_batch
            in_batch = is_call
            put(*_event(step, batch), at)
        put(kinds.EpisodeEnd, {}, at)
        return episode.id


def _seconds(timestamp: Any) -> int:  # noqa: ANN401
    if type(timestamp) is not int or not 0 <= timestamp < _LATEST:
        raise BadSetting(f"timestamp is {timestamp!r}", hint="whole Unix seconds, not milliseconds", value=timestamp)
    return timestamp


def _title(trace: FullTrace, redactor: Redactor | None) -> str:
    """What the episode is called: the first line that was asked, cut; the whole of it is in the trace."""
    for step in trace.steps:
        text = text_of(step.content) if isinstance(step, UserStep) else ""
        if text.strip():
            # Hidden before it is cut: half a secret is found by no rule.
            clean = text if redactor is None else redactor.text(text, Tally())
            line = clean.strip().splitlines()[0]
            return line if len(line) <= _TITLE else f"{line[:_TITLE]}…"
    return trace.trace_id


def _event(step: TraceStep, batch: int) -> tuple[type[kinds.Event], dict[str, Any]]:
    match step:
        case UserStep(content=content):
            return kinds.User, {"content": text_of(content)}
        case ThinkingStep(content=content):
            return kinds.AssistantThinking, {"content": text_of(content)}
        case ToolCallStep(name=name, call_id=call_id):
            named = {"name": text_of(name), "call_id": text_of(call_id)}
            return kinds.AssistantToolCall, {**named, "args": step.raw, "batch": batch}
        case ToolResultStep(call_id=call_id, content=content, is_error=is_error):
            status = {"is_error": True, "status": "error"} if is_error else {}
            return kinds.ToolResult, {"call_id": text_of(call_id), "content": text_of(content), **status}
        case TextStep(content=content):
            return kinds.AssistantText, {"content": text_of(content)}
