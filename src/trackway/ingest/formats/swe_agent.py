"""SWE-agent's ``.traj``: one JSON document an episode, rewritten after every step. Four generations, one reading.

A document of several attempts is as many episodes; the one on top is a copy of the attempt that was chosen. How it
ended stands in ``info``; whether it was any good only a report beside it tells.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, Final

from trackway.ingest.decoding import value_of
from trackway.ingest.formats._beginnings import opened, task_in
from trackway.ingest.formats._documents import Document
from trackway.ingest.formats._swe_agent_history import History
from trackway.ingest.formats._swe_agent_steps import Steps
from trackway.ingest.formats._swe_reports import Report, report_of
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, digest_of, left, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, mapping, number, text
from trackway.schema.events import EpisodeEnd, EpisodeStart, Header, Note, Reward
from trackway.schema.plain import json_text

_NAME = "swe_agent"
_LISTS = ("trajectory", "history", "attempts")
_STANDING = ("swe_agent_hash", "swe_agent_version", "swe_rex_version", "swe_rex_hash")
_CHOICE = ("best_attempt_idx", "rloop_model_stats", "chooser")
_INSTANCE: Final = re.compile(r"[\w.-]+__[\w.-]+-\d+")


def _detect(head: Head) -> Sign | None:
    return _sign(head.document)


def _sign(document: dict[str, Any]) -> Sign | None:
    steps = [mapping(each) for each in listing(document.get("trajectory"))[:3]]
    beside = {"observation", "response", "thought", "state", "query"}
    if steps and all("action" in each and beside & set(each) for each in steps):
        return Sign(0.95, "trajectory with action, observation and response")
    items = [mapping(each) for each in listing(document.get("history"))[:4]]
    if items and all({"role", "content", "agent"} <= set(each) for each in items):
        return Sign(0.9 if "message_type" in items[0] else 0.8, "history with role, content and agent")
    attempts = listing(document.get("attempts"))
    if attempts and _sign(mapping(attempts[0])) is not None:
        return Sign(0.9, "attempts with trajectory and history")
    return None


def _read(original: Original) -> Iterator[Entry | Trouble]:
    document = Document(original, "trajectory", "attempts", hold=("history",))
    first = list(itertools.islice(document.each("attempts"), 1))
    if first:
        yield from _attempts(original, document)
        return
    history = [each for _, each in document.each("history")]
    if not history and next(document.each("trajectory"), None) is None:
        raise original.refused("neither a trajectory nor a history")
    yield from _episode(original, document.members, history, document.each("trajectory"))


def _attempts(original: Original, document: Document) -> Iterator[Entry | Trouble]:
    """Each attempt by itself; which one was chosen is said of that one."""
    keys, sessions = Keys(), []
    for i, each in document.each("attempts"):
        attempt = mapping(each)
        history, steps = listing(attempt.get("history")), listing(attempt.get("trajectory"))
        if not history and not steps:
            yield Trouble(Place(), f"attempt {i + 1} has neither a trajectory nor a history")
            sessions.append("")
            continue
        session = keys.of(digest_of(json_text(attempt)))
        sessions.append(session)
        about = {key: each for key, each in attempt.items() if key not in _LISTS}
        yield from _episode(original, about, history, enumerate(steps), session, trial=i)
    about = mapping(document.members.get("info"))
    best = about.get("best_attempt_idx")
    if isinstance(best, int) and 0 <= best < len(sessions) and sessions[best]:
        detail = {name: about[name] for name in _CHOICE if name in about}
        yield Entry(sessions[best], "chosen", [Note(topic="chosen", detail=detail)])


def _episode(
    original: Original, about: dict[str, Any], history: list[Any], steps: Iterable[tuple[int, Any]], session: str = "",
    *, trial: int | None = None,
) -> Iterator[Entry | Trouble]:  # fmt: skip
    ended = mapping(about.get("info"))
    config = _config(about.get("replay_config"))
    problem = mapping(config.get("problem_statement"))
    stem = PurePath(original.name).name.removesuffix(".traj")
    instance = text(problem.get("id")) or (stem if _INSTANCE.fullmatch(stem) else "") or None
    settings = mapping(mapping(config.get("agent")).get("model"))
    model = text(settings.get("name")) or text(settings.get("model_name")) or None

    def start(prompt: str, at: int) -> Entry:
        metadata = {name: ended[name] for name in _STANDING if isinstance(ended.get(name), str)}
        if isinstance(about.get("environment"), str):
            metadata["environment"] = about["environment"]
        header = Header(
            task=task_of(text(problem.get("text"))) or task_in(prompt) or instance or "", task_key=instance,
            trial=trial, agent="swe-agent", model=model, source=_NAME, taps=("transcript",), metadata=metadata or None,
        )  # fmt: skip
        native = left(about, "info", "environment")
        return Entry(session, "start", [EpisodeStart(header=header, at=at)], native=native or None)

    yield from opened(Steps(session, History(history), model).entries(steps), start)
    yield from _ending(session, ended, None if trial is not None else report_of(original, stem, instance))


def _config(found: Any) -> dict[str, Any]:  # noqa: ANN401  an object, or its JSON as a text
    if isinstance(found, str):
        try:
            found = value_of(found.encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return {}
    return mapping(found)


def _ending(session: str, ended: dict[str, Any], report: Report | Trouble | None) -> Iterator[Entry | Trouble]:
    """How it ended, where it has; a reviewer's opinion; and the verdict, where there is one."""
    if isinstance(report, Trouble):
        yield report
    elif report is not None:
        yield report.entry(session)
    reason = ended.get("exit_status")
    if reason in (None, ""):  # it may go on
        return
    review = mapping(ended.get("review"))
    if (value := number(review.get("accept"))) is not None:
        reward = Reward(value=value, name="review", scope="episode", source="reviewer")
        yield Entry(session, "review", [reward], native=review)
    outcome = report.outcome if isinstance(report, Report) else None
    yield Entry(
        session, "end", [EpisodeEnd(reason=str(reason), outcome=outcome)], native=left(ended, "review", *_STANDING)
    )


SOURCE = Source(
    name=_NAME,
    title="SWE-agent",
    detect=_detect,
    read=_read,
    looked_for="a SWE-agent trajectory (trajectory of actions and observations, history)",
)
