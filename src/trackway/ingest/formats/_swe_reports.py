"""SWE-bench's verdict on one patch: ``resolved``, and which tests it mended or broke. It lies beside a trajectory.

It may come days after the trajectory was imported: so it is an entry of its own, with a label that says the outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trackway.errors import FileRefused
from trackway.ingest.head import Head
from trackway.ingest.original import Original
from trackway.ingest.source import Entry, Place, Sign, Trouble
from trackway.ingest.values import listing, mapping
from trackway.schema.events import Event, Label, Reward, TestRun

_BY = "swe-bench"


class Report(NamedTuple):
    """A verdict, and the rest of what the report says."""

    resolved: bool
    passed: int | None
    failed: int
    native: dict[str, Any]

    @property
    def outcome(self) -> str:
        """The outcome it says."""
        return "success" if self.resolved else "failure"

    def entry(self, session: str) -> Entry:
        """The verdict as an entry."""
        return Entry(session, "report", list(self._events()), native=self.native)

    def _events(self) -> Iterator[Event]:
        if self.passed is not None:
            total = self.passed + self.failed
            yield TestRun(passed=self.passed, failed=self.failed, pass_rate=self.passed / total if total else None)
        yield Reward(value=float(self.resolved), name="resolved", scope="episode", source=_BY)
        yield Label(outcome=self.outcome, by=_BY)


def detect_report(head: Head) -> Sign | None:
    """Whether a file is a report: it is read with the trajectory it lies beside."""
    report = _inner(head.document)
    if "resolved" in report and ("tests_status" in report or "patch_exists" in report):
        return Sign(0.7, "a SWE-bench report: resolved, patch_exists, tests_status", is_part=True)
    return None


def report_of(original: Original, stem: str, instance: str | None) -> Report | Trouble | None:
    """The report beside a trajectory: named after it, or as the harness names it, and then of the same instance."""
    for name in dict.fromkeys((f"{stem}.report.json", "report.json")):
        found = original.near(0, name)
        if found is None:
            continue
        try:
            value = found.value()
        except FileRefused as error:
            return Trouble(Place(), error.message)
        report = _inner(value)
        is_ours = name != "report.json" or (instance is not None and instance in mapping(value))
        if is_ours and isinstance(report.get("resolved"), bool):
            return _report(report)
    return None


def _inner(value: Any) -> dict[str, Any]:  # noqa: ANN401  a JSON value is anything
    """The report itself: a document of its own, or under the name of its instance."""
    outer = mapping(value)
    if "resolved" in outer or len(outer) != 1:
        return outer
    return mapping(next(iter(outer.values())))


def _report(report: dict[str, Any]) -> Report:
    status = mapping(report.get("tests_status"))
    # What was to fail before and after says nothing of the patch.
    wanted = [mapping(status.get(name)) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")]
    passed = sum(len(listing(each.get("success"))) for each in wanted)
    failed = sum(len(listing(each.get("failure"))) for each in wanted)
    return Report(report["resolved"], passed if any(wanted) else None, failed, report)
