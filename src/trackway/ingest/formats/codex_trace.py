"""Codex's rollout trace: a folder with ``manifest.json``, ``trace.jsonl`` and ``payloads/N.json``, requests and all.

``CODEX_ROLLOUT_TRACE_ROOT`` makes a client write it. An event is ``{seq, wall_time_unix_ms, rollout_id, thread_id,
payload: {type, …}}`` and names the payloads that belong to it. Here a model call has what a rollout never holds: its
messages, its tools, its parameters. A request that holds the messages of the one before it is kept as a difference.

The invariant: an entry is known by the event's number. The session is the trace, not the rollout: where both are
imported they are two episodes, seen from two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from trackway.ingest.decoding import value_of
from trackway.ingest.formats._agents import Sessions
from trackway.ingest.formats._codex_bundle import Bundle
from trackway.ingest.formats._codex_calls import request, response, runtime_ended, tool_ended, tool_started
from trackway.ingest.head import Head
from trackway.ingest.making import at_of, rest_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import Context, EpisodeEnd, Note

NAME: Final = "codex_trace"
_MANIFEST: Final = frozenset({"trace_id", "rollout_id", "raw_event_log", "payloads_dir"})
_MARKS: Final = frozenset({"seq", "wall_time_unix_ms", "rollout_id", "payload"})
_ENVELOPE: Final = (*_MARKS, "thread_id", "schema_version")
_LONGEST: Final = 1 << 16
Told = Callable[[Bundle, dict[str, Any]], list[Entry]]


# --- telling --------------------------------------------------------------------------------------------------------


def detect(head: Head) -> Sign | None:
    """Numbered events of a rollout; its manifest and payloads are parts of them."""
    if any(each.keys() >= _MARKS for each in head.objects[:4]):
        return Sign(0.97, "events with seq, wall_time_unix_ms and rollout_id")
    if head.document.keys() >= _MANIFEST:
        return Sign(0.97, "a manifest that names a trace and its payloads", is_part=True)
    if head.path is not None and head.path.parent.name == "payloads" and head.path.stem.isdigit():
        beside = head.path.parent.parent / "manifest.json"
        if beside.is_file() and _is_manifest(beside):
            return Sign(0.97, "a payload beside the manifest of a trace", is_part=True)
    return None


def _is_manifest(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return mapping(value_of(file.read(_LONGEST))).keys() >= _MANIFEST
    except (OSError, ValueError, RecursionError):
        return False


# --- reading --------------------------------------------------------------------------------------------------------


def read(original: Original) -> Iterator[Entry | Trouble]:
    """The entries of a bundle."""
    sessions = Sessions(NAME, "codex")
    return sessions.opened(_entries(original, sessions))


def _entries(original: Original, sessions: Sessions) -> Iterator[Entry | Trouble]:
    bundles: dict[str, Bundle] = {}
    for each in original.items():
        if isinstance(each, Trouble):
            yield each
            continue
        line = mapping(each.value)
        payload = line.get("payload")
        if not isinstance(payload, dict):
            yield Trouble(each.place, "no event of a trace")
            continue
        rollout = text(line.get("rollout_id"))
        bundle = bundles.get(rollout)
        if bundle is None:
            session = text(payload.get("trace_id")) or rollout
            bundle = bundles[rollout] = Bundle(original, session, sessions.about(session))
        bundle.key, bundle.place = bundle.keys.of(str(line.get("seq"))), each.place
        bundle.at = at_of(line.get("wall_time_unix_ms"))
        bundle.thread(line.get("thread_id") or payload.get("thread_id"))
        yield from _line(bundle, payload, rest_of(line, *_ENVELOPE))
        yield from bundle.troubles
        bundle.troubles.clear()


def _line(bundle: Bundle, payload: dict[str, Any], left: dict[str, Any] | None) -> list[Entry]:
    told = _TOLD.get(text(payload.get("type")))
    entries = told(bundle, payload) if told is not None else _note(bundle, payload)
    if left and entries:
        entries[-1] = entries[-1]._replace(native={**(entries[-1].native or {}), "event": left})
    return entries


def _note(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    """An event that is worth a note, with all that it leads to."""
    kind = text(payload.get("event_type")) or text(payload.get("type")) or "event"
    native = _with_payloads(bundle, rest_of(payload, "type", "event_type") or {})
    said = text(payload.get("message")) or text(payload.get("summary")) or None
    return [bundle.entry([Note(topic=kind, text=said, agent=bundle.agent, at=bundle.at)], native)]


def _with_payloads(bundle: Bundle, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with what their references lead to in the references' place."""
    made = dict(fields)
    for name, each in fields.items():
        if isinstance(each, dict) and "raw_payload_id" in each:
            made[name] = bundle.payload(each)
        elif name == "payloads":
            made[name] = [bundle.payload(one) for one in listing(each)]
    return made


def _rollout_started(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    bundle.root = text(payload.get("root_thread_id")) or None
    bundle.about.at = bundle.at
    bundle.about.place = bundle.place
    bundle.about.note(rollout=bundle.root)
    bundle.thread(bundle.root)
    manifest = bundle.original.near(0, "manifest.json")  # kept with the bundle, though it says nothing more
    native = rest_of(payload, "type") or {}
    if manifest is not None:
        native["manifest"] = "manifest.json"
    return [bundle.entry([Note(topic="rollout_started", at=bundle.at)], native)]


def _thread_started(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    named = text(payload.get("thread_id"))
    if named and named != bundle.root:
        path = text(payload.get("agent_path"))
        # The first kind of sub-agents all stood at the root: their threads tell them apart.
        bundle.agents[named] = path if path not in ("", "/root", *bundle.agents.values()) else named
    bundle.thread(named)
    metadata = mapping(bundle.payload(payload.get("metadata_payload")))
    if bundle.agent is None:
        bundle.about.note(cwd=text(metadata.get("cwd")), version=text(metadata.get("cli_version")))
        bundle.about.model = bundle.about.model or text(metadata.get("model")) or None
    native = (rest_of(payload, "type", "metadata_payload") or {}) | {"metadata": metadata}
    return [bundle.entry([Note(topic="thread_started", agent=bundle.agent, at=bundle.at)], native)]


# --- the rest -------------------------------------------------------------------------------------------------------


def _compacted(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    detail = bundle.payload(payload.get("checkpoint_payload"))
    event = Context(op="compact", detail=detail, agent=bundle.agent, at=bundle.at)
    return [bundle.entry([event], rest_of(payload, "type", "checkpoint_payload"))]


def _ended(bundle: Bundle, payload: dict[str, Any]) -> list[Entry]:
    event = EpisodeEnd(reason=text(payload.get("status")) or None, at=bundle.at)
    return [bundle.entry([event], rest_of(payload, "type", "status"))]


_TOLD: Final[dict[str, Told]] = {
    "rollout_started": _rollout_started, "rollout_ended": _ended, "thread_started": _thread_started,
    "inference_started": request, "inference_completed": response, "inference_failed": response,
    "inference_cancelled": response, "compaction_request_started": request, "compaction_request_completed": response,
    "compaction_request_failed": response, "compaction_installed": _compacted, "tool_call_started": tool_started,
    "tool_call_runtime_ended": runtime_ended, "tool_call_ended": tool_ended,
}  # fmt: skip

SOURCE: Final = Source(
    name=NAME,
    title="Codex trace",
    detect=detect,
    read=read,
    looked_for="a trace.jsonl of events with seq, wall_time_unix_ms and rollout_id, beside manifest.json and payloads",
)
