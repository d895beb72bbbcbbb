"""What all commands share: their options, how they open the store, and how a person writes a moment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trackway.store.live import LiveStore

Command = TypeVar("Command", bound=Callable[..., Any])


def common(command: Command) -> Command:
    """``--json``, ``--home`` and ``--store``, as every command has them."""
    for option in (
        click.option("--store", metavar="WHERE", help="The store: a path or a URL. [else: TRACKWAY_STORE, the home's]"),
        click.option("--home", metavar="FOLDER", help="The home folder. [else: TRACKWAY_HOME, ~/.trackway]"),
        click.option("--json", "as_json", is_flag=True, help="Answer in JSON."),
    ):
        command = option(command)
    return command


def utc(command: Command) -> Command:
    """``--utc``: times as they are stored instead of in the local zone."""
    return click.option("--utc", is_flag=True, is_eager=True, help="Times in UTC, not local.")(command)


def lift(command: Command) -> Command:
    """``--lift``: what was redacted in the clear, for whoever has the key."""
    return click.option("--lift", is_flag=True, help="Redacted text in the clear; takes the home's key.")(command)


def examples(*lines: str) -> str:
    """The end of a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@contextmanager
def opened(home: str | None, store: str | None, *, lift: bool = False) -> Iterator[LiveStore]:
    """The store to read, running episodes included."""
    from trackway.recording.settings import open_store

    live = open_store(store, home=home, lift=lift)
    _check_home(live)
    try:
        yield live
    finally:
        live.close()


def _check_home(live: LiveStore) -> None:
    """Refuse a home that is a file, or a link to nowhere: one where nothing is recorded yet is not there at all."""
    from trackway.errors import StoreUnavailable

    path = live.home.path
    if live.key == live.home.store_key and os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112  never raises
        hint = "move it away, or name another: TRACKWAY_HOME"
        raise StoreUnavailable(f"the home {path} is no folder", hint=hint, path=path)


def there(live: LiveStore, store: str | None) -> None:
    """Refuse a file that was named and is not there: what looks after a store has nothing to say of a typing error."""
    from trackway.errors import StoreUnavailable
    from trackway.store.sqlite import SqliteStore

    if store is not None and isinstance(live.store, SqliteStore) and not live.store.path.exists():
        raise StoreUnavailable(f"there is no store at {live.store.path}", hint="see --store", path=live.store.path)


def instant(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """An option's value as UTC nanoseconds; people write ``2025-11-15``, ``2025-11-15T08:30``, or ``7d`` ago."""
    if value is None:
        return None
    from trackway.search import moments

    try:
        return moments.instant(value, now=time.time_ns(), utc=bool(ctx.params.get("utc")))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no time: write {moments.FORMS}", ctx=ctx, param=param) from error


def complete_episode(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Short ids of the newest episodes, with their tasks, for a shell."""
    from click.shell_completion import CompletionItem

    from trackway.cli._text import cell
    from trackway.errors import TrackwayError
    from trackway.schema import ids
    from trackway.store.base import Query

    try:
        with opened(ctx.params.get("home"), ctx.params.get("store")) as live:
            newest = [(ids.short(each.id), cell(each.task, 60)) for each in live.episodes(Query(limit=30))]
    except (TrackwayError, OSError):  # a shell that waits for names is no place to complain
        return []
    return [CompletionItem(name, help=task) for name, task in newest if name.startswith(incomplete)]


def version(package: str) -> str | None:
    """The installed version of a package; None where there is none."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
