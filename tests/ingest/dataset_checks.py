"""For the tests of formats whose files are documents: a document that grows says the same first entries."""

from tests.ingest.agent_checks import entries, written
from tests.ingest.writing import document


def by_session(found):
    """Entries of each session, in order."""
    sessions = {}
    for each in found:
        sessions.setdefault(each[0], []).append(each)
    return sessions


def check_longer(source, folder, versions, name="log.json"):
    """Each version of a document says the beginning of what the next one says, session by session."""
    said = [by_session(entries(source, written(folder, document(each), name))) for each in versions]
    for earlier, later in zip(said, said[1:], strict=False):
        for session, found in earlier.items():
            assert later[session][: len(found)] == found


def says(events):
    """The events in short: their kinds, and what they say."""
    return [(each.kind, _said(each)) for each in events if each.kind != "episode_start"]


def _said(event):
    for field in ("content", "name", "system_prompt", "text", "lesson", "outcome", "topic", "id", "tag"):
        found = getattr(event, field, None)
        if found is not None:
            return found
    return None
