"""What a Codex tool gave back: the text the model saw, and what is said in it of exit code, time and failure.

Three generations wrote it: a JSON text with ``output`` and ``metadata``, a text that begins with ``Exit code: N``, and
a text with ``Process exited with code N`` above ``Output:``. Only what stands above the output is believed.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from trackway.ingest.decoding import value_of
from trackway.ingest.making import is_only_text, text_in
from trackway.ingest.values import text, whole
from trackway.schema.events import ToolResult
from trackway.schema.plain import json_text, text_of

_ABOVE: Final = 400
_LONGEST: Final = 1 << 40
_HEADS: Final = ("Exit code: ", "Chunk ID: ", "Wall time: ", "Process ")
_EXIT: Final = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d{1,10})", re.MULTILINE)
_WALL: Final = re.compile(r"^Wall time: (\d+(?:\.\d+)?) seconds", re.MULTILINE)
_TIMED_OUT: Final = "command timed out after"
_DENIED: Final = (
    "exec command rejected by user", "patch rejected by user", "rejected by user", "user rejected", "user cancelled",
    "approval required by policy", "command rejected", "rejected: ",
)  # fmt: skip
_FAILED: Final = (
    "unsupported call", "unsupported custom tool call", "unsupported tool", "failed to parse function arguments",
    "exec_command failed", "write_stdin failed", "apply_patch verification failed", "execution error", "err: ",
    "failed in sandbox", "tool call error", "Unknown process id", "invalid agent id ", "agent with id ",
)  # fmt: skip


class Outcome(NamedTuple):
    """What came of a call."""

    content: str
    exit_code: int | None = None
    status: str = "ok"
    duration_ms: float | None = None
    returned: Any = None


class Ended(NamedTuple):
    """What an event told of a call that ended, before the model was told its output."""

    exit_code: int | None
    duration_ms: float | None
    status: str | None
    fields: dict[str, Any]


def outcome_of(output: Any) -> Outcome:  # noqa: ANN401  a text, blocks, an object: whatever stands in the file
    """The outcome that an output tells."""
    if isinstance(output, str):
        return _of_text(output)
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        told = _of_text(output["content"])
        return told._replace(status="error") if output.get("success") is False and told.status == "ok" else told
    if output is None:
        return Outcome("")
    if isinstance(output, (list, dict)):
        said = text_in(output)
        if is_only_text(output if isinstance(output, list) else [output]):
            return _of_text(said)
        if not said and isinstance(output, dict):
            code = whole(output.get("exit_code", output.get("exitCode")))
            return Outcome(json_text(output).decode("utf-8", "replace"), code, "error" if code else "ok")
        return _of_text(said)._replace(returned=output)
    return Outcome(text_of(output))


def _of_text(said: str) -> Outcome:
    if said.startswith("{"):
        told = _of_json(said)
        if told is not None:
            return told
    above = said[:_ABOVE]
    if not above.startswith(_HEADS):
        return Outcome(said, status=_status(above, None))
    above, _, below = above.partition("Output:\n")
    code, took = _EXIT.search(above), _WALL.search(above)
    exit_code = int(code[1]) if code else None
    return Outcome(
        said, exit_code, _status(below if exit_code is not None else above, exit_code),
        round(float(took[1]) * 1000, 3) if took and len(took[1]) < 16 else None,
    )  # fmt: skip


def _of_json(said: str) -> Outcome | None:
    """The oldest form; None where it is none of it, but what some tool printed."""
    if '"metadata"' not in said:
        return None
    try:
        value = value_of(said.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or "output" not in value:
        return None
    exit_code, took = whole(metadata.get("exit_code")), metadata.get("duration_seconds")
    return Outcome(
        said, exit_code, _status(text(value["output"])[:_ABOVE], exit_code),
        round(took * 1000, 3) if isinstance(took, (int, float)) and 0 <= took < 1e9 else None,
    )  # fmt: skip


def _status(said: str, exit_code: int | None) -> str:
    start = said.lstrip()
    if exit_code is None:
        if "aborted by user" in start[:120] or start == "aborted":
            return "interrupted"
        if start.startswith(_DENIED):
            return "denied"
        return "error" if start.startswith(_FAILED) else "ok"
    if exit_code and start.startswith(_TIMED_OUT):
        return "timeout"
    return "error" if exit_code else "ok"


def milliseconds(duration: object) -> float | None:
    """A time as Codex writes it: ``{secs, nanos}``."""
    if not isinstance(duration, dict):
        return None
    secs, nanos = duration.get("secs"), duration.get("nanos", 0)
    if type(secs) is not int or type(nanos) is not int or not 0 <= secs < _LONGEST or not 0 <= nanos < _LONGEST:
        return None
    return secs * 1000 + round(nanos / 1e6, 6)


def ended_of(fields: dict[str, Any]) -> Ended:
    """What the end of a command, or of a call of a tool, tells."""
    result = fields.get("result")
    status = text(fields.get("status")) or None
    if isinstance(result, dict):
        told = result.get("Ok") if isinstance(result.get("Ok"), dict) else result
        wrong = "Err" in result or (isinstance(told, dict) and told.get("isError") is True)
        status = "failed" if wrong or fields.get("error") else status
    elif fields.get("success") is False:
        status = "failed"
    return Ended(whole(fields.get("exit_code")), milliseconds(fields.get("duration")), status, fields)


_STATUS: Final = {"failed": "error", "declined": "denied", "cancelled": "interrupted", "aborted": "interrupted"}


def result_of(found: Outcome, ended: Ended | None, call_id: str, at: int) -> tuple[ToolResult, dict[str, Any] | None]:
    """The result, and what the event told that is not in it."""
    exit_code, status, duration, returned = found.exit_code, found.status, found.duration_ms, found.returned
    left: dict[str, Any] | None = None
    if ended is not None:
        exit_code = ended.exit_code if exit_code is None else exit_code
        duration = duration if ended.duration_ms is None else ended.duration_ms
        if status == "ok":
            status = "error" if exit_code else _STATUS.get(ended.status or "", "ok")
        gave, left = _beside(ended.fields, found.content)
        returned = gave if returned is None else returned
    result = ToolResult(
        call_id=call_id, content=found.content, is_error=status == "error", exit_code=exit_code, status=status,
        returned=returned, duration_ms=duration, at=at,
    )  # fmt: skip
    return result, left


_TEXTS: Final = frozenset({"aggregated_output", "stdout", "stderr", "formatted_output"})
_TOLD: Final = frozenset({"type", "exit_code", "duration", "call_id"})


def _beside(fields: dict[str, Any], content: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What the tool gave where the model saw something else, as what was cut; and the other fields of the event."""
    gave: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for name, each in fields.items():
        if name in _TEXTS:
            if each and isinstance(each, str) and not content.endswith(each) and each not in content:
                gave[name] = each
        elif name == "result":
            if each is not None:
                gave[name] = each
        elif name not in _TOLD:
            left[name] = each
    return gave or None, left
