"""The demo's agent: a loop as agents have it. A model is asked, a tool is used, what came back goes into the next call.

The model is a script: ``decide`` looks at the last observation, as a model would, and says what to do. Everything else
is real, and recorded as any agent records itself.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from trackway.recording.episode import Episode
from trackway.recording.recorder import Recorder
from trackway.schema.plain import error_text

TASK: Final = "The tests of this project fail. Find out why, repair the code, and prove it."
_SYSTEM: Final = "You repair small Python projects. Use one tool at a time and look at what it says."
_TOOLS: Final = [
    {"name": "bash", "description": "Execute a command in the workspace.", "parameters": {"cmd": "string"}},
    {"name": "read_file", "description": "Read a file.", "parameters": {"path": "string"}},
    {"name": "write_file", "description": "Write a file.", "parameters": {"path": "string", "content": "string"}},
]
_FILES: Final = {
    "pages.py": '''"""How many pages a list of items takes."""


def pages(total, size):
    """The number of pages of `size` items that `total` items fill."""
    return total // size
''',
    "test_pages.py": """import unittest

from pages import pages


class TestPages(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(pages(9, 3), 3)

    def test_last_page_is_partly_filled(self):
        self.assertEqual(pages(10, 3), 4)

    def test_nothing(self):
        self.assertEqual(pages(0, 3), 0)


if __name__ == "__main__":
    unittest.main()
""",
}
_MOST_STEPS: Final = 12
_COMMAND_S: Final = 30


class Decision(NamedTuple):
    """What the model answers: a thought, and a tool to use or, without one, the last word."""

    thought: str
    tool: str = ""
    args: dict[str, str] = {}  # noqa: RUF012  never changed
    text: str = ""
    repaired: bool = False


class Seen(NamedTuple):
    """What came of a tool."""

    tool: str
    args: dict[str, str]
    content: str
    exit_code: int | None = None


def repair(recorder: Recorder, folder: str) -> str:
    """Let the agent work in a folder; returns the id of the episode."""
    workspace = Path(folder)
    for name, text in _FILES.items():
        (workspace / name).write_text(text, encoding="utf-8")
    with recorder.start(
        "repair the failing test", agent="demo", model="scripted", system_prompt=_SYSTEM, tools=_TOOLS, tags=["demo"]
    ) as episode:
        last = _loop(episode, workspace)
        outcome = "success" if last.repaired else "failure"
        episode.end(outcome, score=float(last.repaired), reason=None if last.repaired else last.text)
    return episode.id


def _loop(episode: Episode, workspace: Path) -> Decision:
    episode.user(TASK)
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    seen: list[Seen] = []
    for _ in range(_MOST_STEPS):
        decision = _ask(episode, messages, seen)
        episode.thinking(decision.thought)
        if not decision.tool:
            episode.text(decision.text)
            return decision
        observation = _act(episode, workspace, decision)
        seen.append(observation)
        messages += [
            {"role": "assistant", "content": decision.thought, "tool": decision.tool, "args": decision.args},
            {"role": "tool", "content": observation.content},
        ]
    return Decision("", text=f"not repaired in {_MOST_STEPS} steps")


def _ask(episode: Episode, messages: list[dict[str, Any]], seen: list[Seen]) -> Decision:
    with episode.model_call(model="scripted", messages=messages, parameters={"temperature": 0}) as request:
        decision = decide(seen)
        usage = {
            "input_tokens": sum(len(str(each)) for each in messages) // 4,
            "output_tokens": len(str(decision)) // 4,
        }
        request.done(usage=usage, usage_from="estimated", finish_reason="tool_use" if decision.tool else "stop")
    return decision


# --- the script -----------------------------------------------------------------------------------------------------


def decide(seen: list[Seen]) -> Decision:
    """The next decision, from what was seen last."""
    if not seen:
        return Decision("First I want to see it fail.", "bash", {"cmd": _test_command()})
    last = seen[-1]
    if last.tool == "bash":
        return _after_tests(last, changed=any(each.tool == "write_file" for each in seen))
    if last.tool == "read_file":
        return _after_reading(last, seen)
    return Decision("The proof is in the tests.", "bash", {"cmd": _test_command()})


def _after_tests(last: Seen, *, changed: bool) -> Decision:
    if last.exit_code == 0:
        done = "All tests pass now: the last page counts even when it is only partly filled."
        return Decision("Nothing fails any more.", text=done, repaired=changed)
    failing = re.search(r'File ".*?test_(\w+)\.py", line (\d+), in (\w+)', last.content)
    wrong = re.search(r"AssertionError: (\S+) != (\S+)", last.content)
    if changed or failing is None or wrong is None:
        return Decision("This is beyond me.", text="the tests still fail, and not in a way I know")
    thought = f"{failing[3]} got {wrong[1]} and wanted {wrong[2]}: one page is missing. What does {failing[1]}.py do?"
    return Decision(thought, "read_file", {"path": f"{failing[1]}.py"})


def _after_reading(last: Seen, seen: list[Seen]) -> Decision:
    repaired = re.sub(r"return (\w+) // (\w+)", r"return -(-\1 // \2)", last.content)
    if repaired == last.content or len(seen) > 4:
        return Decision("There is no division that rounds down here.", text="I do not see the fault")
    thought = "Division with // rounds down, so a page that is only partly filled is not counted. It has to round up."
    return Decision(thought, "write_file", {"path": last.args["path"], "content": repaired})


def _test_command() -> str:
    return f"{shlex.quote(Path(sys.executable).name)} -m unittest -v"


# --- the tools ------------------------------------------------------------------------------------------------------


def _act(episode: Episode, workspace: Path, decision: Decision) -> Seen:
    """Use the tool the model asked for: recorded before it happens and after."""
    tools: dict[str, Callable[..., Seen]] = {"bash": _bash, "read_file": _read_file, "write_file": _write_file}
    call = episode.tool_call(decision.tool, decision.args)
    try:
        seen = tools[decision.tool](episode, workspace, **decision.args)
    except (OSError, subprocess.SubprocessError) as error:
        seen = Seen(decision.tool, decision.args, error_text(error), 1)
    episode.tool_result(call, seen.content, is_error=bool(seen.exit_code), exit_code=seen.exit_code)
    if decision.tool == "bash":
        _judge(episode, seen)
    return seen


def _bash(_episode: Episode, workspace: Path, cmd: str) -> Seen:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    # Without byte code no stale file is imported when the source changes within one tick of the clock.
    environ = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(  # noqa: S602  a shell is what the tool is
        cmd, shell=True, cwd=workspace, env=environ, check=False, timeout=_COMMAND_S,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return Seen("bash", {"cmd": cmd}, done.stdout.decode("utf-8", "surrogateescape"), done.returncode)


def _read_file(_episode: Episode, workspace: Path, path: str) -> Seen:
    return Seen("read_file", {"path": path}, (workspace / path).read_text(encoding="utf-8"))


def _write_file(episode: Episode, workspace: Path, path: str, content: str) -> Seen:
    file = workspace / path
    before = file.read_bytes() if file.exists() else None
    file.write_text(content, encoding="utf-8")
    episode.file_change(path, before=before, after=file.read_bytes())
    return Seen("write_file", {"path": path, "content": content}, f"wrote {file.stat().st_size} bytes")


def _judge(episode: Episode, seen: Seen) -> None:
    """What the tests say, as numbers: counted from the lines they printed."""
    verdicts = re.findall(r"\.\.\. (ok|FAIL|ERROR|skipped)", seen.content)
    counts = {word: verdicts.count(word) for word in ("ok", "FAIL", "ERROR", "skipped")}
    judged = len(verdicts) - counts["skipped"]
    episode.test_run(
        passed=counts["ok"], failed=counts["FAIL"], errors=counts["ERROR"], skipped=counts["skipped"],
        command=seen.args["cmd"],
    )  # fmt: skip
    episode.reward(counts["ok"] / judged if judged else None, name="tests")
    if judged and counts["ok"] == judged:
        episode.note("milestone", "all tests pass")
