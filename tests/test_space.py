"""Where the bytes are: the parts add up to what is on the disk, and shared blobs are divided among who needs them."""

import os

import pytest

from trackway.recording.recorder import Recorder
from trackway.recording.settings import open_store
from trackway.store.choice import Criteria
from trackway.store.home import Home
from trackway.store.memory import MemoryStore
from trackway.store.prune import prune
from trackway.store.retention import Retention
from trackway.store.space import space
from trackway.store.sqlite import SqliteStore


def on_disk(folder):
    """The size of every file below a folder, but for what SQLite shares among those who look."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-shm")


def parts(found):
    """The parts by name."""
    return {each.name: each.bytes for each in found.parts}


def one(recorder, task, *texts):
    """A whole episode with these results."""
    with recorder.start(task) as episode:
        for text in texts:
            episode.tool_result(episode.tool_call("bash", {}), text)
    return episode.id


def test_nothing_yet(home):
    """Where nothing is, nothing takes space, and nothing is made."""
    found = space(Home(home), SqliteStore(home / "store.db"))

    assert (found.total, found.events, found.bytes_per_event, found.bytes_per_step) == (0, 0, None, None)
    assert not home.exists()


def test_the_parts_add_up_to_the_disk(home):
    """Store, log, journals, quarantine and the rest, to the byte, sealed or not, while a recorder is at work."""
    recorder = Recorder(home)
    one(recorder, "large", os.urandom(90_000).hex())
    recorder.flush()
    one(recorder, "waits", "a" * 3000)
    (home / "quarantine").mkdir()
    (home / "quarantine/x.bin").write_bytes(b"x" * 77)
    (home / "losses.jsonl").write_text("{}\n")
    recorder._keeper.stop()  # so that nothing moves between the two looks

    found = space(Home(home), SqliteStore(home / "store.db"))

    assert found.total == sum(parts(found).values()) == on_disk(home)
    assert parts(found)["quarantine"] == 77
    assert parts(found)["journals"] > 256 << 10
    assert parts(found)["blobs"] > 90_000
    assert (found.episodes, found.events, found.steps, found.blobs) == (1, 4, 1, 1)
    assert found.bytes_per_event == found.store / 4
    recorder.close()
    after = space(Home(home), SqliteStore(home / "store.db"))
    assert (after.episodes, parts(after)["journals"], after.total) == (2, 0, on_disk(home))


def test_tasks_episodes_and_blobs(home):
    """The largest first; a blob that two episodes need counts half for each; the figures add up."""
    shared, own = os.urandom(40_000).hex(), os.urandom(60_000).hex()
    with Recorder(home) as recorder:
        first = one(recorder, "one task", shared, own)
        second = one(recorder, "one task", shared)
        third = one(recorder, "another task", "small")

    found = space(Home(home), SqliteStore(home / "store.db"))

    assert [each.id for each in found.largest] == [first, second, third]
    sizes = [each.bytes for each in found.largest]
    assert sizes[0] - sizes[1] == pytest.approx(60_000, rel=0.05)
    assert sizes[1] == pytest.approx(20_000, rel=0.1)
    assert [(each.task, each.episodes, each.events) for each in found.tasks] == [
        ("one task", 2, 10),
        ("another task", 1, 4),
    ]
    assert found.tasks[0].bytes == sizes[0] + sizes[1]
    assert [(each.size, each.episodes) for each in found.largest_blobs] == [(120_000, 1), (80_000, 2)]
    whole = parts(found)["frames"] + parts(found)["blobs"] + parts(found)["tail"]
    assert whole <= sum(sizes) < whole + 3000  # and the summaries
    assert len(space(Home(home), SqliteStore(home / "store.db"), top=1).largest) == 1


def test_a_store_elsewhere(home, tmp_path):
    """The parts of a store outside the home count too; of a store that is no file only the home is known."""
    with Recorder(home, store=tmp_path / "else.db") as recorder:
        one(recorder, "there", "text")

    found = space(Home(home), SqliteStore(tmp_path / "else.db"))
    assert found.total == on_disk(home) + (tmp_path / "else.db").stat().st_size
    assert space(Home(home), MemoryStore()).total == on_disk(home)


def test_what_a_prune_returned_is_not_there(home):
    """The space of what was pruned is gone from every figure."""
    with Recorder(home) as recorder:
        for i in range(20):
            one(recorder, f"task {i}", os.urandom(20_000).hex())
    before = space(Home(home), SqliteStore(home / "store.db"))

    with open_store(home=home) as live:
        prune(live, Criteria(limits=Retention(max_episodes=2)), now=1)

    after = space(Home(home), SqliteStore(home / "store.db"))
    assert (before.episodes, after.episodes, after.blobs) == (20, 2, 2)
    assert after.store < before.store / 3
    assert parts(after)["free pages"] == 0
    assert after.total == on_disk(home)
