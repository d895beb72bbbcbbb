"""GitHub Copilot CLI: ``session-state/<session>/events.jsonl``, an event a line: type, data, id, timestamp, parentId.

Facts: @github/copilot-sdk, generated/session-events.d.ts. Tokens are told in two places: the output with each message,
everything when the session is shut down; from the sum, what messages said already is taken off.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trackway.ingest.formats._agent_edits import Edits
from trackway.ingest.formats._agents import Sessions, elapsed, homes_of, objects
from trackway.ingest.head import Head
from trackway.ingest.making import Calls, Keys, args_of, at_of, rest_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text, whole
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    Event,
    ModelResult,
    Note,
    ToolResult,
    User,
)
from trackway.schema.plain import text_of

_FAMILIES: Final = ("session.", "assistant.", "tool.", "user.", "system.", "hook.", "subagent.")
_COUNTS: Final = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_EXITED: Final = re.compile(r"exit(?:ed with exit)? code:? (-?\d{1,9})>?\s*\Z")
_DENIED: Final = frozenset({"denied", "rejected"})


def _detect(head: Head) -> Sign | None:
    found = [each for each in head.objects if _is_event(each)]
    if not found or len(found) * 2 < len(head.objects):
        return None
    is_begun = any(each["type"] == "session.start" for each in found)
    return Sign(
        0.95 if is_begun else 0.8, "events with type, data, id, timestamp and parentId, as Copilot CLI has them"
    )


def _is_event(line: Mapping[str, Any]) -> bool:
    plain = {"type", "data", "id", "timestamp", "parentId"} <= line.keys() and isinstance(line["data"], dict)
    return plain and (text(line["type"]).startswith(_FAMILIES) or line["type"] == "abort")


def _read(original: Original) -> Iterator[Entry | Trouble]:
    sessions = Sessions("copilot", "copilot")
    return sessions.opened(_Events(sessions).entries(original))


class _Events:
    """One file while it is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._session = ""
        self._keys = Keys()
        self._by_id: dict[str, str] = {}
        self._calls = Calls()
        self._edits = Edits()
        self._asked: Counter[str] = Counter()
        self._started: Counter[str] = Counter()
        self._begun: dict[str, int] = {}
        self._told: Counter[str] = Counter()
        self._sums: dict[str, Counter[str]] = {}
        self._counted: set[str] = set()
        self._thought = ""
        self._replies = 0
        self.contents: list[bytes] = []

    def entries(self, original: Original) -> Iterator[Entry | Trouble]:
        """The events, without the session's beginning."""
        for item in objects(original.items()):
            if isinstance(item, Trouble):
                yield item
            else:
                yield self._entry(item)

    def _entry(self, item: Item) -> Entry:
        line = item.value
        fields, kind, at = mapping(line.get("data")), text(line.get("type")), at_of(line.get("timestamp"))
        if kind == "session.start":
            self._begin(line, fields, at)
        own, parent = text(line.get("id")), line.get("parentId")
        key = self._keys.of(own or f"{kind} {line.get('timestamp')}")
        after = self._by_id.get(parent) if isinstance(parent, str) else None
        if own:
            self._by_id[own] = key
        agent = text(line.get("agentId")) or text(fields.get("parentToolCallId")) or None
        read = _KINDS.get(kind)
        events = [] if read is None else read(self, fields, key, at, agent)
        said = text(fields.get("message")) or text(fields.get("reason")) or None
        native = rest_of(line, "type", "timestamp") if not events or read is None else _left(line, kind, fields)
        contents, self.contents = self.contents, []
        note = Note(topic=kind or "copilot", text=said, at=at, agent=agent)
        return Entry(self._session, key, events or [note], item.place, after, native, contents)

    def _begin(self, line: dict[str, Any], fields: dict[str, Any], at: int) -> None:
        self._session = text(fields.get("sessionId")) or self._session
        about, context = self._sessions.about(self._session), mapping(fields.get("context"))
        about.at, about.native = about.at or at_of(fields.get("startTime")) or at, line
        about.model = about.model or text(fields.get("selectedModel")) or None
        about.note(cwd=context.get("cwd"), version=fields.get("copilotVersion"), git_branch=context.get("branch"),
                   repository=context.get("repository"), commit=context.get("headCommit"))  # fmt: skip

    def _model(self, fields: dict[str, Any], _key: str, _at: int, _agent: str | None) -> list[Event]:
        about = self._sessions.about(self._session)
        about.model = about.model or text(fields.get("newModel")) or None
        return []

    def _system(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        said = text_of(fields.get("content"))
        if fields.get("role") == "system":
            return [Context(op="set", system_prompt=said, at=at, agent=agent)]
        return [Context(op="inject", text=said, at=at, agent=agent)]

    def _user(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        said, source = text_of(fields.get("content")), text(fields.get("source"))
        is_person = source in ("", "user") and agent is None and fields.get("isAutopilotContinuation") is not True
        if is_person:
            self._sessions.about(self._session).prompt(said)
        return [User(content=said, actor="human" if is_person else "harness", at=at, agent=agent)]

    def _thinking(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        self._thought = text(fields.get("content"))
        state = rest_of(fields, "content")
        return [AssistantThinking(content=self._thought, state=state, at=at, agent=agent)] if self._thought else []

    def _message(self, fields: dict[str, Any], key: str, at: int, agent: str | None) -> list[Event]:
        call = text(fields.get("apiCallId")) or text(fields.get("messageId")) or key
        model = text(fields.get("model")) or None
        events = list(self._calls.begin(call, model, at, agent))
        thought, opaque = text(fields.get("reasoningText")), fields.get("reasoningOpaque")
        if (thought and thought != self._thought) or opaque:
            state = {"reasoningOpaque": opaque} if opaque else None
            said = "" if thought == self._thought else thought
            events.append(AssistantThinking(content=said, state=state, call=call, at=at, agent=agent))
        self._thought = ""
        if said := text_of(fields.get("content")):
            events.append(AssistantText(content=said, call=call, at=at, agent=agent))
        requests = [mapping(each) for each in listing(fields.get("toolRequests"))]
        self._replies += 1
        batch = self._replies if len(requests) > 1 else None
        for each in requests:
            events += self._requested(each, call, at, agent=agent, batch=batch)
        tokens = whole(fields.get("outputTokens"))
        if tokens and call not in self._counted:
            self._told[model or ""] += tokens
            events += self._calls.result(call, {"outputTokens": tokens}, None, at, agent)
        return events

    def _requested(
        self, request: dict[str, Any], call: str, at: int, *, agent: str | None, batch: int | None
    ) -> Iterator[Event]:
        """A call; one that was begun before it was told of was told then."""
        call_id, name, args = text(request.get("toolCallId")), text(request.get("name")), request.get("arguments")
        if self._started[call_id]:
            self._started[call_id] -= 1
            return
        self._asked[call_id] += 1
        self._edits.call(call_id, name, args)
        yield AssistantToolCall(
            name=name, args=args_of(args), call_id=call_id, call=call, batch=batch, at=at, agent=agent
        )

    def _start(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        call_id, name, args = text(fields.get("toolCallId")), text(fields.get("toolName")), fields.get("arguments")
        self._begun[call_id] = at
        self._edits.call(call_id, name, args)
        if self._asked[call_id]:
            self._asked[call_id] -= 1
            return []
        self._started[call_id] += 1
        return [AssistantToolCall(name=name, args=args_of(args), call_id=call_id, at=at, agent=agent)]

    def _complete(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        call_id, result, error = (
            text(fields.get("toolCallId")),
            mapping(fields.get("result")),
            mapping(fields.get("error")),
        )
        failed = fields.get("success") is False
        said = text_of(result["content"]) if "content" in result else text(error.get("message"))
        code = whole(mapping(fields.get("shellExecution")).get("exitCode"))
        exited = _EXITED.search(said[-80:]) if code is None else None
        code = int(exited[1]) if exited else code
        is_wrong = failed or bool(code)
        denied = text(error.get("code")).lower() in _DENIED
        changes, contents = self._edits.result(call_id, ok=not failed, at=at, agent=agent)
        self.contents += contents
        self._asked[call_id] = max(self._asked[call_id] - (call_id not in self._begun), 0)
        event = ToolResult(
            call_id=call_id, content=said, is_error=is_wrong, exit_code=code,
            status="denied" if denied else "error" if is_wrong else "ok", at=at, agent=agent,
            duration_ms=elapsed(self._begun.pop(call_id, 0), at),
            returned={**(rest_of(result, "content") or {}), **({"error": error} if error else {})} or None,
        )  # fmt: skip
        return [event, *changes]

    def _usage(self, fields: dict[str, Any], key: str, at: int, agent: str | None) -> list[Event]:
        call, model = text(fields.get("apiCallId")) or key, text(fields.get("model")) or None
        return list(self._calls.result(call, fields, None, at, agent, model=model))

    def _recorded(self, fields: dict[str, Any], key: str, at: int, agent: str | None) -> list[Event]:
        """What one call cost: newer versions say so before they say what came of it."""
        told = mapping(fields.get("usage"))
        call, model = text(told.get("apiCallId")) or key, text(told.get("model")) or None
        counts = {name: count for name in _COUNTS if (count := whole(told.get(name))) is not None}
        if not counts or call in self._counted:
            return []
        self._counted.add(call)
        self._sums.setdefault(model or "", Counter()).update(counts)
        finish = text(told.get("finishReason")) or None
        events = list(self._calls.begin(call, model, at, agent))
        return [*events, *self._calls.result(call, counts, finish, at, agent, model=model)]

    def _shutdown(self, fields: dict[str, Any], key: str, at: int, agent: str | None) -> list[Event]:
        events: list[Event] = []
        for model, metric in mapping(fields.get("modelMetrics")).items():
            usage = mapping(mapping(metric).get("usage"))
            output = whole(usage.get("outputTokens"))
            sums = self._sums.pop(model, None)
            if sums is not None:  # told call by call: what is left is of calls nothing else tells of
                left = {name: n - sums[name] for name in _COUNTS if (n := whole(usage.get(name)) or 0) > sums[name]}
                events += [_summed(key, model, left, at, agent)] if left else []
            elif usage:
                told = self._told.pop(model, 0) + self._told.pop("", 0)
                left = usage if output is None else {**usage, "outputTokens": max(output - told, 0)}
                events.append(_summed(key, model, left, at, agent))
        return events

    def _compacted(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        summary, detail = text(fields.get("summaryContent")) or None, rest_of(fields, "summaryContent")
        return [Context(op="compact", text=summary, detail=detail, at=at, agent=agent)]

    def _rewound(self, fields: dict[str, Any], _key: str, at: int, agent: str | None) -> list[Event]:
        return [Context(op="rewind", detail={"to": fields.get("upToEventId"), **fields}, at=at, agent=agent)]


def _summed(key: str, model: str, usage: dict[str, Any], at: int, agent: str | None) -> Event:
    name = f"{key} {model}"
    return ModelResult(id=name, usage=usage, usage_from="session", model=model, at=at, agent=agent)


_Kind = Callable[[_Events, dict[str, Any], str, int, str | None], list[Event]]
_KINDS: Final[dict[str, _Kind]] = {
    "session.model_change": _Events._model, "system.message": _Events._system, "user.message": _Events._user,  # noqa: SLF001  its own
    "assistant.reasoning": _Events._thinking, "assistant.message": _Events._message,  # noqa: SLF001
    "tool.execution_start": _Events._start, "tool.execution_complete": _Events._complete,  # noqa: SLF001
    "assistant.usage": _Events._usage, "session.shutdown": _Events._shutdown,  # noqa: SLF001
    "session.usage_record": _Events._recorded,  # noqa: SLF001
    "session.truncation": _Events._compacted, "session.compaction_complete": _Events._compacted,  # noqa: SLF001
    "session.snapshot_rewind": _Events._rewound, "session.context_cleared": _Events._rewound,  # noqa: SLF001
}  # fmt: skip
_SAID: Final[dict[str, tuple[str, ...]]] = {
    "system.message": ("content",), "user.message": ("content",), "assistant.reasoning": ("content",),
    "assistant.message": ("content", "toolRequests", "reasoningText", "reasoningOpaque"),
    "tool.execution_start": ("arguments",), "tool.execution_complete": ("result", "error", "success"),
    "assistant.usage": (), "session.usage_record": (), "session.shutdown": (),
    "session.compaction_complete": ("summaryContent",),
}  # fmt: skip
"""Per kind, the fields of ``data`` that its events have."""


def _left(line: dict[str, Any], kind: str, fields: dict[str, Any]) -> dict[str, Any] | None:
    kept = {**fields, "toolRequests": _titles(fields)} if kind == "assistant.message" else fields
    known = tuple(each for each in _SAID.get(kind, ()) if each != "toolRequests" or not kept.get(each))
    if kind == "user.message" and fields.get("transformedContent") == fields.get("content"):
        known += ("transformedContent",)
    rest = rest_of(kept, *known)
    return {**(rest_of(line, "type", "timestamp", "data") or {}), **({"data": rest} if rest else {})} or None


def _titles(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """What requests have beside the calls."""
    requests = (
        rest_of(mapping(each), "toolCallId", "name", "arguments", "type")
        for each in listing(fields.get("toolRequests"))
    )
    return [each for each in requests if each]


SOURCE = Source(
    name="copilot", title="GitHub Copilot CLI", detect=_detect, read=_read, keeps_ids=True,
    homes=homes_of("COPILOT_HOME", ".copilot", "session-state"),
    looked_for="events with type, data, id, timestamp and parentId, the first of type session.start",
)  # fmt: skip
