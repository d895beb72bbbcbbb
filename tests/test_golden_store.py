"""Stores of every format made so far are read by today's code, forever.

``python tests/test_golden_store.py`` writes the one of the present format, once, when the format is raised.
"""

import shutil
from pathlib import Path

import pytest

from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.events import Event
from trackway.schema.version import STORE
from trackway.store.base import Batch
from trackway.store.sqlite import SqliteStore
from trackway.testing.contract import bare
from trackway.testing.events import records, small_episode

GOLDEN = Path(__file__).parent / "golden"
ENDED = ids.uuid7(1_800_000_000_000_000_000, bytes(range(10)))
OPEN = ids.uuid7(1_800_000_100_000_000_000, bytes(range(10)))


def open_episode() -> list[Event]:
    """One that has not ended: still in the tail, with a large value, an exact one and an unknown kind."""
    header = kinds.Header(task="unfinished", metadata={"big": 10**30, 1: "a\ud83d"})
    return [
        kinds.EpisodeStart(header=header, writer="w" * 16, n=0, at=1_800_000_100_000_000_000),
        kinds.ToolResult(call_id="c", content="large " * 2000, writer="w" * 16, n=1),
        kinds.Unknown(name="dream", raw=b"\x82\xa4kind\xa5dream\xa1n\x02", n=2),
    ]


@pytest.mark.parametrize("version", range(1, STORE + 1))
def test_a_golden_store_is_read(tmp_path: Path, version: int) -> None:
    """Every event of the store as first written comes back equal."""
    copy = tmp_path / "store.db"
    shutil.copy(GOLDEN / f"store-{version}.db", copy)
    store = SqliteStore(copy)

    assert bare(store.events(ENDED)) == small_episode()
    assert bare(store.events(OPEN)) == open_episode()
    assert [each.task for each in store.episodes()] == ["unfinished", "fix the flaky test"]
    store.seal(Batch(records(OPEN, [kinds.EpisodeEnd(outcome="success", writer="w" * 16, n=3)])))
    assert store.episode(OPEN).outcome == "success"


def main() -> None:
    """Write the golden store of the present format."""
    path = GOLDEN / f"store-{STORE}.db"
    store = SqliteStore(path)
    store.seal(Batch(records(ENDED, small_episode())))
    store.seal(Batch(records(OPEN, open_episode())))
    store.checkpoint()
    store.close()
    path.with_suffix(".lock").unlink()


if __name__ == "__main__":
    main()
