"""What mutations found once, each as the smallest file that shows it."""

import pytest

from tests.ingest.samples import SAMPLES
from tests.ingest.test_mutated import read, source_of, written
from tests.ingest.writing import SESSION, lines
from trackway.ingest.original import Original
from trackway.schema.events import Note, User


@pytest.mark.parametrize("name", ["ß" * 300, "a\ud83dz", "..", "a/b", "", "a\0b"])
def test_names_from_inside_a_file_that_are_none(tmp_path, name):
    """A name that no file can have leads nowhere, and raises nothing."""
    path = tmp_path / "a"
    path.write_bytes(b"")
    assert Original(path).near(0, name) is None
    assert Original(path).all_near(0, name, pattern="*") == []


def test_a_call_in_another_encoding(tmp_path):
    """Arguments in Latin-1 in a seed's line are read as such."""
    sample = {"a.jsonl": SAMPLES["seed_sharegpt"]["traces.jsonl"].replace(b'"hull"', b'"h\x91ll"')}
    path = written(tmp_path, "a", sample)
    assert [each for events in read(path, source_of(path)) for each in events]


@pytest.mark.parametrize("text", ["", "nobody said this", "before\nuser: this"])
def test_a_chat_as_a_text_without_roles(tmp_path, text):
    """What stands before the first role is noted, and is nobody's."""
    usual = source_of(written(tmp_path, "b", SAMPLES["tau_few_shot"]))
    path = written(tmp_path, "a", {"a.jsonl": lines({"messages_display": text})})
    noted = [each.text for events in read(path, usual) for each in events if isinstance(each, Note)]
    assert noted == ([text.partition("\n")[0]] if text else [])


@pytest.mark.parametrize("kind", [{}, [], None, 7])
def test_a_subtype_that_is_no_text(tmp_path, kind):
    """A prompt of Qwen Code whose subtype is anything is a prompt."""
    entry = {"uuid": "q-9", "parentUuid": None, "sessionId": SESSION, "type": "user", "subtype": kind,
             "message": {"role": "user", "parts": [{"text": "Make the boat sink"}]}}  # fmt: skip
    body = next(iter(SAMPLES["qwen"].values())) + lines(entry)
    path = written(tmp_path, "a", {"a.jsonl": body})
    said = [each.content for events in read(path, source_of(path)) for each in events if isinstance(each, User)]
    assert said[-1] == "Make the boat sink"
