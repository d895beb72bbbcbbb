"""A disk that really fills up, and what is said and heard on it."""

from click.testing import CliRunner

import trackway
from tests.faults.places import (
    play,
    said_in,
    small_disk,
)
from trackway.cli import main

FILLING = 4000
KILOBYTE = "x" * 1000


def on(size, scene, folder, **given):
    """The scene's answer, played on a disk of that size."""
    played = play(scene, folder, mount=small_disk(folder, size), **given)
    assert played.code == 0, played.said[-3000:]
    return played


def command(*words):
    """A command's exit code and all it said."""
    answer = CliRunner().invoke(main, [str(each) for each in words])
    return answer.exit_code, answer.output


def say(episode, numbers, with_each=KILOBYTE):
    """Say the numbers; those that were acknowledged."""
    kept = []
    for each in numbers:
        before = episode.lost
        episode.user(f"{each} {with_each}")
        kept += [each] * (episode.lost == before)
    return kept


def heard(home, episode, store=None):
    """The numbers that are read back."""
    with trackway.open_store(store, home=home) as opened:
        return [int(each.split()[0]) for each in said_in(opened, episode.id)]


def files(folder):
    """Every file below a folder."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
