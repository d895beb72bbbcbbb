"""What a provider says of a call's tokens, in one shape.

Providers agree on neither the names nor the sums. Two questions decide: are tokens read from a cache part of the input
count (OpenAI, Gemini, litellm, LangChain, OpenTelemetry) or beside it (Anthropic, Bedrock, pi, opencode); and are
reasoning tokens part of the output count (most) or beside it (Gemini, xAI). Here ``input`` is what came from no cache,
``output`` includes reasoning, and ``total`` is the sum of ``input``, ``cache_read``, ``cache_write`` and ``output``.
What is not told is None, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec

_INPUT: Final = (
    "input_tokens", "prompt_tokens", "prompt_token_count", "input_token_count", "prompt_eval_count", "input",
    "input_other", "tokens.input_tokens", "billed_units.input_tokens", "request_tokens",
)  # fmt: skip
_OUTPUT: Final = (
    "output_tokens", "completion_tokens", "candidates_token_count", "response_token_count", "output_token_count",
    "eval_count", "output", "tokens.output_tokens", "billed_units.output_tokens", "response_tokens",
)  # fmt: skip
_READ: Final = (
    "cache_read_input_tokens", "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
    "input_token_details.cache_read", "cached_content_token_count", "cached_input_tokens", "prompt_cache_hit_tokens",
    "cache_read_tokens", "cache_read.input_tokens", "cached_tokens", "cache_read", "cache.read", "cached",
    "input_cache_read", "input_tokens_cache_read",
)  # fmt: skip
_WRITE: Final = (
    "cache_creation_input_tokens", "cache_write_input_tokens", "input_token_details.cache_creation",
    "prompt_tokens_details.cache_creation_tokens", "prompt_tokens_details.cache_write_tokens", "cache_write_tokens",
    "cache_creation.input_tokens", "cache_creation_tokens", "cache_write", "cache.write", "input_cache_creation",
    "input_tokens_cache_write",
)  # fmt: skip
_WRITE_1H: Final = ("cache_creation.ephemeral_1h_input_tokens",)
_WRITE_PARTS: Final = ("cache_creation.ephemeral_5m_input_tokens", *_WRITE_1H)
_REASONING: Final = (
    "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
    "output_token_details.reasoning", "reasoning_tokens", "reasoning_output_tokens", "details.reasoning_tokens",
    "output_tokens_details.thinking_tokens", "reasoning",
)  # fmt: skip
_THOUGHTS: Final = ("thoughts_token_count", "thoughts")
_TOOL_PROMPT: Final = ("tool_use_prompt_token_count", "tool")
_TOTAL: Final = ("total_tokens", "total_token_count", "total")
_COST: Final = ("cost", "total_cost", "response_cost", "cost_usd", "total_cost_usd", "cost.total", "cost.total_cost")

_BESIDE: Final = {
    "input_tokens": frozenset(
        {
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cache_write_input_tokens",
            "input_tokens_cache_read",
            "input_tokens_cache_write",
        }
    ),
    "input": frozenset({"cache_read", "cache_write", "cache.read", "cache.write"}),
    "input_other": frozenset({"input_cache_read", "input_cache_creation"}),
}
"""Under these names of the input, a cache counted under one of those stands beside it."""
_WITHIN: Final = frozenset({
    "input_tokens_details.cached_tokens", "prompt_tokens_details.cached_tokens", "cached_input_tokens",
})  # fmt: skip
"""... but where one of these is told, too, a part of the input is meant."""
_MOST: Final = 2**63
_OTEL: Final = "gen_ai.usage."
_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one call. ``cache_write_1h`` and ``reasoning`` are parts of ``cache_write`` and ``output``."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    cost: Decimal | None = None

    @property
    def is_whole(self) -> bool:
        """Whether both sides are known, so that a price can be put on it."""
        return self.input is not None and self.output is not None


def tokens_of(usage: Mapping[Any, Any]) -> Tokens | None:
    """The counts of a usage as any provider writes it; None where it tells none, and no cost either.

    >>> tokens_of({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}).input
    2
    >>> tokens_of({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 8}).total
    23
    """
    flat = _flat(usage)
    counts = {name: int(value) for name, value in flat.items() if float(value).is_integer()}
    read, write = _first(counts, _READ), _first(counts, _WRITE)
    kept = [counts[name] for name in _WRITE_PARTS if name in counts]
    write = sum(kept) if kept and not write else write
    fresh = _input(
        counts, (read or 0) + (write or 0), otel=any(isinstance(name, str) and name.startswith(_OTEL) for name in usage)
    )
    output, reasoning = _output(counts, None if fresh is None else fresh + (read or 0) + (write or 0))
    known = [each for each in (fresh, read, write, output) if each is not None]
    told = _first(counts, _TOTAL)
    cost = next((Decimal(str(flat[name])) for name in _COST if name in flat), None)
    if not known and told is None and cost is None:
        return None
    whole = told is None or (fresh is not None and output is not None)
    return Tokens(
        input=fresh, cache_read=read, cache_write=write, cache_write_1h=_first(counts, _WRITE_1H), output=output,
        reasoning=reasoning, total=(sum(known) if known else None) if whole else told, cost=cost,
    )  # fmt: skip


def _input(counts: dict[str, int], cached: int, *, otel: bool) -> int | None:
    """What came from no cache."""
    name = next((each for each in _INPUT if each in counts), None)
    if name is None:
        return None
    count = counts[name] + (_first(counts, _TOOL_PROMPT) or 0)
    beside = not otel and counts.keys() & _BESIDE.get(name, frozenset()) and not counts.keys() & _WITHIN
    return count if beside or cached > count else count - cached


def _output(counts: dict[str, int], whole_input: int | None) -> tuple[int | None, int | None]:
    """What was produced, reasoning included; and the reasoning."""
    output, reasoning, thoughts = _first(counts, _OUTPUT), _first(counts, _REASONING), _first(counts, _THOUGHTS)
    if output is None:
        return (None, reasoning) if thoughts is None else (thoughts, thoughts)
    if thoughts is not None:
        return output + thoughts, thoughts
    total = _first(counts, _TOTAL)
    # Only where the provider's own sum says so is reasoning counted beside the output.
    if reasoning and whole_input is not None and total == whole_input + output + reasoning:
        return output + reasoning, reasoning
    return output, reasoning


def _first(counts: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The first count that is not 0 under any of the names; 0 where all are, None where there is none."""
    found = [counts[name] for name in names if name in counts]
    return next(filter(None, found), 0) if found else None


def _flat(usage: Mapping[Any, Any]) -> dict[str, int | float]:
    """The numbers in it by their snake_case names, one level down as ``outer.inner``."""
    found: dict[str, int | float] = {}
    for name, value in usage.items():
        if isinstance(value, Mapping):
            found |= {f"{_snake(name)}.{_snake(inner)}": each for inner, each in value.items() if _is_count(each)}
        elif _is_count(value):
            found[_snake(name)] = value
    return found


@lru_cache(maxsize=1024)  # the same few names in every call
def _snake(name: object) -> str:
    return _HUMP.sub(r"_\1", name.removeprefix(_OTEL)).lower() if isinstance(name, str) else ""


def _is_count(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and value >= 0
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
