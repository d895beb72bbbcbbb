"""The documentation is true: its examples work as printed, and nothing a user meets is left out.

Each page is walked from top to bottom in an empty folder with an empty home. Python blocks share one namespace;
commands (`$ …`) share one shell's folder and exported variables and must exit 0, or as `# exit N` says. Lines below a
command in a console block are its output: `…` stands for any text in a line, and alone for any number of lines.
A block below `<!-- not run: reason -->` is left out.
"""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EXECUTED = {"python", "console", "bash"}
FENCE = re.compile(r"^[ ]*(?P<marks>`{3,}|~{3,})[ ]*(?P<language>[\w+-]*)")
NOT_RUN = re.compile(r"<!-- *not run:(?P<reason>.*?)-->")
TIMEOUT_S = 120


class Block(NamedTuple):
    """A fenced block of a page: where its first line is, its language, its text, why it is not run (or None)."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def place(self):
        """Page and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class Command(NamedTuple):
    """A command of a console block, the code it must exit with, and the output shown below it."""

    line: int
    text: str
    code: int
    shown: list[str]


def blocks(page):
    """The fenced blocks of a page, in order."""
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    above = ""
    for number, line in lines:
        if fence := FENCE.match(line):
            closing = re.compile(rf"^ *{fence['marks'][0]}{{{len(fence['marks'])},}} *$")
            text = []
            for _, inner in lines:
                if closing.match(inner):
                    break
                text.append(inner)
            else:
                pytest.fail(f"{page.relative_to(ROOT)}:{number}: block is never closed")
            comment = NOT_RUN.search(above)
            reason = comment and comment["reason"].strip()
            yield Block(page, number + 1, fence["language"], textwrap.dedent("\n".join(text)) + "\n", reason)
            above = ""
        elif line.strip():
            above = line


def commands(block):
    r"""The commands of a block; `\` at the end of a line carries on, and `> ` marks the lines of a here-document."""
    found = []
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], 0, []))
        elif found and (found[-1].text.endswith("\\") or ("<<" in found[-1].text and line.startswith("> "))):
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line.removeprefix('> ')}")
        elif found:
            found[-1].shown.append(line)
    assert found, f"{block.place}: no command; write `$ ` before each"
    for command in found:
        stated = re.search(r"\s+# exit (\d+)$", command.text)
        yield command._replace(code=int(stated[1])) if stated else command


def expected(shown):
    """A pattern for the output shown in a console block."""
    lines = "\n".join(line.rstrip() for line in shown).strip("\n").split("\n")
    patterns = [r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines]
    return re.compile("".join(patterns))


class Walk:
    """One page being walked: the namespace of its Python blocks and the shell of its commands."""

    def __init__(self, folder):
        self.module = ModuleType("__main__")
        self.state = folder / "state.sh"
        self.state.touch()
        self.output = folder / "output"
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "STATE": str(self.state),
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "TZ": "UTC",
        }

    def visit(self, block):
        """Execute one block."""
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
            exec(compile(code, block.page, "exec", dont_inherit=True), self.module.__dict__)
            return
        for command in commands(block):
            place = f"{block.page.relative_to(ROOT)}:{command.line}: $ {command.text}"
            code, output = self.shell(command.text)
            assert code == command.code, f"{place}\nexit {code}, not {command.code}\n{output}"
            if block.language == "console" and any(command.shown):
                real = "".join(f"{line.rstrip()}\n" for line in output.strip("\n").split("\n"))
                assert expected(command.shown).fullmatch(real), f"{place}\nreally prints\n{real}"

    def shell(self, text):
        """Exit code and output of a command, started where the previous one ended."""
        keep = 'trap \'{ export -p; printf "cd %q\\n" "$PWD"; } >"$STATE"\' EXIT'
        with self.output.open("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                ["bash", "-c", f'source "$STATE"\n{keep}\n{text}'],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
            output.seek(0)
            return code, output.read()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_work(page, tmp_path, tmp_path_factory, monkeypatch):
    """Every Python block, command and printed output of a page is as it says."""
    monkeypatch.chdir(tmp_path)
    walk = Walk(tmp_path_factory.mktemp("shell"))
    monkeypatch.setitem(sys.modules, "__main__", walk.module)
    for block in blocks(page):
        if block.language in EXECUTED and block.not_run is None:
            walk.visit(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_parse(page):
    """Blocks of JSON and TOML are JSON and TOML, and every block names its language."""
    parsers = {"json": json.loads, "toml": tomllib.loads}
    for block in blocks(page):
        assert block.language, f"{block.place}: names no language"
        if block.language in parsers and block.not_run is None:
            try:
                parsers[block.language](block.text)
            except ValueError as error:
                pytest.fail(f"{block.place}: {error}")


def test_what_is_not_run_is_rare():
    """A block that is not run gives its reason, and most blocks are run."""
    executable = [block for page in PAGES for block in blocks(page) if block.language in EXECUTED]
    not_run = [f"{block.place}: {block.not_run}" for block in executable if block.not_run is not None]
    assert [line for line in not_run if line.endswith(": ")] == []
    assert len(not_run) * 2 <= len(executable), "\n".join([f"{len(not_run)} of {len(executable)}:", *not_run])
