"""tau-bench's examples for prompts: rows of ``messages_display``, a chat as one text, ``role: what was said``.

What a tool was called with is not in the file (``assistant: None`` stands where it was); what came back is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trackway.ingest.formats._rows import Row, header, rows, start
from trackway.ingest.head import Head
from trackway.ingest.making import rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.schema.events import AssistantText, Context, Event, Note, ToolResult, User

_TEXT: Final = "messages_display"
_ROLE: Final = re.compile(r"^(system|user|assistant|tool): ", re.MULTILINE)


def detect(head: Head) -> Sign | None:
    """Rows whose only chat is one text that begins with a role."""
    sample = head.objects[:3]
    if not sample or not all(isinstance(each.get(_TEXT), str) and _ROLE.match(each[_TEXT]) for each in sample):
        return None
    return Sign(0.9, f"rows of {_TEXT}, a chat as one text")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each row as an episode."""
    for row in rows(original):
        if isinstance(row, Trouble):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get(_TEXT), str):
            yield Trouble(row.place, f"a row without a text {_TEXT}")
        else:
            yield from _episode(row)


def _episode(row: Row) -> Iterator[Entry]:
    messages = list(_messages(row.value[_TEXT]))
    prompt = next((said for role, said in messages if role == "user"), "")
    head = header("tau_few_shot", task_of(prompt))
    yield start(row.session, head, place=row.place, native=rest_of(row.value, _TEXT))
    for i, (role, said) in enumerate(messages):
        yield Entry(row.session, str(i), [_event(role, said, i)], row.place)


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Who said what; what stands before the first role is nobody's."""
    marks = list(_ROLE.finditer(text))
    starts = [each.start() for each in marks] + [len(text) + 1]
    if starts[0] and text:
        yield "", text[: starts[0] - 1]
    for mark, end in zip(marks, starts[1:], strict=True):
        yield mark[1], text[mark.end() : end - 1]


def _event(role: str, said: str, place: int) -> Event:
    if role == "user":
        return User(content=said, actor="simulated")
    if role == "tool":
        return ToolResult(call_id=f"call-{place}", content=said, is_error=said.startswith("Error: "))
    if role == "assistant":
        return AssistantText(content=said)
    return Context(op="set", system_prompt=said) if role == "system" else Note(topic=_TEXT, text=said)


SOURCE: Final = Source(
    name="tau_few_shot",
    title="tau-bench examples",
    detect=detect,
    read=read,
    looked_for=f"rows of {_TEXT}",
)
