"""How an episode stands, in a word and in a sentence: the same for the list, the header, the end and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trackway.cli._print import Span
from trackway.cli._text import number

if TYPE_CHECKING:
    from trackway.schema.episode import EpisodeSummary
    from trackway.store.live import LiveStore

_STYLES: Final = {
    "success": "good",
    "partial": "warn",
    "failure": "bad",
    "abandoned": "warn",
    "crashed": "bad",
    "running": "tool",
}


def standing(summary: EpisodeSummary) -> Span:
    """``success 0.9``, ``running``, ``crashed``, ``ended`` where nobody said an outcome; with what was lost."""
    state = summary.state or "ended"
    words = [state] if state != "ended" or summary.outcome is None else []
    words += [summary.outcome] if summary.outcome is not None else []
    words += [number(summary.score)] if summary.score is not None else []
    words += [f"({summary.lost} lost)"] if summary.lost else []
    return Span(" ".join(words), _STYLES.get(words[0], ""))


def ending_of(live: LiveStore, summary: EpisodeSummary) -> str:
    """How far it came, in a sentence. Of an ended episode the summary knows; else the events are read."""
    if summary.state == "ended":
        said = f"ended {summary.outcome or 'without an outcome'}"
        return f"{said}: {summary.reason}" if summary.reason else said
    from trackway.read.ending import ending

    where = ending(live.events(summary.id))
    if summary.state != "crashed":
        return f"running, {where}"
    # Between two things it may have died or only have forgotten to say that it was done: nobody can tell.
    return f"{'died' if where.startswith('inside') else 'stopped'} {where}"
