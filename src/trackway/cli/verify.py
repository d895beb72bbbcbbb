"""``trackway verify``: every hash and checksum made again, every derived row compared with its events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from trackway.cli._options import common, examples, opened, there

if TYPE_CHECKING:
    from trackway.cli._print import Line
    from trackway.store.verify import Verified
    from trackway.store.verify_episode import Damage

_SHOWN: Final = 20


@click.command(epilog=examples("trackway verify", "trackway verify --fix", "trackway verify --store backup.db --json"))
@click.option("--fix", is_flag=True, help="Make summaries and other derived rows again where they differ.")
@common
def verify(*, fix: bool, as_json: bool, home: str | None, store: str | None) -> None:
    """Check every hash, checksum and derived row of the store.

    Exits 1 if something is damaged, or differs and is not fixed. What is damaged is named, with what can still be read,
    and never deleted or rewritten. Safe while agents record.
    """
    from trackway.cli._print import Screen, write_json
    from trackway.cli._progress import stages
    from trackway.store.verify import verify as look

    with opened(home, store) as live, stages() as progress:
        there(live, store)
        found = look(live.store, live.home, fix=fix, progress=progress)
        where = live.key.removeprefix("sqlite:")
    if as_json:
        write_json({"ok": found.is_sound, "store": where, **as_fields(found)})
    else:
        Screen().show(lines(found, where))
    if not found.is_sound:
        raise click.exceptions.Exit(1)


def as_fields(found: Verified) -> dict[str, object]:
    """What was found, for JSON."""
    listed = ("damage", "readable", "differences")
    return found._asdict() | {name: [each._asdict() for each in getattr(found, name)] for name in listed}


def lines(found: Verified, where: str) -> Iterator[Line]:
    """What was found, for people."""
    from trackway.cli._print import Span, line
    from trackway.cli._size import size
    from trackway.cli._text import count

    looked_at = ", ".join((count(found.episodes, "episode"), count(found.events, "event"), count(found.blobs, "blob")))
    if not found.damage:
        yield line(f"every hash holds: {looked_at}", label="✓ ok", style="good")
    else:
        yield line(f"{looked_at} can be read", label="✗ problem", style="bad")
    yield line(Span(where, "dim"))
    for each in found.damage[:_SHOWN]:
        yield line(_damaged(each), label="✗ damaged", style="bad")
    if len(found.damage) > _SHOWN:
        yield line(Span(f"… {len(found.damage) - _SHOWN:,} more (--json names all)", "dim"))
    for left in found.readable[:_SHOWN]:
        said = f"episode {left.where}: {left.events:,} of {count(left.stored, 'event')} can be read"
        yield line(said, label="· left", style="warn")
    yield from _differences(found)
    if found.orphans:
        said = f"{count(found.orphans, 'blob')} that no episode needs, {size(found.orphan_bytes)}"
        yield line(said, label="· note", style="warn")
    if found.quarantined:
        yield line(f"{count(found.quarantined, 'record')} in quarantine", label="· note", style="warn")
        yield line(Span("→ trackway doctor says why", "said"))


def _damaged(each: Damage) -> str:
    if each.first is None:
        return f"{each.where}: {each.what}"
    which = f"event {each.first:,}" if each.first == each.last else f"events {each.first:,} to {each.last:,}"
    return f"episode {each.where}, {which}: {each.what}"


def _differences(found: Verified) -> Iterator[Line]:
    from trackway.cli._print import Span, line
    from trackway.cli._text import count

    if not found.differences:
        return
    rows = sorted(set(itertools.chain.from_iterable(each.rows for each in found.differences)))
    writers = sum(each.rows == ("position",) for each in found.differences)
    whose = [count(len(found.differences) - writers, "episode")] if writers < len(found.differences) else []
    whose += [count(writers, "journal")] if writers else []
    said = f"derived rows of {' and '.join(whose)} differed from their events: {', '.join(rows)}"
    if found.fixed:
        yield line(said, label="✓ fixed", style="good")
        yield line("made again from the events")
        return
    yield line(said.replace("differed", "differ"), label="✗ problem", style="bad")
    yield line(Span("→ trackway verify --fix makes them again; no event is lost", "said"))
