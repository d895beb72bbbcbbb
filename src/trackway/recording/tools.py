"""``@tool``: a function whose every call is a step of the current episode. Outside an episode it is the plain function.

Sync, async and generator functions alike. The call is recorded before the function runs; its result, its exception, or
that it was interrupted, after. Nothing about the function's behaviour changes, its exceptions least of all.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, ParamSpec, Self, TypeVar, overload

from trackway.errors import EpisodeClosed, RecorderClosed
from trackway.recording.episode import Episode, current
from trackway.recording.view import Call
from trackway.schema.plain import error_text

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(*, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
    """Record each call of a function into the current episode.

    >>> import trackway
    >>> @trackway.tool
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> with trackway.record("arithmetic") as episode:
    ...     add(1, b=2)
    3
    """
    if function is None:
        return functools.partial(_wrap, name=name)
    return _wrap(function, name=name)


def _wrap(function: Any, *, name: str | None) -> Any:  # noqa: ANN401  anything that can be called
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(_wrap(function.__func__, name=name))
    called = name or _name_of(function)
    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except (TypeError, ValueError):  # some built-ins have none
        signature = None
    if inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, called, signature)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, called, signature)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, called, signature)
    else:
        wrapper = _plain(function, called, signature)
    return functools.wraps(function)(wrapper)


def _name_of(function: Any) -> str:  # noqa: ANN401
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


class _Recorded:
    """One call on its way: begun in the current episode, finished in the same one."""

    def __init__(
        self, name: str, signature: inspect.Signature | None, args: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self._episode: Episode | None = current()
        self._call: Call | None = None
        if self._episode is not None and not self._episode.ended:
            with contextlib.suppress(EpisodeClosed, RecorderClosed):
                self._call = self._episode.tool_call(name, _arguments(signature, args, named))

    def result(self, value: Any) -> None:  # noqa: ANN401
        self._finish(value)

    def failed(self, error: BaseException, so_far: Any = None) -> None:  # noqa: ANN401
        interrupted = isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError))
        status = "interrupted" if interrupted else "timeout" if isinstance(error, TimeoutError) else "error"
        self._finish(error_text(error), is_error=not interrupted, status=status, returned=so_far or None)

    def _finish(self, content: Any, **named: Any) -> None:  # noqa: ANN401
        if self._episode is not None and self._call is not None:
            # The episode may have ended while the tool ran, in another thread: the function's answer still counts.
            with contextlib.suppress(EpisodeClosed, RecorderClosed):
                self._episode.tool_result(self._call, content, **named)


def _arguments(signature: inspect.Signature | None, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    if signature is None:
        return {"args": list(args), **named}
    try:
        bound = dict(signature.bind(*args, **named).arguments)
    except TypeError:  # the call itself will raise it; what was given is recorded as it came
        return {"args": list(args), **named}
    for each in signature.parameters.values():
        if each.kind is each.VAR_KEYWORD:
            bound.update(bound.pop(each.name, {}))
        elif each.kind is each.VAR_POSITIONAL and each.name in bound:
            bound[each.name] = list(bound[each.name])
    first = next(iter(signature.parameters), "")
    if first in ("self", "cls"):
        bound.pop(first, None)
    return bound


def _plain(function: Callable[..., Any], name: str, signature: inspect.Signature | None) -> Callable[..., Any]:
    def wrapper(*args: Any, **named: Any) -> Any:  # noqa: ANN401
        recorded = _Recorded(name, signature, args, named)
        try:
            value = function(*args, **named)
        except BaseException as error:
            recorded.failed(error)
            raise
        recorded.result(value)
        return value

    return wrapper


def _coroutine(function: Callable[..., Any], name: str, signature: inspect.Signature | None) -> Callable[..., Any]:
    async def wrapper(*args: Any, **named: Any) -> Any:  # noqa: ANN401
        recorded = _Recorded(name, signature, args, named)
        try:
            value = await function(*args, **named)
        except BaseException as error:
            recorded.failed(error)
            raise
        recorded.result(value)
        return value

    return wrapper


def _whole(items: list[Any]) -> Any:  # noqa: ANN401
    return "".join(items) if items and all(isinstance(each, str) for each in items) else items


class _Kept:
    """A generator that keeps what it yields; everything else is the inner one's."""

    def __init__(self, inner: Generator[Any, Any, Any], items: list[Any]) -> None:
        self._inner = inner
        self._items = items

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        return self._kept(next(self._inner))

    def send(self, value: Any) -> Any:  # noqa: ANN401
        return self._kept(self._inner.send(value))

    def throw(self, *error: Any) -> Any:  # noqa: ANN401
        return self._kept(self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()

    def _kept(self, item: Any) -> Any:  # noqa: ANN401
        self._items.append(item)
        return item


def _generator(function: Callable[..., Any], name: str, signature: inspect.Signature | None) -> Callable[..., Any]:
    def wrapper(*args: Any, **named: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401
        recorded = _Recorded(name, signature, args, named)
        items: list[Any] = []
        try:
            value = yield from _Kept(function(*args, **named), items)
        except BaseException as error:
            recorded.failed(error, _whole(items))
            raise
        recorded.result(_whole(items))
        return value

    return wrapper


def _async_generator(
    function: Callable[..., Any], name: str, signature: inspect.Signature | None
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **named: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401
        recorded = _Recorded(name, signature, args, named)
        items: list[Any] = []
        inner = function(*args, **named)
        step = inner.asend(None)
        try:
            while True:
                try:
                    items.append(item := await step)
                except StopAsyncIteration:
                    break
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in from outside: the function's own to handle
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)
        except BaseException as error:
            recorded.failed(error, _whole(items))
            raise
        finally:
            await inner.aclose()
        recorded.result(_whole(items))

    return wrapper
