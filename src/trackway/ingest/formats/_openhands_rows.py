"""Rows of OpenHands' evaluation and resolver: one row is one finished episode, with its history and what came of it.

A row has no name of its own: it is known by its bytes. The instruction is the harness's; whoever answers the agent
after it is a program that plays the user.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from trackway.ingest.formats._beginnings import opened, task_in
from trackway.ingest.making import Keys, digest_of, left, task_of
from trackway.ingest.original import Item, Original
from trackway.ingest.source import Entry, Place, Trouble
from trackway.ingest.values import listing, mapping, number, text
from trackway.schema.events import EpisodeEnd, EpisodeStart, Event, Header, Reward, User
from trackway.schema.plain import json_text

_VERDICTS: Final = ("resolved", "success", "correct", "passed", "result", "score", "reward")
_ABOUT: Final = ("instance_id", "instance", "instruction", "metadata", "issue", "issue_type", "base_commit")
_METADATA: Final = ("agent_class", "dataset", "data_split", "git_commit", "start_time", "max_iterations")

ReadHistory = Callable[[Iterable[Any]], Iterable[Entry | Trouble]]


def is_row(value: Any) -> bool:  # noqa: ANN401  a JSON value is anything
    """Whether a value is such a row; of one that is cut off, its beginning."""
    row = mapping(value)
    if "issue" in row and "issue_type" in row:
        return "history" in row or "instruction" in row
    if "instance_id" not in row:
        return False
    about = mapping(row.get("metadata"))
    if "agent_class" in about or "llm_config" in about:
        return True
    return isinstance(row.get("history"), list) and bool({"instruction", "test_result", "metrics"} & set(row))


def history_of(value: Any) -> list[Any]:  # noqa: ANN401  as above
    """The events of a row, which may be pairs."""
    return listing(mapping(value).get("history"))


def rows(
    source: str, items: Iterable[Item | Trouble], reader: Callable[[str, dict[str, Any]], ReadHistory]
) -> Iterator[Entry | Trouble]:
    """Each row as an episode; ``reader`` is given its name and the row, and reads its history."""
    keys = Keys()
    for item in items:
        if isinstance(item, Trouble):
            yield item
        elif not is_row(item.value):
            yield Trouble(item.place, "no row with a history")
        else:
            session = keys.of(digest_of(item.raw))
            yield from _episode(source, session, item.value, reader(session, item.value), item.place)


def listed(original: Original) -> tuple[Iterable[Any], bool] | None:
    """What a file that is one list holds, and whether these are rows; None where it is no list."""
    _, line = next(original.lines(), (Place(), b""))
    if (line or b"").lstrip()[:1] != b"[":
        return None
    values = (each.value for each in original.members())
    first = list(itertools.islice(values, 1))
    return itertools.chain(first, values), bool(first) and is_row(first[0])


def as_items(values: Iterable[Any]) -> Iterator[Item]:
    """Rows of a list as those of a file of lines are."""
    return (Item(each, Place(), json_text(each)) for each in values)


def _episode(
    source: str, session: str, row: dict[str, Any], read: ReadHistory, place: Place
) -> Iterator[Entry | Trouble]:
    """One row: its beginning, its history, its end."""
    history = history_of(row)
    about = mapping(row.get("metadata"))
    issue = mapping(row.get("issue"))

    def start(prompt: str, at: int) -> Entry:
        told = text(mapping(row.get("instance")).get("problem_statement")) or text(issue.get("title"))
        header = Header(
            task=task_of(told) or task_in(prompt or text(row.get("instruction"))) or text(row.get("instance_id")),
            task_key=_task_key(row, issue), agent="openhands", model=_model(about), source=source,
            taps=("transcript",), metadata={name: about[name] for name in _METADATA if about.get(name)} or None,
        )  # fmt: skip
        native = {name: row[name] for name in _ABOUT[1:] if row.get(name)}
        if native.get("instruction") == prompt:
            del native["instruction"]
        return Entry(session, "start", [EpisodeStart(header=header, at=at)], place, native=native or None)

    found = read(history)
    if not history:  # it never began: what it was to do is all there is
        asked = User(content=text(row.get("instruction")), actor="harness")
        found = [Entry(session, "instruction", [asked], place)]
    for each in opened(found, start):
        yield each._replace(place=place) if isinstance(each, Entry) else each
    yield Entry(session, "end", list(_ending(row)), place, native=left(row, "history", *_ABOUT) or None)


def _task_key(row: dict[str, Any], issue: dict[str, Any]) -> str | None:
    if text(row.get("instance_id")):
        return text(row["instance_id"])
    if {"owner", "repo", "number"} <= set(issue):
        return f"{issue['owner']}/{issue['repo']}#{issue['number']}"
    return None


def _model(about: dict[str, Any]) -> str | None:
    for name in ("llm_config", "llm"):
        if found := text(mapping(about.get(name)).get("model")):
            return found
    return None


def _ending(row: dict[str, Any]) -> Iterator[Event]:
    outcome = None
    for name, value in _verdicts(row):
        yield Reward(value=float(value), name=name, scope="episode", source="harness")
        if outcome is None and isinstance(value, bool):
            outcome = "success" if value else "failure"
    reason = text(row.get("result_explanation")) or None
    yield EpisodeEnd(outcome=outcome, reason=reason, error=text(row.get("error")) or None)


def _verdicts(row: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """What was said of the result: yes or no, or a number; each name once."""
    result = row.get("test_result")
    told: dict[str, float] = {}
    report = mapping(mapping(result).get("report")) or mapping(row.get("report"))
    for where in (report, mapping(result), row if "issue" in row else {}):
        for name in _VERDICTS:
            value = where.get(name)
            if number(value) is not None:
                told.setdefault(name, value)  # type: ignore[arg-type]  # it is a number, or says yes or no
    if number(result) is not None:
        told.setdefault("result", result)  # type: ignore[arg-type]  # as above
    yield from told.items()
