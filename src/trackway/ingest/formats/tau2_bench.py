"""tau2-bench's results: {timestamp, info, tasks, simulations}, or one file a simulation beside a ``results.json``.

The user is simulated, and calls tools as well: calls and results whose requestor is the user are those of the agent
"user". A simulation is known by its id. The policy the agent had is in the file, the prompt around it is not: it is
kept with the start of the episode and not called a system prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trackway.errors import FileRefused
from trackway.ingest.formats._rows import elements, header, name_of, outcome_of, start
from trackway.ingest.formats._tau2_messages import Talk
from trackway.ingest.head import Head
from trackway.ingest.making import Keys, at_of, rest_of, task_of
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Source, Trouble
from trackway.ingest.values import number, part_of, text_at, whole
from trackway.schema.events import EpisodeEnd, Event, Reward
from trackway.schema.plain import text_of

_SIMULATION: Final = frozenset(("id", "task_id", "termination_reason"))
_LONG: Final = ("messages", "ticks")


class _About(NamedTuple):
    """What a file says of all its simulations: the fields of ``info``, and the tasks by id."""

    fields: dict[str, Any]
    tasks: dict[str, Any]


def detect(head: Head) -> Sign | None:
    """A document with info, tasks and simulations; one simulation; or what lies beside single simulations."""
    found = head.document
    about = found.get("info")
    if isinstance(found.get("simulations"), list) or (isinstance(about, dict) and isinstance(found.get("tasks"), list)):
        if not isinstance(about, dict) or not about.keys() & {"agent_info", "environment_info", "user_info"}:
            return None
        if "simulation_index" in found and not found.get("simulations"):
            return Sign(0.9, "the list of simulations that stand in files of their own", is_part=True)
        return Sign(0.95, "a document with info.agent_info, tasks and simulations")
    if found.keys() >= _SIMULATION and any(key in found for key in (*_LONG, "reward_info")):
        return Sign(0.9, "one simulation: id, task_id, termination_reason and messages")
    return None


def read(original: Original) -> Iterator[Entry | Trouble]:
    """Each simulation as an episode."""
    keys = Keys()
    about = _about(original)
    alone: dict[str, Any] = {}
    for part in elements(original, "tasks", "simulations", *_LONG):
        if isinstance(part, Trouble):
            yield part
        elif part.key == "simulations" and isinstance(part.value, dict):
            yield from _episode(part.value, about, keys)
        elif part.key in _LONG and part.number is not None:
            alone.setdefault(part.key, []).append(part.value)
        elif part.key not in ("tasks", "simulations"):
            alone[part.key] = part.value
        elif part.key == "simulations":
            yield Trouble(Place(), f"no simulation: {part.value!r:.40}")
    if alone.keys() >= _SIMULATION:
        beside = original.near(1, "results.json")
        yield from _episode(alone, about if beside is None else _about(beside), keys)


def _about(original: Original) -> _About:
    """What stands before the simulations; they may come before it, so all of the file is looked at if need be."""
    fields: dict[str, Any] = {}
    tasks: dict[str, Any] = {}
    try:
        for part in original.members("tasks", "simulations", *_LONG):
            if part.key == "simulations" and fields and tasks:
                break
            if part.key == "info" and isinstance(part.value, dict):
                fields = part.value
            elif part.key == "tasks" and isinstance(part.value, dict):
                tasks[text_of(part.value.get("id"))] = part.value
    except FileRefused:
        pass  # the one who reads the simulations says so
    return _About(fields, tasks)


def _episode(simulation: dict[str, Any], about: _About, keys: Keys) -> Iterator[Entry]:
    session = keys.of(_session(simulation))
    task = about.tasks.get(text_of(simulation.get("task_id")))
    agent = part_of(about.fields, "agent_info")
    talk = Talk(agent.get("llm"), part_of(about.fields, "user_info").get("llm"))
    entries = list(_entries(session, simulation, talk))
    began = at_of(simulation.get("start_time")) or at_of(simulation.get("timestamp"))
    head = header(
        "tau2_bench", _title(task) or talk.first or text_of(simulation.get("task_id")),
        task_key=text_of(simulation.get("task_id")) or None, trial=whole(simulation.get("trial")),
        seed=whole(simulation.get("seed")), agent=text_at(agent, "implementation"), model=text_at(agent, "llm"),
        metadata=_metadata(about.fields, simulation),
    )  # fmt: skip
    native = {"simulation": rest_of(simulation, *_LONG, "reward_info"), "info": about.fields or None, "task": task}
    yield start(session, head, at=began, native={key: each for key, each in native.items() if each is not None})
    yield from entries
    rest = {"reward_info": simulation["reward_info"]} if simulation.get("reward_info") is not None else None
    yield Entry(session, "end", list(_end(simulation)), native=rest)


def _session(simulation: dict[str, Any]) -> str:
    found = simulation.get("id")
    return found if isinstance(found, str) and found else name_of(simulation)


def _entries(session: str, simulation: dict[str, Any], talk: Talk) -> Iterator[Entry]:
    messages, ticks = simulation.get("messages"), simulation.get("ticks")
    if isinstance(messages, list):
        for i, message in enumerate(messages):
            for suffix, one in talk.single(message):
                said = talk.message(one, f"{i}{suffix}")
                yield Entry(session, f"{i}{suffix}", said.events, native=said.rest)
    elif isinstance(ticks, list):
        for i, tick in enumerate(ticks):
            for suffix, message in talk.tick(tick):
                said = talk.message(message, f"t{i}{suffix}")
                yield Entry(session, f"t{i}{suffix}", said.events, native=said.rest)


def _title(task: Any) -> str:  # noqa: ANN401  a task as the file has it
    """What the task is: the ticket, or why the user calls, or what it is for."""
    if not isinstance(task, dict):
        return ""
    scenario = part_of(task, "user_scenario")
    orders = scenario.get("instructions")
    inner = orders if isinstance(orders, dict) else {}
    said = (
        task.get("ticket"), orders, inner.get("reason_for_call"), inner.get("task_instructions"),
        part_of(task, "description").get("purpose"),
    )  # fmt: skip
    return next((task_of(each) for each in said if isinstance(each, str) and each.strip()), "")


def _metadata(fields: dict[str, Any], simulation: dict[str, Any]) -> dict[str, Any]:
    found = {
        "domain": part_of(fields, "environment_info").get("domain_name"), "git_commit": fields.get("git_commit"),
        "user_model": part_of(fields, "user_info").get("llm"), "agent_cost": simulation.get("agent_cost"),
        "user_cost": simulation.get("user_cost"), "mode": simulation.get("mode"),
    }  # fmt: skip
    return {key: each for key, each in found.items() if each is not None}


def _end(simulation: dict[str, Any]) -> Iterator[Event]:
    found = part_of(simulation, "reward_info")
    value = number(found.get("reward"))
    at = at_of(simulation.get("end_time"))
    if found:
        yield Reward(value=value, scope="episode", source="tau2_bench", at=at)
    for name, part in part_of(found, "reward_breakdown").items():
        yield Reward(value=number(part), name=name, scope="episode", source="tau2_bench", at=at)
    check = part_of(found, "db_check")
    if number(check.get("db_reward")) is not None:
        yield Reward(value=number(check["db_reward"]), name="db_check", scope="episode", source="tau2_bench", at=at)
    for kind in ("action", "env_assertion", "nl_assertion", "communicate"):
        met = _share(found.get(f"{kind}_checks") or found.get(f"{kind}s"))
        if met is not None:
            yield Reward(value=met, name=f"{kind}s", scope="episode", source="tau2_bench", at=at)
    reason = simulation.get("termination_reason")
    yield EpisodeEnd(outcome=outcome_of(value), score=value, reason=None if reason is None else text_of(reason), at=at)


def _share(checks: Any) -> float | None:  # noqa: ANN401
    """How many of a list of checks were met."""
    if not isinstance(checks, list) or not checks:
        return None
    met = [_met(each) for each in checks if isinstance(each, dict)]
    known = [each for each in met if each is not None]
    return sum(known) / len(known) if known else None


def _met(check: dict[str, Any]) -> bool | None:
    found = next((check[key] for key in ("action_match", "met") if isinstance(check.get(key), bool)), None)
    return found if isinstance(found, bool) else None


SOURCE: Final = Source(
    name="tau2_bench",
    title="tau2-bench results",
    detect=detect,
    read=read,
    looked_for="a document with info, tasks and simulations, or one simulation with task_id and termination_reason",
    keeps_ids=True,
)
