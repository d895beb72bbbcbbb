"""The fault matrix as a table: every test that carries a promise says at the end of the session whether it held.

    @pytest.mark.promise("disk full", "while sealing: all of it stays in the journal and is sealed when there is room")
    def test_...(tell): tell(events=1200, lost=0)

Tests of one fault and promise (its parameters) share a line. What a test tells is summed up, so a figure that is
printed was measured by the very tests that ran. A test that was skipped is said to be not tried, never to have held.
Promises that were broken are said again at the very end, where nobody scrolls past them.
"""

import json
import re
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

_PROMISE = "promise"
_TOLD = "told"
_PLURAL = re.compile(r"(?<=[^s])s\b")


class Kept(NamedTuple):
    """How the tests of one promise ended, and what they counted."""

    ended: Counter
    told: Counter
    reasons: set

    def verdict(self) -> str:
        """In a word or two."""
        if self.ended["failed"]:
            return f"BROKEN in {self.ended['failed']} of {self.ended.total()}"
        reasons = "; ".join(sorted(self.reasons))
        if not self.ended["passed"]:
            return f"not tried: {reasons}"
        ways = f"held, {_counted(self.ended['passed'], 'ways')}"
        if self.ended["skipped"]:
            return f"{ways}, {self.ended['skipped']} not tried: {reasons}"
        return "held" if self.ended.total() == 1 else ways

    def figures(self) -> str:
        """What was counted."""
        return ", ".join(_counted(value, name.replace("_", " ")) for name, value in self.told.items())


def _counted(value: int, what: str) -> str:
    """`1 record put aside`, `2 records put aside`: figures are named in the plural, its first word with an s is it."""
    return f"{value:,} " + (_PLURAL.sub("", what, count=1) if value == 1 else what)


@pytest.fixture
def tell(record_property):
    """`tell(kills=10, lost=0)`: figures for the table; those of one promise's tests are added up."""
    return lambda **figures: record_property(_TOLD, json.dumps(figures))


def pytest_configure(config):
    """The marker is this plug-in's own."""
    config.addinivalue_line("markers", "promise(fault, promise): a line of the fault matrix (make faults)")


def pytest_collection_modifyitems(items):
    """The promise travels with the report: the process that prints need not be the one that tests."""
    for item in items:
        if marker := item.get_closest_marker(_PROMISE):
            fault, promise = marker.args
            item.user_properties.append((_PROMISE, json.dumps([fault, promise])))


def pytest_terminal_summary(terminalreporter):
    """Promise → held, wherever promises were tested."""
    table = _table(terminalreporter.stats)
    if not table:
        return
    held = sum(each.ended["passed"] > 0 and not each.ended["failed"] for each in table.values())
    terminalreporter.section(f"fault matrix: {held} of {len(table)} promises held")
    fault_before = None
    for (fault, promise), kept in sorted(table.items()):
        if fault != fault_before:
            terminalreporter.line(fault)
            fault_before = fault
        figures = kept.figures()
        terminalreporter.line(f"  {promise} → {kept.verdict()}" + (f" ({figures})" if figures else ""))
    for (fault, promise), kept in sorted(table.items()):
        if kept.ended["failed"]:
            terminalreporter.line(f"{kept.verdict()}: {fault}, {promise}", red=True)


def _table(stats) -> dict[tuple[str, str], Kept]:
    table: dict[tuple[str, str], Kept] = defaultdict(lambda: Kept(Counter(), Counter(), set()))
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in stats.get(outcome, ()):
            properties = getattr(report, "user_properties", ())
            promise = next((json.loads(value) for name, value in properties if name == _PROMISE), None)
            if promise is None:
                continue
            kept = table[tuple(promise)]
            kept.ended["failed" if outcome == "error" else outcome] += 1
            if outcome == "skipped":
                kept.reasons.add(report.longrepr[2].removeprefix("Skipped: "))
            for name, value in properties:
                if name == _TOLD:
                    kept.told.update(json.loads(value))
    return table
