"""What every test gets: an environment that is empty but for a home of its own, and golden files.

No test sees the person who started it: `TRACKWAY_*` and the XDG folders are gone, `HOME` is a fresh folder,
and `TRACKWAY_HOME` names one that does not exist yet.
"""

import os
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["tests.promises"]

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "data"

hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, max_examples=200)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser):
    """`--golden`: rewrite golden files instead of comparing with them (`make golden`)."""
    parser.addoption("--golden", action="store_true", help="rewrite golden files; only tests that have one are started")


def pytest_collection_modifyitems(config, items):
    """Skip what needs the corpus where there is none; with `--golden`, keep only the tests with golden files."""
    for item in items:
        if item.get_closest_marker("corpus") and not CORPUS.is_dir():
            item.add_marker(pytest.mark.skip(reason="no corpus: ../shared/data is missing"))
    if config.getoption("--golden"):
        others = [item for item in items if "golden" not in item.fixturenames]
        items[:] = [item for item in items if "golden" in item.fixturenames]
        config.hook.pytest_deselected(items=others)


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """A fresh home for each test; gives the path of the trackway home in it, which does not exist yet."""
    for name in os.environ:
        if name.startswith(("TRACKWAY_", "XDG_")):
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TRACKWAY_HOME", str(folder / "trackway"))
    return folder / "trackway"


@pytest.fixture(scope="session")
def corpus():
    """The folder of real episodes; for tests marked `corpus`."""
    return CORPUS


@pytest.fixture
def golden(request):
    """`golden(path, text)`: text equals the golden file, or becomes it under `--golden`."""

    def check(path, text):
        if request.config.getoption("--golden"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; if that is meant: make golden"

    return check
