"""execution_steps(events): the steps an agent reported about itself, in seed 000's form, as they were logged.

A reported step is a tool call marked ``reported`` with the one argument ``action``, its result, and, where the agent
counted tokens, a model result of its own under the call's id. What a model was seen to do is in ``steps``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from trackway.read.order import ordered
from trackway.read.pairs import Pair, pairs
from trackway.schema.events import AssistantToolCall, Event, ModelResult
from trackway.schema.execution_step import ExecutionStep


def execution_steps(events: Iterable[Event]) -> list[ExecutionStep]:
    """The reported steps, in reading order; one whose report broke off is none."""
    found = ordered(events)
    tokens: dict[str, int | None] = {}
    for each in found:
        if isinstance(each, ModelResult) and each.usage is not None:
            tokens[each.id] = each.usage.get("total_tokens")
    steps = (_step(pair, tokens.get(pair.call.call_id)) for pair in pairs(found) if pair.call.reported)
    return [each for each in steps if each is not None]


def reported_action(call: AssistantToolCall) -> str | None:
    """What a reported call says was done; None where it is no report of this form."""
    if not call.reported:
        return None
    try:
        args = json.loads(call.args)
    except (ValueError, RecursionError):
        return None
    if not isinstance(args, dict) or args.keys() != {"action"}:
        return None
    return args["action"] if isinstance(args["action"], str) else None


def _step(pair: Pair, tokens: int | None) -> ExecutionStep | None:
    call, result = pair
    action = reported_action(call)
    if action is None or result is None or result.duration_ms is None:
        return None
    return ExecutionStep(
        tool=call.name, action=action, latency_ms=result.duration_ms, tokens=tokens, success=not result.is_error,
        observation=result.content,
    )  # fmt: skip
