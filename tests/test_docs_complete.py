"""Nothing a user meets is left out of docs/, and nothing of the machine it was written on is left in the repository."""

import inspect
import re
import subprocess
from pathlib import Path

import click
import pytest

from trackway.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
MACHINE = re.compile(
    r"(?<![\w.~-])/(?:work|root|opt/pypi|opt/wheels|tmp/dev)/\S*"  # its folders
    r"|[\w.-]*(?:pypi\.org|pythonhosted\.org|npmjs\.(?:com|org)|yarnpkg\.com|jfrog\.io)|https?://\S+/simple\b"
)


def _docs():
    return "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").rglob("*.md")))


def _missing(patterns):
    """The names whose pattern is nowhere in docs/."""
    docs = _docs()
    return [name for name, pattern in patterns.items() if not re.search(pattern, docs)]


def _commands(group, path):
    """The full name of each command below a group, hidden ones apart."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if not command.hidden:
            yield f"{path} {name}"
            if isinstance(command, click.Group):
                yield from _commands(command, f"{path} {name}")


def _files():
    """Every text file that git does not ignore, in a clone or in an unpacked archive."""
    git = ["git", "-c", "safe.directory=*", "grep", "--no-index", "--exclude-standard", "-Ilz", ""]
    listed = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_commands_are_documented():
    """Every command is written out as `trackway <name>`."""
    from trackway.cli import main

    assert _missing({name: rf"{name}\b" for name in _commands(main, "trackway")}) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page(name):
    """`docs/commands/NAME.md` is called after the command, names each of its options, and the index links to it.

    The options of every command stand in the index; `--json` stands in both, since its shape is the command's own.
    """
    from trackway.cli import main

    page = (ROOT / "docs/commands" / f"{name}.md").read_text(encoding="utf-8")
    index = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert page.startswith(f"# trackway {name}\n")
    assert f"(commands/{name}.md)" in index
    command = main.get_command(click.Context(main), name)
    options = {spelling for each in command.params if isinstance(each, click.Option) for spelling in each.opts}
    everywhere = {"--home", "--store", "-h", "--help"}
    missing = [(page, options - everywhere), (index, everywhere | {"--json"})]
    assert [each for text, named in missing for each in sorted(named) if not _names(text, each)] == []


def _names(text, option):
    """Whether an option stands in a text as itself, not as the beginning of a longer one."""
    return re.search(rf"(?<![\w-]){option}(?![\w-])", text) is not None


def test_links_lead_somewhere():
    """Every relative link in a page names a file that is there, and a heading that is in it."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    broken = []
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, heading = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (heading and heading not in _headings(there)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def _headings(page):
    """The anchors of a page, as GitHub makes them: lower case, spaces to dashes, the rest of punctuation gone."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_event_kinds_are_documented():
    """Every kind of event stands in backticks."""
    from trackway.schema.events import KINDS

    assert _missing({kind: f"`{kind}`" for kind in KINDS}) == []


def test_errors_are_documented():
    """Every exception class is named."""
    from trackway import errors

    classes = inspect.getmembers(errors, lambda value: inspect.isclass(value) and issubclass(value, BaseException))
    ours = [name for name, value in classes if value.__module__ == errors.__name__ and not name.startswith("_")]
    assert ours
    assert _missing({name: rf"\b{name}\b" for name in ours}) == []


def test_environment_is_documented():
    """Every environment variable the source reads is named."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = set(re.findall(r"\bTRACKWAY_[A-Z0-9_]*[A-Z0-9]\b", source))
    assert _missing({name: rf"\b{name}\b" for name in sorted(names)}) == []


def test_nothing_of_this_machine_is_kept():
    """No committed file names a folder or a package index of the machine it was written on."""
    found = []
    for path in _files():
        for number, line in enumerate(path.read_bytes().decode("utf-8", errors="replace").splitlines(), start=1):
            found += [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in MACHINE.finditer(line)]
    assert found == []
