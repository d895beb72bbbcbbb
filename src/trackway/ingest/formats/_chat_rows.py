"""Where in a row its messages are: plainly, as a prompt with what followed, or as a prompt with two that may follow."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trackway.ingest.formats._messages import ROLES
from trackway.ingest.formats._rows import name_of

MESSAGES: Final = ("messages", "conversations", "conversation")
_CONTENT: Final = frozenset(("content", "tool_calls", "function_call"))
_PREFERRED: Final = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"))


class Talk(NamedTuple):
    """One conversation of a row; ``told`` are the row's fields that need not be kept beside it."""

    messages: list[Any]
    fields: dict[str, Any]
    told: frozenset[str]
    variant: str | None = None
    label: str | None = None
    task_key: str | None = None


def is_message(value: Any) -> bool:  # noqa: ANN401  whatever stands in a file
    """Whether a value is a message: a role that is known, and something said."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    return isinstance(role, str) and role in ROLES and not _CONTENT.isdisjoint(value)


def messages_key(value: dict[str, Any]) -> str | None:
    """The member that holds the messages."""
    return next((key for key in MESSAGES if isinstance(value.get(key), list)), None)


def talks_of(value: Any) -> list[Talk]:  # noqa: ANN401
    """The conversations of a row: one; of a preference two; none where there are no messages in it."""
    if not isinstance(value, dict):
        return []
    inner = value.get("input")
    fields = inner if isinstance(inner, dict) and messages_key(inner) else value
    key = messages_key(fields)
    before = fields[key] if key else value.get("prompt")
    before = before if isinstance(before, list) else []
    told = frozenset((*MESSAGES, "prompt", "tools", "functions", "label", *(("input",) if fields is inner else ())))
    for good, bad in _PREFERRED:
        if good in value and bad in value:
            return _pair(value, (good, bad), before, fields, told)
    if "completion" in value and isinstance(value["completion"], list):
        before = [*before, *value["completion"]]
        told |= {"completion"}
    return [Talk(before, fields, told, label=_label(value.get("label")))] if before else []


def _pair(
    value: dict[str, Any], names: tuple[str, str], before: list[Any], fields: dict[str, Any], told: frozenset[str]
) -> list[Talk]:
    """What was preferred and what was not, each behind the same prompt; the prompt may stand in both."""
    both = [_list(value[name]) for name in names]
    if not all(both) or not all(is_message(each) for one in both for each in one[:1]):
        return []
    shared = name_of(before or both[0][:1])
    return [
        Talk([*before, *messages], fields, told | set(names), variant, variant, shared)
        for variant, messages in zip(("chosen", "rejected"), both, strict=True)
    ]


def _list(value: Any) -> list[Any]:  # noqa: ANN401
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _label(value: Any) -> str | None:  # noqa: ANN401
    return {True: "desirable", False: "undesirable"}[value] if isinstance(value, bool) else None
