"""The command line as a whole: help, laziness, errors, exit codes, pipes and terminals."""

import json
import os
import pty
import sqlite3
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from trackway.cli import COMMANDS, main
from trackway.recording.recorder import Recorder
from trackway.store.migrations import APPLICATION_ID


def cli(*args):
    """What a command answers."""
    return CliRunner().invoke(main, args)


def shell(command, **environ):
    """What a shell line answers; `trackway` in it is this one."""
    command = command.replace("trackway ", f"{sys.executable} -m trackway ")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def modules_after(*args):
    """The modules that are loaded once a command has answered."""
    code = (
        "import sys\nfrom trackway.cli import main\n"
        f"try: main({list(args)!r})\nexcept SystemExit: pass\n"
        "print(' '.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def on_terminal(*args, **environ):
    """The bytes a command sends to a terminal of 100 columns."""
    here, there = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "trackway", *args],
        stdin=subprocess.DEVNULL, stdout=there, stderr=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"} | environ,
    )  # fmt: skip
    os.close(there)
    found = b""
    try:
        while piece := os.read(here, 65536):
            found += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(here)
    assert process.wait() == 0
    return found


@pytest.fixture
def recorded(home):
    """A home with one episode; gives its id."""
    with Recorder(home) as recorder, recorder.start("fix the flaky test", agent="demo", model="m") as episode:
        episode.user("go")
        call = episode.tool_call("bash", {"cmd": "pytest"})
        episode.tool_result(call, "2 failed", is_error=True, exit_code=1)
        episode.end("success", score=1.0)
    return episode.id


def test_help_lists_every_command():
    """`trackway --help` names every command with its line."""
    answer = cli("--help")
    assert answer.exit_code == 0
    for name, (_, line) in COMMANDS.items():
        assert name in answer.stdout
        assert line.split(",")[0] in answer.stdout


def test_help_imports_no_command():
    """Help comes from the table: no command's module is loaded for it, and neither is the store."""
    loaded = modules_after("--help")
    assert not [name for name in loaded if name.startswith(("trackway.cli.", "trackway.store", "sqlite3"))]


@pytest.mark.parametrize("name", COMMANDS)
def test_command_explains_itself(name):
    """Every command has the common options and examples, and its line of help is its docstring's first."""
    command = main.get_command(click.Context(main), name)
    page = cli(name, "--help").stdout
    for part in getattr(command, "commands", {}):  # a command of commands: their pages have the options
        page += cli(name, part, "--help").stdout
    for wanted in ("--json", "--home", "--store", "Examples:", f"trackway {name}"):
        assert wanted in page
    assert command.help.splitlines()[0] == COMMANDS[name][1]
    assert command.name == name


def test_json_needs_little(recorded):
    """`ls --json` loads no other command, no rich and no package metadata: that is what keeps it quick."""
    loaded = modules_after("ls", "--json")
    assert {name for name in loaded if name.startswith("trackway.cli.") and "._" not in name} == {"trackway.cli.ls"}
    assert not loaded & {"rich", "importlib.metadata", "trackway.recording.recorder", "difflib"}


def test_piped_output_needs_no_rich(recorded):
    """Into a pipe everything is plain text, and rich is not loaded."""
    assert "rich" not in modules_after("show", "last")


def test_colour_on_a_terminal_only(recorded):
    """A terminal gets colour; NO_COLOR, a dumb terminal and a pipe do not."""
    pytest.importorskip("rich")
    assert b"\x1b[" in on_terminal("ls")
    assert b"\x1b[" not in on_terminal("ls", NO_COLOR="1")
    assert b"\x1b[" not in on_terminal("ls", TERM="dumb")
    assert "\x1b[" not in shell("trackway ls").stdout


def test_a_terminal_is_not_obeying_stored_text(home):
    """Colour or not, an escape sequence inside a task never reaches the terminal."""
    with Recorder(home) as recorder, recorder.start("a \x1b]0;owned\x07 \x1b[31m \x9b2J \u202e task") as episode:
        episode.user("\x1b[2Jgone")
    for args in (("ls",), ("show", "last"), ("show", "last", "--json"), ("ls", "--json")):
        raw = on_terminal(*args)
        assert not [bad for bad in (b"\x1b]0", b"\x1b[2J", b"\x07", "\x9b".encode(), "\u202e".encode()) if bad in raw]


def test_long_lines_are_wrapped_under_themselves(home):
    """On a terminal a long text goes on beside the gutter, not under the label."""
    pytest.importorskip("rich")
    with Recorder(home) as recorder, recorder.start("t") as episode:
        episode.user("word " * 40)
    lines = [line for line in on_terminal("show", "last").decode().splitlines() if "word" in line]
    assert len(lines) > 1
    assert all(line.startswith(" " * 10) for line in lines[1:])


def test_unknown_command_is_misuse():
    """A word that is no command exits 2 and names the one it resembles."""
    answer = cli("shwo")
    assert answer.exit_code == 2
    assert "'show'" in answer.stderr
    assert answer.stdout == ""


def test_unknown_option_is_misuse():
    """A wrong option exits 2, on stderr."""
    answer = cli("ls", "--nonsense")
    assert answer.exit_code == 2
    assert answer.stdout == ""


def test_error_is_one_line_with_a_hint(recorded):
    """What goes wrong on purpose exits 1 with one line on stderr: what, then what to do."""
    answer = cli("show", "ffffffff")
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.stderr.startswith("trackway: no episode answers to 'ffffffff' (hint: ")
    assert answer.stderr.count("\n") == 1


def test_error_does_not_pass_on_escapes(recorded):
    """A message repeats what was typed without its escape sequences."""
    assert "\x1b" not in cli("show", "\x1b[31m").stderr


@pytest.mark.parametrize("command", [("ls",), ("ls", "--json"), ("show", "last")])
def test_something_else_is_no_store(tmp_path, command):
    """A file that is no store is named, with exit 1 and nothing on stdout."""
    other = tmp_path / "letter.db"
    other.write_bytes(b"Dear reader, this is not a database at all. " * 50)
    answer = cli(*command, "--store", str(other))
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert str(other) in answer.stderr
    assert "hint: name another" in answer.stderr


def test_another_programs_database_is_no_store(tmp_path):
    """A SQLite file of another program is refused, not guessed at."""
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    answer = cli("ls", "--store", str(other))
    assert answer.exit_code == 1
    assert "another program" in answer.stderr


def test_newer_store_says_what_to_install(tmp_path):
    """A store of a newer trackway is refused with the command that helps."""
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("CREATE TABLE episodes (id INTEGER)")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("PRAGMA user_version=99")
    connection.close()
    answer = cli("ls", "--json", "--store", str(newer))
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert "format 99" in answer.stderr
    assert "pip install -U trackway" in answer.stderr


def test_unknown_kind_of_store():
    """A URL nobody has a plug-in for is a setting that is wrong, said in one line."""
    answer = cli("ls", "--store", "carrier-pigeon://loft")
    assert answer.exit_code == 1
    assert "carrier-pigeon" in answer.stderr


def test_closed_pipe_is_quiet(home):
    """`| head` ends the command without a word, and without failing the pipeline."""
    with Recorder(home) as recorder, recorder.start("long") as episode:
        for number in range(5000):
            episode.note("line", f"{number} {'x' * 100}")
    for form in ("", "--json", "--as events"):
        done = shell(f"trackway show last {form} | head -1")
        assert (done.returncode, done.stderr) == (0, "")


def test_encoding_that_cannot_say_it(recorded, home):
    """On a stream with a poor encoding, characters it lacks are written as escapes."""
    with Recorder(home) as recorder, recorder.start("日本語 🎉 \ud800") as episode:
        episode.user("日本")
    done = shell("trackway show last", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\u65e5\\u672c" in done.stdout
    assert json.loads(shell("trackway ls --json", PYTHONIOENCODING="ascii").stdout)[0]["task"] == "日本語 🎉 \ud800"


def test_home_and_store_are_options(recorded, home, tmp_path):
    """`--home` and `--store` go before the environment."""
    assert json.loads(cli("ls", "--json", "--home", str(tmp_path / "nowhere")).stdout) == []
    assert json.loads(cli("ls", "--json", "--home", str(tmp_path), "--store", str(home / "store.db")).stdout)


def test_store_of_the_environment(recorded, home, tmp_path, monkeypatch):
    """TRACKWAY_STORE is read where no option is given."""
    monkeypatch.setenv("TRACKWAY_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TRACKWAY_STORE", str(home / "store.db"))
    assert len(json.loads(cli("ls", "--json").stdout)) == 1


def test_version():
    """`--version` says the name and a version."""
    answer = cli("--version")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("trackway ")


def test_python_m_trackway(home):
    """`python -m trackway` is the same program."""
    done = shell("trackway ls --json")
    assert (done.returncode, done.stdout) == (0, "[]\n")


def test_path_prints_where_things_are(home):
    """`path` prints the three places, or one alone for a script, and makes nothing."""
    answer = cli("path")
    assert [line.split() for line in answer.stdout.splitlines()] == [
        ["home", str(home)],
        ["store", str(home / "store.db")],
        ["journals", str(home / "journals")],
    ]
    assert cli("path", "store").stdout == f"{home / 'store.db'}\n"
    assert json.loads(cli("path", "--json").stdout)["journals"] == str(home / "journals")
    assert json.loads(cli("path", "home", "--json").stdout) == str(home)
    assert cli("path", "nonsense").exit_code == 2
    assert not home.exists()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_script(name):
    """Each shell gets its script, and `--json` wraps it."""
    script = cli("completion", name).stdout
    assert "_TRACKWAY_COMPLETE" in script
    assert json.loads(cli("completion", name, "--json").stdout)["script"].strip() == script.strip()


def test_completion_of_commands_and_episodes(recorded):
    """A shell is offered commands, and for `show` the episodes there are."""
    from click.shell_completion import ShellComplete

    complete = ShellComplete(main, {}, "trackway", "_TRACKWAY_COMPLETE")
    assert {item.value for item in complete.get_completions([], "d")} == {"demo", "doctor", "du"}
    items = complete.get_completions(["show"], "")
    assert [(item.value, item.help) for item in items] == [(recorded[-8:], "fix the flaky test")]
