"""``trackway du``: where the bytes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trackway.cli._options import common, examples, opened, there

if TYPE_CHECKING:
    from trackway.cli._print import Screen, Span
    from trackway.store.space import Space


@click.command(epilog=examples("trackway du", "trackway du --top 20", "trackway du --json | jq .total"))
@click.option("-n", "--top", type=click.IntRange(min=0), default=5, show_default=True, help="So many of each kind.")
@common
def du(*, top: int, as_json: bool, home: str | None, store: str | None) -> None:
    """Show where the bytes are: by part, by task, the largest episodes and blobs.

    A blob that several episodes need is divided among them, so that the figures add up.
    """
    from trackway.cli._print import Screen, write_json
    from trackway.store.space import space

    with opened(home, store) as live:
        there(live, store)
        found = space(live.home, live.store, top=top)
    if as_json:
        write_json(_fields(found))
        return
    screen = Screen()
    _parts(screen, found)
    if found.episodes:
        _largest(screen, found)


def _fields(found: Space) -> dict[str, object]:
    listed = ("tasks", "largest", "largest_blobs")
    return found._asdict() | {name: [each._asdict() for each in getattr(found, name)] for name in listed} | {
        "parts": {each.name: each.bytes for each in found.parts},
        "bytes_per_event": found.bytes_per_event,
        "bytes_per_step": found.bytes_per_step,
    }  # fmt: skip


def _parts(screen: Screen, found: Space) -> None:
    from trackway.cli._print import Column, Span, line
    from trackway.cli._size import size
    from trackway.cli._text import count

    columns = [Column("PART"), Column("SIZE", right=True), Column("SHARE", right=True), Column("")]
    rows = [[Span(each.name), *_share(each.bytes, found.total)] for each in found.parts if each.bytes]
    screen.table(columns, [*rows, [Span("all", "title"), Span(size(found.total), "title"), Span(""), Span("")]])
    held = (count(found.episodes, "episode"), count(found.events, "event"), count(found.steps, "step"))
    said = f"{', '.join(held)}, {count(found.blobs, 'blob')}"
    for each, what in ((found.bytes_per_event, "an event"), (found.bytes_per_step, "a step")):
        said += f" · {each:,.0f} bytes {what}" if each is not None else ""
    screen.show([line(), line(said, label="held")])


def _share(part: int, whole: int) -> Sequence[Span]:
    from trackway.cli._print import Span
    from trackway.cli._size import size
    from trackway.cli._text import bar

    share = part / whole if whole else 0.0
    said = "<1%" if 0 < share < 0.01 else f"{share:.0%}"
    return Span(size(part)), Span(said, "dim"), Span(bar(share), "tool")


def _largest(screen: Screen, found: Space) -> None:
    from trackway.cli._print import Column, Span, line
    from trackway.cli._size import size
    from trackway.schema import ids

    right = [Column("SIZE", right=True), Column("SHARE", right=True), Column("")]
    screen.show([line()])
    screen.table(
        [Column("TASK", flexible=True), Column("EPISODES", right=True), Column("EVENTS", right=True), *right],
        [
            [
                Span(each.task or "-"),
                Span(f"{each.episodes:,}"),
                Span(f"{each.events:,}"),
                *_share(each.bytes, found.store),
            ]
            for each in found.tasks
        ],
    )
    screen.show([line()])
    screen.table(
        [Column("EPISODE"), Column("TASK", flexible=True), Column("EVENTS", right=True), *right],
        [
            [Span(ids.short(each.id), "tool"), Span(each.task or "-"), Span(f"{each.events:,}"),
             *_share(each.bytes, found.store)]
            for each in found.largest
        ],
    )  # fmt: skip
    if found.largest_blobs:
        screen.show([line()])
        screen.table(
            [Column("BLOB"), Column("NEEDED BY", right=True), Column("CONTENT", right=True), *right],
            [
                [Span(each.name[:24] + "…"), Span(f"{each.episodes:,}"), Span(size(each.size)),
                 *_share(each.bytes, found.store)]
                for each in found.largest_blobs
            ],
        )  # fmt: skip
