"""What goes wrong around an import: the store, the disk, names, processes, files that do not stand still.

Nothing half imported remains, nothing is said that is not so, and the next import does what this one could not.
"""

import gzip
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import zstandard

import trackway
from tests.faults.filling import command, on
from tests.faults.places import full, is_sound
from tests.ingest.samples import SAMPLES
from tests.ingest.sessions import pi_lines, session_id
from trackway.errors import BlobNotFound, TrackwayError
from trackway.ingest.gathering import gathered
from trackway.ingest.importing import Options, import_files
from trackway.store.backup import backup
from trackway.store.base import Query

IMPORT = [sys.executable, "-m", "trackway", "import"]


def imported(*paths, **options):
    """Import into the home's store; what was said of each file."""
    with trackway.open_store() as live:
        return list(import_files(live, gathered(paths), Options(**options)))


def states(*paths, **options):
    """The same, in a word a file."""
    return [each.state for each in imported(*paths, **options)]


def everything():
    """All episodes with all their events."""
    with trackway.open_store() as live:
        return {each.id: list(live.events(each.id)) for each in live.episodes(Query())}


def raw(episode=None):
    """The files of an episode, byte for byte."""
    with trackway.open_store() as live:
        return [b"".join(live.original(each.hash)) for each in live.originals(episode or session_id())]


@pytest.fixture
def folder(tmp_path):
    """Three sessions in a folder."""
    made = tmp_path / "sessions"
    made.mkdir()
    for i in range(3):
        (made / f"{i}.jsonl").write_bytes(b"".join(pi_lines(4, i)))
    return made


# --- another store than the last time -------------------------------------------------------------------------------


def test_the_store_is_gone(folder, home):
    """Notes of what was imported say nothing of a store that is not there any more: it is all imported again."""
    imported(folder)
    for each in home.glob("store.db*"):
        each.unlink()

    assert states(folder) == ["new"] * 3
    assert states(folder) == ["unchanged"] * 3


def test_an_older_store(folder, home, tmp_path):
    """A backup is put in the store's place: what came after it comes again."""
    imported(folder / "0.jsonl")
    with trackway.open_store() as live:
        backup(live, tmp_path / "backup.db")
    imported(folder)
    whole = everything()
    for each in home.glob("store.db*"):
        each.unlink()
    shutil.copy(tmp_path / "backup.db", home / "store.db")

    assert states(folder) == ["unchanged", "new", "new"]
    assert everything() == whole


def test_an_archive_and_another_store(folder, home, tmp_path):
    """The same for the files of an archive."""
    archive = Path(shutil.make_archive(str(tmp_path / "all"), "zip", folder))
    imported(archive)
    assert states(archive) == ["unchanged"]
    for each in home.glob("store.db*"):
        each.unlink()

    assert states(archive) == ["new", "new", "new", "archive"]


def test_pruned_in_another_store(folder, home):
    """What was pruned from a store that is gone is new to the next."""
    imported(folder)
    with trackway.open_store() as live:
        live.drop([session_id(0)])
    assert states(folder) == ["pruned", "unchanged", "unchanged"]
    for each in home.glob("store.db*"):
        each.unlink()

    assert states(folder) == ["new"] * 3


# --- names, encodings, ends of lines --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_names_that_are_no_text(tmp_path, name):
    """Folders and files may have names that are no UTF-8: they are imported, twice as once, and can be had back."""
    top = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    for path, body in SAMPLES[name].items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(body)
    first = imported(top)
    again = imported(top)

    assert all("\\xff\\xfe" in each.file for each in first)
    assert {each.state for each in first} <= {"new", "grown", "present", "part", "unknown", "empty", "refused"}
    assert [each.events for each in again] == [0] * len(again)
    for each in first:
        for episode in each.episodes:
            assert set(raw(episode)) <= set(SAMPLES[name].values())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_name_that_is_no_text_in_another_process(tmp_path, workers):
    """Also where other processes read them."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    path.write_bytes(b"".join(pi_lines(60, said="x" * 40_000)))

    assert states(path, workers=workers) == ["new"]
    assert raw() == [path.read_bytes()]


LINES = b"".join(pi_lines(3))


@pytest.mark.parametrize(
    "body",
    [
        LINES.rstrip(b"\n"), LINES.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + LINES, LINES.replace(b"\n", b"\n\n \n"),
        LINES + b"\n\n\n", LINES + b"\x00\x00", LINES.decode().encode("utf-16"), gzip.compress(LINES),
        zstandard.compress(LINES[:900]) + zstandard.compress(LINES[900:]), LINES + LINES,
    ],
    ids=["no end", "crlf", "mark", "blank", "blank end", "zeros", "utf16", "gzip", "frames", "twice"],
)  # fmt: skip
def test_bytes_come_back(tmp_path, body):
    """Whatever the lines end with, and whatever they are wrapped in, the events are the same and so are the bytes."""
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    plain.write_bytes(LINES)
    odd.write_bytes(body)
    imported(odd)
    one = everything()
    assert raw() == [body]

    assert states(plain) == ["present"]
    assert len(one[session_id()]) == len(everything()[session_id()])


# --- one of several episodes goes -----------------------------------------------------------------------------------


def noise(mark):
    """Three megabytes that no compression makes small, with a mark at the start, in the middle and at the end."""
    rng = random.Random(mark)
    return mark.join(("", *(rng.randbytes(750_000).hex() for _ in range(2)), ""))


def kept_bytes(home):
    """Everything that is kept of files, uncompressed."""
    connection = sqlite3.connect(home / "store.db")
    found = [
        zstandard.ZstdDecompressor().decompress(body, 1 << 21)
        for (body,) in connection.execute("SELECT body FROM parts")
    ]
    connection.close()
    return b"".join(found)


@pytest.mark.parametrize(
    "wrap", [bytes, lambda body: b"\xef\xbb\xbf" + body, gzip.compress], ids=["plain", "mark", "gzip"]
)
@pytest.mark.parametrize("goes", [1, 2])
def test_nothing_of_a_pruned_episode_is_kept(tmp_path, home, goes, wrap):
    """Of a file of two sessions, one is pruned: no byte of its lines is kept, however long they are."""
    file = tmp_path / "both.jsonl"
    file.write_bytes(wrap(b"".join([*pi_lines(1, 1, noise("<first>")), *pi_lines(1, 2, noise("<second>"))])))
    imported(file)
    with trackway.open_store() as live:
        live.drop([session_id(goes)])

    assert (b"<first>" if goes == 1 else b"<second>") not in kept_bytes(home)
    with pytest.raises(BlobNotFound):
        raw(session_id(3 - goes))
    with trackway.open_store() as live:
        assert is_sound(live)


# --- disks that are full --------------------------------------------------------------------------------------------


def fills_up(place, leave):
    """Import on a disk with that much room, then with all of it."""
    source = Path(os.environ["HOME"]) / "files"
    source.mkdir()
    for i in range(6):
        said = random.Random(i).randbytes(60_000).hex()
        (source / f"{i}.jsonl").write_bytes(b"".join(pi_lines(6, i, said)))
    with full(place, leave=leave):
        code, said = command("import", source)
    with trackway.open_store(home=place / "home") as live:
        found = list(live.episodes(Query()))
        half = [each.id for each in found if (each.n_turns, each.n_steps) != (6, 6) or not live.originals(each.id)]
        sound = not found or is_sound(live)
    left = [str(each) for each in place.rglob(".*.part")]
    then = command("import", source)
    listed = json.loads(command("ls", "--json")[1])
    return {"code": code, "said": said, "half": half, "sound": sound, "left": left, "then": then, "listed": len(listed)}


@pytest.mark.parametrize("leave", [0, 200_000, 1_500_000, 4_000_000])
def test_a_full_disk(tmp_path, leave):
    """No room for what is read, or for what is stored: said, nothing half done, and with room it goes on."""
    value = on("40m", fills_up, tmp_path, leave=leave).value

    assert value["code"] == 1
    assert "Traceback" not in value["said"]
    assert any(each in value["said"] for each in ("full", "No space", "disk I/O error"))
    assert (value["half"], value["sound"], value["left"]) == ([], True, [])
    assert value["then"][0] == 0
    assert value["listed"] == 6


# --- processes that end ---------------------------------------------------------------------------------------------


def large(folder, count=4):
    """Files that take a second each to read."""
    folder.mkdir(exist_ok=True)
    for i in range(count):
        (folder / f"{i}.jsonl").write_bytes(b"".join(pi_lines(700, i, "x" * 3000)))
    return folder


def children(pid):
    """The processes that a process has started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(each) for each in (task / "children").read_text().split()]
    return found


def until(there):
    """Wait for something to be there; what it is."""
    end = time.monotonic() + 30
    while not (found := there()):
        assert time.monotonic() < end
    return found


@pytest.mark.crash
def test_a_reading_process_is_killed(tmp_path, home):
    """Its file is refused with the reason, the others are imported, and the next import has it."""
    folder = large(tmp_path / "files")
    process = subprocess.Popen([*IMPORT, folder, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    until(lambda: list((home / "imports").glob(".*.part/*.spool")))
    for each in until(lambda: children(process.pid))[:1]:
        os.kill(each, signal.SIGKILL)
    report = json.loads(process.communicate()[0])

    assert process.returncode == 1
    assert report["states"] == {"new": 3, "refused": 1}
    assert any("the process that read it ended (-9)" in each.get("error", "") for each in report["files"])
    assert sorted(states(folder)) == ["new", "unchanged", "unchanged", "unchanged"]
    assert all(each.n_turns == 700 for each in trackway.open_store().episodes())


@pytest.mark.crash
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_import_is_killed(tmp_path, home, how):
    """Its processes end with it, and what it left is swept up by the next one."""
    folder = large(tmp_path / "files")
    process = subprocess.Popen([*IMPORT, folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    readers = until(lambda: children(process.pid))
    until(lambda: list((home / "imports").glob(".*.part/*.spool")))
    process.send_signal(how)
    process.wait()
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in readers))

    assert set(states(folder)) <= {"new", "unchanged"}
    assert all(each.n_turns == 700 for each in trackway.open_store().episodes())
    assert list((home / "imports").glob(".*.part")) == []


def test_many_at_once(folder, home):
    """Imports that start in the same moment do not sweep each other up."""
    all_of_them = [
        subprocess.Popen([*IMPORT, folder, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    said = [each.communicate()[1] for each in all_of_them]

    assert [each.returncode for each in all_of_them] == [0] * 6, said
    assert len(everything()) == 3
    assert list((home / "imports").glob(".*.part")) == []


# --- files that do not stand still ----------------------------------------------------------------------------------


def test_a_file_that_is_replaced_while_it_is_read(tmp_path):
    """What is kept of a file is what was read of it, or it is refused: never one file's events with another's bytes."""
    file, stop = tmp_path / "a.jsonl", threading.Event()
    versions = [b"".join(pi_lines(40, number, "x" * 20_000)) for number in (1, 2)]
    file.write_bytes(versions[0])

    def replace():
        number = 0
        while not stop.is_set():
            number += 1
            (tmp_path / "b").write_bytes(versions[number % 2])
            (tmp_path / "b").replace(file)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        found = [each for _ in range(8) for each in imported(file, again=True, workers=1)]
    finally:
        stop.set()
        thread.join()

    assert {each.state for each in found} <= {"new", "present", "refused"}
    for number, episode in ((0, session_id(1)), (1, session_id(2))):
        if episode in everything():
            assert [hash(each) for each in raw(episode)] == [hash(versions[number])]


def test_what_nobody_can_read(tmp_path):
    """A pipe, a loop, a device in a folder are passed by; a file that is named is refused, and stops no other."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(LINES)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "zeros.jsonl").symlink_to("/dev/zero")

    assert states(tmp_path) == ["new"]
    assert states(tmp_path / "pipe.jsonl", tmp_path / "loop" / "gone", file) == ["refused", "refused", "unchanged"]


def test_without_permission():
    """A file or a folder that must not be read is named with the reason, and stops no other."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may read everything")
    top = Path(tempfile.mkdtemp())
    try:
        top.chmod(0o777)
        for i in range(2):
            (top / f"{i}.jsonl").write_bytes(b"".join(pi_lines(2, i)))
        (top / "0.jsonl").chmod(0)
        (top / "closed").mkdir(mode=0)
        who = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        environ = os.environ | {
            "TRACKWAY_HOME": str(top / "home"),
            "HOME": str(top),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        told = [
            subprocess.run([*who, *IMPORT, *words], env=environ, capture_output=True, text=True, check=False, cwd=top)
            for words in (["."], ["--detect", "."], ["0.jsonl", "1.jsonl"])
        ]
    finally:
        shutil.rmtree(top)
    if "No module named" in told[0].stderr:
        pytest.skip("nobody else may read this checkout")

    assert [each.returncode for each in told] == [1, 1, 1]
    assert all("0.jsonl: Permission denied" in each.stderr for each in told)
    assert all("closed: Permission denied" in each.stderr for each in told[:2])
    assert "pi " in told[1].stdout


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_a_compressed_document_is_not_held_whole(tmp_path):
    """A small file that becomes one huge JSON value is refused, or read part by part: memory is bounded."""
    body = io.BytesIO()
    with gzip.GzipFile(fileobj=body, mode="wb", compresslevel=9) as file:
        file.write(
            b'{"schema_version": "ATIF-v1.4", "agent": {"name": "x"}, '
            b'"steps": [{"step_id": 1, "source": "user", "message": "'
        )
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}]}')
    (tmp_path / "a.json.gz").write_bytes(body.getvalue())

    (found,) = imported(tmp_path / "a.json.gz")

    assert found.state == "refused"
    assert "a part of more than 64 MB" in found.error


def test_a_line_that_is_too_long(tmp_path):
    """It is kept and not read, which is said; what stands before and behind it is."""
    lines = pi_lines(2)
    lines.insert(5, b'{"type": "message", "x": "' + b"x" * (70 << 20) + b'"}\n')
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))

    (found,) = imported(tmp_path / "a.jsonl")

    assert [(each.line, each.reason) for each in found.warnings] == [
        (6, "a line of more than 64 MB is kept, and not read")
    ]
    assert trackway.open_store().episode(session_id()).n_turns == 2
    assert raw() == [(tmp_path / "a.jsonl").read_bytes()]


def test_the_report_is_what_is_stored(folder):
    """Copies, longer copies and a dry run before: what is said adds up to what is there, and to what was foretold."""
    lines = pi_lines(6, 0)
    for name, body in (("copy", lines[:17]), ("longer", lines), ("slice", lines[:1] + lines[9:])):
        (folder / f"{name}.jsonl").write_bytes(b"".join(body))
    foretold = imported(folder, dry=True)
    found = imported(folder)

    assert foretold == found
    assert sum(each.events for each in found) == sum(map(len, everything().values()))
    assert sum(each.new_episodes for each in found) == len(everything())


def test_a_store_that_may_not_be_written(folder, home):
    """Its trouble is said once; nothing was changed."""
    imported(folder / "0.jsonl")
    once = everything()
    connection = sqlite3.connect(home / "store.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(TrackwayError):
        imported(folder)
    connection = sqlite3.connect(home / "store.db")
    connection.execute(f"PRAGMA user_version={4}")
    connection.close()

    assert everything() == once
