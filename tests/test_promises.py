"""The fault matrix's own table: what it says must be what the tests did."""

import subprocess
import sys
from pathlib import Path

_TESTS = """
import pytest

@pytest.mark.promise("fault", "broken")
@pytest.mark.parametrize("way", [1, 2])
def test_broken(way):
    assert way == 1

@pytest.mark.promise("fault", "in part")
@pytest.mark.parametrize("way", [1, 2, 3, 4])
def test_in_part(way, tell):
    if way == 4:
        pytest.skip("no strace")
    tell(records_put_aside=way == 2, kills=1)

@pytest.mark.promise("other", "whole")
def test_whole(tell):
    tell(journal_versions=1, lost=0)

@pytest.mark.promise("other", "nowhere")
def test_nowhere():
    pytest.skip("no mounts")
"""


def test_the_table_says_what_the_tests_did(tmp_path: Path) -> None:
    """What was skipped is not said to have held, one is no plural, and what is broken is the last thing said."""
    (tmp_path / "test_it.py").write_text(_TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.promises", "-p", "no:cacheprovider", "--color=no"]
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [*words, f"--rootdir={tmp_path}", "-c", "/dev/null", str(tmp_path)],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    _, _, table = done.stdout.partition("fault matrix: ")
    assert table.splitlines()[:8] == [
        table.splitlines()[0],
        "fault",
        "  broken → BROKEN in 1 of 2",
        "  in part → held, 3 ways, 1 not tried: no strace (1 record put aside, 3 kills)",
        "other",
        "  nowhere → not tried: no mounts",
        "  whole → held (1 journal version, 0 lost)",
        "BROKEN in 1 of 2: fault, broken",
    ]
    assert table.startswith("2 of 4 promises held")
