"""What to hide: rules as a caller or a settings file gives them, made one kind of thing.

A plain text is that text and never a pattern, so that a secret with a ``+`` in it is not taken for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from trackway.errors import BadSetting
from trackway.recording.secrets import KNOWN, Rule
from trackway.recording.tokens import rule_name

Finder = Callable[[str], Any]
"""Given a text, the secrets in it (an iterable of strings), or the text as it may be kept (a string)."""


class Spans(Protocol):
    """A rule that says where secrets stand."""

    @property
    def name(self) -> str:
        """As it stands in the token."""
        ...

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets stand in the text."""
        ...


class Literal(NamedTuple):
    """Exact texts, also as JSON spells them."""

    name: str
    spellings: tuple[str, ...]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Wherever one of the spellings stands."""
        for each in self.spellings:
            start = text.find(each)
            while start >= 0:
                yield start, start + len(each)
                start = text.find(each, start + len(each))


class Rules(NamedTuple):
    """What to hide: by pattern, by a caller's function, and by the name it stands under."""

    rules: tuple[Spans, ...] = ()
    finders: tuple[tuple[str, Finder], ...] = ()
    fields: frozenset[str] = frozenset()

    def plus(self, other: Rules) -> Rules:
        """Both, each rule once."""
        if not other:
            return self
        rules = tuple(dict.fromkeys((*self.rules, *other.rules)))
        return Rules(rules, (*self.finders, *other.finders), self.fields | other.fields)

    def __bool__(self) -> bool:
        return any(self)


NONE: Final = Rules()


def literal(name: str, text: str) -> Rules:
    """Hide this text, wherever it stands."""
    spelt = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    return Rules((Literal(rule_name(name), tuple(dict.fromkeys(spelt))),)) if text else NONE


def pattern(name: str, expression: str) -> Rules:
    """Hide what this regular expression matches, or its first group where it has one."""
    try:
        return Rules((Rule(rule_name(name), re.compile(expression)),))
    except re.error as error:
        raise BadSetting(f"redaction pattern {name!r} is no regular expression: {error}", hint="see `re`") from error


def rules_of(given: Any, name: str = "rule") -> Rules:  # noqa: ANN401  a caller's value is anything
    """What a caller means: True, a text, a compiled pattern, a function, a mapping of names to these, or several."""
    if given is None or isinstance(given, bool):
        return Rules(KNOWN) if given else NONE
    if isinstance(given, (Rules, str, re.Pattern)) or callable(given):
        return _one(given, name)
    if isinstance(given, Mapping):
        return _sum(rules_of(each, str(key)) for key, each in given.items())
    if isinstance(given, Iterable) and not isinstance(given, (bytes, bytearray)):
        return _sum(rules_of(each, name) for each in given)
    raise BadSetting(
        f"redact is a {type(given).__name__}", hint="True, texts, compiled patterns, functions, or a mapping of these"
    )


def _one(given: Rules | str | re.Pattern[str] | Finder, name: str) -> Rules:
    if isinstance(given, Rules):
        return given
    if isinstance(given, str):
        return literal(name, given)
    if isinstance(given, re.Pattern):
        if isinstance(given.pattern, bytes):
            raise BadSetting(f"redaction pattern {given.pattern!r} is one of bytes", hint="compile it from text")
        return Rules((Rule(rule_name(name), given),))
    return Rules(finders=((rule_name(getattr(given, "__name__", name)), given),))


def _sum(parts: Iterable[Rules]) -> Rules:
    whole = NONE
    for each in parts:
        whole = whole.plus(each)
    return whole
