"""@tool: a function whose calls are steps; its behaviour is its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import trackway
from trackway.schema import events as kinds


def last_steps() -> list[trackway.Step]:
    """The steps of the newest episode."""
    store = trackway.open_store()
    return trackway.steps(store.events(store.resolve("last")))


@trackway.tool
def grep(pattern: str, *paths: str, count: int = 0, **options: bool) -> str:
    """Looks for a pattern."""
    if pattern == "bad":
        raise ValueError("no such pattern")
    if pattern == "slow":
        raise TimeoutError
    return f"{pattern} in {len(paths)}"


def test_outside_an_episode_it_is_the_plain_function() -> None:
    """Name, docstring, signature and results are the function's own."""
    assert grep("x", "a", "b") == "x in 2"
    assert grep.__name__ == "grep"
    assert grep.__doc__ == "Looks for a pattern."


def test_calls_are_recorded_with_their_arguments_and_results() -> None:
    """Arguments by name, as JSON; the result as the model would see it; how long it took."""
    with trackway.record("tools"):
        grep("x", "a", "b", count=2, fast=True)

    [step] = last_steps()
    assert step.tool == "grep"
    assert step.args == b'{"pattern":"x","paths":["a","b"],"count":2,"fast":true}'
    assert (step.observation, step.status, step.error) == ("x in 2", "ok", None)
    assert step.duration_ms is not None


@pytest.mark.parametrize(
    ("pattern", "error", "status", "said"),
    [("bad", ValueError, "error", "ValueError: no such pattern"), ("slow", TimeoutError, "timeout", "TimeoutError")],
)
def test_exceptions_are_recorded_and_raised(pattern: str, error: type[Exception], status: str, said: str) -> None:
    """The caller sees the exception; the step holds it."""
    with trackway.record("tools"), pytest.raises(error):
        grep(pattern)

    [step] = last_steps()
    assert (step.status, step.error) == (status, said)


def test_a_wrong_call_is_recorded_too() -> None:
    """What does not fit the signature raises the function's own TypeError and is a failed step."""
    with trackway.record("tools"), pytest.raises(TypeError):
        grep()

    assert last_steps()[0].status == "error"


def test_async_functions() -> None:
    """Awaited results and cancellations are recorded."""

    @trackway.tool
    async def fetch(url: str) -> dict[str, str]:
        await asyncio.sleep(0 if url == "fast" else 60)
        return {"url": url}

    async def agent() -> None:
        with trackway.record("async"):
            assert await fetch("fast") == {"url": "fast"}
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(fetch("never"), 0.01)

    asyncio.run(agent())
    first, second = last_steps()
    assert first.observation == '{"url":"fast"}'
    assert second.status == "interrupted"


def test_generators_are_recorded_when_they_are_through() -> None:
    """Streamed text is one observation; sent values and the return value pass through; leaving early is said."""

    @trackway.tool(name="stream")
    def chunks(n: int) -> Iterator[str]:
        got = ""
        for i in range(n):
            got += str((yield f"{i} ")) if n == 2 else str((yield f"{i} ") or "")
        return got

    with trackway.record("stream"):
        assert list(chunks(3)) == ["0 ", "1 ", "2 "]
        early = chunks(5)
        next(early)
        early.close()
        talking = chunks(2)
        next(talking)
        talking.send("a")
        with pytest.raises(StopIteration) as stop:
            talking.send("b")

    assert stop.value.value == "ab"
    first, second, third = last_steps()
    assert (first.tool, first.observation) == ("stream", "0 1 2 ")
    assert second.status == "interrupted"
    assert third.observation == "0 1 "


def test_exceptions_thrown_into_a_generator_reach_the_function() -> None:
    """``throw`` is the function's to handle, once or again."""

    @trackway.tool
    def stubborn() -> Iterator[str]:
        for i in range(3):
            try:
                yield f"{i}"
            except ValueError:
                yield "caught"

    with trackway.record("throw"):
        talking = stubborn()
        next(talking)
        assert talking.throw(ValueError()) == "caught"
        assert next(talking) == "1"
        assert talking.throw(ValueError()) == "caught"
        assert list(talking) == ["2"]

    assert last_steps()[0].observation == "0caught1caught2"


def test_async_generators() -> None:
    """Each item arrives as it is made; all of them are the observation."""

    @trackway.tool
    async def ticks(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    async def agent() -> list[int]:
        with trackway.record("async stream"):
            return [each async for each in ticks(3)]

    assert asyncio.run(agent()) == [0, 1, 2]
    assert last_steps()[0].observation == "[0,1,2]"


def test_methods_leave_out_self() -> None:
    """The object is not an argument the model gave."""

    class Box:
        @trackway.tool
        def open(self, key: str) -> str:
            return key

    with trackway.record("methods"):
        Box().open("k")

    assert last_steps()[0].args == b'{"key":"k"}'


def test_an_episode_that_ended_meanwhile_does_not_break_the_tool() -> None:
    """The function's answer counts, recorded or not."""

    @trackway.tool
    def slow() -> str:
        episode.end("abandoned")
        return "late"

    with trackway.record("ended") as episode:
        assert slow() == "late"
        assert slow.__wrapped__ is not None

    assert [each.status for each in last_steps()] == ["missing"]


def test_results_that_are_no_text_are_kept_as_values() -> None:
    """What the tool returned stands beside what the model saw."""

    @trackway.tool
    def rows() -> list[dict[str, int]]:
        return [{"a": 1}]

    with trackway.record("values"):
        rows()

    store = trackway.open_store()
    result = next(each for each in store.events(store.resolve("last")) if isinstance(each, kinds.ToolResult))
    assert (result.content, result.returned) == ('[{"a":1}]', [{"a": 1}])
