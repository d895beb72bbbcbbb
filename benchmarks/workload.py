"""What is recorded: seeded text of fixed sizes, the same in every run and for every peer.

A *step* is one call of a model and one of a tool, about 1.5 KB: 500 B of input, 120 thought, 180 said, 100 of
arguments, 540 that came back. Words are drawn from a vocabulary of 4,000: text repeats little and compresses badly.
With history, a model call carries the whole conversation so far, as a real agent's does.
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

Step = dict[str, Any]

SYSTEM = "You are a careful software agent. Use the tools. " * 4
EPISODE = 50


@cache
def _words() -> list[str]:
    random = Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(random.choices(letters, k=random.randint(2, 11))) for _ in range(4000)]


def text(random: Random, size: int) -> str:
    """Words of ``size`` bytes in all."""
    return " ".join(random.choices(_words(), k=size // 3 + 1))[:size]


def step(episode: int, i: int) -> Step:
    """One step, always the same for its place."""
    random = Random(f"{episode}:{i}")
    return {
        "ep": episode, "i": i, "call_id": f"call_{episode}_{i}",
        "user": text(random, 500), "think": text(random, 120), "out": text(random, 180), "result": text(random, 540),
        "args": {"path": f"src/mod_{i}.py", "query": text(random, 100)},
    }  # fmt: skip


def plan(episodes: int, steps: int = EPISODE) -> list[list[Step]]:
    """Episodes of steps."""
    return [[step(episode, i) for i in range(steps)] for episode in range(episodes)]


def messages(steps: Sequence[Step], *, history: bool) -> list[dict[str, Any]]:
    """What the model is sent in the last of these steps."""
    sent: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for each in steps[:-1] if history else ():
        call = {"id": each["call_id"], "name": "search", "arguments": each["args"]}
        sent.append({"role": "user", "content": each["user"]})
        sent.append({"role": "assistant", "content": each["out"], "tool_calls": [call]})
        sent.append({"role": "tool", "tool_call_id": each["call_id"], "content": each["result"]})
    sent.append({"role": "user", "content": steps[-1]["user"]})
    return sent


def calls(episodes: int, *, history: bool = False) -> list[list[tuple[Step, list[dict[str, Any]]]]]:
    """Episodes of steps, each with what its model is sent."""
    return [
        [(each, messages(steps[: i + 1], history=history)) for i, each in enumerate(steps)] for steps in plan(episodes)
    ]


def genai_input(sent: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages in the form OpenTelemetry's conventions for generative models give them."""
    return [{"role": each["role"], "parts": _parts(each)} for each in sent]


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        return [{"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}]
    calls = message.get("tool_calls", ())
    return [{"type": "text", "content": message["content"]}, *({"type": "tool_call", **each} for each in calls)]


def genai_output(each: Step) -> list[dict[str, Any]]:
    """What the model answered, in the same form."""
    call = {"type": "tool_call", "id": each["call_id"], "name": "search", "arguments": each["args"]}
    parts = [{"type": "reasoning", "content": each["think"]}, {"type": "text", "content": each["out"]}, call]
    return [{"role": "assistant", "finish_reason": "tool_call", "parts": parts}]
