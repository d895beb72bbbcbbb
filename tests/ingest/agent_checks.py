"""What every reader of an agent's sessions must keep, for the tests of each: under growth, and whatever files hold."""

import json
from collections import Counter
from itertools import pairwise

from tests.ingest.writing import document
from trackway.errors import FileRefused
from trackway.ingest.original import Original
from trackway.ingest.parse import Found, events_of, parsed
from trackway.ingest.source import Entry, Trouble
from trackway.read.pairs import pairs
from trackway.schema.events import AssistantToolCall, EpisodeStart, ToolResult, User

ODD = (None, True, 0, -1.5, "odd", "", [], [None], ["odd", 7], {}, {"odd": {"odder": [1]}})
FEW = (None, -1.5, "odd", [None, 7, "odd"], {"odd": [1]})
"""What mutations put where something else stood."""


def lines(*entries):
    """A file of one JSON value a line."""
    return "".join(json.dumps(each) + "\n" for each in entries).encode()


def written(folder, body, name="session.jsonl"):
    """The file, on the disk."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def read(source, path):
    """All events of the file, by session."""
    return events_of(source, Original(path))


def only(source, path):
    """All events of a file that is one session."""
    found = read(source, path)
    assert len(found) == 1, list(found)
    return next(iter(found.values()))


def of_kind(events, kind):
    """Those of one kind."""
    return [each for each in events if isinstance(each, kind)]


def troubles(source, path):
    """What could not be made sense of."""
    return [each for each in parsed(source, Original(path)) if isinstance(each, Trouble)]


def sign(source, path):
    """What the source says to the file."""
    return source.detect(Original(path).head())


def entries(source, path):
    """The entries as they are read, without places; the beginning by its key alone: it is called after a later line."""
    found = []
    for each in source.read(Original(path)):
        if isinstance(each, Entry):
            begins = each.events and isinstance(each.events[0], EpisodeStart)
            found.append((each.session, each.key, "start" if begins else (list(each.events), each.parent, each.native)))
    return found


def check_growth(source, folder, body, name="session.jsonl"):
    """Each beginning of the file, by lines, says the beginning of what the whole file says, session by session."""
    whole = by_session(entries(source, written(folder, body, name)))
    ends = [i + 1 for i, byte in enumerate(body) if byte == 10]
    for end in ends:
        for session, found in by_session(entries(source, written(folder, body[:end], name))).items():
            assert found == whole[session][: len(found)], f"at byte {end}"


def check_longer(source, folder, versions, name="log.json"):
    """Each version of a document that is rewritten as it grows says the beginning of what the next one says."""
    said = [by_session(entries(source, written(folder, document(each), name))) for each in versions]
    for earlier, later in pairwise(said):
        for session, found in earlier.items():
            assert found == later[session][: len(found)]
    assert sum(map(len, said[-1].values())) > sum(map(len, said[0].values()))


def by_session(found):
    """Entries of each session, in order."""
    sessions = {}
    for each in found:
        sessions.setdefault(each[0], []).append(each)
    return sessions


def check_mutations(source, folder, body, name="session.jsonl", depth=5, *, odd=ODD):
    """Whatever stands in a field, or is missing, or is cut off: nothing raises but a refusal."""
    made = 0
    for mutation in mutations(body, depth, odd):
        path = written(folder, mutation, name)
        source.detect(Original(path).head())
        try:
            for each in parsed(source, Original(path)):
                assert isinstance(each, (Found, Trouble))
        except FileRefused:
            pass
        made += 1
    return made


def mutations(body, depth, odd=ODD):
    """The file with one thing changed: a field dropped, of another type, doubled, a line cut off or gone."""
    rows = body.splitlines(keepends=True)
    values = [json.loads(row) for row in rows]
    for i, value in enumerate(values):
        for path in _paths(value, depth):
            for each in (*odd, _GONE):
                yield b"".join([*rows[:i], json.dumps(_changed(value, path, each)).encode() + b"\n", *rows[i + 1 :]])
        yield b"".join([*rows[:i], rows[i][: len(rows[i]) // 2]])
        yield b"".join([*rows[:i], *rows[i + 1 :]])
        yield b"".join([*rows[:i], rows[i].strip() + rows[i], *rows[i + 1 :]])


_GONE = object()


def _paths(value, depth):
    yield ()
    if depth and isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from ((key, *rest) for rest in _paths(value[key], depth - 1))


def _changed(value, path, odd):
    if not path:
        return None if odd is _GONE else odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and odd is _GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = _changed(value[path[0]], path[1:], odd)
    return copy


def counted(events):
    """What a counter that knows nothing of us counts too: people's turns, calls, results, and pairs of them."""
    return Counter(
        turns=sum(isinstance(each, User) and each.actor == "human" for each in events),
        calls=len(of_kind(events, AssistantToolCall)),
        results=len(of_kind(events, ToolResult)),
        pairs=sum(each.result is not None for each in pairs(events)),
    )
