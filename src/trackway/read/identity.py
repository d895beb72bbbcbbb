"""What makes two values, or two contexts, the same: a digest that leaves out what only names things.

The id of a call says which call, not what: it becomes the number in which an episode's messages first spoke of it. So
do the ids of messages and blocks. A provider's sealed state (the signature of a thought, encrypted reasoning) is left
out. The context of a call is digested as it was recorded, by what is new in it: a list that only grows is never gone
through twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from blake3 import blake3

from trackway.read.messages import by_id, chain, rebuild, resolve
from trackway.schema.codec import encode_fast, exact
from trackway.schema.events import ModelCall
from trackway.schema.plain import plain

_CALL_IDS: Final = frozenset({"tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId", "callId"})
_SEALED: Final = frozenset({"encrypted_content", "thought_signature", "thoughtSignature", "thinkingSignature"})
_SEALED_IN: Final = {"signature": "thinking", "data": "redacted_thinking"}
_BLOCKS: Final = frozenset({
    "tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result",
    "thinking", "redacted_thinking", "reasoning", "message", "function", "function_call", "function_call_output",
    "custom_tool_call", "custom_tool_call_output", "local_shell_call", "computer_call", "file_search_call",
    "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "item_reference", "tool_call",
    "tool-call", "toolCall",
})  # fmt: skip
"""Blocks whose ``id`` a provider made up. Of anything else (an order, an image, a row) it says which one it is."""
_ARGUMENTS: Final = frozenset({"input", "arguments", "args"})
"""What stands under these is the model's own: an id in it is a value like any other."""
_SIZE: Final = 16
_sorted = msgspec.msgpack.Encoder(order="sorted").encode


def digest(value: Any) -> bytes:  # noqa: ANN401
    """A digest of a plain value: equal for equal ones, whatever the order of their keys; 1, 1.0 and true differ."""
    try:
        body = _sorted(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # keys of several kinds, surrogates, long integers
        body = encode_fast(exact(plain(value)))
    return blake3(body).digest(_SIZE)


class Names:
    """The ids that an agent's messages spoke of, numbered as they came."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.calls: set[str] = set()

    def neutral(self, message: Any) -> Any:  # noqa: ANN401
        """The message with numbers for ids, and without sealed state."""
        return self._neutral(message, is_message=True)

    def _neutral(self, value: Any, *, is_message: bool = False) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return self._mapping(value, is_message=is_message)
        return [self._neutral(each) for each in value] if isinstance(value, (list, tuple)) else value

    def _mapping(self, value: dict[Any, Any], *, is_message: bool) -> dict[Any, Any]:
        found = {}
        for name, each in value.items():
            if isinstance(each, str):
                if not self._is_sealed(name, value):
                    is_id = (name == "id" and is_message) or self._is_id(name, each, value)
                    found[name] = self._number(each) if is_id else each
            else:
                found[name] = each if name in _ARGUMENTS else self._neutral(each)
        return found

    def _is_id(self, name: Any, text: str, within: dict[Any, Any]) -> bool:  # noqa: ANN401
        if name == "id":
            return within.get("type") in _BLOCKS or "function" in within or text in self.calls
        return name in _CALL_IDS or (text in self.calls and isinstance(name, str) and name.lower().endswith("id"))

    @staticmethod
    def _is_sealed(name: Any, within: dict[Any, Any]) -> bool:  # noqa: ANN401
        return name in _SEALED or (name in _SEALED_IN and within.get("type") == _SEALED_IN[name])

    def _number(self, text: str) -> str:
        return f"#{self._numbers.setdefault(text, len(self._numbers))}"


class _Digested(NamedTuple):
    """The messages of a call as digests: the first ``length`` of a list that later calls may have gone on with."""

    messages: list[bytes]
    length: int
    hasher: Any


class Contexts:
    """The identity of what the model saw at each call of an episode."""

    def __init__(self, calls: list[ModelCall]) -> None:
        self._calls = by_id(calls)
        self._uses = Counter(each.base for each in calls if each.reuse)
        self._kept: dict[str | None, _Digested | None] = {}
        self._names: dict[str | None, Names] = {}
        self._known: dict[bytes, bytes] = {}

    def names(self, agent: str | None) -> Names:
        """The ids that the agent's messages speak of."""
        return self._names.setdefault(agent, Names())

    def part(self, value: Any) -> bytes | None:  # noqa: ANN401
        """The digest of a system prompt or of tools, made once for each; None where there is none."""
        if value is None:
            return None
        try:
            key = encode_fast(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return digest(value)
        if key not in self._known:
            self._known[key] = digest(value)
        return self._known[key]

    def messages(self, call: ModelCall) -> bytes | None:
        """The digest of the whole list of messages; None where the call has none."""
        found = self._kept.get(call.id)
        if found is None:
            links = list(chain(call, self._calls, self._kept))
            found = self._kept.get(links[-1].base)
            for each in reversed(links):
                found = self._told_by(found, each)
                self._keep(each, found)
        return None if found is None else bytes(found.hasher.digest(_SIZE))

    def each_message(self, call: ModelCall) -> list[bytes]:
        """The digest of every message of one call."""
        return resolve(call, self._calls, lambda each: self._in_digests(each).messages or ()) or []

    def _told_by(self, base: _Digested | None, call: ModelCall) -> _Digested | None:
        if call.messages is None:
            return None
        fresh = self._in_digests(call)
        if base is None or call.reuse != ((0, 0, base.length),):
            whole = rebuild(fresh, None if base is None else base.messages[: base.length]) or []
            return _Digested(whole, len(whole), blake3(b"".join(whole)))
        hasher = base.hasher.copy()
        hasher.update(b"".join(fresh.messages or ()))
        grows = base.messages if len(base.messages) == base.length else base.messages[: base.length]
        grows.extend(fresh.messages or ())
        return _Digested(grows, len(grows), hasher)

    def _in_digests(self, call: ModelCall) -> ModelCall:
        """The call with digests for its new messages."""
        names = self.names(call.agent)
        new = None if call.messages is None else tuple(digest(names.neutral(each)) for each in call.messages)
        return msgspec.structs.replace(call, messages=new)

    def _keep(self, call: ModelCall, found: _Digested | None) -> None:
        """Keep it while a later call is told by it."""
        if call.reuse:
            self._uses[call.base] -= 1
            if self._uses[call.base] <= 0:
                self._kept.pop(call.base, None)
        if self._uses[call.id] > 0:
            self._kept[call.id] = found


def first_difference(a: Iterable[bytes], b: Iterable[bytes]) -> int:
    """The place of the first of two rows' items that are not the same, or where the shorter one ends.

    >>> first_difference([b"1", b"2"], [b"1", b"2", b"3"])
    2
    """
    at = -1
    for at, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return at
    return at + 1
