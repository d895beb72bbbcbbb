"""The OpenAI Agents SDK: traces as its exporters hand them over, and lists of items as a conversation goes on with.

    {"object": "trace", …}, {"object": "trace.span", "span_data": {"type": "generation" | "function" | …}, …}
    [{"role": "user", …}, {"type": "function_call", …}, {"type": "function_call_output", …}, …]

A span is handed over when it ends, so children stand before their parents, and who asked for something is not known
when it is read: spans keep their parents' ids beside them. A function's span has no id of its call: it is what came of
the oldest call of that tool with those arguments; where no generation told of one, it is the call as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._beginnings import opened
from trackway.ingest.formats._openai_spans import Trace
from trackway.ingest.formats._response_items import KINDS, Items
from trackway.ingest.formats._rows import elements, header, items, start
from trackway.ingest.head import Head
from trackway.ingest.making import task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble

_NAME: Final = "openai_agents"
_OBJECTS: Final = ("trace", "trace.span")


def detect(head: Head) -> Sign | None:
    """Traces and spans, bare or wrapped; or a list in which items of the Responses interface stand."""
    found = head.value if isinstance(head.value, list) else head.objects or [head.document]
    if any(True for each in found[:5] for _ in _exported(each)):
        return Sign(0.9, 'objects "trace" and "trace.span" with span_data')
    if isinstance(head.value, list) and any(_is_item(each) for each in found[:50]):
        return Sign(0.85, "a list of items such as function_call and function_call_output")
    return None


def _is_item(value: Any) -> bool:  # noqa: ANN401  whatever stands in a list
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind == "message":
        content = value.get("content")
        first = content[0] if isinstance(content, list) and content else None
        return isinstance(first, dict) and first.get("type") in ("input_text", "output_text", "refusal")
    return isinstance(kind, str) and kind in KINDS and bool(value.keys() & {"call_id", "id", "summary", "output"})


def _exported(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """The traces and spans in a value: itself, or what it wraps as ``data``."""
    if not isinstance(value, dict):
        return
    if value.get("object") in _OBJECTS and isinstance(value.get("id"), str):
        yield value
    elif "data" in value:
        inner = value["data"]
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict) and each.get("object") in _OBJECTS and isinstance(each.get("id"), str):
                yield each


def read(original: Original) -> Iterator[Entry | Trouble]:
    """A file of traces, or the one conversation a list of items is."""
    head = original.head()
    if isinstance(head.value, list) and not any(True for each in head.value[:5] for _ in _exported(each)):
        yield from opened(_items(original), lambda prompt, _at: start("", header(_NAME, task_of(prompt) or "chat")))
        return
    traces: dict[str, Trace] = {}
    for found in _objects(original):
        if isinstance(found, Trouble):
            yield found
            continue
        place, value = found
        name = value["id"] if value["object"] == "trace" else str(value.get("trace_id") or "")
        if name not in traces:
            traces[name] = Trace(_NAME, name)
        yield from traces[name].take(value, place)
    for each in traces.values():
        yield from each.flush()


def _objects(original: Original) -> Iterator[tuple[Place, dict[str, Any]] | Trouble]:
    if original.head().body.lstrip()[:1] == b"[":
        values: Iterator[Any] = (
            each if isinstance(each, Trouble) else (Place(), each.value) for each in elements(original)
        )
    else:
        values = (each if isinstance(each, Trouble) else (each.place, each.value) for each in items(original))
    for found in values:
        if isinstance(found, Trouble):
            yield found
            continue
        place, value = found
        inside = list(_exported(value))
        if inside:
            yield from ((place, each) for each in inside)
        else:
            yield Trouble(place, f"neither a trace nor a span: {value!r:.40}")


def _items(original: Original) -> Iterator[Entry | Trouble]:
    items = Items()
    for part in elements(original):
        if isinstance(part, Trouble):
            yield part
        else:
            said = items.item(part.value)
            yield Entry("", str(part.number), said.events, native=said.rest)


SOURCE: Final = Source(
    name=_NAME,
    title="OpenAI Agents SDK traces",
    detect=detect,
    read=read,
    looked_for='objects "trace" and "trace.span", or a list of items such as function_call and function_call_output',
)
