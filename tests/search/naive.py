"""A query answered the slow and plain way: every event looked at, word by word. What the index must agree with."""

import re

from trackway.schema import events as kinds
from trackway.search import words
from trackway.search.pattern import Words
from trackway.search.query import And, Field, Not
from trackway.search.texts import text_of


class Looked:
    """One event, as the query sees it."""

    def __init__(self, event, *, tool=None, failed=None, paths=(), agent=None):
        text = text_of(event)
        rows = [[each.text for each in words.words(text)]]
        names = filter(None, map(words.camel, re.findall(r"[A-Za-z0-9]+", text)))
        self.text = text
        self.rows = rows + [[part.lower() for part in parts] for parts in names]
        self.event = event
        self.tool, self.failed, self.paths, self.agent = tool, failed, paths, agent


def looked_at(events, agent=None):
    """Events of an episode, results with what is known of their calls."""
    calls = {}
    for event in events:
        if isinstance(event, kinds.ToolResult):
            calls[event.call_id] = event.failed
    tools = {each.call_id: each.name for each in events if isinstance(each, kinds.AssistantToolCall)}
    for event in events:
        called = getattr(event, "call_id", None)
        failed = calls.get(called, False) if called else None
        yield Looked(event, tool=tools.get(called), failed=failed, agent=agent)


def holds(node, each):
    """Whether a query holds for an event."""
    if isinstance(node, Words):
        return any(_stands(node, row) for row in each.rows)
    if isinstance(node, Field):
        return _said(node, each)
    if isinstance(node, Not):
        return not holds(node.what, each)
    if isinstance(node, And):
        return all(holds(part, each) for part in node.all)
    return any(holds(part, each) for part in node.any)


def _stands(node, row):
    return any(
        all(at + step.place < len(row) and _fits(step, row[at + step.place]) for step in node.steps)
        for at in range(len(row))
    )


def _fits(step, word):
    return re.fullmatch(step.text, word) is not None if step.is_pattern else step.text == word


def _said(field, each):
    if field.name == "tool":
        return each.tool is not None and each.tool.lower() == field.value
    if field.name == "error":
        return each.failed is not None and each.failed == field.value
    if field.name == "kind":
        return each.event.kind == field.value
    raise NotImplementedError(field.name)
