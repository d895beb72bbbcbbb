"""Events → what can be found of them: a text, and the few words that a search narrows down by.

The same function makes the text that is indexed and the text a snippet is cut from, so nothing is kept twice. Results
know the tool and the files of the call they answer, and a call knows whether it failed: so an entry waits until it is
known what became of the calls before it, as long as that is not far away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from trackway.read.action import PATHS
from trackway.schema import events as kinds
from trackway.schema.events import Event
from trackway.search.words import composed

_END: Final = 1 << 20
"""Characters: of a longer text its first and its last so many can be found."""

_FURTHEST: Final = 256
"""Events: an answer that comes later than this does not mark its call as failed."""

_DEEPEST: Final = 8
_FILES: Final = frozenset(PATHS)
_LONGEST_PATH: Final = 4096


class Entry:
    """One event as it is found."""

    __slots__ = ("agent", "at", "error", "kind", "paths", "seq", "text", "tool")

    def __init__(self, event: Event, seq: int) -> None:
        self.seq = seq
        self.kind = event.kind
        self.at = event.at
        self.agent = event.agent
        self.tool: str | None = None
        self.error: bool | None = None
        self.paths: tuple[str, ...] = ()
        self.text = ""

    @property
    def is_worth_finding(self) -> bool:
        """Whether there is anything to find it by."""
        return bool(self.text) or self.error is not None


# --- texts ----------------------------------------------------------------------------------------------------------


def text_of(event: Event) -> str:
    """What is found of an event, as it is shown; empty where there is nothing worth finding."""
    make = _TEXTS.get(type(event))
    return "" if make is None else _bounded(make(event))


def _bounded(text: str) -> str:
    if len(text) > 2 * _END:
        text = f"{text[:_END]}\n{text[-_END:]}"
    return composed(text)


def _content(event: kinds.User | kinds.AssistantText | kinds.AssistantThinking) -> str:
    return event.content


def _start(event: kinds.EpisodeStart) -> str:
    header = event.header
    said = [header.task, header.task_key, header.variant, *header.tags]
    return _lines(*said, *strings(header.metadata))


def _call(event: kinds.AssistantToolCall) -> str:
    return _called(event.name, arguments(event.args))


def _called(name: str, args: Any) -> str:  # noqa: ANN401  JSON is anything
    return _lines(name, *strings(args))


def _result(event: kinds.ToolResult) -> str:
    return event.content or _lines(*strings(event.returned))


def _model_call(event: kinds.ModelCall) -> str:
    return _lines(*strings(event.system))


def _context(event: kinds.Context) -> str:
    return _lines(event.system_prompt, event.text)


def _file(event: kinds.FileChange) -> str:
    return _lines(f"{event.op} {event.path}", event.new_path)


def _tests(event: kinds.TestRun) -> str:
    return event.command or ""


def _security(event: kinds.SecurityFlag) -> str:
    return _lines(event.rule, event.where, event.evidence)


def _verdict(event: kinds.Verdict) -> str:
    return _lines(f"{event.action} {event.rule}", event.text)


def _reflection(event: kinds.Reflection) -> str:
    return _lines(event.lesson, event.tried, event.signature, event.outcome)


def _note(event: kinds.Note) -> str:
    return _lines(event.topic, event.text, *strings(event.detail))


def _label(event: kinds.Label) -> str:
    return _lines(event.comment, event.tag, event.outcome, event.by)


def _ending(event: kinds.EpisodeEnd) -> str:
    return _lines(event.outcome, event.reason, None if event.error == event.reason else event.error)


def _error(event: kinds.ModelResult) -> str:
    return event.error or ""


_TEXTS: Final[dict[type[Event], Callable[[Any], str]]] = {
    kinds.EpisodeStart: _start, kinds.User: _content, kinds.AssistantThinking: _content, kinds.AssistantText: _content,
    kinds.AssistantToolCall: _call, kinds.ToolResult: _result, kinds.ModelCall: _model_call, kinds.ModelResult: _error,
    kinds.Context: _context, kinds.FileChange: _file, kinds.TestRun: _tests, kinds.SecurityFlag: _security,
    kinds.Verdict: _verdict, kinds.Reflection: _reflection, kinds.Note: _note, kinds.Label: _label,
    kinds.EpisodeEnd: _ending,
}  # fmt: skip


def _lines(*said: str | None) -> str:
    return "\n".join([each for each in said if each])


def arguments(args: bytes) -> Any:  # noqa: ANN401  JSON is anything
    """A call's arguments; as text where they are no JSON."""
    try:
        return msgspec.json.decode(args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return args.decode("utf-8", "replace")


def strings(value: Any, deep: int = 0) -> Iterator[str]:  # noqa: ANN401  as above
    """The texts in a value; other things with the names they have there."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _named(name, each, deep + 1)
    elif isinstance(value, (list, tuple)):
        if deep < _DEEPEST:
            for each in value:
                yield from strings(each, deep + 1)
    elif isinstance(value, (int, float)):
        yield str(value)


def _named(name: object, value: Any, deep: int) -> Iterator[str]:  # noqa: ANN401  as above
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        if deep < _DEEPEST:
            yield from strings(value, deep)
    elif isinstance(value, (int, float)):
        yield f"{name} {value}"


# --- entries --------------------------------------------------------------------------------------------------------


class Entries:
    """Events in the order of their numbers → entries; ``again`` is where to begin the next time."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._ready: deque[Entry] = deque()
        self._open: dict[tuple[str | None, str], deque[Entry]] = {}
        self._calls: deque[Entry] = deque()
        self._answered: set[int] = set()

    def take(self, events: Iterable[Event]) -> Iterator[Entry]:
        """The entries, each as soon as it is known what became of the calls before it; the last when events end."""
        ready, calls = self._ready, self._calls
        for event in events:
            entry = self._made(event)
            if not calls and not ready:
                yield entry
                continue
            ready.append(entry)
            self._forget()
            first = calls[0].seq if calls else self._next
            while ready and ready[0].seq < first:
                yield ready.popleft()
        yield from ready

    @property
    def reached(self) -> int:
        """How many events of the episode have been taken."""
        return self._next

    @property
    def again(self) -> int:
        """The number of the first call that waits for its result, or how many events there are."""
        self._forget()
        return self._calls[0].seq if self._calls else self._next

    def _made(self, event: Event) -> Entry:
        entry = Entry(event, self._next)
        self._next += 1
        if type(event) is kinds.AssistantToolCall:
            self._call(event, entry)
            return entry
        entry.text = text_of(event)
        if type(event) is kinds.ToolResult:
            self._result(event, entry)
        elif type(event) is kinds.FileChange:
            entry.paths = (event.path,) if event.new_path is None else (event.path, event.new_path)
        return entry

    def _call(self, event: kinds.AssistantToolCall, entry: Entry) -> None:
        args = arguments(event.args)
        entry.text = _bounded(_called(event.name, args))
        entry.tool, entry.error = event.name, False
        entry.paths = tuple(dict.fromkeys(_paths(args)))
        self._open.setdefault((event.agent, event.call_id), deque()).append(entry)
        self._calls.append(entry)

    def _result(self, event: kinds.ToolResult, entry: Entry) -> None:
        entry.error = event.failed
        waiting = self._open.get((event.agent, event.call_id))
        if not waiting:
            return
        call = waiting.popleft()
        if not waiting:
            del self._open[event.agent, event.call_id]
        self._answered.add(call.seq)
        call.error = entry.error
        entry.tool, entry.paths = call.tool, call.paths

    def _forget(self) -> None:
        """Calls that are answered, or that nobody waits for any more."""
        calls, late = self._calls, self._next - _FURTHEST
        while calls and (calls[0].seq in self._answered or calls[0].seq < late):
            self._answered.discard(calls.popleft().seq)


def _paths(value: Any, deep: int = 0) -> Iterator[str]:  # noqa: ANN401  JSON is anything
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                if name in _FILES and 0 < len(each) <= _LONGEST_PATH:
                    yield each
            elif deep < _DEEPEST:
                yield from _paths(each, deep + 1)
    elif isinstance(value, list) and deep < _DEEPEST:
        for each in value:
            yield from _paths(each, deep + 1)
