"""Thousands of kills without a process: the home is copied at random lines of the code, and each copy is judged."""

import os
import random

import pytest

from tests.crash.agent import Agent
from tests.crash.snapshots import Kills
from trackway.store import journal_files, segment, sqlite_seal

SIMULATED = int(os.environ.get("SIMULATED", "10000"))
SEEDS = 5
ACTS = 45


@pytest.mark.promise("kill -9", "at a random line, a copy judged: nothing acknowledged is lost, nothing is twice")
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", ["mmap", "append"])
def test_a_kill_at_any_line_loses_and_doubles_nothing(fast, monkeypatch, tell, kind, seed):
    """Whatever an agent was doing: all of it is readable, once, in order, and so it is after adoption."""
    monkeypatch.setattr(journal_files, "SMALLEST", 4 << 10)  # small files and frames: more of everything happens
    monkeypatch.setattr(journal_files, "LARGEST", 16 << 10)
    monkeypatch.setattr(segment, "LARGEST", 16 << 10)
    monkeypatch.setattr(sqlite_seal, "FULL_EVENTS", 12)
    luck = random.Random(f"{kind}{seed}")
    kills = Kills(SIMULATED // (2 * SEEDS), luck)
    while kills.done < kills.wanted:
        agent = Agent(fast / f"{kills.done:05d}", kind, luck)
        kills.watch(agent, ACTS)
        agent.leave()
    acknowledged, lost, doubled, misordered, strange = kills.verdict
    tell(simulated_kills=kills.done, acknowledged=acknowledged, lost=lost, doubled=doubled, misordered=misordered)
    if kills.trouble:
        pytest.fail("\n".join([f"{len(kills.trouble)} kills were not survived", *kills.trouble[:3]]), pytrace=False)
    assert (lost, doubled, misordered, strange) == (0, 0, 0, 0)
