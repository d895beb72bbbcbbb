"""Files into the store: once, whole, in any order, again and again, whatever lies between."""

import io
import json
import os
import sqlite3
import tarfile
import zipfile

import pytest
import zstandard

import trackway
from tests.ingest.homes import everything, imported, raw, states, three_sessions
from tests.ingest.sessions import pi_lines, session_id
from trackway.store.pack import pack
from trackway.testing.contract import bare


@pytest.fixture
def folder(tmp_path):
    """Three sessions in a folder, and something else."""
    return three_sessions(tmp_path)


@pytest.fixture
def other(monkeypatch, tmp_path):
    """Calling it goes on in another home, as if on another machine."""
    return lambda name="other": monkeypatch.setenv("TRACKWAY_HOME", str(tmp_path / name))


def test_a_folder(folder):
    """Each session is an episode under its own id, with its file as it was; what is nothing known is left alone."""
    assert states(folder) == ["new", "new", "new", "unknown"]

    found = everything()
    assert sorted(found) == [session_id(i) for i in range(3)]
    assert raw(session_id(1)) == [(folder / "1.jsonl").read_bytes()]
    summary = trackway.open_store().episode(session_id(1))
    assert (summary.n_turns, summary.n_steps, summary.state, summary.source) == (4, 4, "ended", "pi")


def test_a_folder_twice(folder):
    """The second time nothing is read; read again, nothing is new."""
    imported(folder)
    once = everything()

    assert states(folder) == ["unchanged"] * 3 + ["unknown"]
    assert states(folder, again=True) == ["present"] * 3 + ["unknown"]
    assert everything() == once


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 8, 13, 16])
def test_a_prefix_then_the_whole(tmp_path, other, cut):
    """Whatever line a file had grown to: afterwards all is as if it had been imported once."""
    file, lines = tmp_path / "a.jsonl", pi_lines(4)
    file.write_bytes(b"".join(lines[:cut]))
    first = imported(file)
    file.write_bytes(b"".join(lines))
    then = imported(file)
    grown = everything()
    files = raw(session_id())

    other()
    imported(file)
    once = everything()

    expected = ["new", "grown"] if cut > 1 else ["empty", "new"]  # nobody has said anything in the first line
    assert [each.state for each in (*first, *then)] == expected
    assert grown == once
    assert files == [file.read_bytes()]


def test_a_prefix_that_ends_in_a_line(tmp_path, other):
    """Half a line is a warning that names it, and no event; when the line is whole, it is read."""
    file, whole = tmp_path / "a.jsonl", b"".join(pi_lines(4))
    file.write_bytes(whole[: len(whole) // 2])
    (first,) = imported(file)
    assert raw(session_id()) == [whole[: len(whole) // 2]]
    file.write_bytes(whole)
    imported(file)
    grown = everything()
    other()
    imported(file)

    assert [(each.line, each.reason) for each in first.warnings] == [(9, "cut off in the middle of a value")]
    assert grown == everything()


def test_copies_and_slices(tmp_path):
    """A copy adds nothing, a longer copy what is more, a slice what is missing; each file can be had back."""
    lines = pi_lines(6)
    files = {"a": lines[:9], "copy": lines[:9], "longer": lines[:17], "slice": lines[:1] + lines[13:]}
    for name, each in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(each))

    found = [imported(tmp_path / f"{name}.jsonl")[0] for name in files]

    assert [each.state for each in found] == ["new", "present", "grown", "grown"]
    with trackway.open_store() as live:
        steps = trackway.steps(live.events(session_id()))
        prompts = [each.content for each in live.events(session_id()) if each.kind == "user"]
    assert [each.arguments["command"] for each in steps] == [f"cat {i}" for i in range(6)]
    assert all(each.observation == f"page {each.index}" for each in steps)
    assert prompts == [f"look at page {i}" for i in range(6)]
    assert sorted(raw(session_id())) == sorted(b"".join(files[each]) for each in ("a", "longer", "slice"))


def test_two_sessions_in_one_file(tmp_path):
    """Each is an episode, and the file is both's."""
    file = tmp_path / "both.jsonl"
    file.write_bytes(b"".join(pi_lines(2, 1) + pi_lines(2, 2)))

    (found,) = imported(file)

    assert sorted(found.episodes) == [session_id(1), session_id(2)]
    assert raw(session_id(1)) == raw(session_id(2)) == [file.read_bytes()]


def test_trouble_in_a_file(tmp_path):
    """What cannot be read is named by its line, and the rest is imported."""
    lines = pi_lines(3)
    lines[2] = lines[2].rstrip() + lines[3]
    lines[3] = b"what is this?\n"
    lines[6] = b'{"type": "message", "id"\n'
    lines.insert(8, b"\x00\xff\xfe garbage\n")
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"".join(lines))

    (found,) = imported(file)

    assert found.state == "new"
    assert [each.line for each in found.warnings] == [3, 4, 7, 9]
    assert "2 values on one line" in found.warnings[0].reason
    assert raw(session_id()) == [file.read_bytes()]


@pytest.mark.parametrize(
    "body", [b"", b"\x00" * 500, b"hello", b"{}", b"[1, 2]", b'{"a": 1}\n{"b": 2}\n', b"\xff" * 99]
)
def test_nothing_known(tmp_path, body):
    """A file that was named is refused, with what was looked for; nothing of it is kept."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(body)

    (found,) = imported(file)

    assert found.state == "refused"
    assert str(file) in found.error
    assert not body or "looked for" in found.hint
    assert everything() == {}


def test_a_bad_file_does_not_stop_the_others(folder, tmp_path):
    """Neither does one that is not there, or must not be read."""
    (folder / "0.jsonl").write_bytes(b"\x28\xb5\x2f\xfd broken")
    bad = imported(folder, tmp_path / "missing.jsonl")

    assert [each.state for each in bad] == ["unknown", "new", "new", "unknown", "refused"]
    assert len(everything()) == 2


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.zst"])
def test_archives(folder, tmp_path, kind):
    """The files in an archive are imported under its name and theirs, and come back as they were."""
    archive = tmp_path / f"all.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as made:
            for each in sorted(folder.iterdir()):
                made.write(each, f"inside/{each.name}")
    else:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz" if kind == "tar.gz" else "w") as made:
            made.add(folder, "inside")
        body = buffer.getvalue()
        archive.write_bytes(zstandard.compress(body) if kind == "tar.zst" else body)

    found = imported(archive)

    assert sorted(each.state for each in found) == ["archive", "new", "new", "new", "unknown"]
    assert raw(session_id(2)) == [(folder / "2.jsonl").read_bytes()]
    (file,) = trackway.open_store().originals(session_id(2))
    assert file.name == f"{archive}!/inside/2.jsonl"
    assert states(archive) == ["unchanged"]


def test_a_compressed_file(tmp_path):
    """It is read as what it was before, and kept as it is."""
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(zstandard.compress(b"".join(pi_lines(3))))

    assert states(file) == ["new"]
    assert raw(session_id()) == [file.read_bytes()]


def test_a_dry_run(folder):
    """It says what would be new, and stores nothing."""
    found = imported(folder, dry=True)

    assert [each.state for each in found] == ["new"] * 3 + ["unknown"]
    assert sum(each.events for each in found) > 30
    assert everything() == {}
    assert states(folder) == ["new"] * 3 + ["unknown"]


def test_notes_of_earlier_imports_may_be_lost(folder, home):
    """Without them nothing comes twice: what an episode has is told by its own events."""
    imported(folder)
    once = everything()
    for each in (home / "imports").glob("*.db*"):
        each.unlink()

    assert states(folder) == ["present"] * 3 + ["unknown"]
    assert everything() == once


def test_damaged_notes(folder, home):
    """They are made again."""
    imported(folder)
    once = everything()
    for each in (home / "imports").glob("*.db"):
        each.write_bytes(b"SQLite format 3\x00" + b"\xaa" * 5000)

    assert states(folder) == ["present"] * 3 + ["unknown"]
    assert everything() == once


def test_a_label_in_between(tmp_path):
    """What was said of an episode here stays, and what is new of its file is added once."""
    file, lines = tmp_path / "a.jsonl", pi_lines(4)
    file.write_bytes(b"".join(lines[:9]))
    imported(file)
    with trackway.open_store() as live, trackway.Recorder() as recorder:
        recorder.label(live.resolve("last"), outcome="success")
    file.write_bytes(b"".join(lines))

    assert states(file) == ["grown"]
    assert trackway.open_store().episode(session_id()).outcome == "success"
    assert trackway.open_store().episode(session_id()).n_steps == 4


def test_pruned_episodes_stay_away(folder):
    """What somebody deleted does not come back by itself; asked for, it does."""
    imported(folder)
    with trackway.open_store() as live:
        live.drop([session_id(0)])
    assert states(folder)[0] == "pruned"
    assert states(folder)[0] == "pruned"  # and is not read any more
    (folder / "0.jsonl").write_bytes(b"".join(pi_lines(6, 0)))

    assert states(folder)[0] == "pruned"
    assert session_id(0) not in everything()
    assert states(folder, again=True)[0] == "new"
    assert raw(session_id(0)) == [(folder / "0.jsonl").read_bytes()]


def test_the_same_on_every_machine(folder, other):
    """Ids, writers, numbers and times come from the file alone."""
    imported(folder)
    here = everything()
    other()
    for each in folder.iterdir():
        os.utime(each, (1, 1))
    imported(folder)

    assert everything() == here


def test_a_store_that_says_no(folder, home):
    """Its trouble is not a file's: it is raised, and what was imported before stays."""
    imported(folder / "0.jsonl")
    connection = sqlite3.connect(home / "store.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()

    with pytest.raises(trackway.TrackwayError):
        imported(folder)


def test_what_lies_beside_comes_later(tmp_path):
    """A file is read again when what it is read with has come, though it has not changed itself."""
    trajectory = {
        "trajectory_format": "mini-swe-agent-1", "instance_id": "x__x-1",
        "info": {"exit_status": "Submitted", "submission": "diff", "mini_version": "1.9"},
        "messages": [
            {"role": "system", "content": "be brief"}, {"role": "user", "content": "solve it"},
            {"role": "assistant", "content": "THOUGHT: look\n```bash\nls\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"},
        ],
    }  # fmt: skip
    file = tmp_path / "x__x-1.traj.json"
    file.write_text(json.dumps(trajectory))
    assert states(file) == ["new"]
    assert states(file) == ["unchanged"]
    (tmp_path / "x__x-1.report.json").write_text(json.dumps({"x__x-1": {"resolved": True, "patch_exists": True}}))

    assert states(file) == ["grown"]
    assert next(iter(trackway.open_store().episodes())).outcome == "success"
    assert len(raw(next(iter(everything())))) == 2


def test_a_pack(tmp_path, other):
    """A pack is an episode again, equal, and comes back as the file it was; a damaged one is refused."""
    with trackway.record("packed", agent="mine") as episode:
        episode.user("go")
        episode.end("success")
    with trackway.open_store() as live, (tmp_path / "a.jsonl").open("wb") as file:
        pack(live, episode.id, file)
    here = bare(everything()[episode.id])
    other()

    assert states(tmp_path / "a.jsonl", dry=True) == ["new"]
    assert states(tmp_path / "a.jsonl") == ["new"]
    assert states(tmp_path / "a.jsonl", again=True) == ["present"]
    assert bare(everything()[episode.id]) == here
    assert raw(episode.id) == [(tmp_path / "a.jsonl").read_bytes()]
    (tmp_path / "b.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes()[:-40])
    assert states(tmp_path / "b.jsonl") == ["refused"]
