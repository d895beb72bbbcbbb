"""``trackway path``: where things are kept, for people and for scripts."""

from __future__ import annotations

import os

import click

from trackway.cli._options import common, examples

_NAMES = ("home", "store", "journals")


@click.command(epilog=examples("trackway path", "trackway path store", 'ls -l "$(trackway path journals)"'))
@click.argument("which", metavar="[home|store|journals]", type=click.Choice(_NAMES), required=False)
@common
def path(which: str | None, *, as_json: bool, home: str | None, store: str | None) -> None:
    """Print where things are kept.

    Nothing is made: a path is where a thing will be, whether or not it is there yet.
    """
    from trackway.cli._print import Screen, line, write_json

    places = _places(home, store)
    if as_json:
        write_json(places if which is None else places[which])
    elif which is not None:
        click.echo(os.fsencode(places[which]))
    else:
        Screen().show(line(place, label=name) for name, place in places.items())


def _places(home: str | None, store: str | None) -> dict[str, str]:
    from trackway.recording.settings import home_at, store_for

    folder = home_at(home)
    # A store's key names it without secrets; of a file it is the path that a script wants.
    where = store_for(store, folder).key.removeprefix("sqlite:")
    return {"home": str(folder.path), "store": where, "journals": str(folder.journals)}
