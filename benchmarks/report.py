"""Rows, tables, and the summary: the measured value, what stands beside it, the ratio, the target, met or not."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import short


class Beside(NamedTuple):
    """Another way of doing the same, measured in the same run. ``ratio`` above 1 says that trackway is better."""

    name: str
    value: str
    ratio: float | None = None

    def told(self) -> str:
        """The ratio in words."""
        if not self.ratio:
            return ""
        return f"{short(self.ratio)}x better" if self.ratio >= 1 else f"{short(1 / self.ratio)}x worse"


class Target(NamedTuple):
    """What the design asks for, and whether it was reached."""

    text: str
    met: bool

    def told(self) -> str:
        """The verdict."""
        return "met" if self.met else "NOT MET"


class Row(NamedTuple):
    """One figure; ``numbers`` are what ``value`` was written from."""

    what: str
    value: str
    beside: tuple[Beside, ...] = ()
    target: Target | None = None
    numbers: dict[str, float] | None = None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        target = self.target and self.target._asdict()
        return {**self._asdict(), "beside": [each._asdict() for each in self.beside], "target": target}


class Table(NamedTuple):
    """Figures that belong together."""

    title: str
    rows: tuple[Row, ...]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"title": self.title, "rows": [each.plain() for each in self.rows]}


def text(table: Table) -> str:
    """The table, to be read: what is compared with a row stands on the lines under its first."""
    lines = [("", "trackway", "beside it", "", "ratio", "target", "")]
    for row in table.rows:
        first, *more = row.beside or (Beside("", ""),)
        target = (row.target.text, row.target.told()) if row.target else ("", "")
        lines.append((row.what, row.value, first.name, first.value, first.told(), *target))
        lines += [("", "", each.name, each.value, each.told(), "", "") for each in more]
    return f"\n{table.title}\n{_aligned(lines)}"


def summary(tables: Iterable[Table]) -> str:
    """Every target once: what was to be reached, what was measured."""
    rows = [(row, row.target) for table in tables for row in table.rows if row.target]
    lines = [("", "target", "measured", "")]
    lines += [(row.what, target.text, row.value, target.told()) for row, target in rows]
    return f"\nsummary: {sum(target.met for _, target in rows)} of {len(rows)} targets met\n{_aligned(lines)}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a page."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(each.replace('|', '/') for each in line)} |" for line in lines)


def _aligned(lines: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
