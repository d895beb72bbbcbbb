"""``trackway doctor``: is everything as it should be, and if not, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from trackway.cli._options import common, examples

if TYPE_CHECKING:
    from trackway.cli._checks import Finding
    from trackway.cli._print import Line

_MARKS: Final = {"ok": ("✓ ok", "good"), "note": ("· note", "warn"), "problem": ("✗ problem", "bad")}


@click.command(
    epilog=examples("trackway doctor", "trackway doctor --fix", "trackway doctor --json | jq '.findings[].what'")
)
@click.option("--fix", is_flag=True, help="Seal what dead processes left in their journals, now.")
@common
def doctor(*, fix: bool, as_json: bool, home: str | None, store: str | None) -> None:
    """Check the home and the store, and say what to do.

    Exits 1 if there is a problem. Notes are worth knowing and nothing is wrong with them.
    """
    from trackway.cli._checks import findings
    from trackway.cli._print import Screen, write_json

    found = list(findings(home, store, fix=fix))
    problems = sum(each.level == "problem" for each in found)
    if as_json:
        write_json({"ok": not problems, "problems": problems, "findings": [each._asdict() for each in found]})
    else:
        Screen().show(_lines(found))
    if problems:
        raise click.exceptions.Exit(1)


def _lines(found: Iterable[Finding]) -> Iterable[Line]:
    from trackway.cli._print import Span, line

    for each in found:
        mark, style = _MARKS[each.level]
        yield line(each.what, label=mark, style=style)
        if each.where:
            yield line(Span(each.where, "dim"))
        if each.do:
            yield line(Span(f"→ {each.do}", "said"))
