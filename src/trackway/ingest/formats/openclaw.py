"""OpenClaw (Clawdbot, as it was called): sessions in pi's form, with entries of its own.

A file that names OpenClaw nowhere is read as pi's: it says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trackway.ingest.formats import _pi_entries
from trackway.ingest.formats._agents import folders, from_environ
from trackway.ingest.formats.pi import sign
from trackway.ingest.head import Head
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import mapping, text

_NAMES: Final = ("openclaw", "clawdbot")
_FIELDS: Final = ("id", "customType", "provider", "modelId", "agent", "api", "model")


def _detect(head: Head) -> Sign | None:
    found = sign(head.objects)
    if found is None or not any(_is_named(each) for each in head.objects):
        return None
    return Sign(min(found.confidence + 0.03, 1.0), "a session in pi's form in which OpenClaw is named")


def _is_named(entry: Mapping[str, Any]) -> bool:
    message = mapping(entry.get("message"))
    said = [text(each.get(name)).lower() for each in (entry, message) for name in _FIELDS]
    return any(each.startswith(_NAMES) for each in said)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    return _pi_entries.read(original, "openclaw", "openclaw")


def _homes(home: Path, environ: Mapping[str, str]) -> list[Path]:
    chosen = from_environ(environ, "OPENCLAW_STATE_DIR", home)
    tops = [chosen] if chosen else [home / ".openclaw", home / ".clawdbot"]
    agents = (top / "agents" for top in tops)
    return folders(*(each for top in agents if top.is_dir() for each in sorted(top.glob("*/sessions"))))


SOURCE = Source(
    name="openclaw", title="OpenClaw", detect=_detect, read=_read, keeps_ids=True, homes=_homes,
    looked_for="a session in pi's form in which OpenClaw is named",
)  # fmt: skip
