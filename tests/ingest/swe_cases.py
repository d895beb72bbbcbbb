"""What the tests of benchmark agents' files share: documents that grow by a list, and are read part by part."""

import json

from tests.ingest.agent_checks import entries
from trackway.ingest.formats import _documents


def document(folder, value, name="episode.json", indent=None):
    """A document on the disk."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False))
    return path


def check_growth(source, folder, versions, name="episode.json"):
    """Each version of a document that is rewritten as it grows says the beginning of what the last one says."""
    *shorter, last = [entries(source, document(folder, each, name)) for each in versions]
    for found in shorter:
        assert found == last[: len(found)]
    assert len(last) > len(shorter[0])


def check_parts(source, path, monkeypatch):
    """A document too large to be held says the same, part by part."""
    whole = entries(source, path)
    monkeypatch.setattr(_documents, "_WHOLE", 0)
    assert entries(source, path) == whole
