"""Inspect's logs, ``.eval`` and ``.json``: each sample in each epoch is one episode.

A sample is known by its own id where it has one (Inspect 0.3.70 and later), else by its evaluation, its number and its
epoch: a log that is written further says the same samples again. Scores are rewards of the episode; where all that say
how it ended agree, that is its outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._inspect_events import BEFORE, Transcript, score_of
from trackway.ingest.formats._inspect_files import BROKEN, Log, Sample, log_of
from trackway.ingest.formats._inspect_words import Attachments
from trackway.ingest.formats._message_parts import text_shown
from trackway.ingest.formats._rows import header, outcome_of, start
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, at_of, rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import listing, part_of, text_at, whole
from trackway.schema.events import EpisodeEnd, Event, Header, Reward
from trackway.schema.plain import text_of

_NAME: Final = "inspect"
_ABOUT: Final = (
    "task",
    "task_id",
    "task_version",
    "run_id",
    "eval_id",
    "created",
    "solver",
    "dataset",
    "revision",
    "metadata",
    "task_args",
)


def detect(head: Head) -> Sign | None:
    """A zip with the log's journal or header, or a document with eval and status."""
    names = head.members
    if names:
        if not any(each in names for each in ("header.json", "_journal/start.json")):
            return None
        if any(each.startswith(("samples/", "_journal/")) for each in names):
            return Sign(0.95, "a zip with header.json or _journal/start.json, and samples")
        return None
    about = part_of(head.document, "eval")
    if "status" in head.document and "task" in about and "model" in about:
        return Sign(0.95, "a document with version, status and eval (task, model)")
    return None


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each sample as an episode."""
    for log in log_of(original):
        keys = Keys()
        for sample in log.samples:
            if isinstance(sample, Trouble):
                yield sample
                continue
            session = keys.of(_session(log.fields, sample.fields))
            try:
                yield from _episode(log, sample, session)
            except BROKEN as error:
                yield Trouble(Place(), f"sample {text_of(sample.fields.get('id'))} cannot be read further: {error}")


def _session(log: dict[str, Any], sample: dict[str, Any]) -> str:
    own = text_at(sample, "uuid")
    if own:
        return own
    about = part_of(log, "eval")
    of = next((text_of(about[key]) for key in ("eval_id", "run_id", "task_id", "created") if about.get(key)), "")
    return f"{of}/{text_of(sample.get('id'))}/{text_of(sample.get('epoch'))}"


def _episode(log: Log, sample: Sample, session: str) -> Iterator[Entry]:
    fields = sample.fields
    attachments = Attachments(sample.attachments)
    began = at_of(fields.get("started_at"))
    told = ("scores", "score", "error", "limit", "model_usage", "output")
    yield start(session, _header(log.fields, fields, attachments), at=began, native=_said(rest_of(fields, *told)))
    transcript = Transcript(session, sample)
    yield from transcript.entries()
    kept = {key: fields[key] for key in told if fields.get(key) is not None}
    if transcript.quiet:
        kept[BEFORE] = transcript.quiet
    yield Entry(session, "end", list(_end(fields)), native=kept or None)


def _said(rest: dict[str, Any] | None) -> dict[str, Any] | None:
    return {key: each for key, each in (rest or {}).items() if each is not None} or None


def _header(log: dict[str, Any], sample: dict[str, Any], attachments: Attachments) -> Header:
    about = part_of(log, "eval")
    given = attachments.whole(sample.get("input"))
    if isinstance(given, list):
        given = next(
            (each.get("content") for each in given if isinstance(each, dict) and each.get("role") == "user"), ""
        )
    number = text_of(sample.get("id"))
    task = text_at(about, "task")
    named = f"{task}/{number}" if task else number
    return header(
        _NAME, task_of(text_shown(given)) or number or "sample", task_key=named or None,
        trial=whole(sample.get("epoch")), seed=whole(part_of(about, "model_generate_config").get("seed")),
        agent=text_at(about, "solver") or _solvers(part_of(log, "plan").get("steps")), model=text_at(about, "model"),
        metadata={key: about[key] for key in _ABOUT if about.get(key) not in (None, {}, [])} or None,
        tags=tuple(each for each in listing(about.get("tags")) if isinstance(each, str)),
    )  # fmt: skip


def _solvers(steps: Any) -> str | None:  # noqa: ANN401
    """The solvers of a plan, in their order."""
    names = [text_at(each, "solver") for each in steps] if isinstance(steps, list) else []
    return ", ".join(each for each in names if each) or None


# --- how it ended -------------------------------------------------------------------------------------------------


def _end(fields: dict[str, Any]) -> Iterator[Event]:
    at = at_of(fields.get("completed_at"))
    scores = fields.get("scores")
    if not isinstance(scores, dict):
        scores = {"score": fields["score"]} if isinstance(fields.get("score"), dict) else {}
    outcomes: list[str] = []
    first: float | None = None
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        for one, part in _values(name, value):
            number = score_of(part)
            first = number if first is None else first
            yield Reward(value=number, name=one, scope="episode", source=name, at=at)
            if (outcome := outcome_of(number)) is not None:
                outcomes.append(outcome)
    error = fields.get("error")
    yield EpisodeEnd(
        outcome=outcomes[0] if outcomes and len(set(outcomes)) == 1 else None, score=first, reason=_limit(fields),
        error=None if error is None else text_at(error, "message") or text_of(error), at=at,
    )  # fmt: skip


def _values(name: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """The numbers of a score: one, or one for each of its names or places."""
    if isinstance(value, dict):
        yield from ((f"{name}.{key}", each) for key, each in value.items())
    elif isinstance(value, list):
        yield from ((f"{name}.{i}", each) for i, each in enumerate(value))
    else:
        yield name, value


def _limit(fields: dict[str, Any]) -> str | None:
    limit = fields.get("limit")
    if limit is None:
        return None
    return f"limit: {text_at(limit, 'type') or text_of(limit)}"


SOURCE: Final = Source(
    name=_NAME,
    title="Inspect evaluation logs",
    detect=detect,
    read=read,
    looked_for="a zip with header.json or _journal/start.json and samples, or a document with status and eval",
)
