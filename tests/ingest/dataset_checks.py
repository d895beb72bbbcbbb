"""For the tests of datasets: what an episode says, in short enough to be compared whole."""


def says(events):
    """The events in short: their kinds, and what they say."""
    return [(each.kind, _said(each)) for each in events if each.kind != "episode_start"]


def _said(event):
    for field in ("content", "name", "system_prompt", "text", "lesson", "outcome", "topic", "id", "tag"):
        found = getattr(event, field, None)
        if found is not None:
            return found
    return None
