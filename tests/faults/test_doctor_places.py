"""What the doctor says of places and of what dead processes left: one line each, with what to do."""

import os

import pytest
from click.testing import CliRunner

import trackway
from tests.faults.places import fill, play, small_disk
from trackway.cli import main
from trackway.cli._place import _kind, _room
from trackway.store import place
from trackway.store.place import Place


def doctor(home, *words):
    """The doctor's exit code and all it says."""
    answer = CliRunner().invoke(main, ["doctor", "--home", str(home), *words])
    return answer.exit_code, answer.output


def nearly_full(folder):
    """A home on a disk with fifty kilobytes left; the doctor is asked, and leaves nothing behind."""
    home = folder / "a home"
    with trackway.Recorder(home) as recorder:
        recorder.start("t").end()
    fill(folder, leave=50_000)
    found = {"doctor": doctor(home), "kind": place.kind_of(home)}
    fill(folder)
    return found | {"full": doctor(home), "left": sorted(each.name for each in home.iterdir())}


def test_a_disk_that_is_full_or_nearly_so(tmp_path):
    """How much is left, where, and what comes of it; on a mount with a space in its name, too."""
    disk = tmp_path / "a disk"
    disk.mkdir()
    found = play(nearly_full, disk, mount=small_disk(disk, "8m")).value

    code, said = found["doctor"]
    assert (code, "kB left on the disk of the home" in said, "make room" in said) == (1, True, True), said
    code, said = found["full"]
    assert (code, "0 B left on the disk of the home" in said) == (1, True), said
    assert "nothing can be written into the home: No space left on device" in said
    assert ("can be written to" in said, "owner" in said) == (False, False), said
    assert place.NAME not in found["left"]
    assert found["kind"] == "tmpfs"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_noted(kind):
    """By its name, as the system gives it: no test can mount one."""
    found = list(_kind(Place(kind=kind, free=0, files=None, read_only=False), "home", "/there"))
    assert [(level, kind in what, where) for level, what, where, _ in found] == [("note", True, "/there")]


def test_a_disk_without_files_left():
    """Inodes run out like bytes do."""
    found = list(_room(Place(kind="ext4", free=10**12, files=3, read_only=False), "home", "/there"))
    assert [(level, "only 3 more files" in what) for level, what, _, _ in found] == [("problem", True)]
    assert list(_room(Place(kind="btrfs", free=10**12, files=None, read_only=False), "home", "/there")) == []


def test_the_place_of_this_test_is_as_good_as_any(tmp_path):
    """A file is made, mapped, locked, synced and removed."""
    found = place.look_at(tmp_path)
    assert (found.refused, found.read_only, found.locks, found.maps) == (None, False, True, True)
    assert found.sync_seconds >= 0
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_was_never_acknowledged_is_said_to_be_dropped(tmp_path):
    """A process died while it wrote: what it had acknowledged is sealed, the half record is counted and gone."""
    home = tmp_path / "home"
    recorder = trackway.Recorder(home, journal="append")
    recorder.start("torn").user("go")
    recorder._keeper.stop()
    [segment] = home.glob("journals/*/*.seg")
    recorder._journal.release()
    with segment.open("ab") as file:
        file.write((500).to_bytes(4, "little") + os.urandom(60))
    code, said = doctor(home, "--fix")

    assert code == 0
    assert "1 record dropped: being written when the process died, never acknowledged" in said
    assert "dropped" not in doctor(home, "--fix")[1]
