"""Every source there is, and which of them a file is of: told by content, never by name.

Ours are loaded when they are first needed; others come in through the plug-in point ``trackway.sources``.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final, NamedTuple

from trackway import plugins
from trackway.ingest.head import Head
from trackway.ingest.source import Sign, Source

OURS: Final[tuple[str, ...]] = (
    # one a line, in the order in which equally sure ones are believed
    "claude_code",
    "codex",
    "codex_trace",
    "gemini_cli",
    "atif",
    "mini_swe_agent",
    "swe_agent",
    "openhands_v0",
    "openhands_v1",
    "pi",
    "opencode",
    "qwen",
    "tau_bench",
    "tau2_bench",
    "tau_few_shot",
    "openai_chat",
    "sharegpt",
    "inspect",
    "seed_trace",
    "seed_sharegpt",
    "reflexion",
    "toolbench",
    "pydantic_ai",
    "openai_agents",
    "pack",
    "droid",
    "kimi",
    "cursor",
    "grok",
    "copilot",
    "openclaw",
    "hermes",
    "antigravity",
)
"""The modules in ``trackway.ingest.formats``; each has its ``SOURCE``."""

LEAST: Final = 0.3
"""Below this nobody is sure enough for a file to be read."""


class Detected(NamedTuple):
    """What a file is said to be: by whom, how surely, and why."""

    source: Source
    sign: Sign


@cache
def all_sources() -> tuple[Source, ...]:
    """Ours, then those of plug-ins."""
    ours = [importlib.import_module(f"trackway.ingest.formats.{name}").SOURCE for name in OURS]
    return (*ours, *(plugins.load("sources", name) for name in plugins.names("sources")))


def source_of(name: str) -> Source | None:
    """The source of that name."""
    return next((each for each in all_sources() if each.name == name), None)


def detect(head: Head) -> list[Detected]:
    """Every source that takes the file for its own, the surest first; of equally sure ones the first listed."""
    found = []
    for source in all_sources():
        sign = _sign(source, head)
        if sign is not None and sign.confidence >= LEAST:
            found.append(Detected(source, sign))
    return sorted(found, key=lambda each: -each.sign.confidence)


def _sign(source: Source, head: Head) -> Sign | None:
    """What the source says; a head of any shape may come, and one that it trips over is none of its own."""
    try:
        return source.detect(head)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return None
