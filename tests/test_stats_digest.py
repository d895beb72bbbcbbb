"""A digest says of an episode what `stats` needs: added up, digests come to what counting every event comes to."""

import json
import uuid
from collections import Counter
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackway.read.counts import digest_in, encoded, words_in
from trackway.read.digest import digest_of, row_of, with_prices
from trackway.read.order import ordered
from trackway.read.pairs import pairs
from trackway.read.price import Cost, Price, by_table
from trackway.read.repeats import in_words, number_of
from trackway.read.spending import Spending, groups_of, priced
from trackway.read.stats import Counting
from trackway.read.usage import together, usage
from trackway.schema.canonical import signature
from trackway.schema.episode import EpisodeSummary, fold
from trackway.schema.events import (
    AssistantToolCall,
    EpisodeStart,
    FileChange,
    Header,
    Label,
    ModelCall,
    ModelResult,
    Reward,
    ToolResult,
    User,
)
from trackway.testing.events import any_event

SECOND = 1_000_000_000
PRICES = {"big": Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, cache_write_1h=6.0)}


def named(number):
    """An episode's id."""
    return str(uuid.UUID(int=number + 1))


@st.composite
def lively(draw):
    """The events of an episode in which the same few things happen again and again."""
    at = draw(st.sampled_from([0, 1_800_000_000 * SECOND]))
    header = Header(task=draw(st.sampled_from("ab")), agent="demo", model="big", metadata={"cwd": "/home"})
    events = [EpisodeStart(header=header, at=at)]
    for i in range(draw(st.integers(0, 6))):
        at += draw(st.integers(0, 900)) * SECOND if at else 0
        tool, args = draw(st.sampled_from(["bash", "read"])), draw(st.sampled_from([b'{"a": 1}', b'{"a":1}', b"{"]))
        result = ToolResult(
            call_id=f"c{i}", content=f"line {i} is {draw(st.sampled_from(['odd', 'long']))}",
            is_error=draw(st.booleans()), duration_ms=draw(st.none() | st.integers(1, 5000)), at=at,
        )  # fmt: skip
        count = st.none() | st.integers(0, 300_000)
        told = {
            "input_tokens": draw(count), "output_tokens": draw(count), "cache_read_input_tokens": draw(count),
            "cost": draw(st.none() | st.sampled_from([0.25, 0.5])),
        }  # fmt: skip
        events += draw(st.lists(st.sampled_from([
            User(content="go on", at=at), AssistantToolCall(name=tool, args=args, call_id=f"c{i}", at=at), result,
            ModelCall(id=f"m{i}", model=draw(st.sampled_from([None, "big", "small"])), at=at),
            ModelResult(id=f"m{i}", usage=told, latency_ms=float(i), usage_from=draw(st.sampled_from(["", "agent"]))),
            FileChange(op="modify", path="x.py", cause=draw(st.sampled_from(["c1", "external"])), at=at),
            Reward(value=float(i), at=at),
        ]), max_size=6))  # fmt: skip
    return [msgspec.structs.replace(each, writer="w" * 16, n=n) for n, each in enumerate(events)]


def summaries_of(episodes):
    """Each with the summary that a store would have."""
    return [(fold(EpisodeSummary(id=named(i)), events), events) for i, events in enumerate(episodes)]


def in_plain(stats):
    """All of it, to be compared."""
    return msgspec.to_builtins(stats)


@given(st.lists(lively(), max_size=3), st.randoms())
def test_digests_added_up_are_everything_counted(episodes, random):
    """By digest, through bytes, in any order: the same as reading the events; what several come to is their sum."""
    found = summaries_of(episodes)
    read = Counting(table=PRICES)
    for summary, events in found:
        read.add(summary, events)
    kept = [(summary, digest_of(summary, events)) for summary, events in found]
    random.shuffle(kept)
    taken = Counting(table=PRICES)
    for summary, (digest, _) in kept:
        taken.take(summary, digest_in(encoded(digest)))
    words = {summary.id: words_in(encoded(each)) for summary, (_, each) in kept}

    assert in_plain(taken.stats(words=words.__getitem__)) == in_plain(read.stats())


@given(st.lists(lively(), max_size=3))
def test_what_is_counted_is_what_there_is(episodes):
    """Tools, errors, tokens, costs, files and repeated calls are those that a plain count over all events finds."""
    found = summaries_of(episodes)
    counting = Counting(table=PRICES)
    for summary, events in found:
        counting.add(summary, events)
    stats = counting.stats()
    made = [pair for _, events in found for pair in pairs(ordered(events))]

    assert {row.tool: row.calls for row in stats.tools} == Counter(each.call.name for each in made)
    assert stats.errors == sum(each.failed for each in made)
    assert sum(row.unanswered for row in stats.tools) == sum(each.result is None for each in made)
    assert in_plain(stats.usage) == in_plain(together(usage(events, PRICES) for _, events in found))
    changes = [each for _, events in found for each in events if isinstance(each, FileChange)]
    assert (stats.edits, stats.outside) == (
        sum(each.cause != "external" for each in changes), sum(each.cause == "external" for each in changes),
    )  # fmt: skip
    assert [row.path for row in stats.files] == ["/home/x.py"] * bool(changes)
    per_episode = [
        Counter(signature(each.name, each.args) for each in events if isinstance(each, AssistantToolCall))
        for _, events in found
    ]
    times = sum(per_episode, Counter())
    again = sum((each - Counter(dict.fromkeys(each, 1)) for each in per_episode), Counter())
    assert sorted((row.times, row.again) for row in stats.calls) == sorted(
        (times[each], again[each]) for each in times if times[each] > 1
    )


@given(st.lists(st.lists(any_event, max_size=8), max_size=3))
def test_nothing_that_can_be_recorded_is_too_odd_to_be_counted(episodes):
    """Any event of any kind, with texts and numbers as no file holds them: counted, kept, read back, counted again."""
    counting, again = Counting(), Counting()
    for summary, events in summaries_of(episodes):
        digest, words = digest_of(summary, events)
        counting.add(summary, events)
        again.take(summary, digest_in(encoded(digest)))
        assert words_in(encoded(words)) == words
        assert digest.events == summary.n_events
    first, second = counting.stats(words=lambda _: {}), again.stats(words=lambda _: {})
    assert repr(second) == repr(first)


def test_bytes_of_something_else_are_no_digest():
    """Cut off, of another shape, or nothing: said, not made sense of."""
    whole = encoded(digest_of(EpisodeSummary(id=named(0)), [])[0])
    for body in (b"", whole[:-1], b"\x93\x01\x02\xa1x", b"\xc1", encoded({1: ("a", "b")})):
        with pytest.raises(ValueError, match="no digest"):
            digest_in(body)


# --- what it means ----------------------------------------------------------------------------------------------------


def counted(*events, **header):
    """The stats of one episode."""
    start = EpisodeStart(header=Header(task="t", **header), at=events[0].at if events else 0)
    whole = [msgspec.structs.replace(each, writer="w" * 16, n=n) for n, each in enumerate([start, *events])]
    counting = Counting()
    counting.add(fold(EpisodeSummary(id=named(1)), whole), whole)
    return counting.stats()


def call(name, args, call_id, at=0):
    """A call of a tool."""
    return AssistantToolCall(name=name, args=json.dumps(args).encode(), call_id=call_id, at=at)


def test_a_call_that_fails_again_the_same_way():
    """Numbers in what it said do not make it another failure; another text does."""
    said = ["port 8001 is taken", "port 8002 is taken", "no such host", "fine"]
    events = []
    for i, text in enumerate(said):
        events += [call("bash", {"cmd": "serve"}, f"c{i}"), ToolResult(call_id=f"c{i}", content=text, is_error=i < 3)]
    [row] = counted(*events, call("bash", {"cmd": "other"}, "x")).calls

    assert (row.tool, row.args, row.times, row.again, row.episodes, row.failed, row.alike) == (
        "bash", "serve", 4, 3, 1, 3, 2,
    )  # fmt: skip


def test_calls_made_again_in_one_episode_stand_before_common_ones():
    """One that every episode makes once is common, not repeated."""
    counting = Counting()
    for i in range(5):
        events = [
            EpisodeStart(header=Header(task="t")), call("ls", {}, "a"),
            *([call("test", {}, "b"), call("test", {}, "c")] if i == 0 else []),
        ]  # fmt: skip
        events = [msgspec.structs.replace(each, writer="w" * 16, n=n) for n, each in enumerate(events)]
        counting.add(fold(EpisodeSummary(id=named(i)), events), events)
    stats = counting.stats()

    assert [(row.tool, row.times, row.again, row.episodes) for row in stats.calls] == [
        ("test", 2, 1, 1),
        ("ls", 5, 0, 5),
    ]
    assert stats.n_calls == 1
    assert [row.tool for row in counting.stats(names=1).calls] == ["test"]


def test_time_worked_leaves_out_a_person_and_long_pauses():
    """From a call to its result counts, up to ten minutes; what a person took to answer does not; a label adds none."""
    t = 1_800_000_000 * SECOND
    stats = counted(
        User(content="go", at=t), call("bash", {}, "1", at=t + 5 * SECOND),
        ToolResult(call_id="1", content="", at=t + 65 * SECOND), User(content="on", at=t + 4000 * SECOND),
        call("bash", {}, "2", at=t + 4001 * SECOND), ToolResult(call_id="2", content="", at=t + 9001 * SECOND),
        Label(outcome="success", at=t + 99999 * SECOND),
    )  # fmt: skip

    assert stats.worked == (65 + 1 + 600) * 1000
    assert sum(worked for _, worked in stats.slots.values()) == stats.worked
    assert sum(events for events, _ in stats.slots.values()) == 7
    assert (stats.first_at, stats.last_at, stats.untimed) == (t, t + 9001 * SECOND, 0)


def test_what_knows_no_time_has_none():
    """A dataset's episode is counted, and is in no duration, no day and no span of time."""
    stats = counted(call("bash", {}, "1"), ToolResult(call_id="1", content=""))

    assert (stats.episodes, stats.steps, stats.untimed) == (1, 1, 1)
    assert (stats.worked, stats.slots, stats.first_at, stats.last_at, stats.duration.n) == (0, {}, None, None, 0)


@pytest.mark.parametrize(
    ("path", "shown"),
    [("a.py", "/home/a.py"), ("./a.py", "/home/a.py"), ("/b.py", "/b.py"), ("C:\\c.py", "C:\\c.py"), ("~/d", "~/d")],
)
def test_a_file_is_known_by_where_it_is(path, shown):
    """Two projects may have a file of the same name."""
    stats = counted(FileChange(op="modify", path=path), metadata={"cwd": "/home/"})

    assert [row.path for row in stats.files] == [shown]


def test_files_that_are_too_many_are_counted_as_such():
    """By name the most changed are kept; the sums hold for all."""
    events = [FileChange(op="create", path=f"{i:04}") for i in range(400)]
    stats = counted(*events, FileChange(op="modify", path="0399"))

    assert (stats.edits, stats.n_files, stats.unlisted) == (401, 256, 144)
    assert stats.files[0].path == "0399"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (b'{"pattern": "x", "path": "src", "glob": "*.py"}', "x src glob=*.py"),
        (b'{"command": ["bash", "-lc", "ls"]}', "bash -lc ls"),
        (b"{", "{"),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"content": "' + b"x" * 5000 + b'"}', '{"content": "' + "x" * 146 + "…"),
    ],
)
def test_a_call_in_words(args, said):
    """What it is about, then the rest, on one short line, whatever the arguments are."""
    assert in_words(args) == said


def test_spacing_and_order_do_not_make_another_call():
    """By canonical arguments."""
    assert number_of("t", b'{"a": 1, "b": 2}') == number_of("t", b'{"b":2,"a":1}') != number_of("u", b'{"b":2,"a":1}')


# --- costs ------------------------------------------------------------------------------------------------------------

calls = st.lists(
    st.builds(
        lambda i, at, **told: ModelResult(id=str(i), model="big", usage=told, at=at * 86_400 * SECOND),
        st.integers(0, 50), st.integers(0, 3), input_tokens=st.integers(0, 300_000),
        output_tokens=st.integers(0, 5000), cache_read_input_tokens=st.integers(0, 300_000),
    ), max_size=20,
)  # fmt: skip


def stepped(model, tokens, at):
    """Prices that are higher for long prompts, and from the second day on: as those of providers are."""
    prompt = (tokens.input or 0) + (tokens.cache_read or 0)
    plain = by_table(PRICES)(model, tokens, at)
    return Cost(plain.amount * (2 if prompt > 200_000 else 1) * (3 if at >= 86_400 * SECOND else 1), "stepped")


@given(calls)
def test_a_group_costs_what_its_calls_cost(results):
    """Whatever the day and the length of the prompt."""
    whole = Spending(priced(groups_of(results), stepped)).usage()

    assert whole.cost == pytest.approx(usage(results, stepped).cost)
    assert whole.unpriced == 0


def test_a_price_of_the_settings_holds_over_one_that_was_kept():
    """At once, and for every digest; a cost that the provider told holds over both."""
    events = [
        ModelResult(id="1", model="big", usage={"input_tokens": 1_000_000, "output_tokens": 0}),
        ModelResult(id="2", model="other", usage={"input_tokens": 1_000_000, "output_tokens": 0}),
        ModelResult(id="3", model="big", usage={"input_tokens": 1, "output_tokens": 1, "cost": 7.0}),
    ]
    summary = fold(EpisodeSummary(id=named(1)), events)
    digest = with_prices(digest_of(summary, events)[0], lambda *_: Cost(Decimal(7), "old"), "old")
    row = row_of(summary.id, digest, None)
    by_settings, by_what_was_kept = Counting(table=PRICES), Counting()
    for each in (by_settings, by_what_was_kept):
        each.take(summary, digest_in(row.body))

    assert by_settings.stats().usage.cost == 3 + 7 + 7
    assert by_settings.stats().usage.cost_from == ("old", "provider", "settings")
    assert by_what_was_kept.stats().usage.cost == 7 + 7 + 7
    assert row.n_events == 3
