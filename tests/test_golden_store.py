"""Stores and journals of every format made so far are read by today's code, forever (`tests/golden/README.md`).

``python tests/test_golden_store.py`` writes those of the present formats, once, when a number is raised.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import trackway
from trackway.cli import main as trackway_command
from trackway.recording.recorder import Recorder
from trackway.schema import events as kinds
from trackway.schema import ids
from trackway.schema.events import Event
from trackway.schema.version import JOURNAL, SCHEMA, STORE
from trackway.store.base import Batch
from trackway.store.sqlite import SqliteStore
from trackway.testing.contract import bare
from trackway.testing.contract_originals import incoming, lines
from trackway.testing.events import records, small_episode

GOLDEN = Path(__file__).parent / "golden"
ENDED = ids.uuid7(1_800_000_000_000_000_000, bytes(range(10)))
OPEN = ids.uuid7(1_800_000_100_000_000_000, bytes(range(10)))
IMPORTED = lines(3000)
WRITER = "7da2c7ec11365b80"


def open_episode() -> list[Event]:
    """One that has not ended: still in the tail, with a large value, an exact one and an unknown kind."""
    header = kinds.Header(task="unfinished", metadata={"big": 10**30, 1: "a\ud83d"})
    return [
        kinds.EpisodeStart(header=header, writer="w" * 16, n=0, at=1_800_000_100_000_000_000),
        kinds.ToolResult(call_id="c", content="large " * 2000, writer="w" * 16, n=1),
        kinds.Unknown(name="dream", raw=b"\x82\xa4kind\xa5dream\xa1n\x02", n=2),
    ]


def command(*args: object) -> str:
    """What a command prints; it must succeed."""
    answer = CliRunner().invoke(trackway_command, [str(each) for each in args])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.fixture(params=range(1, STORE + 1))
def old(request, home: Path, tell) -> Path:
    """The home with a copy of a golden store in its place."""
    home.mkdir(mode=0o700)
    shutil.copy(GOLDEN / f"store-{request.param}.db", home / "store.db")
    (home / "store.db").chmod(0o600)
    (home / "which").write_text(f"store-{min(request.param, 4)}")
    tell(store_formats=1)
    return home


@pytest.mark.promise("older release", "its store: every event is read equal, by every command, and not a byte changes")
def test_a_golden_store_is_read(old: Path, tmp_path: Path) -> None:
    """Listed, shown, verified, counted, packed: as it was recorded, and the file is left as it is."""
    before = (old / "store.db").read_bytes()
    with trackway.open_store() as store:
        assert bare(store.events(ENDED)) == small_episode()
        assert bare(store.events(OPEN)) == open_episode()
        assert [each.task for each in store.episodes()] == ["unfinished", "fix the flaky test"]
        files = store.originals(ENDED)  # kept from format 4 on
        assert all(b"".join(store.original(each.hash)) == IMPORTED for each in files)
        assert bool(files) == ("store-4" in old.joinpath("which").read_text())
    assert "fix the flaky test" in command("ls")
    assert "unfinished" in command("show", OPEN)
    assert command("verify").startswith("✓")
    command("stats")
    for each in (ENDED, OPEN):
        command("pack", each, "-o", tmp_path / f"{each}.jsonl")
    assert (old / "store.db").read_bytes() == before
    there = ("--home", tmp_path / "there")
    for each in (ENDED, OPEN):
        command("unpack", tmp_path / f"{each}.jsonl", *there)
    with trackway.open_store(home=tmp_path / "there") as store:
        assert bare(store.events(OPEN)) == open_episode()


@pytest.mark.promise("older release", "its store: brought up to date when it is recorded into, everything equal")
def test_a_golden_store_is_recorded_into(old: Path) -> None:
    """Writing migrates it; the old episodes are the same, go on where they stopped, and can be pruned."""
    with Recorder() as recorder:
        recorder.start("new").end("success")
        recorder.flush()
        recorder.store.seal(Batch(records(OPEN, [kinds.EpisodeEnd(outcome="success", writer="w" * 16, n=3)])))
    with trackway.open_store() as store:
        assert isinstance(store.store, SqliteStore)
        assert store.store._rows("PRAGMA user_version", ()) == [(STORE,)]
        assert bare(store.events(ENDED)) == small_episode()
        assert bare(store.events(OPEN))[:3] == open_episode()
        assert store.episode(OPEN).outcome == "success"
        assert len(list(store.episodes())) == 3
    assert command("verify").startswith("✓")
    command("backup", old.parent / "copy.db")
    command("prune", "--task", "flaky", "--yes")
    assert [each.task for each in trackway.open_store().episodes()] == ["unfinished", "new"]


def left_behind(home: Path, version: int) -> Path:
    """The folder of a killed writer of that version, in the home."""
    folder = home / "journals" / WRITER
    shutil.copytree(GOLDEN / f"journal-{version}", folder)
    card = folder / "writer.json"
    card.write_text(card.read_text().replace("STORE", f"sqlite:{(home / 'store.db').resolve()}"))
    (folder / "lock").touch()
    return folder


@pytest.mark.promise("older release", "its journal, left by a killed process: read at once, then sealed, equal")
@pytest.mark.parametrize("version", range(1, JOURNAL + 1))
def test_a_golden_journal_is_read_and_adopted(home: Path, version: int, tell) -> None:
    """Two episodes with payloads: the same before and after they are sealed."""
    folder = left_behind(home, version)

    def found() -> dict[str, list[Event]]:
        with trackway.open_store() as store:
            [change] = [
                each
                for summary in store.episodes()
                for each in store.events(summary.id)
                if isinstance(each, kinds.FileChange)
            ]
            assert change.after is not None
            assert b"".join(store.blob(change.after.hash)) == b"new\n"
            return {each.task: bare(store.events(each.id)) for each in store.episodes()}

    waiting = found()
    assert "cut short" in command("ls")
    with Recorder() as recorder:
        recorder.flush()
    assert not folder.exists()
    assert found() == waiting
    whole, cut = waiting["left by an older release"], waiting["cut short"]
    assert [each.kind for each in whole] == [
        "episode_start", "user", "assistant_tool_call", "file_change", "tool_result", "assistant_text", "episode_end",
    ]  # fmt: skip
    assert isinstance(whole[0], kinds.EpisodeStart)
    assert whole[0].header.metadata == {"big": 10**30, "odd": "a\ud83d"}
    assert isinstance(whole[4], kinds.ToolResult)
    assert whole[4].content == "done " * 2000
    assert [each.kind for each in cut] == ["episode_start", "user"]
    assert command("verify").startswith("✓")
    tell(journal_versions=1)


@pytest.mark.promise("older release", "its pack: stored, shown and packed again, equal")
def test_a_golden_pack_is_stored_and_packed_again(home: Path, tmp_path: Path, tell) -> None:
    """Byte for byte, through a store of today."""
    pack = GOLDEN / "pack-1.jsonl"
    command("unpack", pack)
    episode = json.loads(pack.read_text().splitlines()[0])["episode"]
    assert "golden" in command("show", episode)
    command("pack", episode, "-o", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == pack.read_bytes()
    assert home.exists()
    tell(pack_versions=1)


def test_every_format_has_its_golden_file() -> None:
    """A number that was raised without a file that is kept forever fails here."""
    for number in range(1, STORE + 1):
        assert (GOLDEN / f"store-{number}.db").is_file(), f"python {__file__} writes it; see tests/golden/README.md"
    for number in range(1, JOURNAL + 1):
        assert (GOLDEN / f"journal-{number}" / "000001.seg").is_file(), "see tests/golden/README.md"
    for number in range(1, SCHEMA + 1):
        assert (GOLDEN / f"events-schema-{number}.hex").is_file(), "see tests/golden/README.md"
    listed = (GOLDEN / "README.md").read_text()
    assert all(f"`{each.name}" in listed for each in GOLDEN.iterdir() if each.name != "README.md")


def write_journal(folder: Path) -> None:
    """What a writer leaves that is killed after two episodes; called in a process of its own."""
    ticks, luck = itertools.count(1_800_000_000_000_000_000, 1_000_000_000), itertools.count()
    recorder = Recorder(
        folder, journal="append", clock=lambda: next(ticks),
        entropy=lambda n: bytes((next(luck) * 37 + 11) % 256 for _ in range(n)),
    )  # fmt: skip
    recorder._wake = recorder._journal._wake = lambda: None
    episode = recorder.start("left by an older release", tags=["golden"], metadata={"big": 10**30, "odd": "a\ud83d"})
    episode.user("what is in the file?")
    call = episode.tool_call("edit", {"path": "a.txt"})
    episode.file_change("a.txt", before="old\n", after="new\n", mode=0o644)
    episode.tool_result(call, "done " * 2000)
    episode.text("done")
    episode.end("success", score=1.0)
    recorder.start("cut short").user("go")
    os._exit(0)


def main() -> None:
    """Write the golden files of the present formats, where there are none yet."""
    path = GOLDEN / f"store-{STORE}.db"
    if not path.exists():
        store = SqliteStore(path)
        store.seal(Batch(records(ENDED, small_episode())))
        store.seal(Batch(records(OPEN, open_episode())))
        store.seal(Batch([], originals=[incoming(IMPORTED, ENDED, name="golden.jsonl")]))
        store.checkpoint()
        store.close()
        path.with_suffix(".lock").unlink()
    folder, work = GOLDEN / f"journal-{JOURNAL}", GOLDEN / "new"
    if not folder.exists():
        subprocess.run([sys.executable, __file__, str(work)], check=True)
        [left] = (work / "journals").iterdir()
        folder.mkdir()
        shutil.copy(left / "000001.seg", folder)
        card = json.loads((left / "writer.json").read_text())
        (folder / "writer.json").write_text(json.dumps({**card, "host": "golden", "store": "STORE", "own": False}))
        shutil.rmtree(work)


if __name__ == "__main__":
    write_journal(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
