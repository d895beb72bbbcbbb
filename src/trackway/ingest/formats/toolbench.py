"""ToolBench's answers: a tree of tries (DFS), or a few chains of them, and the answer that was chosen.

    {win, tree: {tree: node}, answer_generation: {query, function, train_messages, …}}      {win, trys: [{chain}], …}

Every node is kept, also those that were given up. A node is known by its path from the root and follows its parent: a
branch is what follows the same entry twice. ``Action`` names the tool, the ``Action Input`` below it holds arguments
and observation: together they are one call and its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trackway.ingest.formats._rows import header, start
from trackway.ingest.head import Head
from trackway.ingest.making import rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import part_of, text_at
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeEnd,
    Event,
    Note,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of

_NAME: Final = "toolbench"
_FINE: Final = (None, 0, 3, 4)
"""Codes of an observation that is no failure: the tool answered, the answer was given, the branch was given up."""
_NODE: Final = ("node_type", "description", "observation", "children")


class _Place(NamedTuple):
    """A node on its way: its path, the entry it follows, the node above it where that named the tool."""

    path: str
    parent: str
    node: dict[str, Any]
    action: dict[str, Any] | None = None


def detect(head: Head) -> Sign | None:
    """A document with win, and a tree of nodes or tries of chains."""
    found = head.document
    if "win" not in found or not ("answer_generation" in found or "forward_args" in found or "trys" in found):
        tree = part_of(part_of(found, "tree"), "tree")
        return Sign(0.9, "a tree of nodes that have node_type and children") if "node_type" in tree else None
    if "tree" in found or "trys" in found:
        return Sign(0.95, "a document with win and a tree of nodes, or tries of chains")
    return None


def read(original: Original) -> Iterator[Entry | Trouble]:
    """The one search a file is."""
    value = original.value()
    if not isinstance(value, dict):
        raise original.refused("no search tree")
    answer = part_of(value, "answer_generation")
    query = text_of(answer.get("query")) or _first(answer, "user")
    head = header(_NAME, task_of(query) or "search tree", metadata=_metadata(value))
    yield start("", head, *_given(answer), native=rest_of(value, "tree", "trys", "win", "answer_generation"))
    if query:
        yield Entry("", "query", [User(content=query, actor="harness")])
    for place in _places(value, "query" if query else "start"):
        yield from _entry(place)
    kept = rest_of(answer, "query", "function")
    yield Entry("", "end", [_end(value, answer)], native={"answer_generation": kept} if kept else None)


def _metadata(value: dict[str, Any]) -> dict[str, Any] | None:
    found = value.get("forward_args")
    return {"forward_args": found} if isinstance(found, dict) else None


def _given(answer: dict[str, Any]) -> list[Event]:
    prompt, tools = _first(answer, "system"), answer.get("function")
    return [Context(op="set", system_prompt=prompt or None, tools=tools or None)] if prompt or tools else []


def _first(answer: dict[str, Any], role: str) -> str:
    """The first message of a role, of those the answer's chain was made of."""
    lists = answer.get("train_messages")
    messages = lists[0] if isinstance(lists, list) and lists else None
    for each in messages if isinstance(messages, list) else ():
        if isinstance(each, dict) and each.get("role") == role:
            return text_of(each.get("content"))
    return ""


def _places(value: dict[str, Any], root: str) -> Iterator[_Place]:
    """All nodes, parents before children, in the order they were tried; no recursion: trees may be deep."""
    waiting = [_Place("0", root, part_of(part_of(value, "tree"), "tree"))]
    tries = value.get("trys")
    for i, each in reversed(list(enumerate(tries if isinstance(tries, list) else ()))):
        waiting.append(_Place(f"try-{i}", root, _nested(each)))
    while waiting:
        place = waiting.pop()
        children = place.node.get("children")
        # The root is no step: it has no description, and what is below it follows the query.
        is_root = place.path == "0" or (place.path.startswith("try-") and "." not in place.path)
        is_name = place.node.get("node_type") == "Action"
        if not is_root and not (is_name and children):
            yield place
        follows = place.parent if is_root or (is_name and children) else place.path
        action = place.node if is_name else None
        for i, child in reversed(list(enumerate(children if isinstance(children, list) else ()))):
            node = child if isinstance(child, dict) else {"node": child}
            waiting.append(_Place(f"{place.path}.{i}", follows, node, action))


def _nested(one: Any) -> dict[str, Any]:  # noqa: ANN401  a try: {chain: [node, node, …], win}
    """A chain as a tree in which each node has one child."""
    chain = one.get("chain") if isinstance(one, dict) else None
    below: list[Any] = []
    for node in reversed(chain if isinstance(chain, list) else []):
        below = [{**(node if isinstance(node, dict) else {"node": node}), "children": below}]
    return {"children": below}


def _entry(place: _Place) -> Iterator[Entry]:
    node = place.node
    kind = node.get("node_type")
    said = text_of(node.get("description"))
    events: list[Event]
    if kind == "Thought":
        events = [AssistantThinking(content=said)]
    elif kind == "Action Input" and place.action is not None:
        name, args = text_of(place.action.get("description")), said.encode("utf-8", "surrogatepass")
        events = [AssistantToolCall(name=name, args=args, call_id=place.path)]
        events += _result(node, place.path)
    elif kind == "Action":
        events = [AssistantToolCall(name=said, args=b"", call_id=place.path)]
    elif kind == "Final Answer":
        events = [AssistantText(content=said)]
    else:
        events = [Note(topic=kind if isinstance(kind, str) and kind else "node", text=said or None)]
    native = rest_of(node, *_NODE)
    if place.action is not None and (above := rest_of(place.action, *_NODE)):
        native = {**(native or {}), "action": above}
    yield Entry("", place.path, events, parent=place.parent, native=native)


def _result(node: dict[str, Any], call_id: str) -> list[Event]:
    if "observation" not in node:
        return []
    code = node.get("observation_code")
    failed = code not in _FINE
    content = text_of(node["observation"])
    return [ToolResult(call_id=call_id, content=content, is_error=failed, status="error" if failed else "ok")]


def _end(value: dict[str, Any], answer: dict[str, Any]) -> EpisodeEnd:
    won = value.get("win")
    outcome = {True: "success", False: "failure"}[won] if isinstance(won, bool) else None
    score = float(won) if isinstance(won, bool) else None
    return EpisodeEnd(outcome=outcome, score=score, reason=text_at(answer, "finish_type"))


SOURCE: Final = Source(
    name=_NAME,
    title="ToolBench search trees",
    detect=detect,
    read=read,
    looked_for="a document with win and a tree of nodes, or tries of chains",
)
