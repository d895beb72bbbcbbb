"""The fields of the query language: which there are, and what may stand behind their colon.

A value that cannot be is refused where it stands; a field that is none is text, as in ``std::map`` or ``http://…``.
"""

from __future__ import annotations

from typing import Final

from trackway.errors import QueryRefused
from trackway.schema.events import KINDS, OUTCOMES
from trackway.search import moments
from trackway.search.pattern import path_regex, regex_of
from trackway.search.words import name_of

FIELDS: Final = {
    "tool": "the tool that was called, also of its result; globs",
    "error": "true: calls and results that failed; false: those that did not",
    "path": "a file that was read, written or named in a call; globs",
    "kind": "the kind of event: user, text, thinking, tool_call, tool_result …; globs",
    "agent": "the agent or sub-agent; globs",
    "source": "where it was recorded or imported from; globs",
    "task": "episodes whose task contains this, in any case",
    "model": "episodes of this model; globs",
    "outcome": "episodes that ended so: success, partial, failure, abandoned, none",
    "id": "one episode, by any form of its id",
    "since": "events at or after: 2025-11-15, 2025-11-15T08:30, 7d",
    "until": "events before",
}
"""Name → what it holds to, for help."""

Value = str | bool | int | tuple[str, str]
"""Text as it is; yes or no; a time; or a pattern over names, with the text it was made of."""

EXACT: Final = ("tool", "kind", "agent", "source")
"""Those that are one word of the index."""

OF_EPISODES: Final = frozenset({"task", "model", "outcome", "id"})
"""Those that speak of an episode as a whole."""

_YES: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SHORT: Final = {each: each for each in KINDS} | {each.removeprefix("assistant_"): each for each in KINDS}
_CHOICES: Final[dict[str, dict[str, bool | str]]] = {
    "error": dict(_YES), "outcome": {each: each for each in (*OUTCOMES, "none")}, "kind": dict(_SHORT),
}  # fmt: skip
_MOST: Final = 1000


def value_of(name: str, text: str, *, now: int, utc: bool) -> Value:
    """A field's value as it is asked for; raises ``QueryRefused``, without a position."""
    if not text.strip():
        raise QueryRefused(f"{name}: has no value", hint=FIELDS[name])
    if len(text) > _MOST:
        raise QueryRefused(f"the value of {name}: has {len(text):,} characters", hint=f"at most {_MOST:,}")
    if name in ("since", "until"):
        return _moment(name, text, now=now, utc=utc)
    if name in _CHOICES and not (name == "kind" and _is_glob(text)):
        return _one_of(name, text.lower())
    if name == "path":
        return path_regex(name_of(text.removeprefix("./"))), text
    if name in EXACT or name == "model":
        return (regex_of(name_of(text)), text) if _is_glob(text) else name_of(text)
    return text


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _moment(name: str, text: str, *, now: int, utc: bool) -> int:
    try:
        return moments.instant(text, now=now, utc=utc)
    except ValueError as error:
        raise QueryRefused(f"{name}:{text} is no time", hint=f"write {moments.FORMS}") from error


def _one_of(name: str, text: str) -> bool | str:
    known = _CHOICES[name]
    try:
        return known[text]
    except KeyError:
        raise QueryRefused(f"{name}:{text} is none", hint=f"one of {', '.join(known)}") from None
