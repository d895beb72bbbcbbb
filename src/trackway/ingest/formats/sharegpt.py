"""ShareGPT: rows of {conversations: [{from, value}], system?, tools?}, as LLaMA-Factory, Hermes and others have it.

    human → user    gpt → text, with <think> and <tool_call> taken out    function_call → calls    observation → results

There are no ids: a result is of the oldest call that waits, or of the one whose tool it names. One observation for
several calls at once is of the first; the others stay unanswered, since nobody can say where one ends. A text that asks
for a tool in words (``Action: …``, ``Action Input: …``, as ToolBench has it) is a call only where a result follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.decoding import value_of
from trackway.ingest.formats import _rows
from trackway.ingest.formats._messages import Chat
from trackway.ingest.formats._tags import Asked, asked, pieces
from trackway.ingest.head import Head
from trackway.ingest.making import rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import text_at
from trackway.schema.events import AssistantText, AssistantThinking, AssistantToolCall, Context, Event, Label, Note
from trackway.schema.plain import text_of

_NAME: Final = "sharegpt"
TURNS: Final = {
    "human": "user", "user": "user", "prompter": "user",
    "gpt": "model", "assistant": "model", "chatgpt": "model", "model": "model", "bot": "model", "bard": "model",
    "bing": "model", "ai": "model",
    "system": "system",
    "function_call": "call", "tool_call": "call", "function-call": "call",
    "observation": "result", "tool": "result", "function": "result", "function_response": "result",
    "function-response": "result", "tool_response": "result", "tool_result": "result", "ipython": "result",
}  # fmt: skip
"""Who speaks → what it comes to."""
_KEYS: Final = ("conversations", "conversation", "messages")


def detect(head: Head) -> Sign | None:
    """Rows with turns that have from and value."""
    found = head.value if isinstance(head.value, list) else head.objects or [head.document]
    sample = [each for each in found[:3] if isinstance(each, dict)]
    if not sample or not all(map(_is_row, sample)):
        return None
    return Sign(0.8, "rows with conversations of turns that have from and value")


def _is_row(value: dict[str, Any]) -> bool:
    turns = _turns(value)
    return bool(turns) and all(
        isinstance(each, dict) and isinstance(each.get("from"), str) and "value" in each for each in turns[:3]
    )


def _turns(value: dict[str, Any]) -> list[Any]:
    found = next((value[key] for key in _KEYS if isinstance(value.get(key), list)), None)
    return found if isinstance(found, list) else []


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each row as an episode; as two where it says what was preferred and what was not."""
    for row in _rows.rows(original):
        if isinstance(row, Trouble):
            yield row
        elif not isinstance(row.value, dict) or not _turns(row.value):
            yield Trouble(row.place, "a row without conversations")
        else:
            yield from _row(row)


def _row(row: _rows.Row) -> Iterator[Entry]:
    turns = _turns(row.value)
    both = [row.value.get(name) for name in ("chosen", "rejected")]
    if all(isinstance(each, (dict, list)) and each for each in both):
        shared = _rows.name_of(turns)
        for name, last in zip(("chosen", "rejected"), both, strict=True):
            yield from _episode(row, [*turns, *(last if isinstance(last, list) else [last])], name, shared)
    else:
        yield from _episode(row, turns, None, None)


def _episode(row: _rows.Row, turns: list[Any], variant: str | None, shared: str | None) -> Iterator[Entry]:
    value, session = row.value, f"{row.session}:{variant}" if variant else row.session
    prompt = next((_said(each) for each in turns if _kind(each) == "user"), "")
    head = _rows.header(
        _NAME, task_of(prompt) or "chat", model=text_at(value, "model"), variant=variant, task_key=shared
    )
    told = (*_KEYS, "tools", "system", "model", "label", *(("chosen", "rejected") if variant else ()))
    talk = Talk()
    opening = talk.opening(value.get("system"), value.get("tools"))
    yield _rows.start(session, head, *opening, place=row.place, native=rest_of(value, *told))
    for i, turn in enumerate(turns):
        follows = i + 1 < len(turns) and _kind(turns[i + 1]) == "result"
        yield Entry(session, str(i), talk.turn(turn, asks=follows), row.place, None, _rest(turn))
    label = variant or {True: "desirable", False: "undesirable"}.get(value.get("label")) if _is_flag(value) else variant
    if label is not None:
        yield Entry(session, "label", [Label(tag=label, by="dataset")], row.place)


def _is_flag(value: dict[str, Any]) -> bool:
    return isinstance(value.get("label"), bool)


def _kind(turn: Any) -> str | None:  # noqa: ANN401  whatever stands in a list of turns
    speaker = turn.get("from", turn.get("role")) if isinstance(turn, dict) else None
    return TURNS.get(speaker) if isinstance(speaker, str) else None


def _said(turn: dict[str, Any]) -> str:
    return text_of(turn.get("value", turn.get("content")))


def _rest(turn: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if not isinstance(turn, dict):
        return None
    return turn if _kind(turn) is None else rest_of(turn, "from", "value")


class Talk:
    """One conversation on its way."""

    def __init__(self) -> None:
        self._chat = Chat()

    def opening(self, system: Any, tools: Any) -> list[Event]:  # noqa: ANN401  as the row has them
        """What the row says beside its turns: the system prompt and the tools, which may be JSON in a text."""
        known = tools
        if isinstance(tools, str):
            try:
                known = value_of(tools.encode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError):
                known = tools.strip()
        found: list[Event] = [Context(op="set", tools=known)] if known else []
        if isinstance(system, str) and system:
            found.append(self._chat.system(system))
        return found

    def turn(self, turn: Any, *, asks: bool = False) -> list[Event]:  # noqa: ANN401
        """One turn; ``asks`` says that a result follows it."""
        kind = _kind(turn)
        if kind is None or not isinstance(turn, dict):
            speaker = turn.get("from") if isinstance(turn, dict) else None
            detail = None if isinstance(turn, dict) else turn
            return [Note(topic=speaker if isinstance(speaker, str) and speaker else "turn", detail=detail)]
        if "value" not in turn and isinstance(turn.get("role"), str):
            return self._chat.message(turn).events
        text = _said(turn)
        if kind == "user":
            return self._chat.user(text)
        if kind == "system":
            return [self._chat.system(text)]
        if kind == "result":
            return self._chat.results(text)
        return self._model(text, is_call=kind == "call", asks=asks)

    def _model(self, text: str, *, is_call: bool, asks: bool) -> list[Event]:
        if is_call:
            return self._called(text)
        found = self._chat.assistant({"content": text})
        if asks and not any(isinstance(each, AssistantToolCall) for each in found):
            calls = _in_words(text)
            if calls is not None:
                return [*found, *self._chat.asks(calls)]
        return found

    def _called(self, text: str) -> list[Event]:
        """Calls as JSON, behind a thought where there is one; what is no JSON is a call whose tool is not known."""
        found = pieces(text)
        calls = [one for each in found for one in each.calls]
        if not calls:
            rest = found[-1].text if found[-1].kind == "text" else ""
            unknown = Asked("function_call", rest.encode("utf-8", "surrogatepass"), None, None)
            calls = asked(rest) or [unknown]
            found = found[:-1]
        before: list[Event] = [
            AssistantThinking(content=each.text) if each.kind == "think" else AssistantText(content=each.text)
            for each in found
            if each.kind != "call"
        ]
        return [*before, *self._chat.asks(calls)]


def _in_words(text: str) -> list[Asked] | None:
    """The call of a text that ends in ``Action:`` and ``Action Input:``; the text itself stays as it is."""
    before, found, args = text.rpartition("Action Input:")
    name = before.rpartition("Action:")[2].strip() if found else ""
    if not name or "\n" in name:
        return None
    return [Asked(name, args.strip().encode("utf-8", "surrogatepass"), None, None)]


SOURCE: Final = Source(
    name=_NAME,
    title="ShareGPT conversations",
    detect=detect,
    read=read,
    looked_for="rows with conversations of turns that have from and value",
)
