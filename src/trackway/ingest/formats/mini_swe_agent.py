"""mini-swe-agent's ``.traj.json`` (1.0 and 1.1): one JSON document an episode, rewritten as it goes on.

The task is put together by the harness, which opens the first turn; so is every other "user" message but for a
person's. How it ended stands in ``info``; whether it was any good only a report beside it tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from trackway.ingest.formats._beginnings import opened, task_in
from trackway.ingest.formats._documents import Document
from trackway.ingest.formats._mini_messages import Messages
from trackway.ingest.formats._swe_reports import Report, detect_report, report_of
from trackway.ingest.head import Head
from trackway.ingest.making import left
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, text
from trackway.schema.events import EpisodeEnd, EpisodeStart, Header

_NAME = "mini_swe_agent"
_ENDING = ("exit_status", "submission", "model_stats")


def _detect(head: Head) -> Sign | None:
    document = head.document
    version = text(document.get("trajectory_format"))
    if version.startswith("mini-swe-agent"):
        return Sign(0.98, f"trajectory_format {version}")
    about = mapping(document.get("info"))
    if "mini_version" in about:  # the format is named behind the messages
        return Sign(0.97, f"info.mini_version {about['mini_version']}")
    config = mapping(about.get("config"))
    if "minisweagent" in f"{config.get('agent_type')}{config.get('model_type')}":
        return Sign(0.97, "info.config names minisweagent")
    if {"exit_status", "model_stats"} <= set(about) and _are_messages(document.get("messages")):
        return Sign(0.7, "info with exit_status and model_stats, and messages")
    return detect_report(head)


def _are_messages(found: Any) -> bool:  # noqa: ANN401  a JSON value is anything
    messages = [mapping(each) for each in listing(found)[:4]]
    return bool(messages) and all("role" in each for each in messages)


def _read(original: Original) -> Iterator[Entry | Trouble]:
    document = Document(original, "messages")
    if "messages" in document.members:
        raise original.refused("its messages are no list")
    about = mapping(document.members.get("info"))
    config = mapping(about.get("config"))
    instance = text(document.members.get("instance_id")) or text(about.get("instance_id")) or None

    def start(prompt: str, at: int) -> Entry:
        template = text(mapping(config.get("agent")).get("instance_template"))
        header = Header(
            task=task_in(prompt, template) or instance or "", task_key=instance, agent="mini-swe-agent",
            model=text(mapping(config.get("model")).get("model_name")) or None, source=_NAME, taps=("transcript",),
            metadata=_metadata(document.members, about, config) or None,
        )  # fmt: skip
        native = left(document.members, "info", "instance_id", "trajectory_format")
        native |= left(about, "mini_version", *_ENDING)
        return Entry("", "start", [EpisodeStart(header=header, at=at)], native=native or None)

    yield from opened(_messages(document, config), start)
    yield from _ending(original, about, instance)


def _metadata(members: dict[str, Any], about: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    environment = mapping(config.get("environment"))
    found = {
        "version": about.get("mini_version"), "format": members.get("trajectory_format"),
        "cwd": environment.get("cwd"), "image": environment.get("image"),
    }  # fmt: skip
    return {key: each for key, each in found.items() if isinstance(each, str) and each}


def _messages(document: Document, config: dict[str, Any]) -> Iterator[Entry | Trouble]:
    messages = Messages("", text(mapping(config.get("agent")).get("timeout_template")))
    for i, message in document.each("messages"):
        if isinstance(message, dict):
            yield messages.entry(i, message)
        else:
            yield Trouble(Place(), f"message {i + 1} is no object")


def _ending(original: Original, about: dict[str, Any], instance: str | None) -> Iterator[Entry | Trouble]:
    """How it ended, where it has; and the verdict, where there is one."""
    report = report_of(original, PurePath(original.name).name.removesuffix(".json").removesuffix(".traj"), instance)
    if isinstance(report, Trouble):
        yield report
    elif report is not None:
        yield report.entry("")
    reason = text(about.get("exit_status"))
    if reason:
        outcome = report.outcome if isinstance(report, Report) else None
        end = EpisodeEnd(reason=reason, outcome=outcome)
        yield Entry("", "end", [end], native={name: about[name] for name in _ENDING if name in about})


SOURCE = Source(
    name=_NAME,
    title="mini-swe-agent",
    detect=_detect,
    read=_read,
    looked_for="a mini-swe-agent trajectory (trajectory_format, info, messages)",
)
