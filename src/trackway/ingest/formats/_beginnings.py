"""How an episode begins, in the files of benchmarks' agents and others that hold one: after its first prompt.

An episode is called after the task its first prompt states, not after the words a harness puts around every task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from trackway.ingest.making import task_of
from trackway.ingest.source import Entry, Trouble
from trackway.schema.events import AssistantText, User

HELD: Final = 64
"""Entries that are held until the first prompt is read; after that the episode begins without one."""
_AROUND: Final = ("<pr_description>", "<issue_description>", "<issue>", "\nISSUE:\n", "Here's the issue text:\n")
_LEAD: Final = re.compile(r"\A\s*(?:</?[\w-]+>|(?:Consider the following|ISSUE)[^\n]*:[ \t]*(?=\n))")


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
            yield start(prompt or _said(held), at_in(held))
            yield from held
            yield from rest
            return
    if held:
        yield start(_said(held), at_in(held))
        yield from held


class Held:
    """One of several sessions that a file holds side by side: its beginning is told once its first prompt is there."""

    def __init__(self, start: Callable[[str, Sequence[Entry]], Entry]) -> None:
        self._start = start
        self._held: list[Entry] | None = []

    def take(self, entry: Entry) -> Iterator[Entry]:
        """What can be told now: nothing while the prompt is waited for."""
        if self._held is None:
            yield entry
            return
        self._held.append(entry)
        task = next((task_of(each.content) for each in entry.events if isinstance(each, User)), "")
        if task or len(self._held) >= HELD:
            yield from self.flush(task)

    def flush(self, task: str = "") -> Iterator[Entry]:
        """The beginning, and what was held; nothing where that was done."""
        if self._held is not None:
            yield self._start(task, self._held)
            yield from self._held
            self._held = None


def _said(held: list[Entry]) -> str:
    return next((one.content for each in held for one in each.events if isinstance(one, AssistantText)), "")


def at_in(held: Sequence[Entry]) -> int:
    """The first time that is told; 0 where none is."""
    return next((event.at for each in held for event in each.events if event.at), 0)
