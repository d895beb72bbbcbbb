"""What models wrote into their text by a fixed convention: thoughts, calls and answers between tags, calls as JSON.

    <think>…</think>    <tool_call>{"name": …, "arguments": …}</tool_call>    <tool_response>…</tool_response>

Only what keeps to the convention is taken out of a text; all else stays text, letter for letter. Arguments are the
bytes that stand there, not a spelling of their value.
"""

from __future__ import annotations

import ast
from typing import Any, Final, NamedTuple

import msgspec

from trackway.schema.plain import json_text

_THINK, _THOUGHT = "<think>", "</think>"
_CALL, _CALLED = "<tool_call>", "</tool_call>"
_ANSWER, _ANSWERED = "<tool_response>", "</tool_response>"
_LONGEST_LITERAL: Final = 100_000
_raw_objects: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]]).decode
_value: Final = msgspec.json.Decoder().decode
_NAMES: Final = ("name", "function", "tool_name", "action")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "action_input")


class Asked(NamedTuple):
    """A call as text says it: the tool, its arguments as they stand there, the id where it has one, what is left."""

    name: str
    args: bytes
    call_id: str | None
    rest: dict[str, Any] | None


class Piece(NamedTuple):
    """A stretch of a text: ``text``, a ``think`` or a ``call`` with what it asks for."""

    kind: str
    text: str
    calls: list[Asked]


def pieces(text: str) -> list[Piece]:
    r"""A model's text cut at its tags; one piece where there are none.

    >>> [(each.kind, each.text) for each in pieces('<think>a</think>b<tool_call>{"name": "f"}</tool_call>')]
    [('think', 'a'), ('text', 'b'), ('call', '{"name": "f"}')]
    """
    if _THOUGHT not in text and _CALL not in text:
        return [Piece("text", text, [])]
    found: list[Piece] = []
    if _THOUGHT in text:
        text = _thought(text, found)
    start = at = 0
    while (closed := text.find(_CALLED, at)) >= 0:
        opened = text.find(_CALL, at, closed)
        at = closed + len(_CALLED)
        calls = None if opened < 0 else asked(text[opened + len(_CALL) : closed])
        if not calls and opened >= 0:  # an opening tag without an end before it is text
            opened = text.rfind(_CALL, opened, closed)
            calls = asked(text[opened + len(_CALL) : closed])
        if not calls:
            continue
        if text[start:opened].strip():
            found.append(Piece("text", text[start:opened], []))
        found.append(Piece("call", text[opened + len(_CALL) : closed].strip(), calls))
        start = at
    if not found or text[start:].strip():
        found.append(Piece("text", text[start:], []))
    return found


def _thought(text: str, found: list[Piece]) -> str:
    """Take the thought a text begins with; where only its end is written, the template had written its beginning."""
    head, _, rest = text.partition(_THOUGHT)
    opening, has_opening, thought = head.partition(_THINK)
    if has_opening and opening.strip():
        return text  # in the middle of a text, tags are talked about
    found.append(Piece("think", thought if has_opening else head, []))
    return rest


def answers(text: str) -> list[str] | None:
    r"""What stands between the tags of answers, where a text is made of nothing else; else None.

    >>> answers("<tool_response>\n1\n</tool_response><tool_response>2</tool_response>"), answers("no")
    (['1', '2'], None)
    """
    stripped = text.strip()
    if not (stripped.startswith(_ANSWER) and stripped.endswith(_ANSWERED)):
        return None
    found = []
    while stripped:
        inside, closed, rest = stripped[len(_ANSWER) :].partition(_ANSWERED)
        stripped = rest.strip()
        if not closed or (stripped and not stripped.startswith(_ANSWER)):
            return None
        found.append(inside.strip())
    return found


def answer_name(text: str) -> str | None:
    """The tool an answer says it is from."""
    if not text.startswith("{"):
        return None
    try:
        found = _value(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None


def asked(text: str) -> list[Asked] | None:
    r"""The calls that a text of JSON asks for: an object with a name, or a list of such; None where it is none.

    >>> asked('{"name": "f", "arguments": {"a":  1}}')[0].args, asked('[1]')
    (b'{"a":  1}', None)
    """
    text = text.strip()
    if not text.startswith(("{", "[")):
        return None
    try:
        found: Any = _raw_objects(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        found = _literal(text)
    objects = found if isinstance(found, list) else [found]
    try:
        made = [_asked(each) if isinstance(each, dict) else None for each in objects]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return [each for each in made if each is not None] if made and None not in made else None


def _literal(text: str) -> Any:  # noqa: ANN401  whatever it says
    """A Python literal: datasets hold calls that were printed instead of dumped."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _asked(found: dict[Any, Any]) -> Asked | None:
    if "function" in found and "name" not in found:
        inner = _inner(found["function"])
        if isinstance(inner, dict):
            found = {**found, **inner}
            del found["function"]
    name_key = next((each for each in _NAMES if each in found), None)
    if name_key is None:
        return None
    name = _inner(found[name_key])
    if not isinstance(name, str):
        return None
    args_key = next((each for each in _ARGUMENTS if each in found), None)
    id_key = next((each for each in ("id", "tool_call_id", "call_id") if each in found), None)
    call_id = None if id_key is None else _plain(found[id_key])
    rest = {str(key): _plain(each) for key, each in found.items() if key not in (name_key, args_key, id_key, "type")}
    args = b"{}" if args_key is None else _args(found[args_key])
    return Asked(name, args, call_id if isinstance(call_id, str) and call_id else None, rest or None)


def _inner(value: Any) -> Any:  # noqa: ANN401
    """One level of a value that is still raw: an object keeps its members raw."""
    if not isinstance(value, msgspec.Raw):
        return value
    body = bytes(value)
    return _raw_objects(body) if body.lstrip()[:1] == b"{" else _value(body)


def _plain(value: Any) -> Any:  # noqa: ANN401
    return _value(bytes(value)) if isinstance(value, msgspec.Raw) else value


def _args(value: Any) -> bytes:  # noqa: ANN401
    body = bytes(value) if isinstance(value, msgspec.Raw) else b""
    if isinstance(value, msgspec.Raw) and body.lstrip()[:1] != b'"':
        return b"{}" if body.strip() == b"null" else body
    value = _plain(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return b"{}" if value is None else json_text(value)
