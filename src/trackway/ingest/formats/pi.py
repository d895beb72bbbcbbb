"""pi, the coding agent: session files (versions 1 to 3) and the stream of ``pi --mode json``.

Facts: badlogic/pi-mono, now earendil-works/pi, docs/session-format.md, docs/message-types.md, docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trackway.ingest.formats import _pi_entries
from trackway.ingest.formats._agents import folders, from_environ
from trackway.ingest.head import Head
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import mapping, text

_KINDS: Final = frozenset({
    "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message",
    "label", "session_info", "usage", "context_edit", "agent_start", "message_start", "message_end",
})  # fmt: skip


def sign(objects: Sequence[Mapping[str, Any]]) -> Sign | None:
    """Whether these lines are a session of pi, or of one who keeps sessions as pi does."""
    head = next((each for each in objects if each.get("type") == "session"), None)
    entries = [each for each in objects if text(each.get("type")) in _KINDS]
    if head is not None and isinstance(head.get("id"), str) and {"cwd", "timestamp", "version"} & head.keys():
        if any(_is_entry(each) for each in entries):
            return Sign(0.95, 'a line of type "session", then entries of pi')
        if len(objects) == 1 and "version" in head:
            return Sign(0.8, 'a line of type "session" with id, version and time, and nothing else yet')
    if any(_is_answer(each) for each in entries):
        return Sign(0.6, "messages of pi, with api, provider and stopReason, but no line of type session")
    return None


def _is_entry(entry: Mapping[str, Any]) -> bool:
    message = entry.get("message")
    return "timestamp" in entry or (isinstance(message, dict) and "role" in message) or entry["type"] == "agent_start"


def _is_answer(entry: Mapping[str, Any]) -> bool:
    message = mapping(entry.get("message"))
    return message.get("role") == "assistant" and {"api", "provider", "stopReason"} <= message.keys()


def _detect(head: Head) -> Sign | None:
    return sign(head.objects)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    return _pi_entries.read(original, "pi", "pi")


def _homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
    settings = from_environ(environ, "PI_CODING_AGENT_DIR", home) or home / ".pi" / "agent"
    return folders(from_environ(environ, "PI_CODING_AGENT_SESSION_DIR", home), settings / "sessions")


SOURCE = Source(
    name="pi", title="pi", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for='a line of type "session", then entries with type, id, parentId and message',
)  # fmt: skip
