"""``trackway compare``: where two episodes part, for people and for programs."""

import json
import random

import pytest
from click.testing import CliRunner

import trackway
from trackway.cli import main

SECRET = "sk-ant-api03-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"


def cli(*args):
    """What trackway answers."""
    return CliRunner().invoke(main, ["compare", *args], catch_exceptions=False)


def recorded(actions, *, outcome="success", **named):
    """An episode that takes these actions; gives its id."""
    with trackway.record("one task", **named) as episode:
        episode.user("go")
        messages = [{"role": "user", "content": "go"}]
        for action in actions:
            episode.model_call(model="m", messages=messages)
            call = episode.tool_call("bash", {"cmd": action})
            episode.tool_result(call, f"did {action}")
            messages.append({"role": "tool", "tool_call_id": call.call_id, "content": f"did {action}"})
        episode.end(outcome)
    return episode.id


def test_equal_episodes():
    """Ids, times and durations do not count: exit 0."""
    answer = cli(recorded(["a", "b"]), recorded(["a", "b"]))

    assert answer.exit_code == 0
    assert "and the same in both" in answer.stdout


def test_where_they_part():
    """The first difference with both sides, what differs below, and exit 1."""
    answer = cli(recorded(["a", "b", "c"]), recorded(["a", "x", "c"], outcome="failure"))

    assert answer.exit_code == 1
    assert "they part same tool, different arguments" in answer.stdout
    assert 'a  turn 1, step 2: call  bash {"cmd":"b"}' in answer.stdout
    assert 'b  turn 1, step 2: call  bash {"cmd":"x"}' in answer.stdout
    assert "(--all)" in answer.stdout
    assert 'call: bash {"cmd":"a"}' not in answer.stdout


@pytest.mark.parametrize("seed", range(20))
def test_the_known_first_difference_is_found(seed):
    """Twenty pairs of one task, with steps put in, left out and changed: the first of them is where they part."""
    chance = random.Random(seed)
    actions = [f"{chance.randrange(6)}" for _ in range(chance.randrange(8, 20))]
    other, places = list(actions), sorted(chance.sample(range(2, len(actions)), 3), reverse=True)
    for place in places:
        how = chance.choice(["insert", "delete", "change"])
        if how == "insert":
            other.insert(place, f"new {place}")
        elif how == "delete":
            del other[place]
        else:
            other[place] = f"changed {place}"
    first = next(
        (i for i, (one, two) in enumerate(zip(actions, other, strict=False)) if one != two),
        min(len(actions), len(other)),
    )
    found = json.loads(cli(recorded(actions), recorded(other), "--level", "steps", "--json").stdout)["first"]
    steps = [(found[side] or {"step": first + 1})["step"] for side in ("a", "b")]

    assert steps == [first + 1, first + 1]


def test_steps_alone():
    """With --level steps only actions and results are compared; all of them are shown with --all."""
    answer = cli(recorded(["a"]), recorded(["a"], outcome="failure"), "--level", "steps", "--all")

    assert answer.exit_code == 0
    assert "call: bash" in answer.stdout
    assert cli("last", "ffff").exit_code == 1


def test_a_redacted_episode_equals_its_twin():
    """Redacted or not, the same secret is the same secret to whoever holds the key; and it is not shown."""
    hidden, twin = recorded([f"use {SECRET}"], redact=True), recorded([f"use {SECRET}"], redact=True)
    plain = recorded([f"use {SECRET}"])

    assert cli(hidden, twin).exit_code == 0
    assert cli(hidden, plain).exit_code == 0
    other = cli(hidden, recorded(["use another"], redact=True), "--all")
    assert other.exit_code == 1
    assert SECRET not in other.stdout
    assert trackway.compare(*(trackway.open_store().events(each) for each in (hidden, twin))).equal


def test_an_id_that_is_no_name_of_ours_counts():
    """Which order, image or row was meant is a difference; the id a provider gave a block is none."""

    def asked(order, block):
        with trackway.record("t") as episode:
            content = [{"type": "order", "id": order}, {"type": "tool_use", "id": block, "name": "x", "input": {}}]
            episode.model_call(model="m", messages=[{"role": "user", "id": block, "content": content}])
        return episode.id

    assert cli(asked("A1", "b1"), asked("A1", "b2")).exit_code == 0
    assert cli(asked("A1", "b1"), asked("B2", "b1")).exit_code == 1
