"""Which episodes a command is about: the same options wherever there are many, made into one ``Query``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from trackway.cli._options import instant
from trackway.schema.events import OUTCOMES

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES: Final = ("task", "variant", "agent", "model", "outcome", "tool", "tag", "since", "until")
"""The options, each a field of ``Query`` of the same name."""


def filters(command: Command) -> Command:
    """``--task``, ``--outcome``, ``--since`` and so on; ``--utc`` decides how times given here are read."""
    for option in reversed((
        click.option("--task", metavar="TEXT", help="Tasks that contain this, in any case."),
        click.option("--variant", help="This variant only."),
        click.option("--agent", help="This agent only."),
        click.option("--model", help="This model only."),
        click.option(
            "--outcome", type=click.Choice([*OUTCOMES, "none"]), help="This outcome only; none: nobody said one."
        ),
        click.option("--tool", help="Episodes that called this tool."),
        click.option("--tag", help="Episodes with this tag."),
        click.option(
            "--since", metavar="WHEN", callback=instant,
            help="Started at or after: 2025-11-15, 2025-11-15T08:30, or 30m, 12h, 7d, 2w ago.",
        ),
        click.option("--until", metavar="WHEN", callback=instant, help="Started before."),
    )):  # fmt: skip
        command = option(command)
    return command
