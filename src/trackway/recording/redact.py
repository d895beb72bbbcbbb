"""Redaction at capture: secrets become keyed tokens before an event is encoded, so they reach no file at all.

Everything an event carries passes here, names in mappings and file contents too, but for the ids that tie events
together. A rule that fails hides the whole text it was asked about: what cannot be judged is not written in the clear.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from trackway.recording.rules import Literal, Rules
from trackway.recording.secrets import KNOWN
from trackway.recording.tokens import TOKEN, VALUE, Tokens
from trackway.schema.canonical import canonical_json
from trackway.schema.events import FULL_TRACE, TRAJECTORY_LOGGER
from trackway.schema.plain import json_text

_OURS: Final = frozenset({
    "at", "turn", "batch", "call", "id", "base", "reuse", "parent", "duration_ms", "before", "after", "to", "messages",
    "redacted", "status", "latency_ms", "exit_code", "is_error",
})  # fmt: skip
"""Fields that hold nothing a caller made up; messages are done when they are compared, files when they are hashed."""

_ANYTHING: Final = frozenset({"detail", "returned", "response", "evidence", "system"})
"""Fields that hold whatever a caller gives, numbers among it."""

_SOURCES: Final = ("sdk", FULL_TRACE, TRAJECTORY_LOGGER)
"""Words of ours that readings look for."""

_HEADER: Final = ("task", "task_key", "variant", "agent", "model", "tags", "metadata", "source")


class Tally:
    """What was hidden in one event: how often by which rule, and the token of each secret."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self.counts = Counter(counts or {})
        self.tokens: dict[str, str] = {}


class Redactor:
    """Hides what the rules find, with the tokens of one key."""

    def __init__(self, rules: Rules, tokens: Tokens) -> None:
        self._rules, self._finders, fields = rules
        self._own = [each for each in self._rules if each not in KNOWN]
        self._fields = frozenset(each.casefold() for each in fields)
        self._named_in_text = _names_in_text(fields)
        self._tokens = tokens

    def event(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an event as they may be kept, with the count of what was hidden by each rule."""
        tally = Tally(fields.get("redacted"))
        clean = {name: each if name in _OURS else self._field(name, each, tally) for name, each in fields.items()}
        if tally.counts:
            clean["redacted"] = dict(tally.counts)
        return clean

    def _field(self, name: str, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        if name == "header":
            names = _HEADER[:-1] if value.source in _SOURCES else _HEADER
            clean = {each: self.value(getattr(value, each), tally) for each in names}
            return msgspec.structs.replace(value, **{**clean, "tags": tuple(clean["tags"])})
        if isinstance(value, (int, float)) and name not in _ANYTHING:
            return value  # a score, a count: as text it would not be that any more
        return self.args(value, tally) if name == "args" else self.value(value, tally)

    def value(self, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        """Any plain value, names included."""
        if isinstance(value, str):
            return self.text(value, tally)
        if isinstance(value, dict):
            return self._mapping(value, tally)
        if isinstance(value, (list, tuple)):
            return [self.value(each, tally) for each in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value, tally)
        return self.body(value, tally) if isinstance(value, bytes) else value

    def _mapping(self, value: dict[Any, Any], tally: Tally) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, each in value.items():
            name = self.value(key, tally)
            while name in found:  # a function may answer the same for two names: neither value is lost
                name = f"{name}+"
            found[name] = self._named(key, each, tally)
        return found

    def _number(self, value: float, tally: Tally) -> Any:  # noqa: ANN401
        """A number that a caller's rule finds is a token; no known secret is one."""
        if not self._own and not self._finders:
            return value
        found = Tally()
        if self.text(repr(value), found) == repr(value):
            return value
        return self._hide(json.dumps(value), next(iter(found.counts)), tally, mark=VALUE)

    def _named(self, key: Any, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        if value is None or not isinstance(key, str) or key.casefold() not in self._fields:
            return self.value(value, tally)
        if isinstance(value, str):
            is_hidden = TOKEN.fullmatch(value) and self._tokens.lift(value) != value
            return value if is_hidden else self._hide(value, "field", tally)
        return self._hide(json_text(value).decode(), "field", tally, mark=VALUE)

    def body(self, body: bytes, tally: Tally) -> bytes:
        """Bytes, text or not."""
        text = body.decode("utf-8", "surrogateescape")
        clean = self.text(text, tally)
        return body if clean == text else clean.encode("utf-8", "surrogateescape")

    def args(self, args: bytes, tally: Tally) -> bytes:
        """Arguments: in JSON each string is looked at as what it says, and all else keeps its spelling."""
        said = _parsed(args)
        if said is None:
            return self.body(args, tally)
        before = set(tally.tokens)
        clean = self.value(said, tally)
        new = {secret: token for secret, token in tally.tokens.items() if secret not in before}
        return _respelt(args, new, clean) if new else args

    def text(self, text: str, tally: Tally) -> str:
        """A text with its secrets hidden."""
        try:
            text = self._fields_of(text, tally) if self._fields else text
            for name, find in self._finders:
                text = self._asked(text, name, find(text), tally)
            spans = [(start, -stop, rule.name) for rule in self._rules for start, stop in rule.spans(text)]
        except Exception:  # noqa: BLE001  a caller's rule may do anything; the text it failed on is hidden whole
            return self._hide(text, "failed", tally)
        return self._without(text, sorted(spans), tally) if spans else text

    def _asked(self, text: str, name: str, answer: Any, tally: Tally) -> str:  # noqa: ANN401
        """A caller's answer: the text as it may be kept, or the secrets in it."""
        if isinstance(answer, str):
            tally.counts[name] += answer != text
            return answer
        for secret in sorted({each for given in answer or () for each in _texts(given)} - {""}, key=len, reverse=True):
            spans = [(start, -stop, name) for start, stop in Literal(name, (secret,)).spans(text)]
            text = self._without(text, spans, tally) if spans else text
        return text

    def _without(self, text: str, spans: list[tuple[int, int, str]], tally: Tally) -> str:
        """Spans that overlap are one; what is inside a token already stays."""
        found = TOKEN.finditer(text) if "[redacted:" in text else ()
        tokens = [each.span() for each in found if self._tokens.lift(each[0]) != each[0]]  # ours, and not made up
        parts: list[str] = []
        done = 0
        for start, stop, name in _merged(spans):
            place = bisect_right(tokens, (start, len(text))) - 1
            if place >= 0 and stop <= tokens[place][1]:
                continue
            parts += text[done:start], self._hide(text[start:stop], name, tally)
            done = stop
        return "".join((*parts, text[done:]))

    def _fields_of(self, text: str, tally: Tally) -> str:
        """Text that is JSON, or looks like it, with what stands under the named fields hidden."""
        if not self._named_in_text.search(text):
            return text
        said = _parsed(text.encode("utf-8", "surrogatepass")) if text.lstrip()[:1] in ("{", "[") else None
        if said is not None:
            return json_text(self.value(said, tally)).decode()
        found = self._named_in_text.finditer(text)
        places = [each.span(next((i for i in (1, 2, 3) if each[i]), 0)) for each in found if any(each.groups())]
        spans = [(start, -stop, "field") for start, stop in places]
        return self._without(text, spans, tally) if spans else text

    def _hide(self, secret: str, name: str, tally: Tally, *, mark: str = "") -> str:
        tally.counts[name] += 1
        token = tally.tokens[secret] = self._tokens.hide(secret, name + mark)
        return token


def _texts(given: Any) -> Iterator[str]:  # noqa: ANN401
    """The secrets a function names: text, bytes, matches, and tuples of these, as ``re.findall`` gives them."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, bytes):
        yield given.decode("utf-8", "surrogateescape")
    elif isinstance(given, re.Match):
        yield given[1] if given.re.groups and given[1] else given[0]
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from _texts(each)
    else:
        raise TypeError(type(given).__name__)  # caught by whoever asked, who then hides the whole text


def _parsed(args: bytes) -> Any:  # noqa: ANN401
    """The value of a JSON object or array; None where it has no single meaning: broken, or a name stands twice."""
    try:
        said = json.loads(args.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, (dict, list)) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _names_in_text(fields: Iterable[str]) -> re.Pattern[str]:
    """What stands under one of these names in text that looks like JSON: between quotes, or up to the next comma."""
    names = "|".join(re.escape(each) for each in fields) or r"(?!)"
    value = r"""\\*"((?:\\.|[^"\\])*+)|'((?:\\.|[^'\\])*+)|([^\s,}\]"']++)"""
    return re.compile(rf"""(?i:\\*["'](?:{names})\\*["'])\s{{0,9}}:\s{{0,9}}(?:{value})""", re.DOTALL)


def _respelt(args: bytes, tokens: dict[str, str], clean: Any) -> bytes:  # noqa: ANN401
    """The same JSON with the tokens in it: in the model's own spelling where that can be kept."""
    text = args.decode()
    for secret in sorted(tokens, key=len, reverse=True):
        for spelling in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(spelling, tokens[secret])
    raw = text.encode()
    try:
        if canonical_json(json.loads(raw)) == canonical_json(clean):
            return raw
    except ValueError:
        pass
    return json_text(clean)


def _merged(spans: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Spans sorted by start, longest first → disjoint ones."""
    low, high, name = spans[0][0], -spans[0][1], spans[0][2]
    for start, negative, other in spans[1:]:
        if start < high:
            high = max(high, -negative)
        else:
            yield low, high, name
            low, high, name = start, -negative, other
    yield low, high, name
