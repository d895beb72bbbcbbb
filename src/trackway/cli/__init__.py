"""The command line: one file per command, each parses, calls one library function and prints.

stdout is the answer, stderr is talk. Exit 0 is fine, 1 is "no", 2 is misuse, 130 is interrupted. A command's module is
imported when it is called and not before: the table here is all that ``trackway --help`` needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from trackway.errors import TrackwayError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Final = {
    "demo": ("trackway.cli.demo:demo", "Record a small agent at work, then show the episode."),
    "import": ("trackway.cli.import_:import_", "Bring in what other agents left: files, folders, archives."),
    "ls": ("trackway.cli.ls:ls", "List episodes, the newest first."),
    "show": ("trackway.cli.show:show", "Show one episode: what was asked, thought, done, seen and said."),
    "search": ("trackway.cli.search:search", "Find events by their words, in all episodes, running ones included."),
    "compare": ("trackway.cli.compare:compare", "Compare two episodes: where they part, and what each did after."),
    "stats": (
        "trackway.cli.stats:stats",
        "Count episodes together: how they ended, what failed, what took long, what it cost.",
    ),
    "label": ("trackway.cli.label:label", "Add an outcome, score, tag, remark or relation to an episode."),
    "export": ("trackway.cli.export:export", "Write episodes in the forms other programs take."),
    "pack": ("trackway.cli.pack:pack", "Write one episode, its files included, to a file of JSON lines."),
    "unpack": ("trackway.cli.unpack:unpack", "Store the episodes of packs, each whole or not at all."),
    "du": ("trackway.cli.du:du", "Show where the bytes are: by part, by task, the largest episodes and blobs."),
    "prune": ("trackway.cli.prune:prune", "Delete episodes for good, and give their space back."),
    "backup": ("trackway.cli.backup:backup", "Copy the store into a file, complete up to now, and verify the copy."),
    "verify": ("trackway.cli.verify:verify", "Check every hash, checksum and derived row of the store."),
    "path": ("trackway.cli.path:path", "Print where things are kept."),
    "doctor": ("trackway.cli.doctor:doctor", "Check the home and the store, and say what to do."),
    "completion": ("trackway.cli.completion:completion", "Print the completion script of a shell."),
}
"""Name → where the command is, and its line of help (the first of its docstring; a test holds the two together)."""


class Commands(click.Group):
    """A group that imports a command when it is called; the one place where errors become messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """Every name, in the order in which a newcomer wants them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but a word that is no command is answered with the one it resembles."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"no command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names for a shell, from the table alone."""
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        """Call the command; what goes wrong on purpose becomes one line on stderr."""
        with _answering(ctx):
            return super().invoke(ctx)


class _Refusal(click.ClickException):
    """An error as people read it: one line on stderr, exit 1."""

    def show(self, file: object = None) -> None:  # noqa: ARG002  click's signature
        from trackway.cli._print import talk

        talk(self.message)


@contextmanager
def _answering(ctx: click.Context) -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # stored text may be what no encoding can write
    try:
        yield
        sys.stdout.flush()
    except TrackwayError as error:
        raise _Refusal(str(error)) from error
    except BrokenPipeError:
        _forget_stdout()  # `| head` has read what it wanted
        ctx.exit(0)
    except KeyboardInterrupt:
        click.echo(err=True)  # the terminal has written ^C there
        ctx.exit(130)
    except OSError as error:
        raise _Refusal(f"{error.strerror or error}: {error.filename}" if error.filename else str(error)) from error


def _forget_stdout() -> None:
    """Nothing more can be written; without this the interpreter complains when it exits."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from trackway.cli._options import version

        click.echo(f"trackway {version('trackway') or '(not installed)'}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? Begin with: trackway demo",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def main() -> None:
    """The flight recorder for AI agents: every step kept, on your machine, ready to be walked again."""
