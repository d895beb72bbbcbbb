"""Redaction at capture: secrets become keyed tokens before an event is encoded, so they reach no file at all.

Everything an event carries passes here, names in mappings and file contents too, but for the ids that tie events
together. A rule that fails hides the whole text it was asked about: what cannot be judged is not written in the clear.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from trackway.recording.rules import Literal, Rules
from trackway.recording.tokens import TOKEN, Tokens
from trackway.schema.canonical import canonical_json
from trackway.schema.events import Event, Header
from trackway.schema.plain import json_text

_TIES: Final = frozenset({
    "at", "turn", "batch", "agent", "call", "call_id", "id", "base", "reuse", "parent", "duration_ms",
    "before", "after", "to", "messages", "redacted", "status", "scope", "op", "usage_from", "latency_ms", "exit_code",
})  # fmt: skip
"""Fields that tie events together or are words of ours; messages are done when they are compared."""

_HEADER: Final = ("task", "task_key", "variant", "agent", "model", "tags", "metadata")

E = TypeVar("E", bound=Event)


class Tally:
    """What was hidden in one event: how often by which rule, and the token of each secret."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self.counts = Counter(counts or {})
        self.tokens: dict[str, str] = {}


class Redactor:
    """Hides what the rules find, with the tokens of one key."""

    def __init__(self, rules: Rules, tokens: Tokens) -> None:
        self._rules, self._finders, fields = rules
        self._fields = frozenset(each.casefold() for each in fields)
        self._tokens = tokens

    def event(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an event as they may be kept, with the count of what was hidden by each rule."""
        tally = Tally(fields.get("redacted"))
        clean = {name: each if name in _TIES else self._field(name, each, tally) for name, each in fields.items()}
        if tally.counts:
            clean["redacted"] = dict(tally.counts)
        return clean

    def _field(self, name: str, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        if name == "header":
            clean = {each: self.value(getattr(value, each), tally) for each in _HEADER}
            return msgspec.structs.replace(value, **{**clean, "tags": tuple(clean["tags"])})
        return self.args(value, tally) if name == "args" else self.value(value, tally)

    def value(self, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        """Any plain value, names included."""
        if isinstance(value, str):
            return self.text(value, tally)
        if isinstance(value, dict):
            return {
                self.value(key, tally) if isinstance(key, str) else key: self._named(key, each, tally)
                for key, each in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.value(each, tally) for each in value]
        return self.body(value, tally) if isinstance(value, bytes) else value

    def _named(self, key: Any, value: Any, tally: Tally) -> Any:  # noqa: ANN401
        if value is None or not isinstance(key, str) or key.casefold() not in self._fields:
            return self.value(value, tally)
        return self._hide(value if isinstance(value, str) else json_text(value).decode(), "field", tally)

    def body(self, body: bytes, tally: Tally) -> bytes:
        """Bytes, text or not."""
        text = body.decode("utf-8", "surrogateescape")
        clean = self.text(text, tally)
        return body if clean == text else clean.encode("utf-8", "surrogateescape")

    def args(self, args: bytes, tally: Tally) -> bytes:
        """Arguments: in JSON each string is looked at as what it says, and all else keeps its spelling."""
        try:
            said = json.loads(args)
        except (ValueError, RecursionError):
            return self.body(args, tally)
        before = set(tally.tokens)
        clean = self.value(said, tally)
        new = {secret: token for secret, token in tally.tokens.items() if secret not in before}
        # Once more as bytes: of two equal names JSON reads only the last.
        return self.body(_respelt(args, new, clean) if new else args, tally)

    def text(self, text: str, tally: Tally) -> str:
        """A text with its secrets hidden."""
        try:
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
        for secret in sorted({str(each) for each in answer or ()} - {""}, key=len, reverse=True):
            spans = [(start, -stop, name) for start, stop in Literal(name, (secret,)).spans(text)]
            text = self._without(text, spans, tally) if spans else text
        return text

    def _without(self, text: str, spans: list[tuple[int, int, str]], tally: Tally) -> str:
        """Spans that overlap are one; what is inside a token already stays."""
        tokens = [each.span() for each in TOKEN.finditer(text)] if "[redacted:" in text else []
        parts: list[str] = []
        done = 0
        for start, stop, name in _merged(spans):
            place = bisect_right(tokens, (start, len(text))) - 1
            if place >= 0 and stop <= tokens[place][1]:
                continue
            parts += text[done:start], self._hide(text[start:stop], name, tally)
            done = stop
        return "".join((*parts, text[done:]))

    def _hide(self, secret: str, name: str, tally: Tally) -> str:
        tally.counts[name] += 1
        token = tally.tokens[secret] = self._tokens.hide(secret, name)
        return token


def _respelt(args: bytes, tokens: dict[str, str], clean: Any) -> bytes:  # noqa: ANN401
    """The same JSON with the tokens in it: in the model's own spelling where that can be kept."""
    text = args.decode("utf-8", "surrogatepass")
    for secret in sorted(tokens, key=len, reverse=True):
        for spelling in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(spelling, tokens[secret])
    raw = text.encode("utf-8", "surrogatepass")
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


def lift(event: E, tokens: Tokens) -> E:
    """The event with the tokens of this key lifted; itself where nothing was redacted."""
    if event.redacted is None:
        return event
    changed: dict[str, Any] = {}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "args":
            changed[name] = _lifted_args(value, tokens)
        elif isinstance(value, (str, dict, list, tuple)) and name not in ("redacted", "unknown_fields"):
            changed[name] = lift_value(value, tokens)
        elif isinstance(value, Header):
            changed[name] = msgspec.convert(lift_value(msgspec.to_builtins(value), tokens), Header)
    return msgspec.structs.replace(event, **changed, redacted=None)


def lift_value(value: Any, tokens: Tokens) -> Any:  # noqa: ANN401
    """A plain value with the tokens lifted, names included."""
    if isinstance(value, str):
        return tokens.lift(value)
    if isinstance(value, dict):
        return {lift_value(key, tokens): lift_value(each, tokens) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(lift_value(each, tokens) for each in value)
    if isinstance(value, bytes):
        return tokens.lift(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return value


def _lifted_args(args: bytes, tokens: Tokens) -> bytes:
    text = args.decode("utf-8", "surrogateescape")
    try:
        json.loads(args)
    except (ValueError, RecursionError):
        return tokens.lift(text).encode("utf-8", "surrogateescape")
    spelt = TOKEN.sub(lambda found: json.dumps(tokens.lift(found[0]))[1:-1], text)
    return spelt.encode("utf-8", "surrogateescape")
