"""What the model saw at a call: model, parameters, system prompt, tools and messages, in whole.

Nothing is guessed: what nobody recorded is None, and messages that cannot be put together again are an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from trackway.errors import NotFound
from trackway.read.messages import by_id, chain, rebuild, resolve
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
    return _seen(found, standing, resolve(found, by_id(calls)))


def seen(events: Iterable[Event]) -> Iterator[Seen]:
    """What the model saw, call by call, in reading order."""
    standing = Standing()
    found = ordered(map(_relevant, events))
    sent = _sent([each for each in found if isinstance(each, ModelCall)])
    for event in found:
        if isinstance(event, ModelCall):
            yield _seen(event, standing, next(sent).messages)
        else:
            standing.note(event)


def _seen(call: ModelCall, standing: Standing, messages: list[Any] | None) -> Seen:
    return Seen(
        call=call.id, agent=call.agent, turn=call.turn, at=call.at, attempt=call.attempt,
        model=call.model or standing.of(call.agent, "model"), parameters=call.parameters,
        system=standing.of(call.agent, "system") if call.system is None else call.system,
        tools=standing.of(call.agent, "tools") if call.tools is None else call.tools,
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
    return _sent([each for each in ordered(map(_relevant, events)) if isinstance(each, ModelCall)])


def _sent(wanted: list[ModelCall]) -> Iterator[Sent]:
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
