"""tau-bench's examples for prompts."""

import json

import pytest

from tests.ingest.corpus import files
from trackway.ingest.formats.tau_few_shot import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.parse import events_of
from trackway.ingest.sources import detect

ROW = {
    "messages_display": "user: Hi: two things\nsecond line\nassistant: None\ntool: Error: no user\nassistant: Who?\n"
}


def test_a_chat_as_one_text(tmp_path):
    """Roles begin lines; what a tool gave is a result, whoever asked for it."""
    file = tmp_path / "few.jsonl"
    file.write_text(json.dumps(ROW) + "\n")

    ((_, events),) = events_of(SOURCE, Original(file)).items()

    assert [each.kind for each in events] == [
        "episode_start", "user", "assistant_text", "tool_result", "assistant_text",
    ]  # fmt: skip
    assert events[1].content == "Hi: two things\nsecond line"
    assert (events[3].content, events[3].is_error) == ("Error: no user", True)
    assert detect(Original(file).head())[0].source is SOURCE


@pytest.mark.parametrize("row", [{"messages_display": 7}, {"messages_display": "hello"}, {"text": "user: a"}])
def test_other_rows(tmp_path, row):
    """A text without roles is nobody's."""
    file = tmp_path / "few.jsonl"
    file.write_text(json.dumps(row) + "\n")
    assert SOURCE not in [each.source for each in detect(Original(file).head())]


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("tau_bench/*few_shot.jsonl"), ids=lambda each: each.name)
def test_the_real_ones(path):
    """As many episodes as rows, as many turns and results as lines that begin so."""
    texts = [json.loads(line)["messages_display"] for line in path.read_text().splitlines()]
    found = list(events_of(SOURCE, Original(path)).values())

    assert len(found) == len(texts)
    for kind, role in (("user", "user"), ("tool_result", "tool"), ("assistant_text", "assistant")):
        told = sum(line.startswith(f"{role}: ") for text in texts for line in text.split("\n"))
        assert sum(each.kind == kind for events in found for each in events) == told
