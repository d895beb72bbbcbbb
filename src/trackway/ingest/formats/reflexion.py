"""Reflexion's logs: rows of a programming task with its solutions and reflections, or of a game with what was learned.

    {task_id, prompt, implementations, test_feedback, reflections, solution, is_solved}
    {name, memory, is_success}

A row holds no calls. What was tried comes in the order of the trials: an implementation, what the tests said, the
reflection on it; the solution last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._rows import Row, header, rows, start
from trackway.ingest.head import Head
from trackway.ingest.making import rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import listing, number, text_at
from trackway.schema.events import AssistantText, EpisodeEnd, Event, Reflection, User
from trackway.schema.plain import text_of

_NAME: Final = "reflexion"
_GAME: Final = frozenset(("name", "memory", "is_success"))


def detect(head: Head) -> Sign | None:
    """Rows with is_solved and reflections, or with memory and is_success."""
    found = head.value if isinstance(head.value, list) else head.objects
    sample = [each for each in found[:3] if isinstance(each, dict)]
    if not sample:
        return None
    if all(isinstance(each.get("reflections"), list) and "is_solved" in each for each in sample):
        return Sign(0.9, "rows with is_solved and reflections")
    if all(each.keys() >= {"prompt", "solution", "is_solved"} for each in sample):
        return Sign(0.7, "rows with prompt, solution and is_solved")
    if all(each.keys() >= _GAME and isinstance(each["memory"], list) for each in sample):
        return Sign(0.8, "rows with name, memory and is_success")
    return None


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each row as an episode."""
    for row in rows(original):
        if isinstance(row, Trouble):
            yield row
        elif not isinstance(row.value, dict):
            yield Trouble(row.place, "no row of a task")
        else:
            yield from _episode(row)


def _episode(row: Row) -> Iterator[Entry]:
    value, session, place = row.value, row.session, row.place
    named = text_at(value, "task_id") or text_at(value, "name")
    prompt = value.get("prompt")
    # A prompt of code begins with imports: the name of the task says more.
    head = header(_NAME, named or task_of(text_of(prompt)) or "task", task_key=named)
    told = (
        "prompt", "implementations", "test_feedback", "reflections", "memory", "solution", "is_solved", "is_success",
    )  # fmt: skip
    yield start(session, head, place=place, native=rest_of(value, *told))
    if prompt is not None:
        yield Entry(session, "prompt", [User(content=text_of(prompt), actor="harness")], place)
    for key, event in _trials(value):
        yield Entry(session, key, [event], place)
    yield from _end(row)


def _trials(value: dict[str, Any]) -> Iterator[tuple[str, Event]]:
    tried, told = listing(value.get("implementations")), listing(value.get("test_feedback"))
    learned = listing(value.get("reflections")) or listing(value.get("memory"))
    for i in range(max(len(tried), len(told), len(learned))):
        if i < len(tried):
            yield f"implementation-{i}", AssistantText(content=text_of(tried[i]))
        if i < len(told):
            yield f"feedback-{i}", User(content=text_of(told[i]), actor="harness")
        if i < len(learned):
            yield f"reflection-{i}", Reflection(lesson=text_of(learned[i]))
    solution = value.get("solution")
    if solution is not None and not (tried and tried[-1] == solution):
        yield "solution", AssistantText(content=text_of(solution))


def _end(row: Row) -> Iterator[Entry]:
    solved = row.value.get("is_solved", row.value.get("is_success"))
    if isinstance(solved, bool):
        outcome = "success" if solved else "failure"
        yield Entry(row.session, "end", [EpisodeEnd(outcome=outcome, score=number(solved))], row.place)
    elif solved is not None:
        yield Entry(row.session, "end", [EpisodeEnd()], row.place, None, {"is_solved": solved})


SOURCE: Final = Source(
    name=_NAME,
    title="Reflexion logs",
    detect=detect,
    read=read,
    looked_for="rows with is_solved and reflections, or with memory and is_success",
)
