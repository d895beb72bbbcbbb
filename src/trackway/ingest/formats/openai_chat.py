"""Chats as OpenAI's interface has them: rows of {messages, tools}, preferences, or one list of messages.

    {"messages": […], "tools": […]}        a line or an element each: one episode a row
    {"prompt": […], "chosen": […], "rejected": […]}, OpenAI's preference rows: two episodes a row
    [{"role": …, "content": …}, …]         one episode, whether a list, a document or one message a line

Arguments are the text the model wrote, JSON or not. ReAct in text (FireAct) stays text: ``Action: search[…]`` is a
habit of prompts and no format, so no calls are made of it; what such a chat feeds back as ``Observation: …`` is marked
as the harness's words. Rows of plain texts ({prompt, completion}) have no roles and are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trackway.ingest.formats import _rows
from trackway.ingest.formats._beginnings import opened
from trackway.ingest.formats._chat_rows import MESSAGES, Talk, is_message, messages_key, talks_of
from trackway.ingest.formats._messages import Chat
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import text_at
from trackway.schema.events import Context, Event, Label

_NAME: Final = "openai_chat"
_WHOLE: Final = 32 << 20


def detect(head: Head) -> Sign | None:
    """Objects with a list of messages, or messages themselves."""
    found = head.value if isinstance(head.value, list) else head.lines or [head.document]
    first = next((each for each in found if isinstance(each, (dict, list)) and each), None)
    if isinstance(first, list):
        return Sign(0.5, "lists of messages with role and content") if is_message(first[0]) else None
    if first is None:
        return None
    if isinstance(head.value, dict) and head.value is not first:
        first = head.value
    if is_message(first):
        return Sign(0.45, "messages with role and content") if all(map(is_message, found[:5])) else None
    talks = talks_of(first)
    if not talks or not all(each.messages and is_message(each.messages[0]) for each in talks):
        return None
    sure = 0.6 if first.keys() & {"tools", "functions", "parallel_tool_calls"} or len(talks) > 1 else 0.5
    return Sign(sure, "rows with a list of messages that have role and content")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """One episode a row, or the one the file is."""
    shape = _shape(original)
    if shape == "rows":
        for row in _rows.rows(original):
            yield from [row] if isinstance(row, Trouble) else _row(row)
    elif shape == "lines":
        yield from _one({}, _lines(original))
    else:
        yield from _document(original)


def _shape(original: Original) -> str:
    """Whether a file is rows, one message a line, or one document that is one chat."""
    head = original.head()
    if head.body.lstrip()[:1] == b"[":
        many = len(head.lines) > 1 and all(isinstance(each, list) for each in head.lines)
        first = head.value[0] if isinstance(head.value, list) and head.value else None
        return "document" if not many and is_message(first) else "rows"
    if _is_one(original):
        return "document"
    return "lines" if head.objects and is_message(head.objects[0]) else "rows"


def _is_one(original: Original) -> bool:
    """Whether a file is one object: over many lines, or on one without an end, as nobody writes lines."""
    if _rows.is_spread(original):
        return True
    if original.name.lower().endswith((".jsonl", ".ndjson")):
        return False
    return not any(b"\n" in block for block in original.blocks())


# --- one episode --------------------------------------------------------------------------------------------------


def _document(original: Original) -> Iterator[Entry | Trouble]:
    """The one chat a document is; of one too large to be held, the messages are read a second time."""
    if original.size <= _WHOLE:
        value = original.value()
        if isinstance(value, list):
            yield from _one({}, ((Place(), each) for each in value))
            return
        key = messages_key(value) if isinstance(value, dict) else None
        if key is None:
            raise original.refused("no list of messages in it")
        fields = {name: each for name, each in value.items() if name != key}
        yield from _one(fields, ((Place(), each) for each in value[key]))
        return
    yield from _one(_rows.beside(original, *MESSAGES), _streamed(original))


def _streamed(original: Original) -> Iterator[tuple[Place, Any] | Trouble]:
    for part in _rows.elements(original, *MESSAGES):
        if isinstance(part, Trouble):
            yield part
        elif part.number is not None:
            yield Place(), part.value


def _lines(original: Original) -> Iterator[tuple[Place, Any] | Trouble]:
    for item in original.items():
        yield item if isinstance(item, Trouble) else (item.place, item.value)


def _one(fields: dict[str, Any], messages: Iterable[tuple[Place, Any] | Trouble]) -> Iterator[Entry | Trouble]:
    def begin(prompt: str, at: int) -> Entry:
        told = text_at(fields, "model")
        known = task_of(prompt) or text_at(fields, "title") or "chat"
        rest = {key: each for key, each in fields.items() if key not in ("tools", "functions", "model")}
        return _rows.start("", _rows.header(_NAME, known, model=told), *_tools(fields), at=at, native=rest or None)

    yield from opened(_entries("", messages), begin)


def _entries(session: str, messages: Iterable[tuple[Place, Any] | Trouble]) -> Iterator[Entry | Trouble]:
    chat = Chat()
    number = 0
    for found in messages:
        if isinstance(found, Trouble):
            yield found
            continue
        place, message = found
        said = chat.message(message, at=_at(message))
        yield Entry(session, str(number), said.events, place, None, said.rest)
        number += 1


def _at(message: Any) -> int:  # noqa: ANN401
    if not isinstance(message, dict):
        return 0
    return at_of(next((message[key] for key in ("timestamp", "created_at") if key in message), None))


# --- rows ---------------------------------------------------------------------------------------------------------


def _row(row: _rows.Row) -> Iterator[Entry | Trouble]:
    value = {"messages": row.value} if isinstance(row.value, list) else row.value
    talks = talks_of(value)
    if not any(each.messages for each in talks):
        yield Trouble(row.place, "a row without messages")
        return
    for talk in talks:
        yield from _episode(row, value, talk)


def _episode(row: _rows.Row, value: dict[str, Any], talk: Talk) -> Iterator[Entry | Trouble]:
    session = f"{row.session}:{talk.variant}" if talk.variant else row.session

    def begin(prompt: str, at: int) -> Entry:
        head = _rows.header(
            _NAME,
            task_of(prompt) or "chat",
            model=text_at(value, "model"),
            variant=talk.variant,
            task_key=talk.task_key,
        )
        rest = {key: each for key, each in value.items() if key not in talk.told}
        return _rows.start(session, head, *_tools(talk.fields), at=at, place=row.place, native=rest or None)

    yield from opened(_entries(session, ((row.place, each) for each in talk.messages)), begin)
    if talk.label is not None:
        yield Entry(session, "label", [Label(tag=talk.label, by="dataset")], row.place)


def _tools(fields: dict[str, Any]) -> list[Event]:
    found = next((fields[key] for key in ("tools", "functions") if fields.get(key)), None)
    return [] if found is None else [Context(op="set", tools=found)]


SOURCE: Final = Source(
    name=_NAME,
    title="OpenAI chat messages",
    detect=detect,
    read=read,
    looked_for="rows with a list of messages that have role and content, or such a list itself",
)
