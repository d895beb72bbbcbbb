"""A conversation of OpenHands as a folder of files, one an event: which of them stands for all, and their order.

One file is read with all the others beside it. It is ``base_state.json`` where there is one, else the first event's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.original import Original
from trackway.ingest.source import Place, Trouble

V1: Final = re.compile(r"event[-_](\d{5,})[-_][0-9a-fA-F-]{8,}\.json")
V0: Final = re.compile(r"(\d+)\.json")
BASE: Final = "base_state.json"


def is_part(name: str, path: Path | None, pattern: re.Pattern[str]) -> bool:
    """Whether an event's file is read with another."""
    here = pattern.fullmatch(PurePath(name).name)
    if here is None:
        return False
    number = int(here[1])
    if path is None:
        return number > 0
    try:
        if pattern is V1 and (path.parent.parent / BASE).is_file():
            return True
        beside = (pattern.fullmatch(each.name) for each in path.parent.iterdir())
        return any(int(each[1]) < number for each in beside if each is not None)
    except OSError:
        return False


def event_values(original: Original, pattern: re.Pattern[str]) -> Iterator[Any | Trouble]:
    """The events of the folder a file stands for, in the order of their numbers; a file that is none is trouble."""
    is_base = PurePath(original.name).name == BASE
    found = original.all_near(0, *(("events",) if is_base else ()), pattern="*.json")
    numbered = []
    for each in found:
        match = pattern.fullmatch(each.path.name)
        if match is None:
            original.companions.pop(each.path, None)
        else:
            numbered.append((int(match[1]), each))
    for _, each in sorted(numbered, key=lambda pair: pair[0]):
        if each.path == original.path:  # it is no companion of its own
            original.companions.pop(each.path, None)
        try:
            yield each.value()
        except FileRefused as error:
            yield Trouble(Place(), error.message)


def apart(found: Iterable[Any | Trouble], troubles: list[Trouble]) -> Iterator[Any]:
    """The values alone; what could not be read is put aside, to be told behind them."""
    for each in found:
        if isinstance(each, Trouble):
            troubles.append(each)
        else:
            yield each


def folder_of(original: Original) -> str:
    """What the folder of the conversation is called, where its events have one of their own in it; else nothing."""
    path = PurePath(original.name)
    if path.name == BASE:
        return path.parent.name
    return path.parent.parent.name if path.parent.name == "events" else ""
