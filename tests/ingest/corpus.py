"""The real files beside the checkout, for tests marked `corpus`, which are skipped where they are missing."""

from tests.conftest import CORPUS

DATA = CORPUS


def files(pattern):
    """The files below the corpus that match, by name; none where it is missing, so that collecting never fails."""
    return sorted(each for each in CORPUS.glob(pattern) if each.is_file()) if CORPUS.is_dir() else []
