"""Codex rollouts: a model call's tokens are counted once, and all of them make the sum that the file ends with."""

import json

import pytest

from tests.ingest.agent_checks import of_kind, only
from tests.ingest.codex_lines import event, events_of, item, line, meta, said
from tests.ingest.corpus import files
from trackway.ingest.formats.codex import SOURCE
from trackway.read.usage import usage
from trackway.schema.events import ModelCall, ModelResult


def counts(new, cached, out):
    """Tokens as Codex writes them: what was cached is part of the input."""
    return {"input_tokens": new, "cached_input_tokens": cached, "output_tokens": out, "total_tokens": new + out}


def told(second, total, last, **fields):
    """A sum and what was added to it."""
    return event(second, "token_count", info={"total_token_usage": total, "last_token_usage": last}, **fields)


def record(second, usage_of, total):
    """A response's tokens by themselves."""
    return line(second, "token_usage_record", response_id=f"r-{second}", usage=usage_of, thread_token_usage=total)


FIRST, SECOND, BOTH = counts(100, 80, 10), counts(200, 150, 20), counts(300, 230, 30)
CALL = item(2, "function_call", name="shell", arguments="{}", call_id="c")
OUTPUT = item(3, "function_call_output", call_id="c", output="x")


def test_sums_told_again_are_no_further_call(tmp_path):
    """A sum is told at the start of each turn, too; what it says of limits is said when it changes."""
    limits = {"primary": {"used_percent": 1.0}}
    events = events_of(
        tmp_path, meta(), said(1, "user", "hi"), event(1, "token_count", info=None, rate_limits=limits),
        CALL, told(2, FIRST, FIRST, rate_limits=limits), OUTPUT, said(4, "assistant", "a"), told(4, BOTH, SECOND),
        said(5, "user", "on"), told(5, BOTH, SECOND, rate_limits=limits), told(6, BOTH, SECOND),
        said(7, "assistant", "b"),
    )  # fmt: skip
    results = of_kind(events, ModelResult)
    assert [each.usage for each in results] == [FIRST, SECOND]
    assert [each.id for each in results] == [each.id for each in of_kind(events, ModelCall)[:2]]
    spent = usage(events)
    assert (spent.calls, spent.unknown, spent.total, spent.input, spent.cache_read, spent.output) == (
        3,
        1,
        330,
        70,
        230,
        30,
    )
    assert [each.topic for each in events if each.kind == "note"] == ["session_meta", "rate_limits"]


def test_records_come_before_their_sums(tmp_path):
    """A record tells a response's tokens, and the sum behind it tells them again: after the tool's output, even."""
    events = events_of(
        tmp_path, meta(), said(1, "user", "hi"), CALL, record(2, FIRST, FIRST), OUTPUT, told(3, FIRST, FIRST),
        said(4, "assistant", "a"), record(4, SECOND, BOTH), told(4, BOTH, SECOND),
    )  # fmt: skip
    assert [each.usage for each in of_kind(events, ModelResult)] == [FIRST, SECOND]
    assert usage(events).total == 330


def test_a_resumed_thread_has_two_sums(tmp_path):
    """Records sum from nothing again where a thread is resumed, while the sum goes on: neither is counted twice."""
    grown = counts(500, 300, 50)
    events = events_of(
        tmp_path, meta(), said(1, "assistant", "a"), told(1, BOTH, BOTH), said(2, "user", "on"),
        said(3, "assistant", "b"), record(3, counts(200, 70, 20), counts(200, 70, 20)),
        told(3, grown, counts(200, 70, 20)),
    )  # fmt: skip
    assert usage(events).total == grown["total_tokens"]
    assert usage(events).calls == 2


def test_sums_that_start_anew(tmp_path):
    """Old clients counted from nothing when a thread was resumed: what is told of the call itself holds then."""
    events = events_of(
        tmp_path, meta(), said(1, "assistant", "a"), told(1, BOTH, BOTH), said(2, "user", "on"),
        said(3, "assistant", "b"), told(3, FIRST, FIRST),
    )  # fmt: skip
    assert [each.usage for each in of_kind(events, ModelResult)] == [BOTH, FIRST]


def test_tokens_without_items_are_a_call_of_their_own(tmp_path):
    """A compaction asks a model, too: its tokens are in the sum."""
    events = events_of(
        tmp_path, meta(), said(1, "assistant", "a"), told(1, FIRST, FIRST), told(2, BOTH, SECOND),
        line(2, "compacted", message="", replacement_history=[]),
    )  # fmt: skip
    calls = of_kind(events, ModelCall)
    assert len(calls) == len({each.id for each in calls}) == 2
    assert usage(events).total == BOTH["total_tokens"]


def test_sums_of_calls_that_are_not_there(tmp_path):
    """A line lost leaves its tokens to the next call; turns taken out of a migrated rollout are not made a call."""
    lost = events_of(
        tmp_path, meta(), said(1, "assistant", "a"), told(1, FIRST, FIRST), said(2, "user", "on"),
        said(3, "assistant", "b"), told(3, counts(500, 300, 50), SECOND),
    )  # fmt: skip
    assert usage(lost).total == 550
    taken = events_of(
        tmp_path, meta(), said(1, "assistant", "a"), told(1, FIRST, FIRST), said(2, "user", "on"),
        told(2, counts(500, 300, 50), SECOND), said(3, "assistant", "b"), told(3, counts(600, 380, 60), FIRST),
    )  # fmt: skip
    assert [each.usage for each in of_kind(taken, ModelResult)] == [FIRST, FIRST]


@pytest.mark.corpus
@pytest.mark.parametrize("path", files("codex/**/full.jsonl") + files("generated/codex-*/*.jsonl"), ids=str)
def test_real_sums(path):
    """Our calls have the tokens that the file's last sum says, side by side with what was cached and reasoned."""
    sums = [
        found["total_token_usage"]
        for each in map(json.loads, path.read_text().splitlines())
        if (found := each["payload"].get("info")) and each["payload"].get("type") == "token_count"
    ]
    spent = usage(only(SOURCE, path))
    last = sums[-1]
    assert spent.total == last["total_tokens"]
    assert spent.cache_read == last["cached_input_tokens"]
    assert spent.output == last["output_tokens"]
    assert spent.reasoning == last["reasoning_output_tokens"]
    assert spent.calls - spent.unknown == len({each["total_tokens"] for each in sums})
