"""The messages of one tau2-bench simulation → events: two who talk, each with tools, each perhaps a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trackway.ingest.formats._messages import Chat, Said
from trackway.ingest.making import at_of, rest_of, task_of
from trackway.schema.events import AssistantText, Event, ModelCall, ModelResult, Note, User

USER = "user"


class Talk:
    """One simulation on its way; ``first`` is what the user said first."""

    def __init__(self, agent_model: Any, user_model: Any) -> None:  # noqa: ANN401  as the file has them
        self._models = {None: agent_model, USER: user_model}
        self._sides = {None: Chat(), USER: Chat(agent=USER)}
        self.first = ""

    def single(self, message: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
        """The messages in a message: several results may stand in one."""
        inner = message.get("tool_messages") if isinstance(message, dict) else None
        if isinstance(inner, list) and inner:
            yield from ((f".{i}", each) for i, each in enumerate(inner))
        else:
            yield "", message

    def tick(self, tick: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
        """What happened in one tick of a spoken simulation, as messages, in the order of the benchmark's own reader."""
        if not isinstance(tick, dict):
            yield "", tick
            return
        found: list[dict[str, Any]] = []
        for side, role in (("agent", "assistant"), ("user", "user")):
            chunk, calls = tick.get(f"{side}_chunk"), tick.get(f"{side}_tool_calls")
            if isinstance(chunk, dict) or calls:
                found.append({**(chunk if isinstance(chunk, dict) else {}), "role": role, "tool_calls": calls or None})
            results = tick.get(f"{side}_tool_results")
            found += [
                {"requestor": role, **(each if isinstance(each, dict) else {"content": each}), "role": "tool"}
                for each in (results if isinstance(results, list) else ())
            ]
        for i, each in enumerate(found):
            yield f".{i}", {"timestamp": tick.get("timestamp"), **each}
        if not found:
            yield "", {"role": "tick", **tick}

    def message(self, message: Any, key: str) -> Said:  # noqa: ANN401
        """One message; ``key`` names the model call that gave it, where one is known."""
        if not isinstance(message, dict):
            return Said([Note(topic="message", detail=message)], None)
        at = at_of(message.get("timestamp"))
        role = message.get("role")
        if role == "tool":
            agent = USER if message.get("requestor") == USER else None
            known = {"tool_call_id": message.get("id"), **message}
            said = self._sides[agent].message(known, at=at)
            return Said(said.events, rest_of(said.rest or {}, "id", "timestamp", "requestor"))
        if role in ("assistant", "user"):
            return self._spoken(message, USER if role == "user" else None, key, at)
        return self._sides[None].message(message, at=at)

    def _spoken(self, message: dict[str, Any], agent: str | None, key: str, at: int) -> Said:
        call = f"message-{key}" if _is_sampled(message) else None
        said = self._sides[agent].message({**message, "role": "assistant"}, at=at, call=call)
        events = said.events if agent is None else [self._as_user(each) for each in said.events]
        rest = rest_of(said.rest or {}, "tool_calls", "timestamp", "usage", "cost", "raw_data")
        rest = {key: each for key, each in (rest or {}).items() if each is not None}
        if call is None:
            return Said(events, rest or None)
        model = self._models[agent]
        begun = ModelCall(id=call, model=model if isinstance(model, str) else None, at=at, agent=agent)
        return Said([begun, *events, _result(message, call, at, agent)], rest or None)

    def _as_user(self, event: Event) -> Event:
        """The words of the user open a turn; its calls stay its own."""
        if not isinstance(event, AssistantText):
            return event
        self.first = self.first or task_of(event.content)
        return User(content=event.content, actor="simulated", at=event.at, call=event.call)


def _is_sampled(message: dict[str, Any]) -> bool:
    return any(message.get(key) is not None for key in ("usage", "cost", "raw_data", "generation_time_seconds"))


def _result(message: dict[str, Any], call: str, at: int, agent: str | None) -> ModelResult:
    usage = message.get("usage") if isinstance(message.get("usage"), dict) else None
    cost = message.get("cost")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool):
        usage = {**(usage or {}), "cost": cost}
    seconds = message.get("generation_time_seconds")
    latency = seconds * 1000 if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) else None
    return ModelResult(
        id=call, usage=usage, latency_ms=latency, response=message.get("raw_data"), at=at, agent=agent
    )  # fmt: skip
