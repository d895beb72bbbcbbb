"""How hard an episode was."""

import msgspec
import pytest

from trackway.read.difficulty import Difficulty, difficulty
from trackway.schema import events as kinds
from trackway.schema.events import Event
from trackway.testing.events import small_episode

SECOND = 1_000_000_000


def episode(*steps: tuple[str, str], task: str = "t", agent: str | None = None, seconds: int = 0) -> list[Event]:
    """Calls given as (tool, status); missing is a call without a result."""
    events: list[Event] = [kinds.EpisodeStart(header=kinds.Header(task=task), at=SECOND)]
    for n, (name, status) in enumerate(steps):
        tool, _, arg = name.partition(":")
        args = msgspec.json.encode({"x": arg})
        events.append(kinds.AssistantToolCall(name=tool, args=args, call_id=str(n), agent=agent))
        if status != "missing":
            events.append(
                kinds.ToolResult(
                    call_id=str(n), content="", status=status, is_error=status in ("error", "timeout"), agent=agent
                )
            )
    events.append(kinds.Note(topic="last", at=(1 + seconds) * SECOND))
    return [msgspec.structs.replace(each, n=n) for n, each in enumerate(events)]


def test_nothing_done_is_not_hard() -> None:
    """An empty episode scores 0."""
    found = difficulty([])

    assert (found.score, found.calls, found.same_streak, found.duration_s) == (0, 0, 0, 0)


def test_the_score_is_the_seeds_weights() -> None:
    """Calls, tools, errors, repeats, seconds: each up to its full worth."""
    events = episode(("a:1", "ok"), ("a:1", "error"), ("b", "ok"), ("c", "ok"), seconds=60)

    found = difficulty(events)

    assert (found.calls, found.tools, found.errors, found.same_streak, found.duration_s) == (4, 3, 1, 2, 60)
    assert found.score == pytest.approx(0.25 * 4 / 20 + 0.20 * 3 / 6 + 0.30 * 1 / 5 + 0.15 * 2 / 3 + 0.10 * 60 / 120)


def test_the_hardest_scores_1_and_its_counts_are_not_capped() -> None:
    """Fifty failing calls of six tools and more."""
    steps = [(f"t{n // 5}:x", "error") for n in range(50)]

    found = difficulty(episode(*steps, seconds=999))

    assert (found.score, found.calls, found.errors, found.error_streak) == (1.0, 50, 50, 50)


def test_whatever_went_wrong_is_an_error() -> None:
    """Failed, timed out, denied, interrupted, never answered; in an episode that never ended."""
    found = difficulty(
        episode(*((f"a:{s}", s) for s in ("error", "timeout", "denied", "interrupted", "missing", "ok")))
    )

    assert (found.errors, found.unanswered, found.error_streak) == (5, 1, 5)


def test_long_arguments_are_told_apart() -> None:
    """Calls that differ only after many characters are not the same call."""
    found = difficulty(episode(*((f"a:{'x' * 5000}{n}", "ok") for n in range(4))))

    assert found.same_streak == 1


def test_agents_streaks_are_kept_apart() -> None:
    """Three agents that make the same call once each repeat nothing; their failures are no row either."""
    events = [each for name in ("p", "q", "r") for each in episode(("a:1", "error"), agent=name)]

    found = difficulty(events)

    assert (found.calls, found.errors, found.same_streak, found.error_streak) == (3, 3, 1, 1)


def test_two_tasks_with_one_palette_have_two_signatures() -> None:
    """Two tries at one task have one."""
    steps = (("read", "ok"), ("edit", "ok"))

    one, again, other = (
        difficulty(events).signature
        for events in (episode(*steps), episode(*reversed(steps), seconds=5), episode(*steps, task="u"))
    )

    assert one == again != other


def test_without_a_task_the_first_input_is_what_was_asked() -> None:
    """Imported episodes often have no task."""
    one, other = (difficulty([kinds.User(content=text)]).signature for text in ("fix a", "fix b"))

    assert one != other


def test_a_label_given_later_takes_no_time() -> None:
    """Somebody judged it the next day."""
    events = small_episode()
    later = kinds.Label(score=1.0, n=99, at=events[-1].at + 86_400 * SECOND, writer=events[-1].writer)

    assert difficulty([*events, later]) == difficulty(events)
    assert isinstance(msgspec.to_builtins(difficulty(events))["score"], float)
    assert isinstance(difficulty(iter(events)), Difficulty)
