"""What the tests of benchmark agents' files share: documents on the disk, held whole and read part by part."""

from tests.ingest import writing
from tests.ingest.agent_checks import entries, written
from trackway.ingest.formats import _documents


def document(folder, value, name="episode.json", indent=None):
    """A document on the disk."""
    return written(folder, writing.document(value, indent), name)


def check_parts(source, path, monkeypatch):
    """A document too large to be held says the same, part by part."""
    whole = entries(source, path)
    monkeypatch.setattr(_documents, "_WHOLE", 0)
    assert entries(source, path) == whole
