"""Fields taken as what they should be, and an episode's beginning: shared by the readers of benchmark agents' files.

A field of the wrong type counts as missing; the reader keeps the entry's rest whole. An episode is called after the
task its first prompt states, not after the words a harness puts around every task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from trackway.ingest.making import task_of
from trackway.ingest.source import Entry, Trouble
from trackway.schema.events import AssistantText, User

HELD: Final = 64
"""Entries that are held until the first prompt is read; after that the episode begins without one."""
_MOST: Final = 2**63 - 1
_AROUND: Final = ("<pr_description>", "<issue_description>", "<issue>", "\nISSUE:\n", "Here's the issue text:\n")
_LEAD: Final = re.compile(r"\A\s*(?:</?[\w-]+>|(?:Consider the following|ISSUE)[^\n]*:[ \t]*(?=\n))")


def text(value: object) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """The value where it is a whole number that can be kept as one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST else None


def number(value: object) -> float | None:
    """The value as a number where it is one, or says yes or no."""
    if isinstance(value, (bool, int, float)) and abs(value) <= _MOST and math.isfinite(value):
        return float(value)
    return None


def milliseconds(seconds: object) -> float | None:
    """Seconds as milliseconds; None where they are no time that passes."""
    found = None if isinstance(seconds, bool) else number(seconds)
    return None if found is None or found < 0 else round(found * 1000, 3)


def left(entry: dict[str, Any], *known: str) -> dict[str, Any]:
    """What is in it beside ``known``, and says something."""
    return {key: each for key, each in entry.items() if key not in known and each not in (None, "", [], {})}


def task_in(prompt: str, template: str = "") -> str:
    r"""What an episode is called after a prompt that a harness put together around the task.

    ``template`` is what it was made of, where the file tells: the task stands where ``{{task}}`` does.

    >>> task_in("<pr_description>\nConsider the following PR description:\nIt fails.\n</pr_description>")
    'It fails.'
    >>> task_in("Solve this now: mend it. Go.", "Solve this now: {{task}}. Go.")
    'mend it'
    """
    before, mark, after = template.partition("{{task}}")
    rest = prompt
    if mark and before and prompt.startswith(before):
        rest = prompt[len(before) :]
        behind = after.partition("{")[0]
        if len(behind.strip()) > 1 and behind in rest:
            rest = rest[: rest.rindex(behind)]
    else:
        for mark in _AROUND:
            at = prompt.find(mark, 0, 4096)
            if at >= 0:
                rest = prompt[at + len(mark) :]
                break
    while (lead := _LEAD.match(rest)) is not None:
        rest = rest[lead.end() :]
    return task_of(rest) or task_of(prompt)


def opened(entries: Iterable[Entry | Trouble], start: Callable[[str, int], Entry]) -> Iterator[Entry | Trouble]:
    """The entries of one episode, its beginning before them: ``start`` is given the first prompt, and a time.

    Entries that come before the prompt are held, a bounded few. Where there is none, the first thing said will do.
    """
    held: list[Entry] = []
    rest = iter(entries)
    for each in rest:
        if isinstance(each, Trouble):
            yield each
            continue
        held.append(each)
        prompt = next((one.content for one in each.events if isinstance(one, User)), "")
        if prompt or len(held) >= HELD:
            yield start(prompt or _said(held), _at(held))
            yield from held
            yield from rest
            return
    if held:
        yield start(_said(held), _at(held))
        yield from held


def _said(held: list[Entry]) -> str:
    return next((one.content for each in held for one in each.events if isinstance(one, AssistantText)), "")


def _at(held: list[Entry]) -> int:
    return next((event.at for each in held for event in each.events if event.at), 0)
