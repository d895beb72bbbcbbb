"""What the model saw at a call: model, parameters, system prompt, tools, and the messages put together again.

Messages are recorded as differences, each to an earlier call, its base. A base that is not there, or is not what the
difference was made against, is an error: no context is better than a wrong one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from trackway.errors import NotFound
from trackway.read.order import ordered
from trackway.schema.events import Context, EpisodeStart, Event, ModelCall


class Sent(NamedTuple):
    """A request and the whole list of its messages."""

    call: ModelCall
    messages: list[Any] | None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a model was given at one call; None where nobody recorded it."""

    call: str
    agent: str | None = None
    turn: int = 0
    at: int = 0
    attempt: int = 1
    model: str | None = None
    parameters: dict[Any, Any] | None = None
    system: Any = None
    tools: Any = None
    messages: list[Any] | None = None


class Standing:
    """What holds of each agent until something changes it; what an agent was not told is the episode's own."""

    def __init__(self) -> None:
        self._given: dict[tuple[str | None, str], Any] = {}

    def give(self, agent: str | None, **fields: Any) -> None:  # noqa: ANN401
        """Take over what is said; None says nothing."""
        for name, value in fields.items():
            if value is not None:
                self._given[agent, name] = value

    def of(self, agent: str | None, name: str) -> Any:  # noqa: ANN401
        """What stands for the agent; None where nobody said."""
        own = self._given.get((agent, name))
        return self._given.get((None, name)) if own is None else own

    def note(self, event: Event) -> None:
        """Take over what an event sets: the header's model, a context's system prompt and tools."""
        if isinstance(event, EpisodeStart):
            self.give(None, model=event.header.model)
        elif isinstance(event, Context):
            self.give(event.agent, system=event.system_prompt, tools=event.tools)


def context(events: Iterable[Event], at: ModelCall | str) -> Seen:
    """What the model saw at one call, given as the event or its id.

    System prompt, tools and model are the call's own, else the ones that stood for its agent when it was made.

    >>> from trackway.schema.events import Context
    >>> told = Context(op="set", system_prompt="be brief", n=0)
    >>> seen = context([told, ModelCall(id="m1", model="m", messages=("hi",), n=1)], at="m1")
    >>> seen.system, seen.messages
    ('be brief', ['hi'])
    """
    wanted = at.id if isinstance(at, ModelCall) else at
    calls: list[ModelCall] = []
    standing = Standing()
    found: ModelCall | None = None
    for event in ordered(map(_relevant, events)):
        if isinstance(event, ModelCall):
            calls.append(event)
            found = event if found is None and event.id == wanted else found
        elif found is None:
            standing.note(event)
    if found is None:
        raise NotFound(f"no model call {wanted!r} among these events", hint="contexts(events) has all of them", at=at)
    messages: list[Any] | None = None
    for each in reversed(list(chain(found, by_id(calls)))):
        messages = rebuild(each, messages)
    return Seen(
        call=found.id, agent=found.agent, turn=found.turn, at=found.at, attempt=found.attempt,
        model=found.model or standing.of(found.agent, "model"), parameters=found.parameters,
        system=standing.of(found.agent, "system") if found.system is None else found.system,
        tools=standing.of(found.agent, "tools") if found.tools is None else found.tools,
        messages=messages,
    )  # fmt: skip


def _relevant(event: Event) -> Event:
    """The event, or only its place in the reading order: what is not needed is not kept."""
    if isinstance(event, (ModelCall, Context, EpisodeStart)):
        return event
    return Event(writer=event.writer, n=event.n, at=event.at, parent=event.parent)


def contexts(events: Iterable[Event]) -> Iterator[Sent]:
    """Every model call with its messages, in reading order; None where the caller gave none.

    The messages of a call are kept only while a later one is told by them.
    """
    wanted = [each for each in ordered(map(_relevant, events)) if isinstance(each, ModelCall)]
    calls = by_id(wanted)
    uses = Counter(each.base for each in wanted if each.reuse)
    kept: dict[str, list[Any] | None] = {}
    for call in wanted:
        if call.id in kept:
            messages = kept[call.id]
        else:
            links = list(chain(call, calls, kept))
            messages = kept.get(links[-1].base or "")
            for each in reversed(links):
                messages = rebuild(each, messages)
                _keep(each, messages, uses=uses, kept=kept)
        yield Sent(call, None if messages is None else list(messages))


def _keep(call: ModelCall, messages: list[Any] | None, *, uses: Counter[str | None], kept: dict[str, Any]) -> None:
    """Keep the messages if a later call is told by them; those this call was told by go with their last use."""
    if call.reuse and call.base is not None:
        uses[call.base] -= 1
        if uses[call.base] <= 0:
            kept.pop(call.base, None)
    if uses[call.id] > 0:
        kept[call.id] = messages


def by_id(calls: Iterable[ModelCall]) -> dict[str, ModelCall]:
    """The calls by id. Where two that differ share one, nothing can be told by it: that is an error if it was."""
    found: dict[str, ModelCall] = {}
    twice = set()
    told_by = set()
    for each in calls:
        earlier = found.setdefault(each.id, each)
        if (earlier.base, earlier.reuse, earlier.messages) != (each.base, each.reuse, each.messages):
            twice.add(each.id)
        if each.reuse:
            told_by.add(each.base)
    for name in twice & told_by:
        raise NotFound(
            f"two model calls are called {name}, and a later one is told by the messages of one of them",
            hint="an id names one call of an episode: give each its own", call=name,
        )  # fmt: skip
    return found


def chain(call: ModelCall, calls: Mapping[str, ModelCall], kept: Container[str | None] = ()) -> Iterator[ModelCall]:
    """The call, the one it is told by, and so on, up to one that stands for itself or is told by one of ``kept``."""
    passed = set()
    while True:
        yield call
        passed.add(call.id)
        if not call.reuse or call.messages is None or call.base in kept:
            return
        base = calls.get(call.base or "")
        if base is None or base.id in passed:
            reason = "is not among these events" if base is None else "is told by it"
            raise NotFound(
                f"the messages of model call {call.id} are told by those of call {call.base}, which {reason}",
                hint="give all events of the episode: a part of it cannot be put together",
                call=call.id, base=call.base,
            )  # fmt: skip
        call = base


def rebuild(call: ModelCall, base: list[Any] | None) -> list[Any] | None:
    """The messages of one call, given those of the call it was recorded against.

    >>> rebuild(ModelCall(id="2", reuse=((0, 0, 2), (3, 2, 3)), messages=("new",)), ["a", "b", "c"])
    ['a', 'b', 'new', 'c']
    """
    if call.messages is None:
        return None
    base = base or []
    result: list[Any] = []
    used = 0
    for at, start, stop in call.reuse:
        fresh = at - len(result)
        if fresh < 0 or used + fresh > len(call.messages) or not 0 <= start <= stop <= len(base):
            raise NotFound(
                f"model call {call.id} takes messages {start} to {stop} of call {call.base} for its place {at}; "
                f"that call has {len(base)}, and {len(call.messages)} are its own",
                hint="the recording of this call is damaged: trackway verify", call=call.id, base=call.base,
            )  # fmt: skip
        result += call.messages[used : used + fresh]
        used += fresh
        result += base[start:stop]
    return [*result, *call.messages[used:]]
