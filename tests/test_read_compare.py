"""Two episodes side by side: where they part, and what each did."""

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.errors import BadSetting, NotFound
from trackway.read.compare import compare
from trackway.read.partings import Row
from trackway.recording.messages import ContextTracker
from trackway.schema import events as kinds
from trackway.schema.codec import Encoded, decode, encode_fast
from trackway.schema.events import Event, ModelCall

CALL, RESULT = kinds.AssistantToolCall, kinds.ToolResult
Op = tuple[str, ...]


def events_of(ops: list[Op], *, ids: str = "c", at: int = 0, writer: str = "w") -> list[Event]:
    """An episode of these operations; every model call is told the whole history, as a recorder writes it."""
    tracker, history = ContextTracker(), []
    events: list[Event] = [kinds.EpisodeStart(header=kinds.Header(id=f"{ids}-{at}", task="t"))]
    for op, *said in ops:
        if op == "ask":
            taken = tracker.look(history)
            name = f"{ids}m{len(events)}"
            fresh = tuple(msgspec.msgpack.decode(each) for each in taken.difference.messages)
            events.append(ModelCall(id=name, base=taken.base, reuse=taken.difference.reuse, messages=fresh))
            tracker.commit(name, taken)
        elif op == "call":
            tool, args, name = said
            events.append(CALL(name=tool, args=args.encode(), call_id=ids + name))
            history.append({"role": "assistant", "tool_calls": [{"id": ids + name, "function": {"arguments": args}}]})
        elif op == "result":
            name, content = said
            events.append(RESULT(call_id=ids + name, content=content, duration_ms=at))
            history.append({"role": "tool", "tool_call_id": ids + name, "content": content})
        elif op == "reward":
            events.append(kinds.Reward(value=float(said[0])))
        else:
            events.append((kinds.User if op == "user" else kinds.AssistantText)(content=said[0]))
            history.append({"role": "user" if op == "user" else "assistant", "content": said[0]})
    return [msgspec.structs.replace(each, n=n, at=at + n, writer=writer) for n, each in enumerate(events)]


def walk(seed: int, steps: int = 12) -> list[Op]:
    """A made-up episode: asks, speaks, acts, sometimes twice at once, sometimes rewarded."""
    dice = random.Random(seed)
    ops: list[Op] = [("user", f"task {seed}")]
    for step in range(steps):
        ops += [("ask",), ("text", f"text {step} {dice.randrange(3)}")]
        names = [f"{step}.{n}" for n in range(dice.choice((1, 1, 2)))]
        ops += [
            ("call", dice.choice(("read", "edit", "bash")), f'{{"x": {dice.randrange(4)}}}', name) for name in names
        ]
        ops += [("result", name, f"seen {step} {dice.randrange(5)}") for name in names]
        if dice.random() < 0.3:
            ops.append(("reward", str(dice.randrange(3))))
    return ops


def inserted(ops: list[Op], at: int) -> list[Op]:
    """One element more."""
    return [*ops[:at], ("text", "something new"), *ops[at:]]


def substituted(ops: list[Op], at: int) -> list[Op]:
    """One element that says something else."""
    new: dict[str, Op] = {"call": ("call", "other", "{}", ops[at][-1]), "result": ("result", ops[at][1], "otherwise")}
    return [*ops[:at], new.get(ops[at][0], (ops[at][0], "77")), *ops[at + 1 :]]


def deleted(ops: list[Op], at: int) -> list[Op]:
    """One element less."""
    return [*ops[:at], *ops[at + 1 :]]


@pytest.mark.parametrize("change", [inserted, substituted, deleted])
@pytest.mark.parametrize("seed", range(12))
def test_the_first_difference_is_found(seed: int, change: Callable[[list[Op], int], list[Op]]) -> None:
    """In 36 pairs, each with one known change and later ones that must not matter; and both ways around."""
    dice, ops = random.Random(seed), walk(seed)
    places = [at for at, op in enumerate(ops) if op[0] in ("text", "result", "call", "user")]
    at = dice.choice(places[: len(places) // 2])
    other = change(ops, at)
    for _ in range(dice.randrange(4)):
        late = dice.randrange(at + 8, len(other))
        other = inserted(other, late) if other[late][0] == "ask" else substituted(other, late)
    one, two = events_of(ops), events_of(other, ids="z", at=10**9, writer="v")

    found, mirror = compare(one, two), compare(two, one)

    assert not found.equal
    assert (found.first.a.index, found.first.b.index) == (at + 1, at + 1)
    assert (mirror.first.a.index, mirror.first.b.index) == (at + 1, at + 1)
    before = [row for row in found.rows if row.a is not None and row.a.index <= at]
    assert {row.how for row in before} <= {"equal"}
    assert found.first.row == len(before)


@pytest.mark.parametrize("seed", range(4))
def test_names_times_and_costs_make_no_difference(seed: int) -> None:
    """Other ids (in messages, too), another writer, later, slower, more tokens: the same episode."""
    ops = walk(seed)
    one, two = events_of(ops), events_of(ops, ids="toolu_", at=10**12, writer="other")
    two.append(
        kinds.ModelResult(id="m", usage={"total_tokens": 3}, latency_ms=5, n=len(two), writer="other", at=10**13)
    )
    two.append(kinds.Label(score=1.0, n=len(two), writer="other", at=10**13))
    two[3] = msgspec.structs.replace(two[3], redacted={"key": 1}, duration_ms=7, turn=4)

    found = compare(iter(one), iter(two))

    assert found.equal
    assert found.first is None
    assert set(found.counts.values()) == {0, len(found.rows)}
    assert list(found.differences()) == []


_op = st.sampled_from([
    ("ask",), ("text", "a"), ("text", "b"), ("call", "t", "{}", "1"), ("call", "t", "[]", "2"), ("result", "1", "x"),
    ("result", "2", "y"), ("result", "1", "y"), ("user", "u"), ("reward", "1"),
])  # fmt: skip
_MIRROR = {"only_a": "only_b", "only_b": "only_a"}


def places(row: Row) -> tuple[int | None, int | None]:
    """Where its two elements stand."""
    return row.a and row.a.index, row.b and row.b.index


@given(st.lists(_op, max_size=25), st.lists(_op, max_size=25))
def test_every_element_has_its_row_and_both_ways_agree(ops: list[Op], other: list[Op]) -> None:
    """Nothing is left out or shown twice; a mirror shows the same; equal is equal keys."""
    one, two = events_of(ops), events_of(other)

    found, mirror = compare(one, two), compare(two, one)

    for side in (0, 1):
        shown = [places(row)[side] for row in found.rows if places(row)[side] is not None]
        assert sorted(shown) == list(range(1, len((ops, other)[side]) + 1))
    turned = {(_MIRROR.get(row.how, row.how), *places(row)[::-1]) for row in mirror.rows}
    assert turned == {(row.how, *places(row)) for row in found.rows}
    assert found.equal == (found.first is None) == (found.counts["equal"] == len(found.rows))
    assert compare(one, one).equal


def test_what_each_did_after_and_where_they_join_again() -> None:
    """Aligned by what happened: a detour of three elements is three rows, then both go on together."""
    ops = [("user", "go"), ("call", "read", "{}", "1"), ("result", "1", "text"), ("text", "end")]
    detour = [("text", "hm"), ("call", "bash", '{"cmd": "ls"}', "2"), ("result", "2", "a b")]
    other = [*ops[:3], *detour, *ops[3:]]

    found = compare(events_of(ops), events_of(other))

    assert found.first.reason == "only in b: text, and 2 more"
    assert (found.first.a.text, found.first.b.text) == ("end", "hm")
    assert (found.first.only_a, found.first.only_b) == (0, 3)
    assert [row.b.text for row in found.rows[found.first.row : found.first.again]] == [
        "hm",
        'bash {"cmd": "ls"}',
        "a b",
    ]
    assert found.rows[found.first.again].a.text == "end"
    assert found.counts == {"equal": 4, "context": 0, "changed": 0, "only_a": 0, "only_b": 3}
    assert [row.b.step for row in found.rows] == [0, 1, 1, 1, 2, 2, 2]


REASONS = {
    "same action, different result": ([("call", "t", "{}", "1"), ("result", "1", "x")], ("result", "1", "y")),
    "different text": ([("text", "x")], ("text", "y")),
    "different input": ([("user", "x")], ("user", "y")),
    "different reward": ([("reward", "1")], ("reward", "2")),
    "same tool, different arguments": ([("call", "t", "{}", "1")], ("call", "t", "[]", "1")),
    "different action": ([("call", "t", "{}", "1")], ("call", "u", "{}", "1")),
    "a goes on with text, b with action": ([("text", "x")], ("call", "u", "{}", "1")),
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_reason_is_said(reason: str) -> None:
    """What differs, in a few words."""
    ops, last = REASONS[reason]
    tail = [("text", "the same")]

    found = compare(events_of([*ops, *tail]), events_of([*ops[:-1], last, *tail]))

    assert found.first.reason == reason
    assert found.first.again is not None


def test_spelling_of_arguments_is_no_difference() -> None:
    """Order of keys and spaces; but 1 is not 1.0."""
    one, two, three = (
        events_of([("call", "t", args, "1")]) for args in ('{"a": 1, "b": 2}', '{"b":2,"a":1}', '{"b":2,"a":1.0}')
    )

    assert compare(one, two).equal
    assert not compare(one, three).equal


def test_one_goes_on_where_the_other_ended() -> None:
    """Cut off or ended: the one that goes on is named; two ends may differ."""
    ops = walk(1, steps=2)
    end = kinds.EpisodeEnd(outcome="success", n=999, at=999, writer="w")

    assert compare(events_of(ops), events_of(ops[:-2])).first.reason == "a goes on, b ended"
    assert compare(events_of(ops[:-2]), events_of(ops)).first.reason == "b goes on, a ended"
    longer = compare([*events_of(ops), end], [*events_of(ops[:-2]), end])
    assert (longer.first.reason, longer.first.b.kind) == ("a goes on, b ended", "episode_end")
    assert longer.rows[longer.first.again].a.kind == "episode_end"
    failed = msgspec.structs.replace(end, outcome="failure")
    assert compare([*events_of(ops), end], [*events_of(ops), failed]).first.reason == "different end"
    assert compare([], events_of(ops)).first.reason == "only in b: everything"
    assert compare([], []).equal


def test_results_of_parallel_calls_may_come_in_any_order() -> None:
    """Which came back first is time; what was asked for first is not."""
    calls = [("call", "t", '{"n": 1}', "1"), ("call", "t", '{"n": 2}', "2")]
    results = [("result", "1", "one"), ("result", "2", "two")]

    straight = events_of([*calls, *results])

    assert compare(straight, events_of([*calls, *results[::-1]])).equal
    assert not compare(straight, events_of([*calls[::-1], *results])).equal
    swapped = [("result", "1", "two"), ("result", "2", "one")]
    assert compare(straight, events_of([*calls, *swapped])).first.reason == "same action, different result"


# --- what the model saw -----------------------------------------------------------------------------------------------


def asking(**fields: object) -> list[Event]:
    """One input, one model call, one reply."""
    return [kinds.User(content="go", n=0), ModelCall(id="m", n=1, **fields), kinds.AssistantText(content="so", n=2)]


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ({"system": "a"}, {"system": "b"}, "different system prompt"),
        ({"tools": [{"name": "x"}]}, {"tools": []}, "different tools"),
        ({"model": "a"}, {"model": "b"}, "different model"),
        ({"parameters": {"temperature": 0}}, {"parameters": {"temperature": 0.0}}, "different parameters"),
        ({"messages": ("a", "b", "c")}, {"messages": ("a", "x", "c")}, "different messages, from message 2"),
        ({"messages": ("a",)}, {"messages": ("a", "b")}, "different messages, from message 2"),
        ({"messages": ("a",)}, {}, "different messages, from message 1"),
    ],
)
def test_a_difference_in_the_context_alone_is_found_at_the_model_call(one, other, reason: str) -> None:
    """The prompt and everything after are the same: what the model saw is not."""
    found = compare(asking(**one), asking(**other))

    assert (found.first.reason, found.first.a.kind, found.first.a.index) == (reason, "model_call", 1)
    assert len(found.partings) == 1
    assert [row.how for row in found.rows][::2] == ["equal", "equal"]


def test_a_system_prompt_set_before_counts_for_every_agent_it_stands_for() -> None:
    """Set once, or given with the call: the model saw the same."""
    told = [kinds.Context(op="set", system_prompt="s", tools=[1], agent="sub"), ModelCall(id="m", agent="sub", n=1)]
    given = [kinds.Context(op="set", system_prompt="s", tools=[1], agent="sub")]
    given.append(ModelCall(id="x", agent="sub", system="s", tools=[1], n=1))

    assert compare(told, given).equal


def test_ids_in_messages_are_told_apart_by_their_order_only() -> None:
    """Of calls, blocks and messages, and sealed thoughts; an id in an argument or a text is a value."""

    def said(call: str, sealed: str, argument: str, ticket: str = "T1") -> list[Event]:
        thought = {"type": "thinking", "thinking": "hm", "signature": sealed}
        use = {"type": "tool_use", "id": call, "name": "get", "input": {"id": argument, "call_id": argument}}
        answer = {"type": "tool_result", "tool_use_id": call, "content": "x"}
        item = {"type": "function_call", "id": f"fc_{call}", "call_id": call, "arguments": "{}"}
        sealed_item = {"type": "reasoning", "id": sealed, "encrypted_content": sealed}
        messages = ({"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [answer]}, item)
        return asking(messages=(*messages, sealed_item, {"ticket": ticket}))

    assert compare(said("a", "s1", "x"), said("b", "s2", "x")).equal
    assert compare(said("a", "s1", "x"), said("a", "s1", "y")).first.reason == "different messages, from message 1"
    assert compare(said("a", "s1", "x", "T1"), said("a", "s1", "x", "T2")).first.reason.endswith("message 5")


def test_which_call_a_result_in_the_messages_answers_counts() -> None:
    """Two results that changed places with their ids are not what the other model saw."""

    def said(*order: str) -> list[Event]:
        calls = {"role": "assistant", "tool_calls": [{"id": "1", "function": {}}, {"id": "2", "function": {}}]}
        return asking(messages=(calls, *({"role": "tool", "tool_call_id": name, "content": "x"} for name in order)))

    assert not compare(said("1", "2"), said("2", "1")).equal


def test_contexts_that_follow_from_a_parting_are_no_partings_of_their_own() -> None:
    """One early change is one parting, though every later context differs; they are marked."""
    ops = walk(3, steps=6)
    at = next(n for n, op in enumerate(ops) if op[0] == "result")

    found = compare(events_of(ops), events_of(substituted(ops, at)))

    assert [each.reason for each in found.partings] == ["same action, different result"]
    assert (found.counts["changed"], found.counts["context"]) == (1, 5)
    assert {row.a.kind for row in found.rows if row.how == "context"} == {"model_call"}


def test_a_missing_base_is_an_error_here_too() -> None:
    """Two wrong contexts must not be found equal; steps need none."""
    torn = [ModelCall(id="b", base="gone", reuse=((0, 0, 1),), messages=("x",))]

    with pytest.raises(NotFound, match="not among these events"):
        compare(torn, torn)
    assert compare(torn, torn, level="steps").equal


# --- agents, kinds, levels --------------------------------------------------------------------------------------------


def team(order: str, found: str = "ok") -> list[Event]:
    """Two agents at once; ``order`` says who speaks when."""
    events: list[Event] = [kinds.User(content="go")]
    said = {"p": 0, "q": 0}
    for who in order:
        said[who] += 1
        events.append(CALL(name="t", args=b"%d" % said[who], call_id=f"{who}{said[who]}", agent=who))
        events.append(RESULT(call_id=f"{who}{said[who]}", content=found if who == "q" else "ok", agent=who))
    return [msgspec.structs.replace(each, n=n) for n, each in enumerate(events)]


def test_agents_are_compared_each_for_itself() -> None:
    """However they take turns; a difference is found in the agent that has it."""
    assert compare(team("pqpq"), team("ppqq")).equal

    found = compare(team("ppqq"), team("qqpp", found="no"))
    assert (found.first.agent, found.first.reason) == ("q", "same action, different result")
    alone = compare(team("pq"), team("p"))
    assert (alone.first.reason, alone.first.b) == ("only in a: agent q", None)


def test_every_kind_counts_by_what_it_says() -> None:
    """Each kind has its element; changing what it says is a difference, changing its envelope is none."""
    state = kinds.FileState(hash="blake3:" + "0" * 64, size=3)
    raw = encode_fast({"kind": "newer", "at": 5, "n": 0, "said": 1})
    events: list[Event] = [
        kinds.AssistantThinking(content="hm", state={"signature": "x"}),
        CALL(name="t", args=b"{}", call_id="1"),
        kinds.Context(op="inject", text="by the way", detail={1: b"x", "y": 2}),
        kinds.FileChange(op="modify", path="a", before=state, after=state, cause="1"),
        kinds.FileChange(op="create", path="b", after=state, cause="external"),
        kinds.TestRun(passed=1, failed=2),
        kinds.SecurityFlag(rule="r"),
        kinds.Verdict(rule="loop", action="deny", text="no", call_id="1"),
        kinds.Reflection(lesson="do not"),
        kinds.Note(topic="milestone", detail=[1, "\ud800", 10**30]),
        kinds.ModelResult(id="m", error="overloaded"),
        decode(Encoded(raw)),
    ]
    changes = (
        {"content": "x"}, {"args": b"[]"}, {"text": "x"}, {"op": "chmod"}, {"cause": None}, {"failed": 3},
        {"severity": "high"}, {"text": "x"}, {"times": 2}, {"detail": None}, {"error": "x"},
        {"raw": encode_fast({"kind": "newer", "at": 5, "n": 0, "said": 2})},
    )  # fmt: skip
    one = [msgspec.structs.replace(each, n=n) for n, each in enumerate(events)]
    two = [msgspec.structs.replace(each, writer="v", at=9) for each in one]
    for at, name in ((1, "call_id"), (3, "cause"), (7, "call_id")):
        two[at] = msgspec.structs.replace(two[at], **{name: "other"})
    two[0] = msgspec.structs.replace(two[0], state={"signature": "y"})
    two[-1] = msgspec.structs.replace(two[-1], raw=encode_fast({"kind": "newer", "at": 6, "n": 7, "said": 1}))

    assert len(compare(one, two).rows) == len(one)
    assert compare(one, two).equal
    for at, change in enumerate(changes):
        other = [*two[:at], msgspec.structs.replace(two[at], **change), *two[at + 1 :]]
        assert compare(one, other).first.a.index == at


def test_steps_alone() -> None:
    """With ``level="steps"`` only actions and results are looked at; other levels there are not."""
    one, two = events_of(walk(5)), events_of([op for op in walk(5) if op[0] in ("call", "result")])

    assert compare(one, two, level="steps").equal
    assert not compare(one, two).equal
    with pytest.raises(BadSetting, match="one of events, steps"):
        compare(one, two, level="turns")


def test_long_episodes_that_have_nothing_in_common() -> None:
    """Every element finds its row; of two sides of the same kind, what is of one sort is paired."""
    one, two = ([kinds.AssistantText(content=f"{side}{n}", n=n) for n in range(9000)] for side in "ab")

    found = compare(one, two)

    assert found.counts["changed"] == 9000
    assert (found.first.reason, found.first.again) == ("different text", None)


def test_two_recordings_of_one_walk() -> None:
    """Through the recorder and a store; ready for JSON."""

    def record(answer: str) -> list[Event]:
        with trackway.record("same") as episode:
            episode.user("go")
            with episode.model_call(model="m", messages=[{"role": "user", "content": "go"}]) as request:
                request.done(usage={"input_tokens": 3})
            call = episode.tool_call("bash", {"cmd": "ls"})
            episode.tool_result(call, answer)
        return list(trackway.open_store().events(episode.id))

    assert compare(record("a"), record("a")).equal
    found = compare(record("a"), record("b"))
    assert found.first.reason == "same action, different result"
    assert found.first.a.step == 1
    assert msgspec.json.decode(msgspec.json.encode(found))["first"]["b"]["text"] == "b"
