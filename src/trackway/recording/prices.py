"""Where prices come from: the settings first, then the ``genai-prices`` package where it is installed.

The package is an extra, asked only for a model the settings do not know, and imported then: that takes a quarter of a
second. It knows the prices of the day a call was made. Nothing here reaches for a network; the package's own updates
are a thread that somebody else would have to start.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from trackway.read.price import Cost, Price, Pricer, by_table
from trackway.read.tokens import Tokens

_SECOND: Final = 1_000_000_000


def pricer(table: Mapping[str, Price] | None = None, *, installed: bool = True) -> Pricer:
    """What a call cost, for ``usage(events, prices=…)``: by the table, else by the installed prices if those may be."""
    ways = [by_table(table or {}), *([by_package] if installed else [])]

    def price(model: str, tokens: Tokens, at: int) -> Cost | None:
        return next((found for way in ways if (found := way(model, tokens, at)) is not None), None)

    return price


@cache
def _package() -> ModuleType | None:
    try:
        return import_module("genai_prices")
    except ImportError:
        return None


def prices_installed() -> str:
    """Which prices are installed, without importing them; it changes when they do. Empty where none are."""
    try:
        found = find_spec("genai_prices")
    except ValueError:  # somebody has put something else in its place
        return ""
    if found is None or found.origin is None:
        return ""
    package = Path(found.origin).parent
    named = sorted(each.name for each in package.parent.glob("genai_prices-*.dist-info"))
    return named[-1].removesuffix(".dist-info") if named else f"genai_prices-{package.stat().st_mtime_ns}"


def by_package(model: str, tokens: Tokens, at: int) -> Cost | None:
    """What a call cost by the installed prices, as of when it was made."""
    package = _package() if tokens.is_whole else None
    if package is None:
        return None
    read, write, hour = tokens.cache_read or 0, tokens.cache_write or 0, tokens.cache_write_1h or 0
    counts = {
        "input_tokens": (tokens.input or 0) + read + write, "output_tokens": tokens.output,
        "cache_read_tokens": read, "cache_write_tokens": write, **({"cache_write_1h_tokens": hour} if hour else {}),
    }  # fmt: skip
    # Under this provider the package reads "provider/model", which is how routers name models.
    routed = "litellm" if "/" in model else None
    try:
        when = datetime.fromtimestamp(at / _SECOND, UTC) if at else None
        found = package.calc_price(
            package.Usage(**counts), model_ref=model, provider_id=routed, genai_request_timestamp=when
        )
    except (LookupError, ValueError, OverflowError):  # a model or a year it does not know
        return None
    return Cost(found.total_price, f"genai-prices {package.__version__}")
