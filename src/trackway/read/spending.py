"""What was spent on models, in groups that are few, can be added up, and can be given a price when it is asked for.

Prices change, tokens do not: a digest keeps the tokens of an episode, each call once, apart by all that a price may
depend on (model, day, how long the prompt was). Within a group a price is a straight line, so that what it comes to is
what its calls come to one by one. What nobody told is counted as unknown, never as 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from trackway.read.price import Cost, Price, Pricer, by_table
from trackway.read.tokens import Tokens
from trackway.read.usage import Call, ModelUsage, Usage, calls_of
from trackway.schema.events import Event

UNTOLD, TOLD, WHOLE, PART = range(4)
"""No usage at all; a cost in it; both sides of it, so that it has a price; only some of it."""

_COUNTS: Final = ("input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning", "total")
_NONE: Final = (None,) * len(_COUNTS)
_DAY: Final = 86_400_000_000_000
_MOST: Final = 2**63
_TIERS: Final = (32_000, 100_000, 128_000, 199_999, 200_000, 256_000, 272_000, 512_000, 524_288, 1_000_000)
"""Where prices of long prompts begin, as of genai-prices 0.2.1: past one of these all tokens of a call cost more."""


class Group(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Calls of one model that are priced alike: when the first was made, how many, their tokens, what they cost."""

    model: str | None
    known: str
    kind: int
    at: int
    n: int
    in_part: int = 0
    counts: tuple[int | None, ...] = _NONE
    cost: str | None = None
    cost_from: str = ""


def groups_of(events: Iterable[Event]) -> list[Group]:
    """The model calls of an episode, each once."""
    found: dict[tuple[object, ...], _Sum] = {}
    for call in calls_of(events):
        kind = _kind(call.tokens)
        tier = _tier(call.tokens) if kind == WHOLE else 0
        key = (call.model, call.from_, kind, call.at // _DAY if kind == WHOLE else 0, tier)
        found.setdefault(key, _Sum(call, kind)).call(call.tokens)
    return [each.group() for each in found.values()]


def priced(groups: Iterable[Group], prices: Pricer) -> list[Group]:
    """The groups with what they cost by these prices, where they have one; what was told stays."""
    return [_priced(each, prices) if each.kind == WHOLE else each for each in groups]


def models_with_prices(groups: Iterable[Group]) -> set[str]:
    """The models whose price says what was spent: where a cost is told, or too little of the usage, it does not."""
    return {each.model for each in groups if each.kind == WHOLE and each.model is not None}


def _kind(tokens: Tokens | None) -> int:
    if tokens is None:
        return UNTOLD
    return TOLD if tokens.cost is not None else WHOLE if tokens.is_whole else PART


def _tier(tokens: Tokens | None) -> int:
    return 0 if tokens is None else bisect_left(_TIERS, _prompt(tokens))


def _prompt(tokens: Tokens) -> int:
    return (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def _priced(group: Group, prices: Pricer) -> Group:
    cost = None if group.model is None else _cost(group.model, group, prices)
    if cost is None:
        return msgspec.structs.replace(group, cost=None, cost_from="")
    return msgspec.structs.replace(group, cost=str(cost.amount), cost_from=cost.known)


def _cost(model: str, group: Group, prices: Pricer) -> Cost | None:
    """All but one at the middle, and one with what is left over: together the tokens of all of them."""
    others = group.n - 1
    middle = tuple(None if each is None else each // group.n for each in group.counts)
    rest = tuple(
        None if each is None or one is None else each - others * one
        for each, one in zip(group.counts, middle, strict=True)
    )
    last = prices(model, _tokens(rest), group.at)
    if last is None or not others:
        return last
    each = prices(model, _tokens(middle), group.at)
    return None if each is None else Cost(others * each.amount + last.amount, last.known)


def _tokens(counts: tuple[int | None, ...]) -> Tokens:
    return msgspec.convert(dict(zip(_COUNTS, counts, strict=True)), Tokens)


class _Sum:
    """A group while it grows."""

    __slots__ = ("cost", "counts", "first", "in_part", "kind", "n")

    def __init__(self, first: Call, kind: int) -> None:
        self.first = first
        self.kind = kind
        self.n = self.in_part = 0
        self.counts: list[int | None] = list(_NONE)
        self.cost: Decimal | None = None

    def call(self, tokens: Tokens | None) -> None:
        self.n += 1
        if tokens is None:
            return
        self.in_part += not tokens.is_whole
        _add(self.counts, tuple(getattr(tokens, name) for name in _COUNTS))
        if tokens.cost is not None:
            self.cost = tokens.cost + (self.cost or 0)

    def group(self) -> Group:
        at = self.first.at if 0 < self.first.at < _MOST else 0
        cost = None if self.cost is None else str(self.cost)
        return Group(
            self.first.model, self.first.from_, self.kind, at, self.n, self.in_part, tuple(self.counts), cost,
            self.first.from_ if cost is not None else "",
        )  # fmt: skip


def _add(sums: list[int | None], counts: tuple[int | None, ...]) -> None:
    for i, count in enumerate(counts):
        if count is not None:
            sums[i] = count + (sums[i] or 0)


class Spending:
    """The groups of any number of episodes, added up."""

    __slots__ = ("_sums",)

    def __init__(self, groups: Iterable[Group] = ()) -> None:
        self._sums: dict[tuple[str | None, str, int, str], _Joined] = {}
        for each in groups:
            self.add(each)

    def add(self, group: Group) -> None:
        """Count one more."""
        key = (group.model, group.known, group.kind, group.cost_from)
        found = self._sums.get(key)
        if found is None:
            found = self._sums[key] = _Joined()
        found.n += group.n
        found.in_part += group.in_part
        _add(found.counts, group.counts)
        if group.cost is not None:
            found.cost = Decimal(group.cost) + (found.cost or 0)

    def usage(self, table: Mapping[str, Price] | None = None) -> Usage:
        """What was spent in all and by model; a price in the table holds over any other."""
        prices, whole, models = by_table(table or {}), _Told(), dict[str | None, _Told]()
        for (model, known, kind, cost_from), each in self._sums.items():
            cost = None if each.cost is None else Cost(each.cost, cost_from)
            if kind == WHOLE and model is not None:
                cost = prices(model, _tokens(tuple(each.counts)), 0) or cost
            for told in (whole, models.setdefault(model, _Told())):
                told.add(known, kind, each, cost)
        rows = tuple(ModelUsage(model=name, **models[name].fields()) for name in sorted(models, key=lambda x: x or ""))
        return Usage(**whole.fields(), models=rows, unpriced_models=tuple(each.model for each in rows if each.unpriced))


class _Joined:
    """Groups that differ in nothing that is told of their sum."""

    __slots__ = ("cost", "counts", "in_part", "n")

    def __init__(self) -> None:
        self.n = self.in_part = 0
        self.counts: list[int | None] = list(_NONE)
        self.cost: Decimal | None = None


class _Told:
    """A sum as it is told."""

    def __init__(self) -> None:
        self.counts: list[int | None] = list(_NONE)
        self.calls: Counter[str] = Counter()
        self.how: Counter[str] = Counter()
        self.cost: Decimal | None = None
        self.cost_from: set[str] = set()

    def add(self, known: str, kind: int, sums: _Joined, cost: Cost | None) -> None:
        self.calls["reported" if known == "agent" else "calls"] += sums.n
        self.calls["in_part"] += sums.in_part
        if kind == UNTOLD:
            self.calls["unknown"] += sums.n
        else:
            self.how[known] += sums.n
        _add(self.counts, tuple(sums.counts))
        if cost is None:
            self.calls["unpriced"] += sums.n
        else:
            self.cost = cost.amount + (self.cost or 0)
            self.cost_from.add(cost.known)

    def fields(self) -> dict[str, Any]:
        counts = dict(zip(_COUNTS, self.counts, strict=True))
        del counts["cache_write_1h"]
        return {
            **counts, **self.calls, "known_from": dict(sorted(self.how.items())),
            "cost": None if self.cost is None else float(self.cost), "cost_from": tuple(sorted(self.cost_from)),
            "is_partial": self.cost is not None and self.calls["unpriced"] > 0,
        }  # fmt: skip
