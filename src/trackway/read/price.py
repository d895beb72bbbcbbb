"""What tokens cost, and how that is known: prices per million tokens, in US dollars, from a table with dates.

Sums are made in ``Decimal`` from the prices as they are written, so a cost is exact; it becomes a float once, at the
end, when it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from trackway.read.tokens import Tokens

_MILLION: Final = Decimal(1_000_000)
_Dollars = Annotated[float, msgspec.Meta(ge=0)]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars per million tokens, and since when; a row of ``[prices]``.

    A cache whose price is not given costs what input costs; one kept for an hour, what a shorter one does.

    >>> sonnet = Price(input=3.0, output=15.0, as_of="2026-11-01")
    >>> sonnet.cost(Tokens(input=1_000_000, output=1000))
    Decimal('3.015')
    """

    input: _Dollars
    output: _Dollars
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None
    cache_write_1h: _Dollars | None = None
    as_of: Any = None  # a date or its text, TOML has both; kept as text

    def __post_init__(self) -> None:
        if self.as_of is not None:
            msgspec.structs.force_setattr(self, "as_of", date.fromisoformat(str(self.as_of)).isoformat())

    def cost(self, tokens: Tokens) -> Decimal | None:
        """What the tokens cost; None where input or output are not known."""
        if not tokens.is_whole:
            return None
        write = self.input if self.cache_write is None else self.cache_write
        hour = tokens.cache_write_1h or 0
        parts = (
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.input if self.cache_read is None else self.cache_read),
            ((tokens.cache_write or 0) - hour, write),
            (hour, write if self.cache_write_1h is None else self.cache_write_1h),
        )
        return sum(((count or 0) * Decimal(str(dollars)) for count, dollars in parts), Decimal()) / _MILLION


class Cost(NamedTuple):
    """An amount in dollars, and how it is known."""

    amount: Decimal
    known: str


Pricer = Callable[[str, Tokens, int], Cost | None]
"""Model, tokens and when (UTC ns) → what it cost; None where nobody knows."""


def by_table(table: Mapping[str, Price]) -> Pricer:
    """Prices by the model's name, in any case. A key may be a pattern (``gpt-4o*``); the longest that matches wins.

    >>> prices = by_table({"gpt-*": Price(input=1, output=2), "gpt-4o*": Price(input=2.5, output=10)})
    >>> prices("gpt-4o-mini", Tokens(input=1_000_000, output=0), 0).amount
    Decimal('2.5')
    """
    rows = sorted(((key.lower(), price) for key, price in table.items()), key=lambda row: (-len(row[0]), row[0]))
    found: dict[str, Price | None] = {}

    def price(model: str, tokens: Tokens, at: int) -> Cost | None:
        del at  # one price a row: it holds for every time
        if model not in found:
            name = model.lower()
            exactly = (each for key, each in rows if key == name)
            found[model] = next(exactly, next((each for key, each in rows if fnmatchcase(name, key)), None))
        row = found[model]
        amount = None if row is None else row.cost(tokens)
        if row is None or amount is None:
            return None
        return Cost(amount, "settings" if row.as_of is None else f"settings, as of {row.as_of}")

    return price
