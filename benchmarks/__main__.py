"""`python -m benchmarks [AREA ...] [--quick] [--steps N] [--json FILE] [--doc PAGE]`: measure, print, sum up."""

import argparse
import json
import time
from importlib import import_module
from pathlib import Path

from benchmarks import machine, page, report
from benchmarks.measure import Options, compiled

PART = "make bench"
AREAS = ("record", "sustained", "where", "kill", "read", "import", "search", "start", "growth")
MODULES = {"import": "importing"}  # the others have the name of their area


def main() -> None:
    """Run the areas asked for, all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(AREAS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="few samples: does it run, not how fast is it")
    parser.add_argument("--steps", type=int, help="the size of the store that is read (6 events a step)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the same figures as JSON")
    parser.add_argument("--doc", type=Path, metavar="PAGE", help="keep what is printed in this page")
    asked = parser.parse_args()
    if unknown := [each for each in asked.areas if each not in AREAS]:
        parser.error(f"no area {unknown[0]!r}: one of {', '.join(AREAS)}")
    with compiled():
        _run(asked)


def _run(asked: argparse.Namespace) -> None:
    options = Options(quick=asked.quick, steps=asked.steps)
    about, said = machine.describe(), []

    def say(text: str) -> None:
        said.append(text)
        print(text, flush=True)

    say(machine.line(about))
    say("a ratio says how trackway compares with what stands beside it in the same run")
    tables, started = [], time.perf_counter()
    for area in AREAS:
        if area in asked.areas or not asked.areas:
            for table in import_module(f"benchmarks.{MODULES.get(area, area)}").run(options):
                tables.append(table)
                say(f"{report.text(table)}\n  ({_now(started)})")
    say(report.summary(tables))
    if options.quick:
        say("\n--quick: too few samples to judge anything by")
    if asked.json:
        asked.json.write_text(json.dumps({"machine": about, "tables": [each.plain() for each in tables]}, indent=1))
    if asked.doc:
        part = f"python -m benchmarks {' '.join(asked.areas)}" if asked.areas else PART
        page.write(asked.doc, part, page.printed("\n".join(said)))


def _now(started: float) -> str:
    """The load beside each table: a figure taken on a busy machine should say so."""
    return f"at {time.perf_counter() - started:.0f} s, load {machine.load():.1f}"


if __name__ == "__main__":
    main()
