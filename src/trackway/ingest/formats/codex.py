"""OpenAI Codex: the rollouts below ``~/.codex/sessions``, in every shape they have had.

A line is ``{timestamp, type, payload}``: ``response_item`` is what went over the wire to the model and back,
``event_msg`` what people were shown, the rest are the client's own records. Rollouts of mid-2025 hold bare items under
a first line ``{id, timestamp, instructions, git}``; those of the first client, in TypeScript, are one object
``{session, items}``. Items are the truth of what was said; events add what items lack (``_codex_twins``).

The invariant: one thread is one session, known by its id, and every entry of it by kind, time and id. A legacy rollout
that its client migrated to the paginated shape says the same entries again, and adds none. What may still differ then:
the turns that were rolled back are gone from the migrated file (they stay in the store, where the legacy file came
first), turns it had to make up are notes more, and rollouts without times (mid-2025) are told apart by content, so
that what their migration stamps with times is said again.

A thread that was forked holds its parent's lines, with their ``session_meta``, behind its own: they are part of it.
Anything else that begins with a ``session_meta`` of another id begins another session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from trackway.errors import FileRefused
from trackway.ingest.formats import _codex_events as events
from trackway.ingest.formats._agents import Sessions, homes_of, objects
from trackway.ingest.formats._codex_items import item
from trackway.ingest.formats._codex_thread import Thread
from trackway.ingest.head import Head
from trackway.ingest.making import at_of
from trackway.ingest.naming import episode_id
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import mapping, text, whole
from trackway.schema.events import Parent

NAME: Final = "codex"
_RECORDS: Final[dict[str, events.Told]] = {
    "response_item": item, "event_msg": events.event, "turn_context": events.turn_context,
    "compacted": events.compacted, "token_usage_record": events.usage_record,
    "inter_agent_communication": events.from_agent,
}  # fmt: skip
_TYPES: Final = frozenset({
    *_RECORDS, "session_meta", "world_state", "inter_agent_communication_metadata", "security_risk_score",
    "retained_context", "realtime_item",
})  # fmt: skip
_BARE: Final = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call",
    "custom_tool_call_output", "web_search_call", "function_result",
})  # fmt: skip
_SOUGHT: Final = 64
"""Lines in which a thread's id is looked for, where the first is none that tells it."""


# --- telling --------------------------------------------------------------------------------------------------------


def detect(head: Head) -> Sign | None:
    """Lines with an envelope of Codex's, or bare items under a first line of its own, or the one object before that."""
    lines = head.objects
    told = [each for each in lines if text(each.get("type")) in _TYPES and isinstance(each.get("payload"), dict)]
    if any(each["type"] == "session_meta" and "id" in each["payload"] for each in told):
        return Sign(0.97, "a session_meta line with a thread's id")
    if told and "timestamp" in told[0]:
        named = ", ".join(sorted({each["type"] for each in told})[:3])
        return Sign(0.9 if len(told) * 2 > len(lines) else 0.5, f"lines of timestamp, type and payload: {named}")
    if lines and _is_first(lines[0]) and any(_is_bare(each) for each in lines[1:]):
        return Sign(0.9, "a line with id, timestamp and instructions, then bare response items")
    session = head.document.get("session")
    if isinstance(session, dict) and "id" in session and isinstance(head.document.get("items"), list):
        return Sign(0.9, "an object with a session and its items")
    return None


def _is_first(line: dict[str, Any]) -> bool:
    marks = {"instructions", "git", "originator", "cli_version"}
    return "type" not in line and "id" in line and "timestamp" in line and bool(marks & line.keys())


def _is_bare(line: dict[str, Any]) -> bool:
    return "record_type" in line or (text(line.get("type")) in _BARE and "payload" not in line)


# --- reading --------------------------------------------------------------------------------------------------------


def read(original: Original) -> Iterator[Entry | Trouble]:
    """The entries of a rollout."""
    sessions = Sessions(NAME, "codex")
    return sessions.opened(_entries(original, sessions))


def _entries(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    values = _values(original)
    first, session = _first_session(values)
    threads: dict[str, Thread] = {}
    thread = threads[session] = Thread(session, sessions.about(session))
    family: set[str] = set()
    for each in objects(chain(first, values)):
        if isinstance(each, Trouble):
            yield each
            continue
        value = each.value
        kind = value.get("type")
        meta = _meta_of(value) if kind is None or kind == "session_meta" else None
        if meta is not None:
            named = text(meta.get("id"))
            if thread.is_begun and thread.has_begun_saying and named not in {thread.session, *family}:
                thread = threads.setdefault(named, Thread(named, sessions.about(named)))
                family = set()
                yield Trouble(each.place, f"another session begins in the same file: {named}")
            family |= _ancestors(meta)
        yield from _line(thread, value, each.place, meta)
    for each_thread in threads.values():
        # Answers, and never an item: events are all there is, and none of them has an item to wait for.
        if each_thread.has_answers and not each_thread.has_items:
            yield from each_thread.settle()


def _values(original: Original) -> Iterator[Item | Trouble]:
    """The values of the lines; the one value of a file whose first line is none by itself."""
    values = original.items()
    first = next(values, None)
    if isinstance(first, Trouble):
        with contextlib.suppress(FileRefused):
            yield Item(original.value(), Place(0, 1), b"")
            return
    if first is not None:
        yield first
        yield from values


def _first_session(values: Iterator[Item | Trouble]) -> tuple[list[Item | Trouble], str]:
    """The thread's id, and the lines that were read to find it: the first, but for a piece of a rollout."""
    first: list[Item | Trouble] = []
    seen = ""
    for each in values:
        if isinstance(each, Item) and isinstance(mapping(each.value).get("items"), list):
            first += _as_lines(each)
            each = first[0]  # noqa: PLW2901  it is read as its lines
        else:
            first.append(each)
        value = mapping(each.value) if isinstance(each, Item) else {}
        meta = _meta_of(value)
        if meta is not None and text(meta.get("id")):
            return first, text(meta["id"])
        seen = seen or text(mapping(value.get("payload")).get("thread_id"))
        if len(first) >= _SOUGHT:
            break
    return first, seen


def _as_lines(whole: Item) -> list[Item]:
    """What the lines of a file would be that is one object."""
    session = whole.value.get("session")
    rest = {key: each for key, each in whole.value.items() if key not in {"items", "session"}}
    head = {**rest, "payload": session, "type": "session_meta"} if isinstance(session, dict) else rest
    return [Item(each, whole.place, b"") for each in (head, *whole.value["items"])]


def _meta_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """What a line tells of its session, where that is what it is about."""
    if value.get("type") == "session_meta" and isinstance(value.get("payload"), dict):
        meta: dict[str, Any] = value["payload"]
        return meta
    return value if _is_first(value) else None


def _ancestors(meta: dict[str, Any]) -> set[str]:
    return {each for each in (text(meta.get("forked_from_id")), _parent_of(meta)) if each}


def _line(thread: Thread, value: dict[str, Any], place: Place, meta: dict[str, Any] | None) -> list[Entry]:
    thread.line, thread.place = value, place
    when = value.get("timestamp")
    if when != thread.when:
        thread.when = text(when) or text(value.get("created_at"))
        thread.at = at_of(thread.when) if thread.when else 0
    payload, kind = value.get("payload"), value.get("type")
    if meta is not None:
        return _session(thread, meta)
    thread.has_begun_saying = True
    if isinstance(payload, dict) and isinstance(kind, str):
        told = _RECORDS.get(kind)
        return (
            told(thread, payload)
            if told is not None
            else [thread.note(kind, payload, text=text(payload.get("text")) or None)]
        )
    if isinstance(kind, str) and kind in _BARE:
        return item(thread, value)
    if "role" in value and kind is None:
        return item(thread, {**value, "type": "message"})
    if value == {"record_type": "state"}:
        return []
    return [thread.note(text(kind) or text(value.get("record_type")) or "entry", value)]


def _session(thread: Thread, meta: dict[str, Any]) -> list[Entry]:
    if not thread.is_begun:
        thread.is_begun = True
        _begin(thread, meta)
    return events.set_up(thread, meta)


def _begin(thread: Thread, meta: dict[str, Any]) -> None:
    about = thread.about
    about.at = at_of(meta.get("timestamp")) or thread.at
    about.place = thread.place
    source = meta.get("source")
    git = mapping(meta.get("git"))
    about.note(
        cwd=text(meta.get("cwd")), version=text(meta.get("cli_version")), originator=text(meta.get("originator")),
        source=source, provider=text(meta.get("model_provider")), branch=text(git.get("branch")),
        commit=text(git.get("commit_hash")), repository=text(git.get("repository_url")),
        nickname=text(meta.get("agent_nickname")), role=text(meta.get("agent_role")), path=text(meta.get("agent_path")),
    )  # fmt: skip
    other = text(meta.get("forked_from_id")) or _parent_of(meta)
    if other and other != thread.session:
        about.parent = Parent(episode=episode_id(NAME, other, keeps_ids=True))
    if _parent_of(meta) or (isinstance(source, dict) and "subagent" in source):
        thread.actor = "harness"
        thread.own_from = whole(meta.get("subagent_history_start_ordinal")) or 0


def _parent_of(meta: dict[str, Any]) -> str:
    """The thread that started this one."""
    spawned = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    return text(meta.get("parent_thread_id")) or text(spawned.get("parent_thread_id"))


SOURCE: Final = Source(
    name=NAME,
    title="Codex",
    detect=detect,
    read=read,
    looked_for="lines of timestamp, type and payload, or bare response items under a line with id and instructions",
    keeps_ids=True,
    homes=homes_of("CODEX_HOME", ".codex", "sessions", "archived_sessions"),
)
