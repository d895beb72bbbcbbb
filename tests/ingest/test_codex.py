"""Codex rollouts: what is said is said once, in every shape they have had."""

import json

import pytest

from tests.ingest.agent_checks import check_growth, check_mutations, lines, of_kind, only, written
from tests.ingest.codex_lines import (
    ENVIRONMENT,
    bare,
    event,
    events_of,
    item,
    legacy,
    line,
    meta,
    paginated,
    said,
    texts,
)
from tests.ingest.corpus import files
from trackway.ingest.formats.codex import SOURCE
from trackway.ingest.original import Original
from trackway.ingest.source import Entry
from trackway.read.pairs import pairs
from trackway.schema.events import (
    AssistantText,
    AssistantThinking,
    AssistantToolCall,
    Context,
    EpisodeStart,
    ModelCall,
    ToolResult,
    User,
)

# --- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [legacy, paginated])
def test_each_text_is_said_once(tmp_path, shape):
    """A text that stands in an event and in an item is made once, of the item, in the order of the items."""
    events = events_of(tmp_path, *shape())
    assert texts(events) == [
        ("user", "Make the boat float"),
        ("assistant_thinking", "**Look**"),
        ("assistant_text", "I look."),
        ("assistant_text", "It floats."),
    ]
    assert of_kind(events, AssistantThinking)[0].state == {"encrypted_content": "x"}


@pytest.mark.parametrize("shape", [legacy, paginated])
def test_what_the_client_put_in_is_no_ones_words(tmp_path, shape):
    """Instructions and environments are context, whatever role they were sent under; a turn begins with a person."""
    events = events_of(tmp_path, *shape())
    injected = [each for each in of_kind(events, Context) if each.op == "inject"]
    assert [each.detail["role"] for each in injected] == ["developer", "developer", "user", "user"]
    assert injected[-1].text == ENVIRONMENT
    assert [each.turn for each in of_kind(events, User)] == [1]
    (given,) = [each for each in of_kind(events, Context) if each.op == "set"]
    assert (given.system_prompt, given.tools) == ("You build boats.", None)


def test_provenance_says_who_wrote_it(tmp_path):
    """Where the client says whose a text is, that holds: a person may well write in tags."""
    marked = {"content_item_metadata": [{"provenance": {"type": "user"}}]}
    other = {"content_item_metadata": [{"provenance": {"type": "harness"}}, {"provenance": {"type": "user"}}]}
    name = "internal_chat_message_metadata_passthrough"
    events = events_of(
        tmp_path,
        meta(),
        said(1, "user", ENVIRONMENT, **{name: marked}),
        said(2, "user", "note", "go on", **{name: other}),
    )
    assert texts(events) == [("user", ENVIRONMENT), ("user", "go on")]
    assert [each.text for each in of_kind(events, Context)] == ["note"]


def test_both_shapes_are_one_session(tmp_path):
    """A migrated rollout says the same entries, and none more: by their keys it is known already."""
    found = []
    for shape in (legacy, paginated):
        path = written(tmp_path, lines(*shape()))
        found.append([each for each in SOURCE.read(Original(path)) if isinstance(each, Entry)])
    assert [each.key for each in found[0]] == [each.key for each in found[1]]
    assert [[type(one) for one in each.events] for each in found[0]] == [
        [type(one) for one in each.events] for each in found[1]
    ]


def test_a_rolled_back_repetition_is_not_the_later_one(tmp_path):
    """The same words at another time are another entry, though what was rolled back is gone from one of the files."""
    first, second, third = (said(i, "user", "go on") for i in (1, 2, 3))
    whole = [each.key for each in SOURCE.read(Original(written(tmp_path, lines(meta(), first, second, third))))]
    without = [each.key for each in SOURCE.read(Original(written(tmp_path, lines(meta(), first, third))))]
    assert without == [each for each in whole if each in without]
    assert len(set(whole) - set(without)) == 1


def test_events_are_said_where_they_are_all_there_is(tmp_path):
    """A file without items still holds what was said; raw thoughts that no item has are said, too."""
    events = events_of(
        tmp_path, meta(), event(1, "user_message", message="hi"), event(2, "agent_reasoning_raw_content", text="hm"),
        event(3, "agent_message", message="yes"),
    )  # fmt: skip
    assert texts(events) == [("user", "hi"), ("assistant_thinking", "hm"), ("assistant_text", "yes")]
    mixed = events_of(
        tmp_path, meta(), said(1, "user", "hi"), event(2, "agent_reasoning_raw_content", text="hm"),
        item(3, "reasoning", summary=[], encrypted_content="x"), said(4, "assistant", "yes"),
    )  # fmt: skip
    assert texts(mixed)[1:3] == [("assistant_thinking", "hm"), ("assistant_thinking", "")]
    assert len(of_kind(mixed, ModelCall)) == 1


def test_an_event_before_its_item_is_no_second_prompt(tmp_path):
    """Older clients told a prompt before they recorded it; images are put into marks that nobody typed."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
    asked = said(3, "user", "<image name=[Image #1]>", "</image>", "what is", " this?")
    asked["payload"]["content"].insert(1, image)
    events = events_of(
        tmp_path, meta(), event(1, "user_message", message="what is this?"), line(2, "turn_context", model="m"),
        said(2, "user", ENVIRONMENT), asked, said(4, "assistant", "A boat."),
    )  # fmt: skip
    assert texts(events) == [("user", "what is\n this?"), ("assistant_text", "A boat.")]
    assert of_kind(events, EpisodeStart)[0].header.task == "what is this?"
    (user,) = of_kind(events, User)
    assert image in user.native.fields["entry"]["content"]


# --- whatever comes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [legacy, paginated, bare])
def test_steady_under_growth(tmp_path, shape):
    """Each beginning of a rollout says the beginning of what the whole says."""
    check_growth(SOURCE, tmp_path, lines(*shape()))


@pytest.mark.parametrize("shape", [paginated, bare])
def test_nothing_raises(tmp_path, shape):
    """Whatever stands in a field: what makes sense is taken."""
    assert check_mutations(SOURCE, tmp_path, lines(*shape()), depth=3) > 300


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("codex/**/full.jsonl") + files("generated/codex-*/*.jsonl"), ids=str)
def test_real_rollouts(path):
    """Counted by hand: texts, calls, results and prompts are as many as there are items of theirs."""
    told = [json.loads(each) for each in path.read_text().splitlines()]
    items = [each["payload"] for each in told if each["type"] == "response_item"]
    prompts = [each["payload"] for each in told if each["payload"].get("type") == "user_message"]
    prompts += [each for each in told if each["payload"].get("item", {}).get("type") == "UserMessage"]
    events = only(SOURCE, path)
    kinds = [each["type"] for each in items]
    assert len(of_kind(events, AssistantToolCall)) == sum(each.endswith("_call") for each in kinds)
    assert len(of_kind(events, ToolResult)) == sum(each.endswith("_output") for each in kinds)
    assert all(each.result is not None for each in pairs(events))
    assert len(of_kind(events, AssistantText)) == sum(each.get("role") == "assistant" for each in items)
    assert len(of_kind(events, AssistantThinking)) == kinds.count("reasoning")
    assert len(of_kind(events, User)) == len(prompts)
    ends = {each["payload"]["call_id"]: each["payload"]["exit_code"] for each in told if "exit_code" in each["payload"]}
    found = {each.call_id: each.exit_code for each in of_kind(events, ToolResult)}
    assert all(found[call] == code for call, code in ends.items())
