"""Tokens and cost: once per call, in one shape, and how they are known."""

import sys
from datetime import date
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.read.price import Cost, Price
from trackway.read.tokens import tokens_of
from trackway.read.usage import Usage, together, usage
from trackway.recording import prices
from trackway.schema import events as kinds
from trackway.schema.events import ModelCall, ModelResult
from trackway.testing.events import any_int, any_text, any_value

SHAPES = {
    "openai chat": (
        {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
         "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
         "completion_tokens_details": {"reasoning_tokens": 5}},
        (36, 64, None, 20, 5, 120),
    ),
    "openai responses": (
        {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 20,
         "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120},
        (36, 64, None, 20, 5, 120),
    ),
    "anthropic": (
        {"input_tokens": 4, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 1000, "output_tokens": 20,
         "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}, "service_tier": "std"},
        (4, 1000, 30, 20, None, 1054),
    ),
    "anthropic without caches": ({"input_tokens": 4, "output_tokens": 20}, (4, None, None, 20, None, 24)),
    "gemini": (
        {"promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 64, "thoughtsTokenCount": 5,
         "toolUsePromptTokenCount": 3, "totalTokenCount": 128},
        (39, 64, None, 25, 5, 128),
    ),
    "google-genai": (
        {"prompt_token_count": 100, "candidates_token_count": 20, "cached_content_token_count": None},
        (100, None, None, 20, None, 120),
    ),
    "gemini cli": (
        {"input": 100, "output": 20, "cached": 64, "thoughts": 5, "tool": 0, "total": 125},
        (36, 64, None, 25, 5, 125),
    ),
    "bedrock": (
        {"inputTokens": 4, "outputTokens": 20, "totalTokens": 24, "cacheReadInputTokens": 1000,
         "cacheWriteInputTokens": 30},
        (4, 1000, 30, 20, None, 1054),
    ),
    "vercel": (
        {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "cachedInputTokens": 64, "reasoningTokens": 5},
        (36, 64, None, 20, 5, 120),
    ),
    "litellm of anthropic": (
        {"prompt_tokens": 1034, "completion_tokens": 20, "total_tokens": 1054, "cache_creation_input_tokens": 30,
         "cache_read_input_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 1000}},
        (4, 1000, 30, 20, None, 1054),
    ),
    "deepseek": (
        {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        (36, 64, None, 20, None, 120),
    ),
    "xai": (
        {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 125,
         "completion_tokens_details": {"reasoning_tokens": 5}},
        (100, None, None, 25, 5, 125),
    ),
    "codex": (
        {"input_tokens": 100, "cached_input_tokens": 64, "output_tokens": 20, "reasoning_output_tokens": 5,
         "total_tokens": 120},
        (36, 64, None, 20, 5, 120),
    ),
    "codex with cache writes": (
        {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 4, "output_tokens": 20},
        (36, 60, 4, 20, None, 120),
    ),
    "kimi": (
        {"inputOther": 4, "inputCacheRead": 1000, "inputCacheCreation": 30, "output": 20},
        (4, 1000, 30, 20, None, 1054),
    ),
    "anthropic with thinking": (
        {"input_tokens": 4, "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5}},
        (4, None, None, 20, 5, 24),
    ),
    "langchain": (
        {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
         "input_token_details": {"cache_read": 60, "cache_creation": 4}, "output_token_details": {"reasoning": 5}},
        (36, 60, 4, 20, 5, 120),
    ),
    "opentelemetry": (
        {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20,
         "gen_ai.usage.cache_read.input_tokens": 64},
        (36, 64, None, 20, None, 120),
    ),
    "pi": ({"input": 4, "output": 20, "cacheRead": 1000, "cacheWrite": 30}, (4, 1000, 30, 20, None, 1054)),
    "opencode": ({"input": 4, "output": 20, "cache": {"read": 1000, "write": 30}}, (4, 1000, 30, 20, None, 1054)),
    "ollama": ({"prompt_eval_count": 100, "eval_count": 20}, (100, None, None, 20, None, 120)),
    "total only": ({"total_tokens": 77}, (None, None, None, None, None, 77)),
    "one side": ({"output_tokens": 1}, (None, None, None, 1, None, 1)),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_providers_shape_becomes_one(shape: str) -> None:
    """Uncached input, cache read, cache write, output with reasoning, reasoning, total."""
    told, expected = SHAPES[shape]
    found = tokens_of(told)

    assert (
        found.input, found.cache_read, found.cache_write, found.output, found.reasoning, found.total,
    ) == expected  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from([*SHAPES["gemini"][0], "input_tokens", "cost", "output"]) | any_text | any_int, any_value
    )
)
def test_nothing_in_a_usage_breaks_reading(told: dict[object, object]) -> None:
    """Providers, and agents, write what they like."""
    usage([ModelResult(id="1", usage=told)], {"*": Price(input=1.0, output=1.0)})


def test_tokens_count_once_per_call() -> None:
    """Of several results of one call the last that tells tokens counts; a retry is a call of its own."""
    events = [
        ModelCall(id="1", model="m"),
        ModelResult(id="1", usage={"input_tokens": 5, "output_tokens": 1}),
        ModelResult(id="1", usage={"input_tokens": 5, "output_tokens": 9}, model="m-2026"),
        ModelResult(id="1", finish_reason="stop"),
        ModelCall(id="2", model="m", attempt=1),
        ModelResult(id="2", error="overloaded"),
        ModelCall(id="3", model="m", attempt=2),
        ModelResult(id="3", usage={"input_tokens": 7, "output_tokens": 2}, usage_from="estimated"),
        ModelCall(id="4", model="m"),
    ]

    found = usage(iter(events))

    assert (found.calls, found.unknown, found.input, found.output, found.total) == (4, 2, 12, 11, 23)
    assert found.known_from == {"provider": 1, "estimated": 1}
    assert [(each.model, each.calls, each.unknown, each.total) for each in found.models] == [
        ("m", 3, 2, 9), ("m-2026", 1, 0, 14),
    ]  # fmt: skip
    assert (found.cost, found.unpriced, found.unpriced_models) == (None, 4, ("m", "m-2026"))


def test_what_no_call_told_is_none_and_not_0() -> None:
    """Calls without usage are counted, their tokens are not."""
    found = usage([ModelCall(id="1"), ModelCall(id="2")])

    assert (found.calls, found.unknown, found.input, found.total, found.cost) == (2, 2, None, None, None)
    assert usage([]) == Usage()


def test_steps_an_agent_reported_count_in_total_only() -> None:
    """They are no model calls; the header's model is the best that is known of theirs."""
    events = [
        kinds.EpisodeStart(header=kinds.Header(task="t", model="m")),
        kinds.AssistantToolCall(name="cargo", args=b'{"action": "build"}', call_id="c1", reported=True),
        ModelResult(id="c1", usage={"total_tokens": 450}, usage_from="agent"),
    ]

    found = usage(events, {"m": Price(input=1.0, output=1.0)})

    assert (found.calls, found.reported, found.in_part, found.total, found.input) == (0, 1, 1, 450, None)
    assert (found.cost, found.unpriced_models, found.known_from) == (None, ("m",), {"agent": 1})


def test_cost_says_how_it_is_known() -> None:
    """The provider's own first, then the settings with their date; a sum over some calls says that it is partial."""
    told = {"input_tokens": 1_000_000, "output_tokens": 1000}
    events = [
        ModelResult(id="1", model="a", usage={**told, "cost": 0.1}),
        ModelResult(id="2", model="b", usage=told),
        ModelResult(id="3", model="c", usage=told),
    ]
    table = {"b": Price(input=3.0, output=15.0, as_of=date(2026, 11, 1)), "a": Price(input=9.0, output=9.0)}

    found = usage(events, table)

    assert (found.cost, found.cost_from) == (3.115, ("provider", "settings, as of 2026-11-01"))
    assert (found.is_partial, found.unpriced, found.unpriced_models) == (True, 1, ("c",))
    assert [(each.cost, each.is_partial) for each in found.models] == [(0.1, False), (3.015, False), (None, False)]
    assert msgspec.to_builtins(found)["models"][1]["cost"] == 3.015


@pytest.mark.parametrize("name", ["cost", "total_cost", "response_cost", "cost_usd"])
def test_a_providers_own_cost_is_taken_under_any_of_its_names(name: str) -> None:
    """Even where no tokens are told; pi writes it one level down."""
    assert usage([ModelResult(id="1", usage={name: 0.25})]).cost == 0.25
    assert usage([ModelResult(id="1", usage={"cost": {"input": 0.1, "total": 0.25}})]).cost == 0.25


def test_costs_add_up_exactly() -> None:
    """Ten dimes are a dollar."""
    events = [ModelResult(id=str(n), usage={"cost": 0.1}) for n in range(10)]

    assert usage(events).cost == 1.0


def test_caches_have_their_own_prices() -> None:
    """Read, written, written for an hour; what has none costs what input costs."""
    tokens = tokens_of(SHAPES["anthropic"][0])
    whole = Price(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_1h=6)

    assert whole.cost(tokens) == Decimal("0.0007695")  # 4*3 + 20*15 + 1000*.3 + 10*3.75 + 20*6, per million
    assert Price(input=1, output=0).cost(tokens) == Decimal("0.001034")


def test_patterns_name_many_models_and_the_longest_wins() -> None:
    """An exact name before any pattern; case does not matter."""
    table = {
        "*": Price(input=1, output=0),
        "gpt-4o*": Price(input=2, output=0),
        "gpt-4o-mini": Price(input=3, output=0),
        "GPT-4o-m???": Price(input=4, output=0),
    }
    names = ["claude", "gpt-4o-2024", "gpt-4o-mini", "GPT-4O-MAXI"]
    events = [ModelResult(id=name, model=name, usage={"input_tokens": 10**6, "output_tokens": 0}) for name in names]

    assert {each.model: each.cost for each in usage(events, table).models} == dict(
        zip(names, (1, 2, 3, 4), strict=True)
    )


def test_prices_are_read_from_a_settings_file() -> None:
    """A date may be text or a date; a misspelt or negative price is refused."""
    table = '[prices."claude-sonnet-4"]\ninput = 3.0\noutput = 15\nas_of = "2026-11-01"\n[prices."gpt-4o*"]\n'
    read = msgspec.toml.decode(
        table + "input = 2.5\noutput = 10.0\nas_of = 2026-11-02", type=dict[str, dict[str, Price]]
    )

    assert [each.as_of for each in read["prices"].values()] == ["2026-11-01", "2026-11-02"]
    for wrong in (
        {"input": 1},
        {"input": 1, "output": 1, "cache": 1},
        {"input": -1, "output": 1},
        {"input": 1, "output": 1, "as_of": "soon"},
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, Price)


def test_prices_may_be_any_callable() -> None:
    """It is told the model, the tokens and when."""
    asked = []

    def price(model, tokens, at):
        asked.append((model, tokens.total, at))
        return Cost(Decimal(1), "a friend")

    found = usage([ModelResult(id="1", model="m", usage={"input_tokens": 1, "output_tokens": 1}, at=7)], price)

    assert asked == [("m", 2, 7)]
    assert (found.cost, found.cost_from) == (1.0, ("a friend",))


def test_usages_add_up() -> None:
    """What several episodes spent is what one with all their calls would have."""
    table = {"a": Price(input=0.1, output=0.2)}
    events = [
        [ModelResult(id="1", model="a", usage={"input_tokens": 1, "output_tokens": 2}), ModelCall(id="2")],
        [ModelResult(id="3", model="a", usage={"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5})],
        [],
    ]

    assert together(usage(each, table) for each in events) == usage([*events[0], *events[1]], table)


def test_without_the_package_an_unknown_model_has_no_cost(monkeypatch) -> None:
    """Prices that are not installed are not needed; settings go first."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._package.cache_clear()
    events = [ModelResult(id=name, model=name, usage={"input_tokens": 10, "output_tokens": 1}) for name in ("a", "b")]

    found = usage(events, prices.pricer({"a": Price(input=1e5, output=0)}))

    assert (found.cost, found.unpriced_models) == (1.0, ("b",))
    prices._package.cache_clear()


def test_installed_prices_know_the_usual_models() -> None:
    """The package's version is how the cost is known; the settings still go first; it can be left out."""
    package = pytest.importorskip("genai_prices")
    told = {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 500}
    names = ["claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", "no such model"]
    events = [ModelResult(id=name, model=name, usage=told, at=1_790_000_000 * 10**9) for name in names]

    found = usage(events, prices.pricer())

    assert found.cost_from == (f"genai-prices {package.__version__}",)
    assert found.unpriced_models == ("no such model",)
    assert found.models[0].cost == found.models[1].cost == pytest.approx(0.00465)
    assert usage(events, prices.pricer({"*": Price(input=0, output=0)})).cost_from == ("settings",)
    assert usage(events, prices.pricer(installed=False)).cost is None


def test_recorded_usage_is_read_from_a_store() -> None:
    """Through the public recorder, with an SDK's own object for a usage."""

    class Told:
        def __init__(self) -> None:
            self.prompt_tokens, self.completion_tokens = 9, 1

    with trackway.record("spent", model="m") as episode:
        episode.model_call(messages=["hi"]).done(usage=Told())

    found = usage(trackway.open_store().events(episode.id))

    assert [(each.model, each.total) for each in found.models] == [("m", 10)]


def test_thoughts_alone_are_output() -> None:
    """Gemini may tell thoughts and no candidates: they were produced, and cost what output costs."""
    found = tokens_of({"promptTokenCount": 10, "thoughtsTokenCount": 7})

    assert found is not None
    assert (found.input, found.output, found.reasoning, found.total) == (10, 7, 7, 17)


def test_cache_writes_told_by_their_parts_are_summed() -> None:
    """Where the sum is missing, the parts are what was written."""
    parts = {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 5}
    found = tokens_of({"input_tokens": 1, "output_tokens": 2, "cache_creation": parts})

    assert found is not None
    assert (found.cache_write, found.cache_write_1h, found.total) == (25, 5, 28)


def test_calls_of_two_agents_are_two() -> None:
    """A provider's id that two agents' calls have is two calls; one agent's is one, told twice or not."""
    told = [
        ModelResult(id="1", agent=agent, usage={"input_tokens": count, "output_tokens": 1})
        for agent, count in ((None, 10), ("a", 20), (None, 10))
    ]
    found = usage(told)

    assert (found.calls, found.input) == (2, 30)
