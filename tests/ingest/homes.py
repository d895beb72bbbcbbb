"""Imports into the store of the home, and all that it holds then."""

import trackway
from tests.ingest.sessions import pi_lines
from trackway.ingest.gathering import gathered
from trackway.ingest.importing import Options, import_files
from trackway.store.base import Query


def imported(*paths, **options):
    """Import into the home's store; what was said of each file."""
    with trackway.open_store() as live:
        return list(import_files(live, gathered(paths), Options(**options)))


def states(*paths, **options):
    """The same, in a word a file."""
    return [each.state for each in imported(*paths, **options)]


def everything():
    """All episodes with all their events, as they are stored."""
    with trackway.open_store() as live:
        return {each.id: list(live.events(each.id)) for each in live.episodes(Query())}


def raw(episode):
    """The files of an episode, byte for byte."""
    with trackway.open_store() as live:
        return [b"".join(live.original(each.hash)) for each in live.originals(episode)]


def three_sessions(folder):
    """A folder with three sessions, and something else."""
    made = folder / "sessions"
    made.mkdir()
    for i in range(3):
        (made / f"{i}.jsonl").write_bytes(b"".join(pi_lines(4, i)))
    (made / "notes.txt").write_text("buy milk")
    return made
