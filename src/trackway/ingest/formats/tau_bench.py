"""tau-bench's results: a list of {task_id, trial, reward, info, traj}; each row is one try at one task.

The user is simulated. Ids of calls repeat within a row, so results are of the oldest call that waits under their id.
Agents that act in text (``act``, ``react``) end a message with ``Action:`` and JSON, and are answered by a message that
begins with ``API output:``; these are calls and results too, by the rule of the benchmark's own code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trackway.ingest.formats._messages import Chat
from trackway.ingest.formats._rows import Row, header, outcome_of, rows, start
from trackway.ingest.formats._tags import asked
from trackway.ingest.head import Head
from trackway.ingest.making import rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Sign, Source, Trouble
from trackway.ingest.values import number, part_of, whole
from trackway.schema.events import AssistantText, EpisodeEnd, Event, Reward, ToolResult
from trackway.schema.plain import text_of

_OUTPUT: Final = "API output: "
_ERROR: Final = "Error: "
_RESPOND: Final = "respond"


def detect(head: Head) -> Sign | None:
    """Rows with a task, a reward and a trajectory."""
    found = head.value if isinstance(head.value, list) else head.objects
    sample = [each for each in found[:3] if isinstance(each, dict)]
    if not sample or not all(isinstance(each.get("traj"), list) and "task_id" in each for each in sample):
        return None
    sure = 0.95 if all("reward" in each and "info" in each for each in sample) else 0.7
    return Sign(sure, "rows with task_id, reward, info and traj")


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each row as an episode."""
    for row in rows(original):
        if isinstance(row, Trouble):
            yield row
        elif not isinstance(row.value, dict) or not isinstance(row.value.get("traj"), list):
            yield Trouble(row.place, "a row without a list traj")
        else:
            yield from _episode(row)


def _episode(row: Row) -> Iterator[Entry]:
    value, session = row.value, row.session
    messages = value["traj"]
    about = part_of(value, "info")
    said = part_of(about, "task").get("instruction") or _first_prompt(messages)
    head = header(
        "tau_bench", task_of(text_of(said)), task_key=_key(value.get("task_id")), trial=whole(value.get("trial"))
    )
    yield start(session, head, place=row.place, native=rest_of(value, "traj", "reward", "info"))
    talk = _Talk()
    for i, message in enumerate(messages):
        events, rest = talk.message(message)
        yield Entry(session, str(i), events, row.place, None, rest)
    yield Entry(session, "end", list(_end(value.get("reward"), about)), row.place, None, {"info": value.get("info")})


def _first_prompt(messages: list[Any]) -> Any:  # noqa: ANN401
    return next((each.get("content") for each in messages if isinstance(each, dict) and each.get("role") == "user"), "")


def _key(task_id: Any) -> str | None:  # noqa: ANN401
    return None if task_id is None else text_of(task_id)


class _Talk:
    """One trajectory: messages, and calls that stand in text."""

    def __init__(self) -> None:
        self._chat = Chat(actor="simulated")

    def message(self, message: Any) -> tuple[list[Event], dict[str, Any] | None]:  # noqa: ANN401
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if role == "user" and isinstance(content, str) and content.startswith(_OUTPUT) and len(self._chat.pending):
            failed = content.startswith(_OUTPUT + _ERROR)
            return [self._chat.result(content, is_error=failed)], rest_of(message, "role", "content")
        said = self._chat.message(message)
        if role == "assistant" and isinstance(content, str) and not message.get("tool_calls"):
            return self._with_action(said.events, content), said.rest
        return [_flagged(each) for each in said.events], said.rest

    def _with_action(self, events: list[Event], content: str) -> list[Event]:
        """The call a text ends with, behind the text, which stays whole."""
        if "Action:" not in content or not any(isinstance(each, AssistantText) for each in events):
            return events
        calls = asked(content.rsplit("Action:", 1)[1])
        if not calls or len(calls) > 1 or calls[0].name == _RESPOND:
            return events
        return [*events, self._chat.ask(calls[0])]


def _flagged(event: Event) -> Event:
    """The environment answers a call that failed with ``Error: …`` and with nothing else that says so."""
    if isinstance(event, ToolResult) and event.content.startswith(_ERROR):
        from msgspec.structs import replace

        return replace(event, is_error=True, status="error")
    return event


def _end(reward: Any, about: dict[str, Any]) -> Iterator[Event]:  # noqa: ANN401
    value = number(reward)
    yield Reward(value=value, scope="episode", source="tau_bench")
    more = part_of(part_of(about, "reward_info"), "info")
    for name in ("r_actions", "r_outputs"):
        part = number(more.get(name))
        if part is not None:
            yield Reward(value=part, name=name, scope="episode", source="tau_bench")
    error = about.get("error")
    yield EpisodeEnd(outcome=outcome_of(value), score=value, error=None if error is None else text_of(error))


SOURCE: Final = Source(
    name="tau_bench",
    title="tau-bench results",
    detect=detect,
    read=read,
    looked_for="a list of rows with task_id, reward, info and traj",
)
