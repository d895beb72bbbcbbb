"""``trackway completion``: the script that makes a shell complete commands, options and episodes."""

from __future__ import annotations

import click

from trackway.cli._options import common, examples

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        'bash:  eval "$(trackway completion bash)"                                # in ~/.bashrc',
        'zsh:   eval "$(trackway completion zsh)"                                 # in ~/.zshrc',
        "fish:  trackway completion fish > ~/.config/fish/completions/trackway.fish",
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
@common
def completion(shell: str, *, as_json: bool, home: str | None, store: str | None) -> None:  # noqa: ARG001  as everywhere
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from trackway.cli import main
    from trackway.cli._print import write_json

    found = get_completion_class(shell)
    assert found is not None
    script = found(main, {}, "trackway", "_TRACKWAY_COMPLETE").source()
    if as_json:
        write_json({"shell": shell, "script": script})
    else:
        click.echo(script)
