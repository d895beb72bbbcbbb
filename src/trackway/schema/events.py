"""The recorded atom: an event, one frozen struct per kind, tagged by ``kind``.

An episode is an append-only list of these and nothing else; traces, steps and trajectories are read from it.
Every event carries the envelope (who recorded it, when, in which turn, for which agent); the fields after it are the
kind's own. A kind or a field this version does not know is kept (``Unknown``, ``unknown_fields``), never dropped.
Constructors do not validate: ``trackway.recording`` checks and coerces before anything is acknowledged.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec


class Native(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Where an imported event came from: the file, the offset in it, its raw bytes by hash."""

    source: str
    offset: int | None = None
    raw: str | None = None
    fields: dict[Any, Any] | None = None


class FileState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A file's content by hash, with its size and mode."""

    hash: str
    size: int
    mode: int | None = None


class Parent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The episode, and the step in it, that an episode was forked from."""

    episode: str
    step: int | None = None


def went_wrong(is_error: bool, status: str) -> bool:  # noqa: FBT001  the two fields of a result, in their order
    """Whether a tool's result is one of failure."""
    return is_error or status not in ("ok", "error")


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is known of an episode when it starts."""

    id: str = ""
    task: str
    task_key: str | None = None
    variant: str | None = None
    trial: int | None = None
    seed: int | None = None
    agent: str | None = None
    model: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[Any, Any] | None = None
    parent: Parent | None = None
    source: str = "sdk"
    taps: tuple[str, ...] = ()
    capture: str = "full"
    redacts: bool = False


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="kind"):
    """The envelope. ``seq`` is given by the store and never recorded; ``n`` is dense per writer.

    ``redacted`` counts, by rule, what was replaced by tokens before this event was recorded.

    Not tracked by the garbage collector: events hold plain values, and reading makes them by the million.
    """

    kind: ClassVar[str] = ""

    writer: str = ""
    n: int = 0
    at: int = 0
    parent: str | None = None
    turn: int = 0
    agent: str | None = None
    call: str | None = None
    batch: int | None = None
    duration_ms: int | float | None = None
    native: Native | None = None
    redacted: dict[str, int] | None = None
    unknown_fields: dict[Any, Any] | None = None
    seq: int | None = None


class EpisodeStart(Event, frozen=True, kw_only=True, tag="episode_start"):
    """The first event: what is tried, by whom."""

    kind: ClassVar[str] = "episode_start"
    header: Header


class User(Event, frozen=True, kw_only=True, tag="user"):
    """Input that opens a turn or goes on with it."""

    kind: ClassVar[str] = "user"
    content: str
    actor: str = "human"


class AssistantThinking(Event, frozen=True, kw_only=True, tag="assistant_thinking"):
    """What the model thought, with the provider's opaque state verbatim."""

    kind: ClassVar[str] = "assistant_thinking"
    content: str
    state: dict[Any, Any] | None = None


class AssistantToolCall(Event, frozen=True, kw_only=True, tag="assistant_tool_call"):
    """An action, recorded before it happens. ``args`` are the model's own bytes, valid JSON or not."""

    kind: ClassVar[str] = "assistant_tool_call"
    name: str
    args: bytes
    call_id: str
    reported: bool = False


class ToolResult(Event, frozen=True, kw_only=True, tag="tool_result"):
    """What came of an action. ``content`` is what the model saw, ``returned`` what the tool gave where that differs."""

    kind: ClassVar[str] = "tool_result"
    call_id: str
    content: str
    is_error: bool = False
    exit_code: int | None = None
    status: str = "ok"
    returned: Any = None

    @property
    def failed(self) -> bool:
        """Whether it went wrong: an error, a denial, a timeout, an interruption."""
        return went_wrong(self.is_error, self.status)


class AssistantText(Event, frozen=True, kw_only=True, tag="assistant_text"):
    """What the model said."""

    kind: ClassVar[str] = "assistant_text"
    content: str


class ModelCall(Event, frozen=True, kw_only=True, tag="model_call"):
    """A request to a model, recorded before it is sent.

    The messages are kept as a difference to the call named ``base``: ``reuse`` lists ``(at, start, stop)``, meaning
    that at position ``at`` of the list stand the messages ``start:stop`` of the base; ``messages`` fill the rest.
    """

    kind: ClassVar[str] = "model_call"
    id: str
    model: str | None = None
    parameters: dict[Any, Any] | None = None
    system: Any = None
    tools: Any = None
    base: str | None = None
    reuse: tuple[tuple[int, int, int], ...] = ()
    messages: tuple[Any, ...] | None = None
    attempt: int = 1


class ModelResult(Event, frozen=True, kw_only=True, tag="model_result"):
    """What came of a request: usage and how it is known, time, how it ended."""

    kind: ClassVar[str] = "model_result"
    id: str
    usage: dict[Any, Any] | None = None
    usage_from: str = "provider"
    latency_ms: float | None = None
    finish_reason: str | None = None
    error: str | None = None
    model: str | None = None
    response: Any = None
    token_ids: Any = None
    logprobs: Any = None


class Context(Event, frozen=True, kw_only=True, tag="context"):
    """A change in what the model sees: ``op`` is set, inject, compact or rewind."""

    kind: ClassVar[str] = "context"
    op: str
    system_prompt: str | None = None
    tools: Any = None
    text: str | None = None
    detail: Any = None


class FileChange(Event, frozen=True, kw_only=True, tag="file_change"):
    """A file before and after, by hash; ``cause`` is a call id or ``external``."""

    kind: ClassVar[str] = "file_change"
    op: str
    path: str
    before: FileState | None = None
    after: FileState | None = None
    new_path: str | None = None
    cause: str | None = None
    exact: bool = True


class TestRun(Event, frozen=True, kw_only=True, tag="test_run"):
    """The counts of one execution of tests."""

    __test__: ClassVar[bool] = False  # pytest would collect the name

    kind: ClassVar[str] = "test_run"
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    command: str | None = None
    pass_rate: float | None = None


class Reward(Event, frozen=True, kw_only=True, tag="reward"):
    """A number for a step or for the episode; null is not 0."""

    kind: ClassVar[str] = "reward"
    value: float | None
    name: str = "reward"
    scope: str = "step"
    source: str | None = None
    ended: str | None = None


class SecurityFlag(Event, frozen=True, kw_only=True, tag="security_flag"):
    """A rule that matched, where, and the text that matched it."""

    kind: ClassVar[str] = "security_flag"
    rule: str
    severity: str = "warning"
    where: str | None = None
    evidence: str | None = None


class Verdict(Event, frozen=True, kw_only=True, tag="verdict"):
    """The guard's answer: which rule, what it did (note, deny, stop), its words, its evidence."""

    kind: ClassVar[str] = "verdict"
    rule: str
    action: str
    text: str = ""
    evidence: Any = None
    call_id: str | None = None


class Reflection(Event, frozen=True, kw_only=True, tag="reflection"):
    """A lesson in words: what was tried, how often, what came back."""

    kind: ClassVar[str] = "reflection"
    lesson: str
    signature: str | None = None
    tried: str | None = None
    times: int | None = None
    outcome: str | None = None


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """A milestone, decision, checkpoint or anything else worth a line."""

    kind: ClassVar[str] = "note"
    topic: str
    text: str | None = None
    detail: Any = None


class Label(Event, frozen=True, kw_only=True, tag="label"):
    """An outcome, score, tag or comment given later, by whom; or a ``relation`` to the episode ``to``."""

    kind: ClassVar[str] = "label"
    outcome: str | None = None
    score: float | None = None
    tag: str | None = None
    comment: str | None = None
    by: str | None = None
    relation: str | None = None
    to: str | None = None


class EpisodeEnd(Event, frozen=True, kw_only=True, tag="episode_end"):
    """How it ended; the outcome is null where nobody said one. ``lost`` counts events that could not be kept."""

    kind: ClassVar[str] = "episode_end"
    outcome: str | None = None
    score: float | None = None
    reason: str | None = None
    error: str | None = None
    lost: int = 0


class Unknown(Event, frozen=True, kw_only=True, tag=False):
    """An event of a kind this version does not know: its envelope, its name, its bytes."""

    name: str = ""
    raw: bytes = b""
    exact: bool = False

    @property
    def kind(self) -> str:  # type: ignore[override]  # a newer kind is known per event only
        """The kind as its writer named it."""
        return self.name


Recorded = (
    EpisodeStart | User | AssistantThinking | AssistantToolCall | ToolResult | AssistantText | ModelCall | ModelResult
    | Context | FileChange | TestRun | Reward | SecurityFlag | Verdict | Reflection | Note | Label | EpisodeEnd
)  # fmt: skip

_ALL: Final[tuple[type[Event], ...]] = (
    EpisodeStart, User, AssistantThinking, AssistantToolCall, ToolResult, AssistantText, ModelCall, ModelResult,
    Context, FileChange, TestRun, Reward, SecurityFlag, Verdict, Reflection, Note, Label, EpisodeEnd,
)  # fmt: skip

KINDS: Final[dict[str, type[Event]]] = {each.kind: each for each in _ALL}
"""Every kind, in the order of the design."""

FULL_TRACE: Final = "full_trace"
TRAJECTORY_LOGGER: Final = "trajectory_logger"
"""Sources of episodes that readings look for: added as a whole, and logged with rewards."""

OUTCOMES: Final = ("success", "partial", "failure", "abandoned")
STATUSES: Final = ("ok", "error", "denied", "interrupted", "timeout", "missing")
ENVELOPE: Final = frozenset(Event.__struct_fields__)
