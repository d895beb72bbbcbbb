"""Reflexion's logs: tasks with reflections, games with memories, and the real file."""

import json

import pytest

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, read, sign, troubles, written
from tests.ingest.corpus import files
from tests.ingest.dataset_checks import says
from tests.ingest.writing import document
from trackway.ingest.formats.reflexion import SOURCE
from trackway.schema.events import AssistantText, EpisodeEnd, Reflection, User

ROW = {
    "task_id": "Add/0", "prompt": "def add(a, b):\n", "entry_point": "add", "test": "assert add(1, 2) == 3",
    "implementations": ["return a", "return a + b"], "test_feedback": ["failed: add(1, 2)"],
    "reflections": ["I forgot b."], "solution": "return a + b", "is_solved": True,
}  # fmt: skip


def test_detected(tmp_path):
    """Rows that say whether they are solved, or what was remembered; other rows with prompts are not taken."""
    assert sign(SOURCE, written(tmp_path, lines(ROW))).confidence == 0.9
    assert (
        sign(SOURCE, written(tmp_path, lines({"prompt": "a", "solution": "b", "is_solved": False}))).confidence == 0.7
    )
    assert sign(SOURCE, written(tmp_path, document([{"name": "env_0", "memory": [], "is_success": True}])))
    assert sign(SOURCE, written(tmp_path, lines({"task_id": "x", "prompt": "a"}))) is None


def test_trials_in_order(tmp_path):
    """An implementation, what the tests said, the reflection on it; the solution is not said twice."""
    events = only(SOURCE, written(tmp_path, lines(ROW)))
    assert says(events) == [
        ("user", "def add(a, b):\n"), ("assistant_text", "return a"), ("user", "failed: add(1, 2)"),
        ("reflection", "I forgot b."), ("assistant_text", "return a + b"), ("episode_end", "success"),
    ]  # fmt: skip
    assert [each.actor for each in of_kind(events, User)] == ["harness", "harness"]
    assert (events[0].header.task, events[0].header.task_key) == ("Add/0", "Add/0")
    assert events[0].native.fields["entry"]["test"] == "assert add(1, 2) == 3"


def test_memories(tmp_path):
    """What a game taught is a reflection; how it ended is the outcome, and nothing where it is no yes or no."""
    row = {"name": "env_1", "memory": ["Look in the drawer."], "is_success": False, "skip": False}
    events = only(SOURCE, written(tmp_path, document([row])))
    assert says(events) == [("reflection", "Look in the drawer."), ("episode_end", "failure")]
    odd = only(SOURCE, written(tmp_path, document([{**row, "is_success": "maybe"}])))
    assert of_kind(odd, EpisodeEnd)[0].outcome is None


def test_growth_and_odd_rows(tmp_path):
    """Rows that are added leave the others as they were; what is no row is said."""
    check_growth(SOURCE, tmp_path, lines(ROW, ROW, {**ROW, "is_solved": False}))
    assert len(troubles(SOURCE, written(tmp_path, lines(ROW, [1], 7)))) == 2


def test_mutations(tmp_path):
    """Whatever stands in a field, nothing raises but a refusal."""
    check_mutations(SOURCE, tmp_path, lines(ROW))


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("reflexion/**/*.jsonl"), ids=lambda path: path.name)
def test_the_real_file(path):
    """Each row's prompt, reflections, solution and outcome, as plain counting finds them; there are no calls."""
    rows = [json.loads(each) for each in path.read_text().splitlines()]
    found = read(SOURCE, path)
    assert len(found) == len(rows)
    for row, events in zip(rows, found.values(), strict=True):
        assert [each.lesson for each in of_kind(events, Reflection)] == row["reflections"]
        assert [each.content for each in of_kind(events, User)] == [row["prompt"]]
        assert [each.content for each in of_kind(events, AssistantText)] == [row["solution"]]
        assert of_kind(events, EpisodeEnd)[0].outcome == ("success" if row["is_solved"] else "failure")
