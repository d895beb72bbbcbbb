"""usage(events): tokens and cost, once per model call, and how both are known.

A call has as many results as were recorded under its id; the last that tells tokens counts. A retry is a call of its
own. What nobody told is counted as unknown and never as 0: a sum over some of the calls says how many it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from trackway.read.order import given
from trackway.read.price import Cost, Price, Pricer, by_table
from trackway.read.tokens import Tokens, tokens_of
from trackway.schema.events import EpisodeStart, Event, ModelCall, ModelResult

_COUNTS: Final = ("input", "cache_read", "cache_write", "output", "reasoning", "total")


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent. A count is None where no call told it; ``total`` includes calls that told no more than that.

    ``calls`` are model calls, ``unknown`` those of them without usage; ``reported`` are steps whose tokens an agent
    counted itself; ``in_part`` are calls and steps that told a total or one side only. ``known_from`` says how many
    were told by whom. ``cost`` is in dollars, over all but the ``unpriced`` ones, known as ``cost_from`` says.
    """

    calls: int = 0
    unknown: int = 0
    reported: int = 0
    in_part: int = 0
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    known_from: dict[str, int] = {}
    cost: float | None = None
    cost_from: tuple[str, ...] = ()
    unpriced: int = 0
    is_partial: bool = False


class ModelUsage(Spent, frozen=True, kw_only=True):
    """What was spent on one model; None is a model nobody named."""

    model: str | None = None


class Usage(Spent, frozen=True, kw_only=True):
    """What an episode spent, in all and by model; the models whose cost is not known, or not of every call."""

    models: tuple[ModelUsage, ...] = ()
    unpriced_models: tuple[str | None, ...] = ()


class Call:
    """What is known of one call so far."""

    __slots__ = ("at", "from_", "model", "tokens")

    def __init__(self) -> None:
        self.model: str | None = None
        self.tokens: Tokens | None = None
        self.from_ = ""
        self.at = 0


def usage(events: Iterable[Event], prices: Mapping[str, Price] | Pricer | None = None) -> Usage:
    """The tokens of an episode; what they cost by ``prices``: a table, or ``recording.prices.pricer()``.

    A cost that the provider itself told is taken before any price.

    >>> told = {"input_tokens": 1000, "output_tokens": 100}
    >>> spent = usage([ModelResult(id="1", model="m", usage=told)], {"m": Price(input=1.0, output=10.0)})
    >>> spent.total, spent.cost, spent.cost_from
    (1100, 0.002, ('settings',))
    """
    pricer = by_table(prices) if isinstance(prices, Mapping) else prices
    sums: dict[str | None, _Sum] = {}
    whole = _Sum()
    for call in calls_of(events):
        cost = _cost(call, pricer)
        for each in (whole, sums.setdefault(call.model, _Sum())):
            each.add(call, cost)
    return _whole(whole, sums)


def together(usages: Iterable[Usage]) -> Usage:
    """What several episodes spent, in all and by model."""
    sums: dict[str | None, _Sum] = {}
    whole = _Sum()
    for each in usages:
        whole.join(each)
        for one in each.models:
            sums.setdefault(one.model, _Sum()).join(one)
    return _whole(whole, sums)


def _whole(whole: _Sum, sums: dict[str | None, _Sum]) -> Usage:
    models = tuple(ModelUsage(model=name, **sums[name].fields()) for name in sorted(sums, key=lambda name: name or ""))
    unpriced = tuple(each.model for each in models if each.unpriced)
    return Usage(**whole.fields(), models=models, unpriced_models=unpriced)


def calls_of(events: Iterable[Event]) -> Iterable[Call]:
    """One entry per call, in the order in which they were first heard of."""
    found: dict[tuple[str | None, str], Call] = {}
    model: str | None = None
    for event in given(events):
        if isinstance(event, EpisodeStart):
            model = event.header.model
        elif isinstance(event, ModelCall):
            _named(found, event, model)
        elif isinstance(event, ModelResult):
            call = _named(found, event, model)
            tokens = None if event.usage is None else tokens_of(event.usage)
            if tokens is not None:
                call.tokens, call.from_ = tokens, event.usage_from
    return found.values()


def _named(found: dict[tuple[str | None, str], Call], event: ModelCall | ModelResult, model: str | None) -> Call:
    """The call of an id, and of an agent: two agents' calls are two, whatever a provider calls them."""
    call = found.setdefault((event.agent, event.id), Call())
    call.model, call.at = event.model or call.model or model, event.at
    return call


def _cost(call: Call, pricer: Pricer | None) -> Cost | None:
    if call.tokens is None:
        return None
    if call.tokens.cost is not None:
        return Cost(call.tokens.cost, call.from_)
    return None if pricer is None or call.model is None else pricer(call.model, call.tokens, call.at)


class _Sum:
    """A sum while it grows."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.how: Counter[str] = Counter()
        self.calls = self.unknown = self.reported = self.in_part = self.unpriced = 0
        self.cost: Decimal | None = None
        self.cost_from: set[str] = set()

    def add(self, call: Call, cost: Cost | None) -> None:
        if call.from_ == "agent":
            self.reported += 1
        else:
            self.calls += 1
        if cost is None:
            self.unpriced += 1
        else:
            self.cost = (self.cost or Decimal()) + cost.amount
            self.cost_from.add(cost.known)
        if call.tokens is None:
            self.unknown += 1
            return
        self.in_part += not call.tokens.is_whole
        self.how[call.from_] += 1
        self._count(call.tokens)

    def join(self, spent: Spent) -> None:
        """Add what was summed up before."""
        for name in ("calls", "unknown", "reported", "in_part", "unpriced"):
            setattr(self, name, getattr(self, name) + getattr(spent, name))
        self.how.update(spent.known_from)
        self.cost_from.update(spent.cost_from)
        if spent.cost is not None:
            self.cost = (self.cost or Decimal()) + Decimal(str(spent.cost))
        self._count(spent)

    def _count(self, told: Tokens | Spent) -> None:
        for name in _COUNTS:
            count = getattr(told, name)
            if count is not None:
                self.counts[name] = self.counts.get(name, 0) + count

    def fields(self) -> dict[str, Any]:
        return {
            **self.counts, "calls": self.calls, "unknown": self.unknown, "reported": self.reported,
            "in_part": self.in_part, "known_from": dict(self.how), "unpriced": self.unpriced,
            "cost": None if self.cost is None else float(self.cost), "cost_from": tuple(sorted(self.cost_from)),
            "is_partial": self.cost is not None and self.unpriced > 0,
        }  # fmt: skip
