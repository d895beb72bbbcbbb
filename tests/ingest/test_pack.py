"""trackway's packs: told by their first line; taken in by unpacking, never as entries."""

import pytest

from tests.ingest.agent_checks import lines, sign, written
from trackway.errors import FileRefused
from trackway.ingest.formats.pack import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.sources import detect

HEAD = {"trackway_pack": 1, "episode": "0b0a7000-0000-4000-8000-000000000001", "schema": 1}


def test_detected(tmp_path):
    """A pack of any version is one, surely, and nobody else's; lines that speak of packs are not."""
    path = written(tmp_path, lines(HEAD, {"kind": "user", "content": "x"}))
    assert [(each.source.name, each.sign.confidence) for each in detect(Original(path).head())] == [("pack", 1.0)]
    assert sign(SOURCE, written(tmp_path, lines({**HEAD, "trackway_pack": 99}))).confidence == 1.0
    assert sign(SOURCE, written(tmp_path, lines({"kind": "user"}, HEAD))) is None
    assert sign(SOURCE, written(tmp_path, b"")) is None


def test_not_read_as_entries(tmp_path):
    """Its events are numbered already: who reads it as entries is told to unpack it."""
    with pytest.raises(FileRefused, match="unpack"):
        list(SOURCE.read(Original(written(tmp_path, lines(HEAD)))))
