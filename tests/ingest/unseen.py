"""What the tests of unseen files share: small files, their events, those of a kind."""

import json
from pathlib import Path

from trackway.ingest.original import Original
from trackway.ingest.parse import events_of

SESSION = "5b0c1d2e-0000-4000-8000-000000000001"


def lines(folder: Path, *entries, name="session.jsonl"):
    """A file of lines."""
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


def read(path, source):
    """The events of a file that holds one session."""
    (events,) = events_of(source.SOURCE, Original(path)).values()
    return events


def of(events, kind):
    """The events of a kind."""
    return [each for each in events if isinstance(each, kind)]
