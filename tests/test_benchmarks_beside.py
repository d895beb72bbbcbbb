"""Trackway beside other recorders: what is measured is not judged here, how it is told is."""

import gzip
import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from benchmarks import compared, page, peers, side_by_side
from benchmarks.__main__ import PART as AREAS_PART
from benchmarks.measure import Options
from benchmarks.peers import environments, sink

ROOT = Path(__file__).resolve().parent.parent


def measured(**more):
    """One measurement of one recorder."""
    return {
        "version": "1.2", "steps": 100, "kept": 100, "rate": 1000.0, "p50": 50.0, "p99": 90.0, "open": 0.1,
        "memory": 10.0, "raw": 40_000.0, "bytes": 80_000, **more,
    }  # fmt: skip


def results(**found):
    """What a comparison found, with these for the peers."""
    told = {"cpu": "a CPU", "cores": 2, "python": "3.11", "filesystem": "ext4", "date": "a day", "load": 0.1}
    sizes = {"rounds": 3, "episodes": 2, "history": 2, "killed": 60, "paced": 20, "episode": 50, "pace": 40}
    write = {"name": "os.write", "value": "1 / 2 / 3", "ratio": 0.5}
    event = {"what": "text", "value": "3 / 4 / 5", "beside": [write], "target": {"text": "p50 ≤ 4 µs", "met": True}}
    ours = {"rounds": [{"theirs": measured(), "ours": measured()}], "killed": [[0, 60]], "paced": [[0, 20]]}
    return {
        "machine": {**told, "timer_us": 0.1}, "minutes": 2, "quick": False, "sizes": sizes, "events": [event],
        "peers": {"trackway": {**ours, "history": measured(bytes=90_000)}, **found},
    }  # fmt: skip


def row(text, beginning, table=0):
    """The cells of a row of one of the tables."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {beginning} |")]
    return [cell.strip() for cell in lines[table].strip("|").split("|")]


def test_a_ratio_compares_what_was_measured_in_the_same_round():
    """A machine that slows down fourfold between rounds moves the values, and no ratio."""
    pairs = [
        {"theirs": measured(rate=speed, p50=400_000 / speed), "ours": measured(rate=speed * 2, p50=100_000 / speed)}
        for speed in (1000.0, 4000.0, 2000.0)
    ]
    text = compared.text(results(llm={"rounds": pairs, "killed": [], "paced": []}))

    assert row(text, "llm")[2:4] == ["2,000", "200 / 90.0"]
    assert row(text, "llm", table=1)[1:3] == ["2.00x better", "4.00x better"]


def test_losses_are_told_with_what_they_are_of():
    """Lost without a kill, by a kill, and paced; bytes count for the steps that are there."""
    one = measured(kept=50, bytes=100_000)
    found = {"rounds": [{"theirs": one, "ours": measured()}] * 3, "killed": [[60, 60]] * 3, "paced": [[1, 20]]}
    text = compared.text(results(**{"OTel batch": {**found, "history": measured(kept=100)}}))

    cells = row(text, "OTel batch")
    assert cells[4:6] == ["2,000", "800"]
    assert cells[-3:] == ["150 of 400", "180 of 180", "1 of 20"]
    assert row(text, "**trackway**")[-3:] == ["0", "0", "0"]


def test_a_peer_that_is_left_out_says_why():
    """It has a row with the reason, and none among the ratios."""
    text = compared.text(results(MLflow={"rounds": [], "killed": [], "paced": [], "left_out": "no such package"}))

    assert row(text, "MLflow")[1] == "left out: no such package"
    assert set(row(text, "MLflow")[2:]) == {"–"}
    assert text.count("| MLflow |") == 1


@pytest.mark.parametrize(
    ("change", "verdict"), [({}, "met"), ({"kept": 99}, "NOT MET"), ({"bytes": 90_001}, "NOT MET")]
)
def test_the_design_is_judged_by_what_is_there(change, verdict):
    """A weight within the limit counts only if every step is there."""
    found = results()
    found["peers"]["trackway"]["rounds"] = [{"theirs": measured(**change), "ours": measured()}]

    assert row(compared.text(found), "bytes a step")[3] == verdict


def test_an_event_stands_beside_a_plain_write():
    """Its own target, and the ratio that some targets ask for."""
    cells = row(compared.text(results()), "record an event: text")

    assert cells[2:] == ["3 / 4 / 5 µs (p50 / p99 / p999); os.write 1 / 2 / 3, 2.00x worse", "met"]


def test_a_single_lost_step_of_ours_is_not_met():
    """Any journal, any kind of kill."""
    lossy = {"rounds": [], "killed": [[0, 60]], "paced": [[1, 20]]}
    text = compared.text(results(**{"trackway, append": lossy}))

    assert row(text, "lost at kill -9, all journals")[2:] == ["1 of 160 acknowledged, 4 kills", "NOT MET"]


def test_pip_says_why_in_one_line():
    """The first error, without the hundreds of versions there are."""
    said = "WARNING: old\nERROR: No match for mlflow>=9 (from versions: 1, 2, 3)\nERROR: none\ntrackway: failed\n"

    assert environments._reason(said) == "No match for mlflow>=9"
    assert environments._reason("trackway: needs Python\n") == "trackway: needs Python"


# --- the page ---------------------------------------------------------------------------------------------------------


def test_a_part_of_a_page_is_replaced_whole(tmp_path):
    """What stands around it, and the other part, stay to the letter."""
    path = tmp_path / "page.md"
    path.write_text(f"# Top\n\n{empty('a')}\n\nbetween 7\n\n{empty('b')}\n\nend\n", encoding="utf-8")
    page.write(path, "a", "old")
    page.write(path, "b", "other")
    page.write(path, "a", page.printed("new\n"))

    text = path.read_text(encoding="utf-8")
    assert text.startswith(
        "# Top\n\n<!-- begin: a (generated) -->\n\n```text\nnew\n```\n\n<!-- end: a -->\n\nbetween 7"
    )
    assert text.endswith("\n\nother\n\n<!-- end: b -->\n\nend\n")
    assert "old" not in text


def test_a_page_without_a_place_says_what_to_add(tmp_path):
    """And is left as it was."""
    path = tmp_path / "page.md"
    path.write_text("# Top\n", encoding="utf-8")

    with pytest.raises(SystemExit, match=r"page\.md: has no place for this part; add .*begin: a .*end: a"):
        page.write(path, "a", "new")
    assert path.read_text(encoding="utf-8") == "# Top\n"


def test_the_page_of_this_repository_has_both_parts():
    """Both commands find their place, and it is filled."""
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for part, sign in ((AREAS_PART, "targets met"), (side_by_side.PART, "| **trackway** |")):
        _, _, rest = text.partition(f"<!-- begin: {part} (generated) -->")
        assert sign in rest.partition(f"<!-- end: {part} -->")[0]


def empty(part):
    """The place of a part."""
    return f"<!-- begin: {part} (generated) -->\n<!-- end: {part} -->"


# --- the processes ----------------------------------------------------------------------------------------------------


def test_a_peer_needs_nothing_of_ours():
    """What runs in a peer's environment imports the standard library and the benchmarks: no site-packages here."""
    code = "import benchmarks.peers.alone, benchmarks.kill, benchmarks.peers.b_langfuse, benchmarks.peers.b_inspect"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_peer_whose_process_fails_is_left_out(monkeypatch, capfd):
    """With the last thing its process said, in the table and on stderr; the others go on."""
    monkeypatch.setitem(peers.NAMES, "stranger", peers.Peer("jsonl", "python"))  # unknown to the process it starts
    session = side_by_side.Session(["stranger"], Options(quick=True))
    session.measure()

    assert session.found["stranger"]["left_out"] == "KeyError: 'stranger'"
    assert "stranger: left out: KeyError: 'stranger'" in capfd.readouterr().err
    assert session.found["trackway"]["history"]["kept"] == 100


def test_the_sink_keeps_what_arrived_whole(tmp_path):
    """Packed or not; a request whose sender dies in the middle is left out."""
    with sink.standing(tmp_path) as address:
        for body, headers in ((b"plain", {}), (gzip.compress(b"packed"), {"Content-Encoding": "gzip"})):
            request = urllib.request.Request(f"{address}/v1/traces", body, headers)
            with urllib.request.urlopen(request) as answer:
                assert answer.status == 200
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as torn:
            torn.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf of it")

    assert list(sink.bodies(tmp_path)) == [b"plain", b"packed"]


@pytest.mark.slow
def test_a_quick_comparison_of_what_is_installed_here(tmp_path):
    """One command: tables on stdout and in the page, progress on stderr, everything in JSON."""
    path, report = tmp_path / "page.md", tmp_path / "report.json"
    path.write_text(empty(side_by_side.PART), encoding="utf-8")
    only = ["--only", "raw jsonl", "--only", "SQLite txn", "--only", "OTel batch"]
    command = [sys.executable, "-m", "benchmarks.side_by_side", "--quick", *only, "--doc", path, "--json", report]
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in path.read_text(encoding="utf-8")
    assert "A quick look" in done.stdout
    assert "trackway beside it" in done.stderr
    assert row(done.stdout, "**trackway**")[-3:] == ["0", "0", "0"]
    assert row(done.stdout, "raw JSONL")[-3:] == ["0", "0", "0"]
    found = json.loads(report.read_text())["peers"]
    assert list(found) == ["trackway", "raw JSONL", "SQLite txn", "OTel batch"]
    assert all(each["theirs"]["rate"] > 0 for one in found.values() for each in one["rounds"])


def test_an_unknown_peer_is_misuse():
    """Exit 2, and the names there are."""
    command = [sys.executable, "-m", "benchmarks.side_by_side", "--only", "nobody"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "MLflow" in done.stderr
