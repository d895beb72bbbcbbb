"""What grows and what must not: one episode of a million events, many episodes, large payloads, three days.

The machine drifts, so a cost at a million events is never compared with one taken minutes before: beside each slice of
the long episode a slice of a fresh one is recorded, in the same moment, and the ratio is the median over such pairs.
"""

from collections.abc import Iterator

from benchmarks import growth_large, growth_long, growth_many, growth_paced
from benchmarks.measure import Options
from benchmarks.report import Table


def run(options: Options) -> Iterator[Table]:
    """Each kind of growth, one after another."""
    for each in (growth_long, growth_many, growth_large, growth_paced):
        yield from each.run(options)
