"""Recording by id: for callers that hold an episode's id and not the episode, and for what comes as a whole.

The episode may be one of this process, one of another that is still at work, or, for labels, one that ended long ago.
A short id or ``last`` will do wherever an id is asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from trackway.errors import BadSetting, NotFound
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.execution_step import ExecutionStep
from trackway.schema.plain import plain
from trackway.schema.trace import FullTrace, TextStep, ThinkingStep, ToolCallStep, ToolResultStep, TraceStep, UserStep
from trackway.store.live import LiveStore

if TYPE_CHECKING:
    from trackway.recording.episode import Episode
    from trackway.store.base import Store
    from trackway.store.home import Home

FULL_TRACE: Final = "full_trace"
"""The source of an episode that was added as a whole; ``trackway.trace`` gives the same trace back."""

_TITLE: Final = 120
_SECOND: Final = 1_000_000_000


class ById:
    """The part of the recorder that finds the episode itself."""

    home: Home
    store: Store

    def __init__(self) -> None:
        self._live: weakref.WeakValueDictionary[str, Episode] = weakref.WeakValueDictionary()
        self._resumed: dict[str, Episode] = {}

    def _begin_whole(self, task: str, model: str | None, metadata: dict[str, Any], at: int | None) -> Episode:
        """Begin an episode that is added as a whole."""
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
        found = self._live.get(episode_id) or self._resumed.get(episode_id)
        if found is None:
            found = self.resume(episode_id)
            # Held by us, since nobody else holds it: its turns and batches go on with the next step.
            self._resumed[found.id] = self._resumed[episode_id] = found
        return found

    def over(self, episode_id: str) -> None:
        """The episode has ended: it is held no longer."""
        self._resumed = {name: each for name, each in self._resumed.items() if each.id != episode_id}

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

    def add(self, trace: FullTrace) -> str:
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
        metadata: dict[str, Any] = {"trace_id": trace.trace_id, "timestamp": trace.timestamp}
        if trace.tools_schema is None:
            metadata["tools_schema"] = None
        at = trace.timestamp * _SECOND or None
        episode = self._begin_whole(_title(trace), trace.model or None, metadata, at)
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


def _title(trace: FullTrace) -> str:
    """What the episode is called: the first line that was asked, cut; the whole of it is in the trace."""
    for step in trace.steps:
        if isinstance(step, UserStep) and step.content.strip():
            line = step.content.strip().splitlines()[0]
            return line if len(line) <= _TITLE else f"{line[:_TITLE]}…"
    return trace.trace_id


def _event(step: TraceStep, batch: int) -> tuple[type[kinds.Event], dict[str, Any]]:
    match step:
        case UserStep(content=content):
            return kinds.User, {"content": content}
        case ThinkingStep(content=content):
            return kinds.AssistantThinking, {"content": content}
        case ToolCallStep(name=name, call_id=call_id):
            return kinds.AssistantToolCall, {"name": name, "args": step.raw, "call_id": call_id, "batch": batch}
        case ToolResultStep(call_id=call_id, content=content, is_error=is_error):
            status = {"is_error": True, "status": "error"} if is_error else {}
            return kinds.ToolResult, {"call_id": call_id, "content": content, **status}
        case TextStep(content=content):
            return kinds.AssistantText, {"content": content}
