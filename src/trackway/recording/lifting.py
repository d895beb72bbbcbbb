"""A store as the key holder reads it: every token of the home's key is what it hides. Nothing is written.

File contents are lifted too, so they are then not what their hash says: that is the hash of what is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec

from trackway.recording.tokens import TOKEN, VALUE, Tokens
from trackway.schema.episode import EpisodeSummary, Relation
from trackway.schema.events import Event, Header
from trackway.store.base import ALL, Query, Store
from trackway.store.home import Home
from trackway.store.live import LiveStore

E = TypeVar("E", bound=Event)

_WHOLE: Final = re.compile(rf'"(\[redacted:[a-z0-9_.-]+{re.escape(VALUE)}:[A-Za-z0-9_-]+\])"')


def lift(event: E, tokens: Tokens) -> E:
    """The event with the tokens of this key lifted."""
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
        return _lifted_text(value, tokens)
    if isinstance(value, dict):
        return {lift_value(key, tokens): lift_value(each, tokens) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(lift_value(each, tokens) for each in value)
    if isinstance(value, bytes):
        return tokens.lift(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return value


def _lifted_text(text: str, tokens: Tokens) -> Any:  # noqa: ANN401
    """A text, or the value whose token it is."""
    lifted = tokens.lift(text)
    found = TOKEN.fullmatch(text) if lifted != text else None
    return json.loads(lifted) if found is not None and found[1].endswith(VALUE) else lifted


def _lifted_args(args: bytes, tokens: Tokens) -> bytes:
    text = args.decode("utf-8", "surrogateescape")
    try:
        json.loads(args)
    except (ValueError, RecursionError):
        return tokens.lift(text).encode("utf-8", "surrogateescape")
    text = _WHOLE.sub(lambda found: tokens.lift(found[1]) if tokens.lift(found[1]) != found[1] else found[0], text)
    return TOKEN.sub(lambda found: _spelt(tokens.lift(found[0])), text).encode("utf-8", "surrogateescape")


def _spelt(text: str) -> str:
    """A text as it stands between quotes in JSON; in ASCII only where it must be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)[1:-1]
    return json.dumps(text, ensure_ascii=False)[1:-1]


class LiftingStore(LiveStore):
    """Reads like the one it stands for, with secrets in the clear."""

    def __init__(self, home: Home, store: Store, tokens: Tokens) -> None:
        super().__init__(home, store)
        self._tokens = tokens

    def episodes(self, query: Query = ALL) -> Iterator[EpisodeSummary]:
        """The summaries; they are chosen and sorted by what is kept."""
        return map(self._lifted, super().episodes(query))

    def episode(self, episode_id: str) -> EpisodeSummary:
        """One summary."""
        return self._lifted(super().episode(episode_id))

    def events(self, episode_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events, lifted one by one."""
        return (lift(event, self._tokens) for event in super().events(episode_id, after=after))

    def blob(self, name: str) -> Iterator[bytes]:
        """A blob in one piece: a token may stand anywhere in it."""
        yield lift_value(b"".join(super().blob(name)), self._tokens)

    def _lifted(self, summary: EpisodeSummary) -> EpisodeSummary:
        fields = ("task", "task_key", "variant", "agent", "model", "tags", "metadata", "reason", "error", "tools")
        changed = {name: lift_value(getattr(summary, name), self._tokens) for name in fields}
        relations = tuple(Relation(self._tokens.lift(each.relation), each.to) for each in summary.relations)
        return msgspec.structs.replace(summary, **changed, relations=relations)
